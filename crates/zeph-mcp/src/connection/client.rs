//! A connection to a server: its handshake and its lists.
//!
//! The client probes with `server/discover`, which revision 2026-07-28 has, and falls back to the handshake of the
//! earlier revisions.

use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, PeerRequestOptions, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use zeph_tools::McpError;

use super::failure::{scope_of_request, scope_of_start};
use super::handler::Handler;
use super::running::RunningCalls;
use super::{Address, ServerUrl};
use crate::config::McpServerConfig;
use crate::failure::About;
use crate::http;
use crate::login::{StoredLogin, manager};

/// The most tools that are taken of one server.
const MAX_TOOLS: usize = 512;
/// The most pages of its list that are requested.
const MAX_PAGES: usize = 64;
/// How long to wait for the end of a program whose pipes are closed.
const LAST_EXIT: Duration = Duration::from_millis(500);
/// The wait before a subscription that ended is made again.
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(2);

type Served = Pin<
    Box<
        dyn Future<Output = Result<RunningService<RoleClient, Handler>, ClientInitializeError>>
            + Send,
    >,
>;

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// With `server/discover`, or with `initialize` if the server does not know that.
    Probe,
    /// With `initialize`.
    Handshake,
}

/// A connection that was not made.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// Another attempt may succeed.
    Failed(McpError),
    /// No attempt can succeed, for this reason.
    Refused(String),
    /// An attempt with [`Lifecycle::Handshake`] may succeed.
    Legacy,
}

/// An open connection.
pub(crate) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) calls: Arc<RunningCalls>,
    /// Whether the server may request responses of the model.
    pub(super) samples: bool,
    /// The stored login at the server.
    login: Option<StoredLogin>,
    /// Cancelled when it is closed.
    pub(crate) closed: CancellationToken,
    /// The negotiated revision of the protocol.
    pub(crate) revision: String,
}

/// The connection itself; it is closed when this is dropped.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    ended: Option<Pin<Box<dyn Future<Output = String> + Send>>>,
    subscription: Option<JoinHandle<()>>,
}

impl Link {
    /// Connects to the server of `config`. `lists_changed` is notified when the server reports a changed list.
    pub(crate) async fn open(
        config: &McpServerConfig,
        address: Address,
        lifecycle: Lifecycle,
        lists_changed: Arc<Notify>,
    ) -> Result<(Self, Connection), OpenError> {
        let name = config.name.as_str();
        let about = About {
            server: name,
            tool: None,
        };
        let samples = config.sampling;
        let calls = Arc::new(RunningCalls::default());
        let handler = Handler {
            server: name.to_owned(),
            lists_changed: Arc::clone(&lists_changed),
            calls: Arc::clone(&calls),
            samples,
        };
        let mut login = None;
        let (service, ended) = match address {
            Address::Program(mut program) => {
                let streams = (program.output, program.input);
                let service = tokio::select! {
                    service = served(handler, streams, lifecycle) => service,
                    how = &mut program.ended => return Err(ended_early(about, lifecycle, how)),
                };
                let service = match service {
                    Ok(service) => service,
                    Err(error) if is_closed(&error) => {
                        // The end of the program is a more specific reason than closed pipes.
                        let how = tokio::time::timeout(LAST_EXIT, &mut program.ended).await;
                        return Err(match how {
                            Ok(how) => ended_early(about, lifecycle, how),
                            Err(_) => not_opened(about, lifecycle, &error),
                        });
                    }
                    Err(error) => return Err(not_opened(about, lifecycle, &error)),
                };
                (service, Some(program.ended))
            }
            Address::Url(server) => {
                let service = serve_url(config, &server, handler, lifecycle).await?;
                login = Some(server.login);
                (service, None)
            }
        };
        let peer = service.peer().clone();
        let info = peer.peer_info();
        let revision = info.as_ref().map(|info| info.protocol_version.clone());
        let Some(revision) = revision.filter(|it| ProtocolVersion::KNOWN_VERSIONS.contains(it))
        else {
            let spoken = info.map(|info| info.protocol_version.to_string());
            return Err(OpenError::Refused(unknown_revision(spoken.as_slice())));
        };
        let subscription = (!revision.has_initialize()).then(|| {
            let filter = info.map_or_else(SubscriptionFilter::new, |info| {
                subscriptions(&info.capabilities)
            });
            tokio::spawn(subscribe(peer.clone(), filter, lists_changed))
        });
        let link = Self {
            peer,
            calls,
            samples,
            login,
            closed: CancellationToken::new(),
            revision: revision.to_string(),
        };
        let connection = Connection {
            service,
            ended,
            subscription,
        };
        Ok((link, connection))
    }

