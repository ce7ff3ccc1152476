//! The connection itself: the only file that speaks with the protocol's library.

use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use zeph_tools::{McpError, ToolError};

use super::{Address, http};
use crate::failure::About;

/// The most tools that are taken of one server.
const MAX_TOOLS: usize = 512;
/// The most pages of its list that are requested.
const MAX_PAGES: usize = 64;
/// The time limit for sending a cancellation to a server.
const TELLING: Duration = Duration::from_millis(500);

type Served = Pin<
    Box<
        dyn Future<Output = Result<RunningService<RoleClient, Handler>, ClientInitializeError>>
            + Send,
    >,
>;

/// An open connection.
pub(crate) struct Link {
    peer: Peer<RoleClient>,
    /// Cancelled when it is closed.
    pub(crate) closed: CancellationToken,
}

/// The connection itself; it is closed when this is dropped.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    ended: Option<Pin<Box<dyn Future<Output = String> + Send>>>,
}

/// Handles notifications of a server.
struct Handler {
    tools_changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("zeph", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), me)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

impl Link {
    /// Connects to the server `name`. `tools_changed` is notified when the server reports a changed list of tools.
    pub(crate) async fn open(
        name: &str,
        address: Address,
        connect_timeout: Duration,
        tools_changed: Arc<Notify>,
    ) -> Result<(Self, Connection), McpError> {
        let about = About {
            server: name,
            tool: None,
        };
        let handler = Handler { tools_changed };
        let (service, ended) = match address {
            Address::Program(mut program) => {
                let streams = (program.output, program.input);
                let service = tokio::select! {
                    service = served(handler, streams) => service,
                    how = &mut program.ended => return Err(about.connection(how)),
                };
                let service = match service {
                    Ok(service) => service,
                    // The end of the program is a more specific reason than closed pipes.
                    Err(error) => {
                        let how = tokio::time::timeout(TELLING, &mut program.ended).await;
                        return Err(match how {
                            Ok(how) => about.connection(how),
                            Err(_) => about.initialize(&error),
                        });
                    }
                };
                (service, Some(program.ended))
            }
            Address::Url(url, headers) => {
                let client = http::client(&url, connect_timeout)
                    .await
                    .map_err(|error| about.connection(error))?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url);
                config.custom_headers = header_map(&headers).map_err(|e| about.connection(e))?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = served(handler, transport).await;
                (service.map_err(|error| about.initialize(&error))?, None)
            }
        };
        let link = Self {
            peer: service.peer().clone(),
            closed: CancellationToken::new(),
        };
        Ok((link, Connection { service, ended }))
    }

    /// All its tools, as it lists them, and whether there are more than are taken.
    pub(crate) async fn tools(&self, about: About<'_>) -> Result<(Vec<Value>, bool), McpError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let options = PeerRequestOptions::no_options();
            let answer = match self.peer.send_cancellable_request(request, options).await {
                Ok(handle) => handle.await_response().await,
                Err(error) => Err(error),
            };
            let page = value(answer).map_err(|error| about.request(&error))?;
            let Some(listed) = page.get("tools").and_then(Value::as_array) else {
                return Err(about.protocol("its answer to tools/list holds no tools"));
            };
            tools.extend(listed.iter().take(MAX_TOOLS + 1 - tools.len()).cloned());
            let next = page.get("nextCursor").and_then(Value::as_str);
            cursor = next.map(str::to_owned);
            if cursor.is_none() || tools.len() > MAX_TOOLS {
                break;
            }
        }
        let more = cursor.is_some() || tools.len() > MAX_TOOLS;
        tools.truncate(MAX_TOOLS);
        Ok((tools, more))
    }

    /// Calls a tool.
    pub(crate) async fn call(
        &self,
        about: About<'_>,
        arguments: Map<String, Value>,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let name = about.tool.unwrap_or_default().to_owned();
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = tokio::select! {
            sent = tokio::time::timeout(limit, sent) => match sent {
                Ok(Ok(handle)) => handle,
                Ok(Err(error)) => return Err(about.request(&error).into()),
                Err(_) => return Err(about.timeout(limit).into()),
            },
            () = cancel.cancelled() => return Err(ToolError::cancelled()),
            () = self.closed.cancelled() => return Err(gone(about)),
        };
        let stopped = tokio::select! {
            biased;
            answer = &mut handle.rx => {
                return match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
                    Err(ServiceError::TransportClosed) => Err(gone(about)),
                    answer => value(answer).map_err(|error| about.request(&error).into()),
                };
            }
            () = self.closed.cancelled() => return Err(gone(about)),
            () = cancel.cancelled() => ToolError::cancelled(),
            () = tokio::time::sleep(limit) => about.timeout(limit).into(),
        };
        let told = handle.cancel(Some("it is not waited for any more".to_owned()));
        let _ = tokio::time::timeout(TELLING, told).await;
        Err(stopped)
    }
}

/// The handshake.
fn served<T, E, A>(handler: Handler, transport: T) -> Served
where
    T: IntoTransport<RoleClient, E, A> + Send + 'static,
    E: Error + Send + Sync + 'static,
    A: 'static,
{
    Box::pin(rmcp::serve_client(handler, transport))
}

fn gone(about: About<'_>) -> ToolError {
    about
        .connection("it ended during the call, and is being restarted")
        .into()
}

impl Connection {
    /// Waits until the connection is closed, and returns the reason.
    pub(crate) async fn closed(mut self) -> String {
        let quit = self.service.waiting();
        match self.ended.as_mut() {
            None => {
                let _ = quit.await;
                "the connection was closed".to_owned()
            }
            Some(ended) => {
                tokio::select! {
                    how = &mut *ended => how,
                    _ = quit => match tokio::time::timeout(TELLING, ended).await {
                        Ok(how) => how,
                        Err(_) => "it closed its output".to_owned(),
                    },
                }
            }
        }
    }
}

/// The unchanged result of a response.
fn value(answer: Result<ServerResult, ServiceError>) -> Result<Value, ServiceError> {
    let unexpected = |_| ServiceError::UnexpectedResponse;
    match answer? {
        ServerResult::CallToolResult(result) => serde_json::to_value(result).map_err(unexpected),
        ServerResult::ListToolsResult(result) => serde_json::to_value(result).map_err(unexpected),
        // One part that the library does not know makes it this.
        ServerResult::CustomResult(result) if result.0.is_object() => Ok(result.0),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut map = HashMap::new();
    for (name, value) in headers {
        let fault = || format!("the header {name:?} cannot be sent as it is set");
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| fault())?;
        value.set_sensitive(true);
        map.insert(parsed, value);
    }
    Ok(map)
}
