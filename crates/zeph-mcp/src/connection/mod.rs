//! A connection to one server.

mod call;
mod client;
mod failure;
mod handler;
mod lists;
mod running;
mod sampling;
mod task;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::login::StoredLogin;

pub(crate) use client::{Connection, Lifecycle, Link, OpenError};
pub use lists::{ServerPrompt, ServerResource};
pub(crate) use running::Caller;

/// A started program, and its protocol connection.
pub struct Program {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// The part of its sandbox that is not enforced; `None` if it has its whole sandbox or needs none.
    pub unconfined: Option<String>,
    /// Resolves when it has ended, to a text about its end. Dropping it ends the program.
    pub ended: Pin<Box<dyn Future<Output = String> + Send>>,
}

/// The endpoint of a server.
pub enum Address {
    /// The standard input and output of a program.
    Program(Program),
    /// An HTTP address.
    Url(ServerUrl),
}

/// The address of a server with HTTP.
pub struct ServerUrl {
    /// The address.
    pub url: String,
    /// The headers of every request.
    pub headers: Vec<(String, String)>,
    /// The stored login.
    pub login: StoredLogin,
    /// The secret of the OAuth client, if the configuration has one.
    pub client_secret: Option<String>,
}
