//! OpenAI's Chat Completions, and every server compatible with it.
//!
//! A request is serialized once from the borrowed history; the answer is streamed. What fails is
//! sent again as [`crate::retry`] decides. When a stream breaks off:
//!
//! - nothing of the text was shown: the request is sent again from the start;
//! - text was shown: after a notice the request is sent again with that text as the model's
//!   message and the instruction to go on, and both texts become one answer;
//! - text was shown and a `response_schema` is set: an answer under a schema cannot be continued,
//!   so it is sent again from the start, and only the new text counts.
//!
//! Calls come only from complete streams. Reasoning is shown and kept in the message, but not
//! sent back: Chat Completions has no field for it.

mod answer;
mod body;
mod chunk;
mod endpoint;
mod failure;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod models;
mod stream;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response};
use secrecy::{ExposeSecret, SecretString};

pub use models::{DEFAULT_CONTEXT_WINDOW, context_window};

use crate::config::{ProviderConfig, RetryConfig};
use crate::error::{LlmError, LlmErrorKind};
use crate::http::{LazyClient, read_capped};
use crate::message::MessagePart;
use crate::provider::{ChatRequest, ChatResponse, LlmProvider, StreamSink};
use crate::retry::{Retries, parse_retry_after};
use answer::Answer;
use body::BodyCache;
use endpoint::Endpoint;
use failure::{ErrorBody, Failure, Target};
use stream::AnswerReader;
use wire::WireSettings;

/// How much of an error's body is read.
const MAX_ERROR_BODY: usize = 64 << 10;
/// How long the end of a finished response may take, so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(20);
/// A shorter key is a placeholder for a server that wants none, and a common word at that.
const SHORTEST_SECRET: usize = 8;

/// Whether a `base_url` can be used; the error says why not.
pub(crate) fn check_base_url(base_url: Option<&str>) -> Result<(), String> {
    Endpoint::parse(base_url).map(|_| ())
}

/// Whether a `base_url` is OpenAI's own server.
pub(crate) fn is_openai(base_url: Option<&str>) -> bool {
    Endpoint::parse(base_url).is_ok_and(|endpoint| endpoint.is_openai())
}

/// A server that speaks Chat Completions.
pub struct OpenAiProvider {
    name: String,
    model: String,
    endpoint: Endpoint,
    key: Option<SecretString>,
    authorization: Option<HeaderValue>,
    key_env: Option<String>,
    context_window: usize,
    max_output_tokens: Option<u32>,
    images: bool,
    retry: RetryConfig,
    client: LazyClient,
    bodies: Mutex<BodyCache>,
}

