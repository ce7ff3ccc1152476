//! A connection to one server.

mod call;
mod client;
mod failure;
mod handler;
mod http;
mod lists;
mod running;
mod sampling;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use client::{Connection, Lifecycle, Link, OpenError};
pub use lists::{ServerPrompt, ServerResource};
pub(crate) use running::Caller;

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
