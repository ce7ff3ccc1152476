//! Errors of the web as errors of calls: their category, and their text for the model.

use jiff::Timestamp;
use tokio::task::JoinError;
use zeph_backoff::parse_retry_after;
use zeph_web::{PageError, RequestErrorKind, SelectorError, StatusCode, UrlRefusal, WebError};

use crate::category::{ToolErrorCategory, classify_http_status};
use crate::error::ToolError;

/// Converts the failure of a request.
pub(super) fn tool_error(error: WebError) -> ToolError {
    let failed = |category, error: WebError| ToolError::Failed {
        category,
        message: error.to_string(),
    };
    match error {
        WebError::Refused(refusal) => match refusal {
            UrlRefusal::Invalid { .. } => ToolError::invalid(reason(&refusal)),
            _ => ToolError::blocked(reason(&refusal)),
        },
        WebError::RefusedName { .. } => ToolError::blocked(error.to_string()),
        WebError::RefusedByCaller(refusal) => match refusal.downcast::<ToolError>() {
            Ok(refusal) => *refusal,
            Err(refusal) => ToolError::blocked(refusal.to_string()),
        },
        WebError::Redirect { number, url, error } => in_redirect(
            &format!("redirect {number}, to {url}: "),
            tool_error(*error),
        ),
        WebError::Status {
            status,
            ref retry_after,
            ..
        } => {
            let retry_after = retry_after.as_deref();
            status_error(status, retry_after, error.to_string())
        }
        WebError::Timeout { url, limit } => ToolError::Timeout {
            what: format!("the request for {url}"),
            limit,
        },
        WebError::Request { kind, .. } => {
            let category = match kind {
                RequestErrorKind::Timeout => ToolErrorCategory::Timeout,
                RequestErrorKind::Invalid => ToolErrorCategory::PermanentFailure,
                RequestErrorKind::Network => ToolErrorCategory::NetworkError,
            };
            failed(category, error)
        }
        WebError::NoAddress { .. } => failed(ToolErrorCategory::NetworkError, error),
        WebError::TooManyRedirects { .. }
        | WebError::InvalidRedirect { .. }
        | WebError::Coding { .. }
        | WebError::Client(_) => failed(ToolErrorCategory::PermanentFailure, error),
        WebError::Defect(error) => broke_off(&error),
    }
}

/// Returns the error of a call with work that panicked.
pub(super) fn broke_off(error: &JoinError) -> ToolError {
    ToolError::permanent(format!("the tool failed because of a bug in Zeph: {error}"))
}

/// Returns the text of a refusal, which names the keys of `[tools.scrape]`.
pub(super) fn reason(refusal: &UrlRefusal) -> String {
    match refusal {
        UrlRefusal::Denied(host) => format!("{host} is in `tools.scrape.denied_domains`"),
        UrlRefusal::NotAllowed(host) => {
            format!("{host} is not in `tools.scrape.allowed_domains`")
        }
        _ => refusal.to_string(),
    }
}

/// Converts the failure of work on a page.
pub(super) fn page_error(error: PageError) -> ToolError {
    match error {
        PageError::Timeout(limit) => ToolError::Timeout {
            what: "processing the page".to_owned(),
            limit,
        },
        PageError::Cancelled => ToolError::cancelled(),
        PageError::TooDeep { .. } | PageError::TooCostly | PageError::Parser(_) => {
            ToolError::permanent(error.to_string())
        }
    }
}

/// Converts the error of the argument `select`.
pub(super) fn selector_error(error: &SelectorError) -> ToolError {
    ToolError::invalid(match error {
        SelectorError::TooLong { bytes, limit } => {
            format!("`select` has {bytes} bytes; {limit} is the limit")
        }
        SelectorError::Invalid { .. } => format!("`select` {error}"),
    })
}

fn status_error(status: StatusCode, retry_after: Option<&str>, message: String) -> ToolError {
    let category = classify_http_status(status.as_u16());
    let asked = retry_after.and_then(|said| parse_retry_after(said, Timestamp::now()));
    match asked.filter(|_| category.traits().retryable) {
        Some(retry_after) => ToolError::Deferred {
            category,
            message,
            retry_after,
        },
        None => ToolError::Failed { category, message },
    }
}

/// Adds the redirect in which `error` occurred.
fn in_redirect(redirect: &str, mut error: ToolError) -> ToolError {
    match &mut error {
        ToolError::Deferred { message, .. } => message.insert_str(0, redirect),
        // The category stays a refusal by the guard, not by the server.
        ToolError::PolicyBlocked { reason } => reason.insert_str(0, redirect),
        _ => {
            return ToolError::Failed {
                category: error.category(),
                message: format!("{redirect}{error}"),
            };
        }
    }
    error
}
