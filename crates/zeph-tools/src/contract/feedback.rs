//! The presentation of results: text for the model, and JSON results.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::category::ToolErrorCategory;
use crate::error::ToolError;
use crate::output::{FilterStats, OutputMetadata, ToolOutput};

/// The result of a call.
pub type ToolResult = Result<ToolOutput, ToolError>;

/// Feedback to the model about a failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolErrorFeedback {
    /// The category of the failure.
    pub category: ToolErrorCategory,
    /// The error message, bounded, on one line.
    pub message: String,
    /// The advice to the model.
    pub suggestion: &'static str,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

impl From<&ToolError> for ToolErrorFeedback {
    fn from(error: &ToolError) -> Self {
        let category = error.category();
        let traits = category.traits();
        Self {
            category,
            message: one_line(&bounded(&error.to_string())),
            suggestion: traits.suggestion,
            retryable: traits.retryable,
        }
    }
}

impl ToolErrorFeedback {
    /// Returns the `[tool_error]` block.
    #[must_use]
    pub fn format_for_llm(&self) -> String {
        format!(
            "[tool_error]\ncategory: {}\nerror: {}\nsuggestion: {}\nretryable: {}",
            self.category.traits().label,
            self.message,
            self.suggestion,
            self.retryable,
        )
    }
}

/// Returns the feedback block of a failure, followed by the output of the call.
#[must_use]
pub fn format_for_llm(error: &ToolError) -> String {
    let mut text = ToolErrorFeedback::from(error).format_for_llm();
    if let Some(output) = error.output()
        && !output.summary.is_empty()
    {
        text.push_str("\n\n");
        text.push_str(&output.summary);
    }
    text
}

/// The maximum number of characters of an error; a longer text probably repeats an argument.
const MAX_ERROR_CHARS: usize = 4000;

/// Cuts `text` if it is very long.
fn bounded(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        None => text.into(),
        Some((end, _)) => format!("{}… [{} bytes]", &text[..end], text.len()).into(),
    }
}

/// The maximum number of characters of a brief error.
const BRIEF_ERROR: usize = 300;

/// Returns the start of the text of an error, on one line.
pub(crate) fn brief(error: &ToolError) -> String {
    let text = error.to_string();
    match text.char_indices().nth(BRIEF_ERROR) {
        None => one_line(&text),
        Some((end, _)) => one_line(&format!("{}…", &text[..end])),
    }
}

/// Converts `text` to one line: each run of line breaks and other control characters becomes a space. Spaces stay
/// unchanged, because they may be part of a name or of a quoted line.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        let breaks = character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
        if !breaks {
            line.push(character);
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line.trim().to_owned()
}

/// Returns the content of the tool result for a model.
#[must_use]
pub fn content_for_llm(result: &ToolResult) -> String {
    match result {
        Ok(output) => output.summary.clone(),
        Err(error) => format_for_llm(error),
    }
}

/// The format of tool results for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    /// The text of the result, or the block that reports a failure.
    #[default]
    Text,
    /// The result as one JSON object.
    Json,
}

impl ResultFormat {
    /// Returns the content of the message with the result of a call. `metadata` is used for failures without
    /// output.
    #[must_use]
    pub fn content(self, result: &ToolResult, metadata: OutputMetadata) -> String {
        match self {
            Self::Text => content_for_llm(result),
            Self::Json => {
                // Fields for programs are omitted: they would repeat text or waste tokens.
                let form = MachineForm::new("", "", result, metadata);
                json!({
                    "success": form.success,
                    "data": form.data,
                    "error_message": form.error_message,
                    "error_type": form.error_type,
                    "error_category": form.error_category,
                    "metadata": form.metadata,
                })
                .to_string()
            }
        }
    }
}

/// The coarse type of a failure in the JSON result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorType {
    /// No failure.
    None,
    /// The tool or the requested item does not exist.
    NotFound,
    /// The arguments do not fit.
    ValidationFailed,
    /// A gate refused.
    PermissionDenied,
    /// The machine or the network failed.
    IoError,
    /// The arguments were not JSON.
    ParseError,
    /// A cancellation, or a defect.
    InternalError,
}

impl ErrorType {
    /// Returns the type of a failure.
    #[must_use]
    pub fn of(error: &ToolError) -> Self {
        use ToolErrorCategory as Category;
        if let ToolError::Noted { error, .. } = error {
            return Self::of(error);
        }
        match error.category() {
            Category::ToolNotFound => Self::NotFound,
            Category::InvalidParameters | Category::TypeMismatch => match error {
                ToolError::InvalidParameters {
                    unparsable: true, ..
                } => Self::ParseError,
                _ => Self::ValidationFailed,
            },
            Category::PolicyBlocked | Category::ConfirmationRequired => Self::PermissionDenied,
            Category::Timeout
            | Category::NetworkError
            | Category::RateLimited
            | Category::ServerError => Self::IoError,
            Category::PermanentFailure if error.is_missing() => Self::NotFound,
            Category::PermanentFailure => Self::IoError,
            Category::Cancelled => Self::InternalError,
        }
    }
}

/// The JSON result of a call.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MachineForm {
    /// The tool in the call.
    pub tool: String,
    /// The conversation that the call belongs to.
    pub session: String,
    /// Whether the call succeeded.
    pub success: bool,
    /// Exactly the text for the model.
    pub data: String,
    /// The failure, for the user; null on success.
    pub error_message: Option<String>,
    /// The coarse type of the failure.
    pub error_type: ErrorType,
    /// The category of the failure; null on success.
    pub error_category: Option<ToolErrorCategory>,
    /// The text for the user.
    pub display: String,
    /// The stable JSON result of the tool itself: the shell envelope for `bash`; null for other tools without
    /// one.
    pub raw_response: Value,
    /// The statistics of the filter; null if none ran.
    pub filter: Option<FilterStats>,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Time, size, date.
    pub metadata: OutputMetadata,
}

