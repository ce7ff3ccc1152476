//! A provider that uses HTTP, independent of the API ([`Wire`]).
//!
//! A request is serialized once from the borrowed history; the response is streamed. [`crate::retry`] decides which
//! failed requests are sent again. When a stream breaks off:
//!
//! - Without displayed text, the request is sent again from the start.
//! - With displayed text, a notice follows. The request is sent again with that text as the model's message and the
//!   instruction to continue, and both texts become one response.
//! - With displayed text and a `response_schema`, the response cannot be continued. The request is sent again from
//!   the start, and only the new text counts.
//!
//! Calls come only from complete streams.

pub(crate) mod embeddings;
pub(crate) mod error_mapping;
pub(crate) mod excerpt;
pub(crate) mod lenient;
pub(crate) mod models;
pub(crate) mod ndjson;
pub(crate) mod request_body;
pub(crate) mod response_builder;
pub(crate) mod stream_reader;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod test_support;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod window;
pub(crate) mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use zeph_backoff::parse_retry_after;

use crate::config::{ProviderConfig, RetryConfig};
use crate::endpoint::Endpoint;
use crate::error::{LlmError, LlmErrorKind};
use crate::http::{LazyClient, read_capped};
use crate::message::MessagePart;
use crate::provider::{
    ChatRequest, ChatResponse, EmbeddingModel, Embeddings, LlmProvider, ServerModel, StreamSink,
};
use crate::retry::Retries;
use crate::usage::Prices;
use error_mapping::{ErrorBody, Failure, RequestKind, Target};
use request_body::request_body;
use response_builder::ResponseBuilder;
use stream_reader::AnswerReader;
use window::Window;
use wire::{Framing, Wire};

/// How much of an error's body is read.
const MAX_ERROR_BODY: usize = 64 << 10;
/// How long the end of a finished response may take, so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(20);
/// The minimum size of a request before the server is asked for the window of the model. Shorter ones fit the windows of
/// usual models.
const MIN_REQUEST_BYTES: usize = 16 << 10;
/// The minimum length of a key that counts as a secret. A shorter one is a placeholder for a server without keys, and
/// may be a common word.
const MIN_SECRET_LEN: usize = 8;

/// Properties of a provider that do not depend on its API.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The model's window.
    pub(crate) window: Window,
    /// Whether the model takes images.
    pub(crate) images: bool,
    /// Whether the model calls tools by the API.
    pub(crate) tools: bool,
    /// Its prices.
    pub(crate) prices: Option<Prices>,
}

impl Limits {
    /// The configured values; `window` is the default of the window. The windows of vendors are known.
    pub(crate) fn of(config: &ProviderConfig, window: usize) -> Self {
        Self {
            window: match config.context_window {
                Some(tokens) => Window::fixed(tokens),
                None if config.has_vendor_models() => Window::fixed(window),
                None => Window::reported_or(window),
            },
            images: config.takes_images(),
            tools: config.uses_tools(),
            prices: config.known_prices(),
        }
    }
}

/// A server that speaks the API `W`.
pub(crate) struct RemoteProvider<W: Wire> {
    name: String,
    model: String,
    endpoint: Endpoint,
    key: Option<SecretString>,
    headers: HeaderMap,
    key_env: Option<String>,
    limits: Limits,
    wire: W,
    retry: RetryConfig,
    client: LazyClient,
    embeddings: Option<embeddings::Source>,
}

