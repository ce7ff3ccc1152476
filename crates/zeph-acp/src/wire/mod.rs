//! The server on the protocol library. No other module uses types of the protocol.
//!
//! Handlers run on the dispatch loop of the library. A handler that needs the client, or the end of other work, starts a
//! task and returns. Requests to the client are sent from these tasks only.

mod auth;
mod backlog;
mod channel;
mod editor;
mod error;
mod handshake;
mod kind;
mod methods;
mod opening;
mod options;
mod outbox;
mod permission;
mod prompt;
mod server_question;
mod sessions;
mod transport;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, DeleteSessionRequest,
    ForkSessionRequest, InitializeRequest, ListSessionsRequest, LoadSessionRequest, LogoutRequest,
    NewSessionRequest, PromptRequest, ResumeSessionRequest, SetSessionConfigOptionRequest,
    SetSessionModeRequest,
};
use agent_client_protocol::{Agent, Channel, on_receive_notification, on_receive_request};
use tokio::io::{AsyncBufRead, AsyncWrite};

use crate::SessionHost;
use futures_util::StreamExt as _;
use handshake::Handshake;
use methods::Server;

/// Options of the server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The name of the agent.
    pub name: String,
    /// The name of the agent for display.
    pub title: String,
    /// The version of the agent.
    pub version: String,
    /// Whether each call is approved once, and the MCP servers of the client. Questions of MCP servers are declined.
    pub assume_yes: bool,
    /// Removes terminal control from the text of programs.
    pub clean: fn(&str) -> String,
    /// The time after which a client that reads nothing counts as disconnected.
    pub unread_timeout: Duration,
}

/// Serves one client until the end of `input`, or until `output` cannot be written. Then all running work ends.
///
/// # Errors
/// If the connection fails, or the client does not read.
pub async fn serve(
    host: Arc<dyn SessionHost>,
    options: ServeOptions,
    input: impl AsyncBufRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    let (streams, connection) = Channel::duplex();
    let (frames, sender) = streams.into_parts();
    let handshake = Arc::new(Handshake::default());
    let read_handshake = Arc::clone(&handshake);
    let reader = tokio::spawn(async move {
        let pass = |frame| sender.unbounded_send(frame).is_ok();
        transport::read(input, &read_handshake, pass).await;
    });
    let frames = frames.inspect(move |frame| handshake.sent(frame));
    let unread = options.unread_timeout;
    let server = Arc::new(Server::new(host, options));
    let backlog = Arc::clone(&server.backlog);
    let mut writer = tokio::spawn(async move {
        let written = transport::write(output, frames, &backlog, unread).await;
        backlog.close();
        written
    });
    let mut unread_error = None;
    let connected = tokio::select! {
        connected = connect(Arc::clone(&server), connection) => connected,
        // The client has ended.
        written = &mut writer => {
            tracing::info!(?written, "the output of the protocol ended");
            unread_error = written.ok().and_then(Result::err);
            Ok(())
        }
    };
    reader.abort();
    server.shut_down().await;
    if !writer.is_finished() {
        // The library has dropped its side, so the writer ends after the last message. A client that does not read
        // must not delay the end.
        let _ = tokio::time::timeout(methods::END_TIMEOUT, writer).await;
    }
    match unread_error.filter(|error| error.kind() == std::io::ErrorKind::TimedOut) {
        Some(error) => Err(error),
        None => connected.map_err(|error| std::io::Error::other(error.message)),
    }
}

/// Registers the methods, and runs the connection until the end of input.
async fn connect(server: Arc<Server>, transport: Channel) -> agent_client_protocol::Result<()> {
    /// A handler of a request or a notification: a method of the server.
    macro_rules! handler {
        (|$server:ident, $request:ident: $kind:ty, $responder:ident, $client:ident| $body:expr) => {{
            let $server = Arc::clone(&server);
            async move |$request: $kind, $responder, $client| {
                $body;
                Ok(())
            }
        }};
    }
    let cancelling = Arc::clone(&server);
    Agent
        .v1()
        .name("zeph")
        .on_receive_request(
            handler!(|server, it: InitializeRequest, to, _client| server.initialize(it, to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: AuthenticateRequest, to, _client| server.authenticate(it, to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, _it: LogoutRequest, to, _client| server.log_out(to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: NewSessionRequest, to, client| server.new_session(it, to, client)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: LoadSessionRequest, to, client| server.load(it, to, client)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: ResumeSessionRequest, to, client| server.resume(it, to, client)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: ForkSessionRequest, to, client| server.fork(it, to, client)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: ListSessionsRequest, to, _client| server.list(it, to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: DeleteSessionRequest, to, _client| server.delete(it, to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: CloseSessionRequest, to, _client| server.close(it, to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: PromptRequest, to, _client| server.prompt(it, to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(|server, it: SetSessionModeRequest, to, _client| server.set_mode(&it, to)),
            on_receive_request!(),
        )
        .on_receive_request(
            handler!(
                |server, it: SetSessionConfigOptionRequest, to, _client| server.set_option(it, to)
            ),
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |it: CancelNotification, _client| {
                cancelling.cancel(&it);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await
}
