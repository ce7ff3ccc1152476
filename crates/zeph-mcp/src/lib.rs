#![doc = include_str!("../README.md")]
//! # Structure
//!
//! `config` lists the servers. `server` keeps one alive; `connection` speaks the protocol, and `failure`
//! classifies errors. `tool` checks the listed tools, and `trust` compares them with the approved definitions. `servers` are
//! all servers. `executor` serves calls, `result` formats their results, and `sanitize` removes hidden characters.
//!
//! `serve` is the other direction: it exposes the tools of Zeph to MCP clients.

#![deny(missing_docs)]

mod config;
mod connection;
mod executor;
mod failure;
mod result;
mod sanitize;
pub mod serve;
mod server;
mod servers;
mod tool;
mod trust;

pub use config::{McpConfig, McpServerConfig, Way, expanded, variables};
pub use connection::{Address, Program};
pub use executor::McpExecutor;
pub use result::{Rendered, rendered};
pub use sanitize::{line, plain, revealed};
pub use server::{McpTransport, Phase};
pub use servers::{McpServers, Proposal};
pub use trust::{Pin, TrustStore};
