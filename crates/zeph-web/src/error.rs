//! The errors of requests and of pages.

use std::error::Error;
use std::time::Duration;

use reqwest::StatusCode;
use url::Url;

use crate::url_guard::UrlRefusal;

/// The failure of a request.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The guard refuses the URL.
    #[error("{0}")]
    Refused(#[source] UrlRefusal),
    /// The guard refuses an address of the name.
    #[error("{name} is refused: {reason}")]
    RefusedName {
        /// The name.
        name: String,
        /// The refusal of the first such address.
        reason: UrlRefusal,
    },
    /// The name has no address, or the lookup failed.
    #[error("{name} has no address{}", after_colon(.reason.as_deref()))]
    NoAddress {
        /// The name.
        name: String,
        /// The reason that the resolver gives.
        reason: Option<String>,
    },
    /// The caller refuses a redirect ([`HopRules`](crate::HopRules)).
    #[error("{0}")]
    RefusedByCaller(Box<dyn Error + Send + Sync>),
    /// The failure of a redirect.
    #[error("redirect {number}, to {url}: {error}")]
    Redirect {
        /// The number of the redirect; the first is 1.
        number: usize,
        /// The start of its URL.
        url: String,
        /// The failure.
        error: Box<WebError>,
    },
    /// The server redirects more often than allowed.
    #[error("redirect {number} from {from} to {to} is not followed: {} is the limit", .number - 1)]
    TooManyRedirects {
        /// The number of the redirect that is not followed.
        number: usize,
        /// The start of the URL that redirects.
        from: String,
        /// The start of the URL of the redirect.
        to: String,
    },
    /// The target of a redirect is not a URL.
    #[error("{from} redirects to {to:?}, which is not a URL: {error}")]
    InvalidRedirect {
        /// The URL that redirects.
        from: Url,
        /// The start of the target.
        to: String,
        /// The error of the parser.
        error: url::ParseError,
    },
    /// The server returned a status other than success.
    #[error("{url} answers {status}")]
    Status {
        /// The URL.
        url: Url,
        /// The status.
        status: StatusCode,
        /// The header `Retry-After` as the server sent it.
        retry_after: Option<String>,
    },
    /// The body has a coding that the request does not accept.
    #[error("{url} is compressed with {coding:?}, which was not requested")]
    Coding {
        /// The URL.
        url: Url,
        /// The start of the header `Content-Encoding`.
        coding: String,
    },
    /// No response arrived, or its body broke off.
    #[error("the request to {host} failed: {cause}")]
    Request {
        /// The host.
        host: String,
        /// The kind of the failure.
        kind: RequestErrorKind,
        /// The start of the text of the innermost cause.
        cause: String,
    },
    /// The time limit was reached.
    #[error("the request for {url} took longer than {limit:?}")]
    Timeout {
        /// The URL of the request.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// The HTTPS client cannot be built.
    #[error("no HTTPS client: {0}")]
    Client(String),
    /// A blocking thread panicked.
    #[error("the HTTPS client failed because of a bug in Zeph: {0}")]
    Defect(#[source] tokio::task::JoinError),
}

/// The kind of a [`WebError::Request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestErrorKind {
    /// A time limit was reached.
    Timeout,
    /// The request or the response is invalid, so that another attempt fails as well.
    Invalid,
    /// The network, DNS or TLS failed.
    Network,
}

/// A failure of the parsing or rendering of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The elements are nested too deep.
    #[error("the page cannot be parsed: its elements are nested more than {limit} deep")]
    TooDeep {
        /// The maximum depth.
        limit: usize,
    },
    /// The page is too costly to parse.
    #[error("the page cannot be parsed: it has too many elements, or they are nested too deep")]
    TooCostly,
    /// The parser failed.
    #[error("the page cannot be parsed: {0}")]
    Parser(String),
    /// The time limit was reached.
    #[error("processing the page took longer than {0:?}")]
    Timeout(Duration),
    /// The work was cancelled.
    #[error("the work on the page was cancelled")]
    Cancelled,
}

fn after_colon(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}
