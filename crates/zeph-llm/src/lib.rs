//! Providers of language models: one trait and the wire formats of its implementations.
//!
//! The crate has no tools, no storage and no configuration files: it turns a [`ChatRequest`] into a stream of
//! [`StreamEvent`]s and a [`ChatResponse`].

#![deny(missing_docs)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod build_provider;
#[cfg(feature = "candle")]
pub mod candle;
#[cfg(not(feature = "candle"))]
#[path = "candle/disabled.rs"]
mod candle;
pub mod claude;
pub mod config;
mod effort;
mod endpoint;
pub mod error;
pub mod fallback;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
mod http_provider;
pub mod message;
pub mod ollama;
pub mod openai;
pub mod price;
pub mod provider;
pub mod responses;
pub mod retry;
pub mod scripted;
pub mod sse;
pub mod text_tools;
pub mod tool;
pub mod traced;
pub mod usage;

pub use async_trait::async_trait;
pub use build_provider::{build_provider, build_traced_provider};
pub use config::{OpenaiApi, ProviderConfig, ProviderKind, RetryConfig};
pub use effort::Effort;
pub use error::{LlmError, LlmErrorKind};
pub use fallback::Fallback;
pub use message::{Message, MessagePart, Role};
pub use ollama::OllamaProvider;
pub use provider::{
    ChatRequest, ChatResponse, EmbeddingModel, Embeddings, LlmProvider, Retry, ServerModel,
    StopReason, StreamEvent, StreamSink,
};
pub use text_tools::TextTools;
pub use tool::{ToolChoice, ToolDefinition, ToolUseRequest};
pub use usage::{Prices, Usage, Usd};
