//! The shell: `bash` and the processes it starts.

pub mod config;

pub use config::{ShellConfig, ShellEnvConfig};
