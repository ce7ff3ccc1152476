//! The output of the demo: plain lines that name the speaker.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::question::{ServerAnswer, ServerQuestion};

use crate::output::stdout_line;

/// Lines of a result that are shown before and after the omitted ones.
const SHOWN: (usize, usize) = (11, 10);
/// Characters of a line.
const WIDTH: usize = 100;
/// The arguments that name the target of a call.
const SUBJECTS: [&str; 3] = ["command", "pattern", "path"];

/// The channel of the demo: shows and allows every call, and prints that.
#[derive(Default)]
pub(super) struct View {
    quiet: bool,
    /// The text of the model since the last line.
    said: Mutex<String>,
}

impl View {
    /// A view; a quiet one prints nothing.
    pub(super) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            ..Self::default()
        }
    }

    /// Prints a line. A closed output is not an error.
    pub(super) fn line(&self, text: &str) {
        if !self.quiet {
            stdout_line(text);
        }
    }

    /// Prints a text after the name of its speaker, in as many lines as necessary.
    pub(super) fn says(&self, who: &str, text: &str) {
        let mut name = who;
        for line in text.trim_end().lines().flat_map(wrapped) {
            self.line(&format!("{name:<8}{line}"));
            name = "";
        }
    }

    /// Prints the complete text of the model.
    pub(super) fn flush(&self) {
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        if !said.is_empty() {
            self.line("");
            self.says("model", &format!("(scripted) {said}"));
        }
    }
}

#[async_trait]
impl Channel for View {
    fn emit(&self, event: LoopbackEvent) {
        match event {
            LoopbackEvent::Text(text) => {
                self.said
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_str(&text);
            }
            LoopbackEvent::ToolStarted { tool, params, .. } => {
                self.flush();
                self.says("tool", &format!("{tool}: {}", subject(&params)));
            }
            LoopbackEvent::ToolFinished {
                failure,
                display,
                duration_ms,
                ..
            } => {
                for line in excerpt(&display) {
                    self.line(&format!("        | {line}"));
                }
                let end = match failure {
                    None => "done".to_owned(),
                    Some(category) => format!("failed: {}", category.label()),
                };
                self.says("", &format!("{end}, {}", seconds(duration_ms)));
            }
            LoopbackEvent::Notice(text) => self.says("notice", &text),
            LoopbackEvent::Retrying(retry) => self.says("notice", &retry.to_string()),
            LoopbackEvent::Warning(text) => self.says("warning", &text),
            LoopbackEvent::Error(text) => self.says("error", &text),
            LoopbackEvent::Rollback { changes, .. } => {
                self.says("notice", &format!("rolled back: {changes}"));
            }
            LoopbackEvent::Requesting { .. }
            | LoopbackEvent::SummingUp
            | LoopbackEvent::Reasoning(_)
            | LoopbackEvent::ToolOutput { .. }
            | LoopbackEvent::Permission { .. }
            | LoopbackEvent::Terminal { .. }
            | LoopbackEvent::Usage(_)
            | LoopbackEvent::Context { .. }
            | LoopbackEvent::Prompt(_)
            | LoopbackEvent::Title(_)
            | LoopbackEvent::Tasks(_)
            | LoopbackEvent::Mode(_) => {}
        }
    }

    fn can_ask(&self) -> bool {
        true
    }

    async fn confirm(&self, _call: &str, question: &Confirmation, _params: &Value) -> UserAnswer {
        let (tool, reason) = (&question.tool, &question.reason);
        self.says(
            "asks",
            &format!("may {tool} run? {reason} -> allowed by the demo, this once"),
        );
        UserAnswer::Once
    }

    async fn check_in(&self, _question: &CheckIn) -> CheckInAnswer {
        CheckInAnswer::More
    }

    async fn ask_for_server(&self, _question: &ServerQuestion) -> ServerAnswer {
        ServerAnswer::Decline
    }
}

