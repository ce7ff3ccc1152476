//! Classification of failures (HTTP statuses, error bodies and broken connections), with texts that state the fix.

use std::error::Error;
use std::time::Duration;

use serde_json::Value;

use super::excerpt::{excerpt, page_excerpt};
use crate::error::LlmErrorKind;

/// A failure before it carries the provider's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: LlmErrorKind,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(kind: LlmErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// The values for error texts: the URL of the request, its key and its model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The URL without query.
    pub(crate) url: &'a str,
    pub(crate) model: &'a str,
    /// The API's name.
    pub(crate) api: &'a str,
    /// The environment variable of the key.
    pub(crate) key_env: Option<&'a str>,
    /// The purpose of the request.
    pub(crate) purpose: RequestKind,
}

impl Target<'_> {
    /// The host of the server.
    pub(crate) fn host(self) -> Option<String> {
        let url = reqwest::Url::parse(self.url).ok()?;
        url.host_str().map(str::to_owned)
    }
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A response of the model.
    Answer,
    /// Embeddings of texts.
    Embeddings,
}

/// An error in the forms of servers: OpenAI's `{"error": {message, type, code}}`, the bare object of older servers,
/// `{"error": "text"}`, FastAPI's `{"detail": …}`, or text that is not JSON.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    message: String,
    /// `code` and `type`, in lower case.
    labels: String,
    /// A numeric `code`: the status of an upstream server.
    status: Option<u16>,
    /// The wait that Google's servers request in the body.
    pub(crate) retry_after: Option<Duration>,
}

impl ErrorBody {
    pub(crate) fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self {
                message: page_excerpt(&String::from_utf8_lossy(body)),
                ..Self::default()
            },
        }
    }

    pub(crate) fn from_value(value: &Value) -> Self {
        let value = value.get(0).unwrap_or(value);
        let inner = value.get("error").unwrap_or(value);
        let text = |key: &str| inner.get(key).and_then(Value::as_str);
        let message = inner
            .as_str()
            .or_else(|| text("message"))
            .or_else(|| text("detail"))
            .map_or_else(|| inner.to_string(), str::to_owned);
        let labels = [text("code"), text("type")].into_iter().flatten();
        Self {
            message: excerpt(&message),
            labels: labels.collect::<Vec<_>>().join(" ").to_lowercase(),
            status: inner
                .get("code")
                .and_then(Value::as_u64)
                .and_then(|code| u16::try_from(code).ok()),
            retry_after: inner.get("details").and_then(retry_delay),
        }
    }

    fn says(&self, labels: &[&str], phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        labels.iter().any(|label| self.labels.contains(label))
            || phrases.iter().any(|phrase| message.contains(phrase))
    }

    fn says_no_credit(&self) -> bool {
        self.says(
            // Google's rate limits have the words of OpenAI's message, so only the label counts.
            &[
                "insufficient_quota",
                "exceeded_current_quota",
                "billing",
                "insufficient_balance",
            ],
            &[
                "insufficient balance",
                "insufficient credit",
                "credit balance is too low",
            ],
        )
    }

    fn says_overflow(&self) -> bool {
        self.says(
            &["context_length_exceeded", "exceed_context_size"],
            &[
                "maximum context length",
                "context length",
                "context size",
                "context window",
                "exceed context limit",
                "maximum prompt length",
                "exceeds the maximum number of tokens allowed",
                "prompt is too long",
                "input is too long",
            ],
        )
    }

    fn says_unknown_model(&self) -> bool {
        self.says(&["model_not_found"], &["model"])
    }
}

