#![doc = include_str!("../README.md")]
//! # Structure
//!
//! `config` lists the servers. `server` keeps one alive; `connection` speaks the protocol, `form` reads the forms of its
//! questions, and `failure` classifies errors. `http` builds HTTP clients. `login` holds the logins at servers. `tool` checks the listed tools, and
//! `trust` compares them with the approved definitions. `servers` are all servers, `listing` shows them, `prompts` their
//! prompts, and `resource_tool` reads their resources. `executor` serves calls, `result` formats their results, and
//! `sanitize` removes hidden characters.
//!
//! `serve` is the other direction: it exposes a tool system to MCP clients.

#![deny(missing_docs)]

mod config;
mod connection;
mod executor;
mod failure;
mod form;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod listing;
mod login;
mod prompts;
mod resource_tool;
mod result;
mod sanitize;
pub mod serve;
mod server;
mod servers;
mod tool;
mod trust;

pub use async_trait::async_trait;
pub use tokio_util::sync::CancellationToken;

pub use config::{
    McpConfig, McpServerConfig, OAuthConfig, ServerSandbox, Way, expanded, variables,
};
pub use connection::{Address, Program, ServerUrl};
pub use executor::McpExecutor;
pub use http::is_web;
pub use listing::disabled_as_json;
pub use login::{BrowserReturn, CALLBACK_PATH, Login, StoredLogin, TokenStore};
pub use resource_tool::RESOURCE_TOOL;
pub use sanitize::line;
pub use server::McpTransport;
pub use servers::{McpServers, Proposal, ServerHealth};
pub use trust::{Pin, TrustStore};