/// The target of a call.
fn subject(params: &Value) -> &str {
    SUBJECTS
        .iter()
        .find_map(|name| params.get(name)?.as_str())
        .unwrap_or_default()
}

/// Formats milliseconds for the user.
pub(super) fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// The lines of a result that are shown: those with text, without the middle of a long one.
fn excerpt(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let (head, tail) = SHOWN;
    let left_out = lines.len().saturating_sub(head + tail);
    if left_out == 0 {
        return lines.into_iter().map(printable).collect();
    }
    let (first, last) = (&lines[..head], &lines[lines.len() - tail..]);
    let note = std::iter::once(format!("[{left_out} lines are not shown]"));
    let shown = |lines: &[&str]| lines.iter().map(|line| printable(line)).collect::<Vec<_>>();
    shown(first)
        .into_iter()
        .chain(note)
        .chain(shown(last))
        .collect()
}

/// A line without control characters, split at spaces into parts of at most the width.
fn wrapped(line: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    for word in line.split_whitespace() {
        let width = piece.chars().count() + 1 + word.chars().count();
        if !piece.is_empty() && width > WIDTH {
            pieces.push(std::mem::take(&mut piece));
        }
        if !piece.is_empty() {
            piece.push(' ');
        }
        piece.push_str(word);
    }
    pieces.push(piece);
    pieces
}

/// A line without control characters, cut to the width.
fn printable(line: &str) -> String {
    let line = line.replace('\t', "    ");
    let mut shown: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(WIDTH + 1)
        .collect();
    if let Some((end, _)) = shown.char_indices().nth(WIDTH) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_results_lose_their_middle() {
        let lines = |count: usize| (1..=count).map(|n| format!("{n}\n\n")).collect::<String>();
        let check = |text: &str, expect: &[&str]| assert_eq!(excerpt(text), expect);
        check("", &[]);
        check("a\n\n \nb\n", &["a", "b"]);
        assert_eq!(excerpt(&lines(21)).len(), 21);
        let cut = excerpt(&lines(40));
        assert_eq!(cut[10..13], ["11", "[19 lines are not shown]", "31"]);
        assert_eq!(
            (cut.len(), cut[0].as_str(), cut[21].as_str()),
            (22, "1", "40")
        );
    }

    #[test]
    fn lines_are_printable_and_bounded() {
        let check = |line: &str, expect: &str| assert_eq!(printable(line), expect);
        check("a\tb", "a    b");
        check("\x1b[31mred\x07\r", "[31mred");
        check(&"ä".repeat(WIDTH), &"ä".repeat(WIDTH));
        check(&"ä".repeat(WIDTH + 1), &format!("{}…", "ä".repeat(WIDTH)));
    }

    #[test]
    fn narration_is_wrapped_between_words() {
        let check = |line: &str, expect: &[&str]| assert_eq!(wrapped(line), expect);
        check("", &[""]);
        check("one\x07  two", &["one two"]);
        let (most, more) = ("ä".repeat(WIDTH), "ä".repeat(WIDTH + 1));
        check(&format!("a {most} b"), &["a", &most, "b"]);
        check(&format!("{more} b"), &[&more, "b"]);
        let half = "x".repeat(WIDTH / 2);
        check(&format!("{half} {half}"), &[&half, &half]);
    }

    #[test]
    fn call_subject_is_its_command_pattern_or_path() {
        let check = |params: Value, expect: &str| assert_eq!(subject(&params), expect);
        check(json!({"timeout_secs": 9, "command": "ls"}), "ls");
        check(json!({"glob": "*.rs", "pattern": "x", "path": "src"}), "x");
        check(json!({"path": "a.rs", "old_string": "b"}), "a.rs");
        check(json!({"command": 1}), "");
        check(json!("text"), "");
    }

    #[test]
    fn durations_are_shown_in_seconds() {
        let check = |ms, expect: &str| assert_eq!(seconds(ms), expect);
        check(0, "0.0 s");
        check(99, "0.0 s");
        check(1950, "1.9 s");
        check(61_000, "61.0 s");
    }
}
