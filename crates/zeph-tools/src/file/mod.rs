//! File tools behind a path sandbox.

pub mod config;

pub use config::FileConfig;
