//! Errors of providers, in terms that state the fix.

use std::time::Duration;

/// The classes of failures. The class determines retries and the exit message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LlmErrorKind {
    /// No connection, or it broke.
    Network,
    /// Nothing came for longer than the read timeout.
    Timeout,
    /// 429.
    RateLimited,
    /// 5xx.
    Server,
    /// 401, 403: the key.
    Auth,
    /// 402 or an error body that speaks of quota or credit.
    NoCredit,
    /// The model does not exist there.
    UnknownModel,
    /// The request is longer than the model's window.
    ContextOverflow,
    /// 400, 422 and other refusals of the request itself.
    BadRequest,
    /// The answer follows no protocol.
    Protocol,
    /// The stream ended before the answer did.
    StreamCut,
    /// The configuration does not allow the request.
    Config,
    /// A scripted scenario's assertion failed, or it has no step left.
    Scenario,
}

impl LlmErrorKind {
    /// Its name in logs and telemetry.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
            Self::Server => "server",
            Self::Auth => "auth",
            Self::NoCredit => "no_credit",
            Self::UnknownModel => "unknown_model",
            Self::ContextOverflow => "context_overflow",
            Self::BadRequest => "bad_request",
            Self::Protocol => "protocol",
            Self::StreamCut => "stream_cut",
            Self::Config => "config",
            Self::Scenario => "scenario",
        }
    }

    /// Whether the same request may be sent again.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Network | Self::Timeout | Self::RateLimited | Self::Server | Self::StreamCut
        )
    }
}

/// A failure of a provider. Its text never contains a key.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{provider}: {message}")]
#[non_exhaustive]
pub struct LlmError {
    /// The class.
    pub kind: LlmErrorKind,
    /// The provider's configured name.
    pub provider: String,
    /// The event, the place, and the fix.
    pub message: String,
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
    /// The wait that the server requested.
    pub retry_after: Option<Duration>,
}

impl LlmError {
    /// Creates an error without HTTP status and delay.
    #[must_use]
    pub fn new(
        kind: LlmErrorKind,
        provider: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            provider: provider.into(),
            message: message.into(),
            status: None,
            retry_after: None,
        }
    }
}
