//! A connection to one server. The protocol needs the feature `client`; without it no connection is possible, and
//! each server reports that.

#[cfg(not(feature = "client"))]
mod disabled;
#[cfg(feature = "client")]
mod enabled;
#[cfg(feature = "client")]
mod failure;
#[cfg(feature = "client")]
mod http;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(not(feature = "client"))]
pub(crate) use disabled::{Connection, Link};
#[cfg(feature = "client")]
pub(crate) use enabled::{Connection, Link};

/// The reason why this build serves no MCP server; `None` if it has a client.
pub const LACKS: Option<&str> = match cfg!(feature = "client") {
    true => None,
    false => Some("this build has no MCP client; build one with `--features mcp`"),
};

/// A program that was started, and how it is spoken with.
pub struct Program {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Resolves when it has ended, to a text about its end. Dropping it ends the program.
    pub ended: Pin<Box<dyn Future<Output = String> + Send>>,
}

/// The address of a server.
pub enum Address {
    /// Behind these pipes.
    Program(Program),
    /// Behind this address, with these headers in every request.
    Url(String, Vec<(String, String)>),
}
