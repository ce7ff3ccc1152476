//! Clients over streamable HTTP, on loopback only. `Host` and `Origin` are checked, so that no web page reaches the tools.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handler::{Handler, Shared};

/// The path of the endpoint.
pub(super) const PATH: &str = "/mcp";
/// Bytes of the longest request.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// Connections that are open at the same time.
const MAX_CONNECTIONS: usize = 128;
/// The time in which a client sends the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// The time after which a session without requests ends. It is longer than the longest command.
const IDLE_SESSION: Duration = Duration::from_secs(2 * 60 * 60);
/// The time in which responses are sent when the server ends.
const FLUSH: Duration = Duration::from_secs(2);

type Service = StreamableHttpService<Handler, LocalSessionManager>;

/// Serves clients of `listener` until `stop` is cancelled.
pub(super) async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let service = service(address, &shared, &stop);
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            break;
        };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (service, stop) = (service.clone(), stop.clone());
        connections.spawn(async move {
            let _permit = permit;
            let respond = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(respond(&service, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), respond);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection failed");
            }
        });
    }
    shared.ending.cancel();
    connections.close();
    let _ = tokio::time::timeout(FLUSH, connections.wait()).await;
}

/// The service of the protocol library. It accepts only the names of this address in `Host` and `Origin`.
fn service(address: SocketAddr, shared: &Arc<Shared>, stop: &CancellationToken) -> Service {
    let port = address.port();
    let names = [
        address.to_string(),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ];
    let origins = names.iter().map(|name| format!("http://{name}"));
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins)
        .with_allowed_hosts(names.clone())
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(stop.child_token());
    let mut sessions = SessionConfig::default();
    sessions.keep_alive = Some(IDLE_SESSION);
    let mut manager = LocalSessionManager::default();
    manager.session_config = sessions;
    let shared = Arc::clone(shared);
    StreamableHttpService::new(
        move || Ok(Handler::new(Arc::clone(&shared), true)),
        Arc::new(manager),
        config,
    )
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn respond(service: &Service, request: Request<Incoming>) -> Response<Body> {
    if request.uri().path() == PATH {
        return service.handle(request).await;
    }
    let text = format!("the endpoint is {PATH}\n");
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
