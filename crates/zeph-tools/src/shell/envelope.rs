//! The machine form of a shell result.

use serde::{Deserialize, Serialize};

/// The `raw_response` of a `bash` call. The names of the fields are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellOutputEnvelope {
    /// What was printed on standard output; head and tail where it was cut.
    pub stdout: String,
    /// What was printed on standard error; head and tail where it was cut.
    pub stderr: String,
    /// The exit code; `128 + signal` when a signal ended the shell.
    pub exit_code: i32,
    /// Whether `stdout`, `stderr` or the text for the model was cut.
    pub truncated: bool,
    /// The number of the signal that ended the shell; null when it exited by itself.
    pub signal: Option<i32>,
    /// How long the command ran, in milliseconds.
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-5.
    #[test]
    fn the_fields_are_stable() {
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
