//! The HTTP client of the export. It runs on the threads that send batches, with a runtime of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Runtime;
use zeph_llm::RetryConfig;
use zeph_llm::http::http_client_builder;

/// The time limit of a request.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// The maximum size of a response that is read.
const MAX_RESPONSE: usize = 64 * 1024;

/// The state of the collector, shared by all senders.
#[derive(Debug)]
pub(super) struct Link {
    /// The address for messages.
    shown: String,
    /// Whether the last request failed.
    failing: AtomicBool,
    /// Whether a failure was reported.
    told: AtomicBool,
}

impl Link {
    pub(super) fn new(shown: String) -> Arc<Self> {
        Arc::new(Self {
            shown,
            failing: AtomicBool::new(false),
            told: AtomicBool::new(false),
        })
    }

    /// Whether the last request failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Records the end of a request. The first failure is logged.
    fn note(&self, problem: Option<&str>) {
        self.failing.store(problem.is_some(), Ordering::Relaxed);
        let Some(problem) = problem else { return };
        if !self.told.swap(true, Ordering::Relaxed) {
            let collector = &self.shown;
            tracing::warn!(%collector, "traces and metrics cannot be sent: {problem}; later failures are not reported");
        }
    }
}

/// Sends requests, and waits for each one on the calling thread.
#[derive(Debug)]
pub(super) struct Sender {
    link: Arc<Link>,
    parts: OnceLock<(Runtime, reqwest::Client)>,
}

impl Sender {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            parts: OnceLock::new(),
        }
    }

    /// The runtime and the client, which reads the root certificates. The first request creates them.
    fn parts(&self, url: &str) -> Result<&(Runtime, reqwest::Client), HttpError> {
        if let Some(parts) = self.parts.get() {
            return Ok(parts);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let limits = RetryConfig {
            connect_timeout_secs: REQUEST_LIMIT.as_secs(),
            read_timeout_secs: REQUEST_LIMIT.as_secs(),
            ..RetryConfig::default()
        };
        let url = reqwest::Url::parse(url)?;
        let client = http_client_builder(&url, &limits)
            .timeout(REQUEST_LIMIT)
            .build()?;
        Ok(self.parts.get_or_init(|| (runtime, client)))
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (runtime, client) = self.parts(&request.uri().to_string())?;
        let request = reqwest::Request::try_from(request)?;
        runtime.block_on(async {
            let mut response = client.execute(request).await?;
            let status = response.status();
            let mut body = Vec::new();
            while body.len() < MAX_RESPONSE
                && let Some(chunk) = response.chunk().await?
            {
                body.extend_from_slice(&chunk);
            }
            let mut sent = Response::new(Bytes::from(body));
            *sent.status_mut() = status;
            Ok(sent)
        })
    }
}

#[async_trait]
impl HttpClient for Sender {
    /// The threads of the exporters have no runtime, so that waiting blocks nothing else.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.send(request);
        match &sent {
            Ok(response) if response.status().is_success() => self.link.note(None),
            Ok(response) => {
                let problem = format!("the collector responds {}", response.status());
                self.link.note(Some(&problem));
            }
            Err(error) => self.link.note(Some(&with_causes(error.as_ref()))),
        }
        sent
    }
}

/// The causes of an error, without the address in the first one, which may contain a password.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        texts.push(inner.to_string());
        cause = inner.source();
    }
    match texts.is_empty() {
        true => error.to_string(),
        false => texts.join(": "),
    }
}