    /// Records the scopes that a refused request lacks; the next login requests them.
    pub(super) async fn note_scope(&self, error: &ServiceError) {
        if let (Some(login), Some(scope)) = (&self.login, scope_of_request(error)) {
            login.want(&scope).await;
        }
    }

    /// All its tools, as it lists them, and whether there are more than are taken.
    pub(crate) async fn tools(&self, about: About<'_>) -> Result<(Vec<Value>, bool), McpError> {
        let has_tools = self
            .peer
            .peer_info()
            .is_none_or(|info| info.capabilities.tools.is_some());
        if !has_tools {
            return Ok((Vec::new(), false));
        }
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
                return Err(about.protocol("its response to tools/list contains no tools"));
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
}

/// Begins a connection to an address, with the tokens of the login if there is one.
async fn serve_url(
    config: &McpServerConfig,
    server: &ServerUrl,
    handler: Handler,
    lifecycle: Lifecycle,
) -> Result<RunningService<RoleClient, Handler>, OpenError> {
    let about = About {
        server: &config.name,
        tool: None,
    };
    let failed = |error: String| OpenError::Failed(about.connection(error));
    let client = http::client(&server.url, config.connect_timeout());
    let client = client.await.map_err(failed)?;
    let mut options = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    options.custom_headers = header_map(&server.headers).map_err(failed)?;
    // A configured header takes the place of a login.
    let is_authorized = options.custom_headers.contains_key(&AUTHORIZATION);
    let secret = server.client_secret.clone();
    let manager = match is_authorized {
        true => None,
        false => manager(config, &server.url, &server.login, secret)
            .await
            .map_err(failed)?,
    };
    let service = match manager {
        None => {
            let transport = StreamableHttpClientTransport::with_client(client, options);
            served(handler, transport, lifecycle).await
        }
        Some(manager) => {
            let client = AuthClient::new(client, manager);
            let transport = StreamableHttpClientTransport::with_client(client, options);
            served(handler, transport, lifecycle).await
        }
    };
    match service {
        Ok(service) => Ok(service),
        Err(error) => {
            if let Some(scope) = scope_of_start(&error) {
                server.login.want(&scope).await;
            }
            Err(not_opened(about, lifecycle, &error))
        }
    }
}

/// Begins a connection.
fn served<T, E, A>(handler: Handler, transport: T, lifecycle: Lifecycle) -> Served
where
    T: IntoTransport<RoleClient, E, A> + Send + 'static,
    E: Error + Send + Sync + 'static,
    A: 'static,
{
    let mode = match lifecycle {
        Lifecycle::Probe => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::NO_INITIALIZE],
            legacy_version: None,
        },
        Lifecycle::Handshake => ClientLifecycleMode::Initialize,
    };
    Box::pin(rmcp::service::serve_client_with_lifecycle(
        handler, transport, mode,
    ))
}

/// Whether the connection was closed before it began.
fn is_closed(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
    )
}

/// The error of a program that ended before the connection began. Some servers of earlier revisions end at a request that
/// they do not know.
fn ended_early(about: About<'_>, lifecycle: Lifecycle, how: String) -> OpenError {
    match lifecycle {
        Lifecycle::Probe => OpenError::Legacy,
        Lifecycle::Handshake => OpenError::Failed(about.connection(how)),
    }
}

