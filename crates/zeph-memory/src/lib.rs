//! Sessions, messages, tasks and the audit trail in SQLite.

#![deny(missing_docs)]

pub mod config;

pub use config::{MemoryConfig, Synchronous};
