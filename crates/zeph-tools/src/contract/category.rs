//! The taxonomy of failures: one table for label, retry, quality and suggestion.

use std::io;

use serde::{Deserialize, Serialize};

/// The category of the failure of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorCategory {
    /// No executor owns the tool.
    ToolNotFound,
    /// The arguments do not fit: missing, unknown or out of range.
    InvalidParameters,
    /// An argument has the wrong JSON type.
    TypeMismatch,
    /// A gate refused.
    PolicyBlocked,
    /// The user has to approve the call first.
    ConfirmationRequired,
    /// A repeated call will fail again.
    PermanentFailure,
    /// The user or the client stopped the call.
    Cancelled,
    /// Too many requests.
    RateLimited,
    /// The remote side failed.
    ServerError,
    /// No connection.
    NetworkError,
    /// The time limit was exceeded.
    Timeout,
}

/// The properties of a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CategoryTraits {
    /// The name in feedback, audit entries and JSON results.
    pub label: &'static str,
    /// Whether the stack retries automatically.
    pub retryable: bool,
    /// Whether new arguments from the model may help (one attempt).
    pub reformat: bool,
    /// Whether the output of the model caused the failure.
    pub quality: bool,
    /// The advice to the model.
    pub suggestion: &'static str,
}

impl ToolErrorCategory {
    /// All categories, in the order of the table.
    pub const ALL: [Self; 11] = [
        Self::ToolNotFound,
        Self::InvalidParameters,
        Self::TypeMismatch,
        Self::PolicyBlocked,
        Self::ConfirmationRequired,
        Self::PermanentFailure,
        Self::Cancelled,
        Self::RateLimited,
        Self::ServerError,
        Self::NetworkError,
        Self::Timeout,
    ];

    /// Returns the row of the table.
    #[must_use]
    pub const fn traits(self) -> CategoryTraits {
        const fn row(
            label: &'static str,
            retryable: bool,
            quality: bool,
            suggestion: &'static str,
        ) -> CategoryTraits {
            CategoryTraits {
                label,
                retryable,
                reformat: quality,
                quality,
                suggestion,
            }
        }
        match self {
            Self::ToolNotFound => row(
                "tool_not_found",
                false,
                false,
                "Use one of the available tools.",
            ),
            Self::InvalidParameters => row(
                "invalid_parameters",
                false,
                true,
                "Correct the arguments and call again.",
            ),
            Self::TypeMismatch => row(
                "type_mismatch",
                false,
                true,
                "Send the argument with the type that the schema names.",
            ),
            Self::PolicyBlocked => row(
                "policy_blocked",
                false,
                false,
                "Do not repeat this call. Use another way, or name the missing permission to the \
                 user.",
            ),
            Self::ConfirmationRequired => row(
                "confirmation_required",
                false,
                false,
                "This call needs the approval of the user. Continue without it, or name the \
                 missing approval to the user.",
            ),
            Self::PermanentFailure => row(
                "permanent_failure",
                false,
                false,
                "The same call will fail again. Check its assumptions first.",
            ),
            Self::Cancelled => row(
                "cancelled",
                false,
                false,
                "The call was stopped. Do not repeat it unless the user asks.",
            ),
            Self::RateLimited => row(
                "rate_limited",
                true,
                false,
                "Rate limit exceeded. The system will retry if possible.",
            ),
            Self::ServerError => row(
                "server_error",
                true,
                false,
                "The service failed. Try again later, or use another way.",
            ),
            Self::NetworkError => row(
                "network_error",
                true,
                false,
                "The network failed. Try again later, or use another way.",
            ),
            Self::Timeout => row(
                "timeout",
                true,
                false,
                "The call took too long. Request less, or set a longer time limit.",
            ),
        }
    }

    /// Returns the name in feedback, audit entries and JSON results.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.traits().label
    }
}

/// Returns the category of an HTTP status other than success.
#[must_use]
pub fn classify_http_status(status: u16) -> ToolErrorCategory {
    match status {
        400 | 422 => ToolErrorCategory::InvalidParameters,
        401 | 403 => ToolErrorCategory::PolicyBlocked,
        429 => ToolErrorCategory::RateLimited,
        500..=599 => ToolErrorCategory::ServerError,
        _ => ToolErrorCategory::PermanentFailure,
    }
}

/// Returns the category of an I/O error.
#[must_use]
pub fn classify_io_error(error: &io::Error) -> ToolErrorCategory {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::TimedOut => ToolErrorCategory::Timeout,
        Kind::ConnectionRefused
        | Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::NotConnected
        | Kind::HostUnreachable
        | Kind::NetworkUnreachable
        | Kind::NetworkDown
        | Kind::AddrNotAvailable
        | Kind::BrokenPipe => ToolErrorCategory::NetworkError,
        Kind::Interrupted | Kind::WouldBlock => ToolErrorCategory::ServerError,
        _ => ToolErrorCategory::PermanentFailure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves ERR-1.
    #[test]
    fn category_table_matches_the_requirements() {
        let rows: Vec<_> = ToolErrorCategory::ALL
            .into_iter()
            .map(|category| {
                let row = category.traits();
                (row.label, row.retryable, row.reformat, row.quality)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("tool_not_found", false, false, false),
                ("invalid_parameters", false, true, true),
                ("type_mismatch", false, true, true),
                ("policy_blocked", false, false, false),
                ("confirmation_required", false, false, false),
                ("permanent_failure", false, false, false),
                ("cancelled", false, false, false),
                ("rate_limited", true, false, false),
                ("server_error", true, false, false),
                ("network_error", true, false, false),
                ("timeout", true, false, false),
            ]
        );
    }

    #[test]
    fn labels_serialize_as_they_are_printed() {
        for category in ToolErrorCategory::ALL {
            assert_eq!(
                serde_json::to_value(category).unwrap_or_default(),
                category.label()
            );
        }
    }

    /// Proves ERR-10.
    #[test]
    fn http_statuses_are_classified() {
        let check = |status, expect| assert_eq!(classify_http_status(status), expect, "{status}");
        check(400, ToolErrorCategory::InvalidParameters);
        check(422, ToolErrorCategory::InvalidParameters);
        check(401, ToolErrorCategory::PolicyBlocked);
        check(403, ToolErrorCategory::PolicyBlocked);
        check(404, ToolErrorCategory::PermanentFailure);
        check(410, ToolErrorCategory::PermanentFailure);
        check(418, ToolErrorCategory::PermanentFailure);
        check(429, ToolErrorCategory::RateLimited);
        check(500, ToolErrorCategory::ServerError);
        check(599, ToolErrorCategory::ServerError);
    }

    /// Proves ERR-11.
    #[test]
    fn io_errors_are_classified() {
        let check = |kind: io::ErrorKind, expect| {
            assert_eq!(classify_io_error(&kind.into()), expect, "{kind}");
        };
        check(io::ErrorKind::NotFound, ToolErrorCategory::PermanentFailure);
        check(
            io::ErrorKind::PermissionDenied,
            ToolErrorCategory::PermanentFailure,
        );
        check(
            io::ErrorKind::AlreadyExists,
            ToolErrorCategory::PermanentFailure,
        );
        check(io::ErrorKind::TimedOut, ToolErrorCategory::Timeout);
        check(
            io::ErrorKind::ConnectionRefused,
            ToolErrorCategory::NetworkError,
        );
        check(io::ErrorKind::Interrupted, ToolErrorCategory::ServerError);
    }
}