/// The error of a connection that did not begin.
fn not_opened(about: About<'_>, lifecycle: Lifecycle, error: &ClientInitializeError) -> OpenError {
    match error {
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let is_legacy = |version: &ProtocolVersion| {
                ProtocolVersion::KNOWN_VERSIONS.contains(version) && version.has_initialize()
            };
            match server_supported.iter().any(is_legacy) {
                true => OpenError::Legacy,
                false => {
                    let spoken = server_supported.iter().map(ToString::to_string);
                    OpenError::Refused(unknown_revision(&spoken.collect::<Vec<_>>()))
                }
            }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            not_opened(about, Lifecycle::Handshake, fallback)
        }
        // The probe got no usable response.
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ExpectedInitResponse(_)
            if lifecycle == Lifecycle::Probe =>
        {
            OpenError::Legacy
        }
        error => OpenError::Failed(about.initialize(error)),
    }
}

/// The message about a server that speaks only unknown revisions.
fn unknown_revision(spoken: &[String]) -> String {
    let spoken = match spoken {
        [] => "an unnamed revision of the protocol".to_owned(),
        spoken => {
            let spoken = crate::sanitize::line(&spoken.join(", "), 100);
            format!("the protocol revision {spoken}")
        }
    };
    let known = ProtocolVersion::KNOWN_VERSIONS;
    let known: Vec<&str> = known.iter().map(ProtocolVersion::as_str).collect();
    format!(
        "it uses {spoken}, and Zeph uses {}; update the server or Zeph",
        known.join(", ")
    )
}

/// The changes that are followed: those that the server reports.
fn subscriptions(capabilities: &rmcp::model::ServerCapabilities) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::builder();
    let tools = capabilities.tools.as_ref();
    if tools.is_some_and(|tools| tools.list_changed == Some(true)) {
        filter = filter.tools_list_changed();
    }
    let prompts = capabilities.prompts.as_ref();
    if prompts.is_some_and(|prompts| prompts.list_changed == Some(true)) {
        filter = filter.prompts_list_changed();
    }
    let resources = capabilities.resources.as_ref();
    if resources.is_some_and(|resources| resources.list_changed == Some(true)) {
        filter = filter.resources_list_changed();
    }
    filter.build()
}

/// Follows the changes of a server without a handshake. A subscription that ends is made again, and the lists are
/// requested again, since a change may have been missed.
async fn subscribe(peer: Peer<RoleClient>, filter: SubscriptionFilter, changed: Arc<Notify>) {
    if filter == SubscriptionFilter::new() {
        return;
    }
    loop {
        match peer.listen(filter.clone()).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    changed.notify_one();
                }
            }
            // The server does not support subscriptions.
            Err(ServiceError::McpError(error)) => {
                tracing::debug!(%error, "an MCP server does not support subscriptions");
                return;
            }
            Err(ServiceError::TransportClosed) => return,
            Err(error) => tracing::debug!(%error, "a subscription to an MCP server failed"),
        }
        tokio::time::sleep(SUBSCRIBE_AGAIN).await;
        changed.notify_one();
    }
}

impl Connection {
    /// Waits until the connection is closed, and returns the reason.
    pub(crate) async fn closed(mut self) -> String {
        let quit = self.service.waiting();
        let why = match self.ended.as_mut() {
            None => {
                let _ = quit.await;
                "the connection was closed".to_owned()
            }
            Some(ended) => {
                tokio::select! {
                    how = &mut *ended => how,
                    _ = quit => match tokio::time::timeout(LAST_EXIT, ended).await {
                        Ok(how) => how,
                        Err(_) => "it closed its output".to_owned(),
                    },
                }
            }
        };
        if let Some(subscription) = &self.subscription {
            subscription.abort();
        }
        why
    }
}

/// The unchanged result of a response.
pub(super) fn value(answer: Result<ServerResult, ServiceError>) -> Result<Value, ServiceError> {
    let unexpected = |_| ServiceError::UnexpectedResponse;
    match answer? {
        ServerResult::CallToolResult(result) => serde_json::to_value(result).map_err(unexpected),
        ServerResult::ListToolsResult(result) => serde_json::to_value(result).map_err(unexpected),
        // A result without content.
        ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => {
            Ok(Value::Object(serde_json::Map::new()))
        }
        // One part that the library does not know makes it this.
        ServerResult::CustomResult(result) if result.0.is_object() => Ok(result.0),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut map = HashMap::new();
    for (name, value) in headers {
        let fault = || format!("the value of the header {name:?} is invalid");
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| fault())?;
        value.set_sensitive(true);
        map.insert(parsed, value);
    }
    Ok(map)
}
