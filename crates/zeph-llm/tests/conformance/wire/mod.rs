//! The server side of the wires: encoding a response in each format. The tests use these pieces and run for
//! all wires.

mod chat;
mod claude;
mod ollama;
mod responses;

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;
use zeph_llm::{
    LlmErrorKind, LlmProvider, Message, OpenaiApi, ProviderConfig, ProviderKind, RetryConfig,
    build_provider,
};

use crate::KEY;
use crate::server::{Reply, Request};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// OpenAI Chat Completions.
    Chat,
    /// Anthropic's Messages API.
    Claude,
    /// OpenAI Responses.
    Responses,
    /// The native chat API of Ollama.
    Ollama,
}

/// All wires.
pub(crate) const WIRES: [Wire; 4] = [Wire::Chat, Wire::Claude, Wire::Responses, Wire::Ollama];

/// A piece of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said<'a> {
    /// More text.
    Text(&'a str),
    /// More reasoning.
    Reasoning(&'a str),
    /// The start of a call: its id, for wires with ids, and the tool.
    Call(&'a str, &'a str),
    /// More of the arguments of that call. Some wires have no partial arguments.
    Arguments(&'a str),
    /// The end, with a usage of 7 tokens read and 5 written.
    End(Stop),
}

/// The reason why the model stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Done,
    Calls,
    Length,
}

impl Wire {
    /// The response as events or lines of the wire, in order.
    pub(crate) fn events(self, said: &[Said<'_>]) -> Vec<String> {
        match self {
            Self::Chat => chat::events(said),
            Self::Claude => claude::events(said),
            Self::Responses => responses::events(said),
            Self::Ollama => ollama::events(said),
        }
    }

    /// The response as the body of a stream.
    pub(crate) fn body(self, said: &[Said<'_>]) -> String {
        self.events(said).concat()
    }

    /// The length of the response in bytes before the event that marks it as complete.
    pub(crate) fn unfinished(self, said: &[Said<'_>]) -> usize {
        let mark = match self {
            Self::Chat => "\"finish_reason\":\"",
            Self::Claude => "\"stop_reason\":\"",
            Self::Responses => "\"response.completed\"",
            Self::Ollama => "\"done\":true",
        };
        let events = self.events(said);
        let end = events
            .iter()
            .position(|event| event.contains(mark))
            .unwrap();
        events[..end].concat().len()
    }

    /// The response as a stream.
    pub(crate) fn reply(self, said: &[Said<'_>]) -> Reply {
        self.stream(self.body(said))
    }

    /// A stream with this body.
    pub(crate) fn stream(self, body: impl Into<Vec<u8>>) -> Reply {
        let reply = Reply::stream(body);
        match self {
            Self::Ollama => reply.header("Content-Type", "application/x-ndjson"),
            _ => reply,
        }
    }

    /// A complete response with one text.
    pub(crate) fn text_answer(self, text: &str) -> Reply {
        self.reply(&[Said::Text(text), Said::End(Stop::Done)])
    }

    /// The response with one text as a document instead of a stream.
    pub(crate) fn document(self, text: &str) -> String {
        match self {
            Self::Chat => chat::document(text),
            Self::Claude => claude::document(text),
            Self::Responses => responses::document(text),
            Self::Ollama => ollama::document(text),
        }
    }

    /// The status and body of a refusal by the vendor.
    pub(crate) fn refusal(self, kind: LlmErrorKind) -> (u16, String) {
        match self {
            Self::Chat | Self::Responses => chat::refusal(kind),
            Self::Claude => claude::refusal(kind),
            Self::Ollama => ollama::refusal(kind),
        }
    }

    /// A server error within a stream, of a temporary class (`Server`) or a permanent one
    /// (`ContextOverflow`).
    pub(crate) fn error_event(self, kind: LlmErrorKind) -> String {
        match self {
            Self::Chat => chat::error_event(kind),
            Self::Claude => claude::error_event(kind),
            Self::Responses => responses::error_event(kind),
            Self::Ollama => ollama::error_event(kind),
        }
    }

    /// The end of a request that resumes a broken stream: the text as an assistant message, and the
    /// instruction.
    pub(crate) fn continued(self, body: &Value) -> (String, String) {
        match self {
            Self::Chat => chat::continued(body),
            Self::Claude => claude::continued(body),
            Self::Responses => responses::continued(body),
            Self::Ollama => ollama::continued(body),
        }
    }

    /// The configuration of a provider for a local server.
    pub(crate) fn config(self, base_url: &str) -> ProviderConfig {
        let kind = match self {
            Self::Chat | Self::Responses => ProviderKind::Openai,
            Self::Claude => ProviderKind::Claude,
            Self::Ollama => ProviderKind::Ollama,
        };
        ProviderConfig {
            api: (self == Self::Responses).then_some(OpenaiApi::Responses),
            model: "test-model".to_owned(),
            base_url: Some(base_url.to_owned()),
            api_key_env: Some("LOCAL_KEY".to_owned()),
            context_window: Some(50_000),
            ..ProviderConfig::new("local", kind)
        }
    }

    /// A provider for a local server.
    pub(crate) fn provider(self, base_url: &str, retry: RetryConfig) -> Arc<dyn LlmProvider> {
        build_provider(&self.config(base_url), retry, Some(SecretString::from(KEY))).unwrap()
    }

    /// The path of requests.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Claude => "/v1/messages",
            Self::Responses => "/v1/responses",
            Self::Ollama => "/api/chat",
        }
    }

    /// Equivalent endings of a `base_url`.
    pub(crate) fn endings(self) -> [&'static str; 4] {
        match self {
            Self::Ollama => ["", "/", "/api", "/api/"],
            _ => ["", "/", "/v1", "/v1/"],
        }
    }

    /// The key that a request carries.
    pub(crate) fn key(self, request: &Request) -> Option<&str> {
        match self {
            Self::Claude => request.header("x-api-key"),
            _ => request.header("authorization")?.strip_prefix("Bearer "),
        }
    }

    /// The media type that a request accepts.
    pub(crate) fn accept(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }
}

/// `Hi` from the user.
pub(crate) fn hi() -> [Message; 1] {
    [Message::user("Hi")]
}

/// An OpenAI-style error body.
fn error_body(message: &str, code: &str) -> String {
    serde_json::json!({"error": {"message": message, "type": code, "code": code}}).to_string()
}
