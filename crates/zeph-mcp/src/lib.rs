#![doc = include_str!("../README.md")]
//! # How it fits
//!
//! `config` says which servers there are; `server` keeps one alive (`link` speaks with it, which is behind the
//! feature `client`; `failure` puts what goes wrong into classes); `tool` checks what it lists, `trust`
//! knows what a person agreed to; `servers` are all of them; `executor` serves calls, whose results
//! `result` puts into words; `text` keeps anything from hiding in them.

#![deny(missing_docs)]

mod config;
mod connection;
mod executor;
mod failure;
mod result;
mod sanitize;
mod server;
mod servers;
mod tool;
mod trust;

pub use config::{McpConfig, McpServerConfig, Way, expanded, variables};
pub use connection::{Address, LACKS, Program};
pub use executor::McpExecutor;
pub use result::{Rendered, rendered};
pub use sanitize::{line, plain, revealed};
pub use server::{McpTransport, Phase};
pub use servers::{McpServers, Proposal};
pub use trust::{Pin, TrustStore};
