//! A tool system as an MCP server. Only this module uses the server side of the protocol library.
//!
//! `host` has the ports. `stdio` and `http` are the transports, and `handler` responds to requests. `link` is the client of one call:
//! `question` is its form, and `pending` holds questions of revisions without requests of the server. `order` decides which calls run
//! concurrently. `message` and `mapping` translate.

mod handler;
mod host;
mod http;
mod link;
mod mapping;
mod message;
mod order;
mod pending;
mod question;
mod stdio;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::ServerInitializeError;
use tokio_util::sync::CancellationToken;

use handler::{Handler, Shared};
use stdio::StdioTransport;

pub use host::{CallClient, CallDecision, CallQuestion, ServedCall, ServerIdentity, ToolHost};

/// The time in which cancelled calls end.
const END_CALLS: Duration = Duration::from_secs(5);

/// Reads a line as a message.
///
/// # Errors
/// The id of the refusal of a line, if it has one.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_line(line: &[u8]) -> Result<(), Option<rmcp::model::RequestId>> {
    message::read(line).map(|_| ()).map_err(|bad| bad.id)
}

/// An MCP server.
pub struct McpServer {
    shared: Arc<Shared>,
}

impl McpServer {
    /// Creates a server of the tools of `host` with the description `identity`. It runs at most `max_parallel`
    /// read-only calls of a client concurrently.
    #[must_use]
    pub fn new(host: Arc<dyn ToolHost>, identity: ServerIdentity, max_parallel: usize) -> Self {
        Self {
            shared: Shared::new(host, identity, max_parallel),
        }
    }

    /// Serves the client on standard input and output. Returns after the end of input, or when `stop` is cancelled.
    ///
    /// # Errors
    /// The reason if the connection could not be established.
    pub async fn serve_stdio(&self, stop: CancellationToken) -> io::Result<()> {
        let ending = self.shared.ending.clone();
        let transport = StdioTransport::new(io::stdin(), io::stdout(), ending, stop);
        let handler = Handler::new(Arc::clone(&self.shared), false);
        let served = match rmcp::serve_server(handler, transport).await {
            Ok(running) => running
                .waiting()
                .await
                .map(|_| ())
                .map_err(io::Error::other),
            // The client left before its first request.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        };
        self.end_calls().await;
        served
    }

    /// Serves the clients of `listener` until `stop` is cancelled. `started` receives the URL.
    ///
    /// # Errors
    /// The address of the listener is unknown or is not a loopback address.
    pub async fn serve_http(
        &self,
        listener: std::net::TcpListener,
        started: impl FnOnce(String),
        stop: CancellationToken,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !is_local(&address) {
            return Err(io::Error::other(format!(
                "{address} is not a loopback address"
            )));
        }
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        started(format!("http://{address}{}", http::PATH));
        http::serve(listener, address, Arc::clone(&self.shared), stop).await;
        self.end_calls().await;
        Ok(())
    }

    /// Cancels all calls, and waits until they have ended.
    async fn end_calls(&self) {
        self.shared.ending.cancel();
        self.shared.calls.close();
        if tokio::time::timeout(END_CALLS, self.shared.calls.wait())
            .await
            .is_err()
        {
            tracing::warn!("some calls did not end in time");
        }
    }
}

/// Whether an address is reachable only by programs of this machine.
#[must_use]
pub fn is_local(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}