impl<W: Wire> fmt::Debug for RemoteProvider<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteProvider")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("endpoint", &self.endpoint.shown())
            .field("has_key", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

impl<W: Wire> RemoteProvider<W> {
    /// A provider for a checked configuration. It does not connect yet; the first request creates the HTTP client.
    ///
    /// # Errors
    /// `Config` for a `base_url` that cannot be used; `Auth` if the configuration requires a key and `api_key` is
    /// absent or not valid in a header.
    pub(crate) fn new(
        config: &ProviderConfig,
        retry: RetryConfig,
        api_key: Option<SecretString>,
        limits: Limits,
        wire: W,
    ) -> Result<Self, LlmError> {
        let fail = |kind, message: String| LlmError::new(kind, &config.name, message);
        let endpoint = Endpoint::parse(config.base_url.as_deref(), W::PLACE)
            .map_err(|message| fail(LlmErrorKind::Config, message))?;
        let key_env = config.key_env();
        let key = api_key.filter(|key| !key.expose_secret().trim().is_empty());
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static(match W::FRAMING {
                Framing::Events => "text/event-stream",
                Framing::Lines => "application/x-ndjson",
            }),
        );
        for (name, value) in W::HEADERS {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        match (&key, key_env) {
            (None, Some(variable)) => {
                return Err(fail(
                    LlmErrorKind::Auth,
                    format!("no key: set the environment variable {variable}"),
                ));
            }
            (None, _) => {}
            (Some(key), _) => {
                let (name, before) = W::KEY_HEADER;
                let value = format!("{before}{}", key.expose_secret().trim());
                let mut value = HeaderValue::try_from(value).map_err(|_| {
                    let variable = key_env.unwrap_or("the given variable");
                    let message = format!(
                        "the key in {variable} has characters that are invalid in a \
                            header"
                    );
                    fail(LlmErrorKind::Auth, message)
                })?;
                value.set_sensitive(true);
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let prices = config.known_prices_of_embeddings();
        Ok(Self {
            embeddings: embeddings::Source::of::<W>(config, endpoint.url(), prices),
            name: config.name.clone(),
            model: config.model.clone(),
            endpoint,
            key,
            headers,
            key_env: key_env.map(str::to_owned),
            limits,
            wire,
            retry,
            client: LazyClient::default(),
        })
    }

    fn target(&self) -> Target<'_> {
        Target {
            url: self.endpoint.shown(),
            model: &self.model,
            api: W::NAME,
            key_env: self.key_env.as_deref(),
            purpose: RequestKind::Answer,
        }
    }

    fn error(&self, failure: Failure) -> LlmError {
        LlmError::new(failure.kind, &self.name, self.redact(failure.message))
    }

    /// Takes the key out of a text, in case that the server sent it back.
    fn redact(&self, text: String) -> String {
        let key = self
            .key
            .as_ref()
            .map_or("", |key| key.expose_secret().trim());
        if key.len() < MIN_SECRET_LEN || !text.contains(key) {
            return text;
        }
        text.replace(key, "[key]")
    }

    async fn client(&self) -> Result<&Client, LlmError> {
        let client = self.client.get(self.endpoint.url(), &self.retry).await;
        client.map_err(|error| {
            let message = format!(
                "the HTTPS client cannot be created: {}. Install root certificates, or name a \
                 bundle in SSL_CERT_FILE.",
                error_mapping::innermost_cause(&error.without_url())
            );
            self.error(Failure::new(LlmErrorKind::Config, message))
        })
    }

    fn body(&self, request: ChatRequest<'_>, shown: Option<&str>) -> Result<Bytes, LlmError> {
        request_body(&self.wire, request, shown).map_err(|failure| self.error(failure))
    }

    /// Sends the request once and reads the complete response.
    async fn attempt(
        &self,
        body: Bytes,
        answer: &mut ResponseBuilder,
        sink: StreamSink<'_>,
    ) -> Result<(), LlmError> {
        let (url, headers) = (self.endpoint.url().clone(), self.headers.clone());
        let response = self.send(url, headers, body, self.target()).await?;
        self.read(response, answer, sink).await
    }

    /// Sends a request once; a response without a success status is an error.
    async fn send(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        target: Target<'_>,
    ) -> Result<Response, LlmError> {
        let request = self.client().await?.post(url).headers(headers).body(body);
        let response = request
            .send()
            .await
            .map_err(|error| self.error(error_mapping::from_transport(error, target)))?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(self.refusal(response, target).await),
        }
    }

    async fn read(
        &self,
        mut response: Response,
        answer: &mut ResponseBuilder,
        sink: StreamSink<'_>,
    ) -> Result<(), LlmError> {
        let mut reader = AnswerReader::<W>::new(answer, self.target());
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => reader
                    .push(&bytes, sink)
                    .map_err(|failure| self.error(failure))?,
                Ok(None) => break,
                Err(_) if reader.is_complete() => break,
                Err(error) => {
                    let mut failure = error_mapping::from_transport(error, self.target());
                    if failure.kind == LlmErrorKind::Network {
                        failure.kind = LlmErrorKind::StreamCut;
                    }
                    return Err(self.error(failure));
                }
            }
            if reader.is_done() {
                let _ = tokio::time::timeout(DRAIN, response.chunk()).await;
                break;
            }
        }
        reader.end(sink).map_err(|failure| self.error(failure))
    }

    /// The error for a response without a success status.
    async fn refusal(&self, response: Response, target: Target<'_>) -> LlmError {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let location = response.headers().get(reqwest::header::LOCATION).cloned();
        let mut body = read_capped(response, MAX_ERROR_BODY).await;
        if let Some(location) = location.filter(|_| (300..=399).contains(&status)) {
            body = [b"to ", location.as_bytes()].concat();
        }
        let body = ErrorBody::parse(&body);
        let failure = error_mapping::from_answer(Some(status), &body, target);
        LlmError {
            status: Some(status),
            retry_after: retry_after.or(body.retry_after),
            ..self.error(failure)
        }
    }
}