impl fmt::Debug for OpenAiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiProvider")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("endpoint", &self.endpoint.shown())
            .field("has_key", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

impl OpenAiProvider {
    /// A provider for a checked configuration. Nothing is connected yet; even the HTTP client is
    /// made by the first request.
    ///
    /// # Errors
    /// `Config` for a configuration that [`ProviderConfig::validate`] refuses; `Auth` when the
    /// configuration wants a key and `api_key` is absent, or it cannot stand in a header.
    pub fn new(
        config: &ProviderConfig,
        retry: RetryConfig,
        api_key: Option<SecretString>,
    ) -> Result<Self, LlmError> {
        config.validate()?;
        let fail = |kind, message: String| LlmError::new(kind, &config.name, message);
        let endpoint = Endpoint::parse(config.base_url.as_deref())
            .map_err(|message| fail(LlmErrorKind::Config, message))?;
        let key_env = config.key_env();
        let key = api_key.filter(|key| !key.expose_secret().trim().is_empty());
        let authorization = match (&key, key_env) {
            (None, Some(variable)) => {
                return Err(fail(
                    LlmErrorKind::Auth,
                    format!("no key: set the environment variable {variable}"),
                ));
            }
            (None, None) => None,
            (Some(key), _) => {
                let bearer = format!("Bearer {}", key.expose_secret().trim());
                let mut header = HeaderValue::try_from(bearer).map_err(|_| {
                    let variable = key_env.unwrap_or("the given variable");
                    let message =
                        format!("the key in {variable} has characters that no header can carry");
                    fail(LlmErrorKind::Auth, message)
                })?;
                header.set_sensitive(true);
                Some(header)
            }
        };
        Ok(Self {
            name: config.name.clone(),
            model: config.model.clone(),
            endpoint,
            key,
            authorization,
            key_env: key_env.map(str::to_owned),
            context_window: config
                .context_window
                .unwrap_or_else(|| context_window(&config.model)),
            max_output_tokens: config.max_output_tokens,
            images: config.takes_images(),
            retry,
            client: LazyClient::default(),
            bodies: Mutex::default(),
        })
    }

    fn target(&self) -> Target<'_> {
        Target {
            url: self.endpoint.shown(),
            model: &self.model,
            key_env: self.key_env.as_deref(),
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
        if key.len() < SHORTEST_SECRET || !text.contains(key) {
            return text;
        }
        text.replace(key, "[key]")
    }

    async fn client(&self) -> Result<&Client, LlmError> {
        let client = self.client.get(self.endpoint.url(), &self.retry).await;
        client.map_err(|error| {
            let message = format!(
                "no HTTPS client could be made: {}. Are root certificates installed? Otherwise name a bundle in SSL_CERT_FILE.",
                failure::innermost_cause(&error.without_url())
            );
            self.error(Failure::new(LlmErrorKind::Config, message))
        })
    }

    fn body(&self, request: ChatRequest<'_>, shown: Option<&str>) -> Result<Bytes, LlmError> {
        let settings = WireSettings {
            model: &self.model,
            max_output_tokens: self.max_output_tokens,
            openai: self.endpoint.is_openai(),
            images: self.images,
        };
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies
            .build(settings, request, shown)
            .map_err(|failure| self.error(failure))
    }

    /// Sends the request once and reads the answer to its end.
    async fn attempt(
        &self,
        body: Bytes,
        answer: &mut Answer,
        sink: StreamSink<'_>,
    ) -> Result<(), LlmError> {
        let mut request = self
            .client()
            .await?
            .post(self.endpoint.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .body(body);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.error(failure::from_transport(error, self.target())))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        self.read(response, answer, sink).await
    }

    async fn read(
        &self,
        mut response: Response,
        answer: &mut Answer,
        sink: StreamSink<'_>,
    ) -> Result<(), LlmError> {
        let mut reader = AnswerReader::new(answer, self.target());
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => reader
                    .push(&bytes, sink)
                    .map_err(|failure| self.error(failure))?,
                Ok(None) => break,
                Err(_) if reader.is_complete() => break,
                Err(error) => {
                    let mut failure = failure::from_transport(error, self.target());
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

    /// The error for an answer that is no success.
    async fn refusal(&self, response: Response) -> LlmError {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let location = response.headers().get(reqwest::header::LOCATION).cloned();
        let mut body = read_capped(response, MAX_ERROR_BODY).await;
        if let Some(location) = location.filter(|_| (300..=399).contains(&status)) {
            body = [b"to ", location.as_bytes()].concat();
        }
        let failure = failure::from_answer(Some(status), &ErrorBody::parse(&body), self.target());
        LlmError {
            status: Some(status),
            retry_after,
            ..self.error(failure)
        }
    }
}

/// What the server asks to wait; `retry-after-ms` is OpenAI's finer form.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let fine = text("retry-after-ms")
        .and_then(|value| value.trim().parse::<u64>().ok())
        .map(Duration::from_millis);
    fine.or_else(|| parse_retry_after(text("retry-after")?, jiff::Timestamp::now()))
}

#[async_trait]
impl LlmProvider for OpenAiProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn supports_images(&self) -> bool {
        self.images
    }

    fn context_window(&self) -> usize {
        self.context_window
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let mut retries = Retries::begin(self.retry);
        let mut answer = Answer::default();
        let mut body = self.body(request, None)?;
        loop {
            let before = answer.text().len();
            let Err(error) = self.attempt(body.clone(), &mut answer, sink).await else {
                break;
            };
            let shown = !answer.text().trim().is_empty();
            let goes_on = shown && request.response_schema.is_none();
            if answer.text().len() > before {
                retries.restart_budget();
            }
            let next = match (shown, goes_on) {
                (false, _) => "sent again",
                (true, true) => "the model is asked to go on where the text stopped",
                (true, false) => "the answer starts over",
            };
            retries.wait(error, next, sink).await?;
            answer.restart(goes_on);
            if goes_on {
                body = self.body(request, Some(answer.text()))?;
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
}
