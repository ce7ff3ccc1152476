//! What the model reads of a command's output.

pub mod config;

pub use config::FiltersConfig;