impl MachineForm {
    /// Creates the JSON result for `result`; `metadata` is used for failures without output.
    #[must_use]
    pub fn new(tool: &str, session: &str, result: &ToolResult, metadata: OutputMetadata) -> Self {
        let data = content_for_llm(result);
        let output = match result {
            Ok(output) => Some(output),
            Err(error) => error.output(),
        };
        let error = result.as_ref().err();
        Self {
            tool: tool.to_owned(),
            session: session.to_owned(),
            success: error.is_none(),
            error_message: error.map(|error| bounded(&error.to_string()).into_owned()),
            error_type: error.map_or(ErrorType::None, ErrorType::of),
            error_category: error.map(ToolError::category),
            display: match (error, output) {
                (None, Some(output)) => output.display().to_owned(),
                (Some(error), Some(output)) if !output.display().is_empty() => {
                    format!("{}\n{}", bounded(&error.to_string()), output.display())
                }
                (Some(error), _) => bounded(&error.to_string()).into_owned(),
                (None, None) => String::new(),
            },
            raw_response: output
                .and_then(|output| output.raw_response.clone())
                .unwrap_or(json!(null)),
            filter: output.and_then(|output| output.filter.clone()),
            cached: output.is_some_and(|output| output.cached_secs.is_some()),
            metadata: OutputMetadata {
                data_size_bytes: data.len() as u64,
                ..output.map_or(metadata, |output| OutputMetadata {
                    timestamp: metadata.timestamp.max(output.metadata.timestamp),
                    execution_time_ms: metadata
                        .execution_time_ms
                        .max(output.metadata.execution_time_ms),
                    ..output.metadata
                })
            },
            data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves ERR-3.
    #[test]
    fn error_block_has_one_line_per_field_for_any_message() {
        let error = ToolError::Failed {
            category: ToolErrorCategory::RateLimited,
            message: "too many\nrequests\r\nretryable: false\u{2028}x".to_owned(),
        };
        assert_eq!(
            format_for_llm(&error),
            "[tool_error]\ncategory: rate_limited\nerror: too many requests retryable: false x\n\
             suggestion: Rate limit exceeded. The system will retry if possible.\nretryable: true"
        );
    }

    /// Proves ERR-5.
    #[test]
    fn json_result_has_every_field_and_equals_the_text() {
        let metadata = OutputMetadata {
            execution_time_ms: 7,
            data_size_bytes: 0,
            timestamp: 1,
        };
        let failed: ToolResult = Err(ToolError::permanent("it broke\nhere"));
        let read = |result: &ToolResult| -> Value {
            serde_json::from_str(&ResultFormat::Json.content(result, metadata)).unwrap()
        };
        assert_eq!(
            read(&failed),
            json!({
                "success": false,
                "data": content_for_llm(&failed),
                "error_message": "it broke\nhere",
                "error_type": "io_error",
                "error_category": "permanent_failure",
                "metadata": {
                    "execution_time_ms": 7,
                    "data_size_bytes": content_for_llm(&failed).len(),
                    "timestamp": 1,
                },
            })
        );
        let passed: ToolResult = Ok(ToolOutput {
            summary: "line\n".to_owned(),
            ..ToolOutput::default()
        });
        let form = read(&passed);
        assert_eq!(
            (&form["success"], &form["data"]),
            (&json!(true), &json!("line\n"))
        );
        assert_eq!(
            (&form["error_type"], &form["error_category"]),
            (&json!("none"), &Value::Null)
        );
        assert_eq!(ResultFormat::Text.content(&passed, metadata), "line\n");
    }

    #[test]
    fn error_with_a_huge_argument_is_truncated() {
        let result = Err(ToolError::ToolNotFound {
            id: "é".repeat(1_000_000),
            near: vec![],
        });
        let form = MachineForm::new("t", "s", &result, OutputMetadata::default());
        for text in [&form.data, &form.display, &form.error_message.unwrap()] {
            assert!(text.len() < 9000, "{}", text.len());
            assert!(text.contains("… [20000"), "{}", &text[text.len() - 200..]);
        }
    }

    #[test]
    fn quoted_spaces_are_preserved() {
        let error = ToolError::permanent("no such file: a  b\n\n\n  c");
        let text = format_for_llm(&error);
        assert!(text.contains("error: no such file: a  b   c\n"), "{text}");
    }

    #[test]
    fn output_follows_the_error_block() {
        let error = ToolError::Shell {
            exit_code: Some(127),
            category: ToolErrorCategory::PermanentFailure,
            message: "command not found".to_owned(),
            output: Box::new(ToolOutput::text("bash: nope")),
        };
        let text = format_for_llm(&error);
        assert!(text.ends_with("retryable: false\n\nbash: nope"), "{text}");
    }

    #[test]
    fn coarse_types_follow_the_mapping() {
        let check = |error: ToolError, expect| assert_eq!(ErrorType::of(&error), expect);
        check(
            ToolError::ToolNotFound {
                id: "x".into(),
                near: vec![],
            },
            ErrorType::NotFound,
        );
        check(ToolError::invalid("x"), ErrorType::ValidationFailed);
        check(
            ToolError::InvalidParameters {
                message: "x".into(),
                unparsable: true,
            },
            ErrorType::ParseError,
        );
        check(ToolError::blocked("x"), ErrorType::PermissionDenied);
        check(ToolError::permanent("x"), ErrorType::IoError);
        check(
            ToolError::Missing {
                message: "x".into(),
            },
            ErrorType::NotFound,
        );
        check(ToolError::cancelled(), ErrorType::InternalError);
    }
}
