//! The reply of a hook: exit code and output as a decision. Pure.

use serde::Deserialize;
use zeph_tools::shell::Exit;

/// The largest context of one hook; the rest is omitted.
const MAX_CONTEXT_BYTES: usize = 8 * 1024;
/// The largest reason of a denial or failure; the rest is omitted.
const MAX_REASON_BYTES: usize = 1024;
/// The exit code that denies.
const DENIED: i32 = 2;
/// The reason of a denial without one.
const NO_REASON: &str = "it gave no reason";

/// The decision of one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookDecision {
    /// The hook decides nothing.
    Nothing,
    /// The hook adds this text for the model.
    Context(String),
    /// The hook refuses, for this reason.
    Deny(String),
}

/// The JSON object that a hook may print.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    decision: Option<String>,
    reason: Option<String>,
    context: Option<String>,
}

/// Reads the exit and the output of a hook.
///
/// # Errors
/// The reason why the hook failed.
pub(super) fn read_reply(exit: Exit, stdout: &[u8], stderr: &[u8]) -> Result<HookDecision, String> {
    let stderr = String::from_utf8_lossy(stderr);
    let stderr = stderr.trim();
    match (exit.signal, exit.code) {
        (Some(signal), _) => Err(format!("signal {signal} ended it")),
        (None, DENIED) => Ok(HookDecision::Deny(reason(Some(stderr)))),
        (None, 0) => read_output(stdout),
        (None, code) if stderr.is_empty() => Err(format!("it exited with code {code}")),
        (None, code) => Err(format!(
            "it exited with code {code}: {}",
            cut(stderr, MAX_REASON_BYTES)
        )),
    }
}

fn read_output(stdout: &[u8]) -> Result<HookDecision, String> {
    if stdout.trim_ascii().is_empty() {
        return Ok(HookDecision::Nothing);
    }
    let printed: Printed = serde_json::from_slice(stdout)
        .map_err(|error| format!("its output is not the JSON object of a hook: {error}"))?;
    match (printed.decision.as_deref(), printed.context) {
        (Some("deny"), _) => Ok(HookDecision::Deny(reason(printed.reason.as_deref()))),
        (Some(other), _) => Err(format!(
            "its `decision` is {other:?}; a hook can only print \"deny\", and cannot allow a call"
        )),
        (None, Some(context)) if !context.trim().is_empty() => {
            Ok(HookDecision::Context(cut(&context, MAX_CONTEXT_BYTES)))
        }
        (None, _) => Ok(HookDecision::Nothing),
    }
}

fn reason(text: Option<&str>) -> String {
    match text.map(str::trim) {
        None | Some("") => NO_REASON.to_owned(),
        Some(text) => cut(text, MAX_REASON_BYTES),
    }
}

/// The start of a text, with the number of omitted bytes.
fn cut(text: &str, max: usize) -> String {
    let end = text.floor_char_boundary(max);
    match text.len() - end {
        0 => text.to_owned(),
        omitted => format!("{}… [{omitted} bytes omitted]", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: i32, stdout: &str, stderr: &str) -> Result<HookDecision, String> {
        let exit = Exit { code, signal: None };
        read_reply(exit, stdout.as_bytes(), stderr.as_bytes())
    }

    fn deny(reason: &str) -> Result<HookDecision, String> {
        Ok(HookDecision::Deny(reason.to_owned()))
    }

    /// Proves CLI-11: the protocol of exit codes and JSON. Unknown output fails, so that it never lets a call run.
    #[test]
    fn reply_of_a_hook_is_read_strictly() {
        let nothing = Ok(HookDecision::Nothing);
        assert_eq!(read(0, "", "a log line"), nothing);
        assert_eq!(read(0, " \n", ""), nothing);
        assert_eq!(read(0, "{}", ""), nothing);
        assert_eq!(read(0, r#"{"context": " "}"#, ""), nothing);
        assert_eq!(
            read(0, r#"{"context": "the branch is main"}"#, ""),
            Ok(HookDecision::Context("the branch is main".to_owned()))
        );
        let denial = r#"{"decision": "deny", "reason": "not on main"}"#;
        assert_eq!(read(0, denial, ""), deny("not on main"));
        assert_eq!(read(0, r#"{"decision": "deny"}"#, ""), deny(NO_REASON));
        assert_eq!(read(2, "ignored", "no pushes\n"), deny("no pushes"));
        assert_eq!(read(2, "", ""), deny(NO_REASON));
        for (code, stdout) in [
            (0, "ok"),
            (0, "[]"),
            (0, r#"{"decision": "allow"}"#),
            (0, r#"{"desicion": "deny"}"#),
            (0, r#"{"context": "a"} {"context": "b"}"#),
            (1, ""),
            (1, denial),
            (127, ""),
        ] {
            assert!(read(code, stdout, "").is_err(), "{code} {stdout}");
        }
        let killed = Exit {
            code: 2,
            signal: Some(9),
        };
        assert!(read_reply(killed, b"", b"").is_err());
    }

    /// Proves CLI-11: the texts of a hook are bounded.
    #[test]
    fn long_context_of_a_hook_is_cut() {
        let text = "é".repeat(MAX_CONTEXT_BYTES);
        let output = serde_json::json!({ "context": text }).to_string();
        let Ok(HookDecision::Context(context)) = read(0, &output, "") else {
            panic!("no context");
        };
        assert!(context.len() < MAX_CONTEXT_BYTES + 64);
        assert!(context.ends_with("bytes omitted]"), "{context}");
    }
}
