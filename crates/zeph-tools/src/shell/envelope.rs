//! The JSON result of a `bash` call.

use serde::{Deserialize, Serialize};

/// The `raw_response` of a `bash` call. The names of the fields are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellOutputEnvelope {
    /// Standard output; head and tail if it was truncated.
    pub stdout: String,
    /// Standard error; head and tail if it was truncated.
    pub stderr: String,
    /// The exit code; `128 + signal` if a signal ended the shell.
    pub exit_code: i32,
    /// Whether `stdout`, `stderr` or the text for the model was truncated.
    pub truncated: bool,
    /// The number of the signal that ended the shell; null if it exited.
    pub signal: Option<i32>,
    /// The duration of the command in milliseconds.
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-5.
    #[test]
    fn envelope_fields_are_stable() {
        let envelope = ShellOutputEnvelope {
            stdout: "a".into(),
            stderr: String::new(),
            exit_code: 0,
            truncated: false,
            signal: None,
            duration_ms: 7,
        };
        assert_eq!(
            serde_json::to_string(&envelope).unwrap(),
            r#"{"stdout":"a","stderr":"","exit_code":0,"truncated":false,"signal":null,"duration_ms":7}"#
        );
    }
}