/// The wait in error details: `[{"retryDelay": "15s"}]`.
fn retry_delay(details: &Value) -> Option<Duration> {
    let details = details.as_array()?.iter();
    let mut delays = details.filter_map(|one| one.get("retryDelay")?.as_str());
    let seconds = delays.next()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The class of an error response. `status` is absent for an error object inside a stream; then the object's numeric
/// code or its labels decide.
fn classify(status: Option<u16>, body: &ErrorBody) -> LlmErrorKind {
    use LlmErrorKind as Kind;
    if body.says_no_credit() {
        return Kind::NoCredit;
    }
    match status.or(body.status) {
        Some(401 | 403) => Kind::Auth,
        Some(402) => Kind::NoCredit,
        Some(404) if body.says_unknown_model() => Kind::UnknownModel,
        Some(300..=399 | 404 | 405) => Kind::Config,
        Some(408) => Kind::Timeout,
        Some(413) => Kind::ContextOverflow,
        Some(425) => Kind::Server,
        Some(429) => Kind::RateLimited,
        Some(400 | 422 | 500) if body.says_overflow() => Kind::ContextOverflow,
        Some(400) if body.says(&["model_not_found"], &[]) => Kind::UnknownModel,
        Some(500..) => Kind::Server,
        Some(_) => Kind::BadRequest,
        None if body.says_overflow() => Kind::ContextOverflow,
        None if body.says(
            &["invalid_api_key", "authentication", "permission_error"],
            &[],
        ) =>
        {
            Kind::Auth
        }
        None if body.says(&["model_not_found"], &[]) => Kind::UnknownModel,
        None if body.says(&["rate_limit"], &[]) => Kind::RateLimited,
        None if body.says(&["invalid_request"], &[]) => Kind::BadRequest,
        None => Kind::Server,
    }
}

/// The failure of an error response, or of an error object in a stream.
pub(crate) fn from_answer(status: Option<u16>, body: &ErrorBody, target: Target<'_>) -> Failure {
    let kind = classify(status, body);
    let Target {
        url,
        model,
        api,
        key_env,
        purpose,
    } = target;
    let status = status.or(body.status);
    let answered = match status {
        Some(status) => format!("{url} answered {status}"),
        None => format!("{url} sent an error in the stream"),
    };
    let said = match (body.message.is_empty(), kind) {
        (true, _) => String::new(),
        (false, LlmErrorKind::Auth) => format!(": {}", without_masked_keys(&body.message)),
        (false, _) => format!(": {}", body.message),
    };
    let mend = match kind {
        LlmErrorKind::Auth => match key_env {
            Some(name) => format!(" Check the key in the environment variable {name}."),
            None => " The server requires a key: name its environment variable as \
                `api_key_env`."
                .to_owned(),
        },
        LlmErrorKind::NoCredit => {
            " The account has no credit or quota left: check its billing, or \
            select another provider."
                .to_owned()
        }
        LlmErrorKind::UnknownModel => format!(
            " The server does not know the model `{model}`: correct `{}`.",
            match purpose {
                RequestKind::Answer => "model",
                RequestKind::Embeddings => "embedding_model",
            }
        ),
        LlmErrorKind::ContextOverflow if purpose == RequestKind::Embeddings => format!(
            " A text is \
            longer than the window of `{model}`: select another `embedding_model`."
        ),
        LlmErrorKind::ContextOverflow => format!(
            " The request is longer than the window of `{model}`: compact the conversation, or correct `context_window`."
        ),
        LlmErrorKind::Config if matches!(status, Some(300..=399)) => {
            " Redirects are not followed: \
            set `base_url` to the final address."
                .to_owned()
        }
        LlmErrorKind::Config => format!(" The address does not serve {api}: correct `base_url`."),
        LlmErrorKind::BadRequest if body.says(&[], &["does not support tools"]) => " Select a \
            model that calls tools, or set `tool_use = false`."
            .to_owned(),
        _ => String::new(),
    };
    let end = if said.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    Failure::new(kind, format!("{answered}{said}{end}{mend}"))
}

/// A failure of sending or receiving. Its text omits the URL's query.
pub(crate) fn from_transport(error: reqwest::Error, target: Target<'_>) -> Failure {
    let url = target.url;
    let timed_out = error.is_timeout();
    let connecting = error.is_connect();
    let error = error.without_url();
    let cause = innermost_cause(&error);
    let certificate = causes(&error).any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(rustls::Error::InvalidCertificate(_))
        )
    });
    let refused = causes(&error).any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
    });
    if certificate {
        return Failure::new(
            LlmErrorKind::Config,
            format!(
                "the certificate of {url} was refused: {cause}. For a private authority set SSL_CERT_FILE to its certificates."
            ),
        );
    }
    let (kind, message) = match (timed_out, connecting) {
        (true, true) => (
            LlmErrorKind::Timeout,
            format!(
                "no connection to {url} in time (`connect_timeout_secs`). Check that the server is \
                 reachable and `base_url` is correct."
            ),
        ),
        (true, false) => (
            LlmErrorKind::Timeout,
            format!("{url} sent nothing for longer than `read_timeout_secs`."),
        ),
        (false, true) if refused => (
            LlmErrorKind::Network,
            format!(
                "cannot connect to {url}: connection refused. Check that the server is running and \
                 `base_url` is correct."
            ),
        ),
        (false, true) => (
            LlmErrorKind::Network,
            format!(
                "cannot connect to {url}: {cause}. Check that the server is reachable and \
                 `base_url` is correct."
            ),
        ),
        (false, false) => (
            LlmErrorKind::Network,
            format!("the connection to {url} broke: {cause}."),
        ),
    };
    Failure::new(kind, message)
}

/// An error and its causes. An I/O error hides its inner error from `source()`.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

/// The innermost cause of an error, which the outer errors only repeat.
pub(crate) fn innermost_cause(error: &reqwest::Error) -> String {
    excerpt(
        &causes(error)
            .last()
            .map_or_else(String::new, ToString::to_string),
    )
}