/// The wait that the server requested; `retry-after-ms` is a finer form that some servers send.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let fine = text("retry-after-ms")
        .and_then(|value| value.trim().parse::<u64>().ok())
        .map(Duration::from_millis);
    fine.or_else(|| parse_retry_after(text("retry-after")?, jiff::Timestamp::now()))
}

#[async_trait]
impl<W: Wire> LlmProvider for RemoteProvider<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn supports_images(&self) -> bool {
        self.limits.images
    }

    fn supports_tool_use(&self) -> bool {
        self.limits.tools
    }

    fn context_window(&self) -> usize {
        self.limits.window.tokens()
    }

    async fn learn_window(&self) {
        self.ask_window().await;
    }

    fn prices(&self) -> Option<Prices> {
        self.limits.prices
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let request = ChatRequest {
            tools: if self.limits.tools {
                request.tools
            } else {
                &[]
            },
            ..request
        };
        let mut retries = Retries::begin(self.retry);
        let mut answer = ResponseBuilder::default();
        let mut body = self.body(request, None)?;
        if body.len() >= MIN_REQUEST_BYTES {
            self.ask_window().await;
            body = self.body(request, None)?;
        }
        loop {
            let before = answer.received();
            let Err(error) = self.attempt(body.clone(), &mut answer, sink).await else {
                break;
            };
            let shown = !answer.text().trim().is_empty();
            let goes_on = shown && request.response_schema.is_none();
            if answer.received() > before {
                retries.response_began();
            }
            let next = match (shown, goes_on) {
                (false, _) => "It is sent again.",
                (true, true) => "Zeph requests the rest of the response from the model.",
                (true, false) => "The response starts again.",
            };
            retries.wait(error, next, sink).await?;
            answer.restart(goes_on);
            if goes_on {
                body = self.body(request, Some(&answer.text()))?;
            }
        }
        let id_taken = |id: &str| {
            let mut parts = request.messages.iter().flat_map(|message| &message.parts);
            parts.any(|part| matches!(part, MessagePart::ToolUse(call) if call.id == id))
        };
        answer
            .finish(id_taken, sink)
            .map_err(|failure| self.error(failure))
    }

    async fn models(&self) -> Result<Vec<ServerModel>, LlmError> {
        self.list_models().await
    }

    fn embedding_model(&self) -> Option<&EmbeddingModel> {
        Some(&self.embeddings.as_ref()?.model)
    }

    async fn embed(&self, texts: &[&str]) -> Result<Option<Embeddings>, LlmError> {
        match &self.embeddings {
            Some(source) => self.vectors(source, texts).await.map(Some),
            None => Ok(None),
        }
    }
}
