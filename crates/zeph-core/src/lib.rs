//! The agent: the loop between model and tools.

#![deny(missing_docs)]

pub mod config;

pub use config::AgentConfig;