/// Servers quote a refused key with stars in its middle; the rest is still part of a key.
fn without_masked_keys(text: &str) -> String {
    text.split(' ')
        .map(|word| if word.contains("**") { "[key]" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// hyper wraps the errors of rustls twice in I/O errors.
    #[test]
    fn causes_reach_into_io_errors() {
        let refused = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = std::io::Error::other(std::io::Error::other(refused));
        let found: Vec<bool> = causes(&wrapped)
            .map(|cause| cause.is::<rustls::Error>())
            .collect();
        assert_eq!(found, [false, false, true]);
    }

    const TARGET: Target<'_> = Target {
        url: "http://h:1/v1/chat/completions",
        model: "m",
        api: "Chat Completions",
        key_env: Some("SOME_KEY"),
        purpose: RequestKind::Answer,
    };

    const GEMINI_LIMIT: &str = r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 15.0s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.Help","links":[]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"15.5s"}]}}]"#;

    /// Proves LLM-5.
    #[test]
    fn wait_in_the_body_is_parsed() {
        let wait = |body: &str| ErrorBody::parse(body.as_bytes()).retry_after;
        assert_eq!(wait(GEMINI_LIMIT), Some(Duration::from_millis(15_500)));
        for delay in [r#""-1s""#, r#""15""#, r#""NaNs""#, "15", "null"] {
            let body = format!(r#"{{"error":{{"details":[{{"retryDelay":{delay}}}]}}}}"#);
            assert_eq!(wait(&body), None, "{body}");
        }
        assert_eq!(wait(r#"{"error":{"details":"x"}}"#), None);
    }

    fn check(status: Option<u16>, body: &str, kind: LlmErrorKind, contains: &[&str]) {
        let failure = from_answer(status, &ErrorBody::parse(body.as_bytes()), TARGET);
        assert_eq!(failure.kind, kind, "{status:?} {body}: {}", failure.message);
        for part in contains {
            assert!(
                failure.message.contains(part),
                "{part:?} in {}",
                failure.message
            );
        }
    }

    /// Proves LLM-5.
    #[test]
    fn error_responses_are_classified_with_their_fix() {
        use LlmErrorKind as Kind;
        check(
            Some(401),
            r#"{"error":{"message":"Incorrect API key provided: sk-ab***yz. See docs.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Kind::Auth,
            &["provided: [key] See docs.", "SOME_KEY", "answered 401"],
        );
        check(Some(403), "", Kind::Auth, &["answered 403. Check"]);
        check(Some(402), "{}", Kind::NoCredit, &["billing"]);
        check(
            Some(429),
            r#"{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota"}}"#,
            Kind::NoCredit,
            &["credit"],
        );
        // Kimi's label of a lack of credit, and a rate limit of Gemini with the same message.
        check(
            Some(429),
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details","type":"exceeded_current_quota_error"}}"#,
            Kind::NoCredit,
            &["credit"],
        );
        check(
            Some(429),
            GEMINI_LIMIT,
            Kind::RateLimited,
            &["retry in 15.0s."],
        );
        check(
            Some(429),
            r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
            Kind::RateLimited,
            &["slow down."],
        );
        check(
            Some(404),
            r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
            Kind::UnknownModel,
            &["`m`", "correct `model`"],
        );
        check(
            Some(404),
            r#"{"error":"model 'm' not found, try pulling it first"}"#,
            Kind::UnknownModel,
            &["pulling"],
        );
        check(
            Some(404),
            "<html><h1>Not Found</h1></html>",
            Kind::Config,
            &["`base_url`", ": Not Found."],
        );
        check(
            Some(405),
            r#"{"detail":"Method Not Allowed"}"#,
            Kind::Config,
            &["Method Not Allowed"],
        );
        check(Some(308), "", Kind::Config, &["final address"]);
        check(
            Some(400),
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            Kind::ContextOverflow,
            &["compact"],
        );
        check(
            Some(400),
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            Kind::ContextOverflow,
            &[],
        );
        // Claude, xAI, and the compatible API of Gemini.
        for body in [
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            r#"[{"error":{"code":400,"message":"The input token count (1189155) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        ] {
            check(Some(400), body, Kind::ContextOverflow, &["compact"]);
        }
        check(
            Some(400),
            r#"{"object":"error","message":"bad tools","type":"BadRequestError","code":400}"#,
            Kind::BadRequest,
            &["bad tools"],
        );
        check(
            Some(422),
            r#"{"detail":[{"loc":["body"]}]}"#,
            Kind::BadRequest,
            &["loc"],
        );
        check(Some(500), "boom", Kind::Server, &["boom."]);
        check(Some(529), "", Kind::Server, &[]);
        check(Some(413), "", Kind::ContextOverflow, &[]);
        check(
            None,
            r#"{"error":{"message":"overloaded","code":503}}"#,
            Kind::Server,
            &["answered 503: overloaded"],
        );
        check(
            None,
            r#"{"error":{"message":"x","type":"rate_limit_error"}}"#,
            Kind::RateLimited,
            &["in the stream"],
        );
        check(
            None,
            r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
            Kind::ContextOverflow,
            &[],
        );
        check(None, r#"{"error":null}"#, Kind::Server, &[]);
        check(None, "[]", Kind::Server, &[]);
    }
}
