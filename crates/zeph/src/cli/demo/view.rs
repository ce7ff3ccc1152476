//! The output of the demo: plain lines that name the speaker.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use textwrap::{WordSeparator, WordSplitter};
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::question::{ServerAnswer, ServerQuestion};

use crate::output::stdout_line;

/// Lines of a result that are shown before and after the omitted ones.
const SHOWN: (usize, usize) = (11, 10);
/// Columns of a line if standard output is not a terminal.
const COLUMNS: usize = 100;
/// Columns of the name before a text.
const NAME_COLUMNS: usize = 8;
/// The text before each line of a result.
const RESULT_MARK: &str = "        | ";
/// The least columns of a text after its name. A terminal that is narrower wraps itself.
const MIN_COLUMNS: usize = 20;
/// The arguments that name the target of a call.
const SUBJECTS: [&str; 3] = ["command", "pattern", "path"];

/// The channel of the demo: shows and allows every call, and prints that.
pub(super) struct View {
    quiet: bool,
    /// Columns of a line.
    columns: usize,
    /// The text of the model since the last line.
    said: Mutex<String>,
}

impl View {
    /// A view; a quiet one prints nothing.
    pub(super) fn new(quiet: bool) -> Self {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let columns = size.map(|size| usize::from(size.ws_col));
        Self {
            quiet,
            columns: columns.filter(|columns| *columns > 0).unwrap_or(COLUMNS),
            said: Mutex::default(),
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
        let width = self.columns.saturating_sub(NAME_COLUMNS);
        for line in text.trim_end().lines() {
            for row in wrapped(line, width) {
                self.line(&format!("{name:<NAME_COLUMNS$}{row}"));
                name = "";
            }
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
                let width = self.columns.saturating_sub(RESULT_MARK.len());
                for line in excerpt(&display, width) {
                    self.line(&format!("{RESULT_MARK}{line}"));
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
            | LoopbackEvent::PromptImage(_)
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
            &format!("May {tool} run? {reason} -> the demo allows this call once"),
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

/// The lines of a result that are shown: those with text, without the middle of a long result.
fn excerpt(text: &str, width: usize) -> Vec<String> {
    let printable = |line: &&str| printable(line, width);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let (head, tail) = SHOWN;
    let left_out = lines.len().saturating_sub(head + tail);
    if left_out == 0 {
        return lines.iter().map(printable).collect();
    }
    let (first, last) = (&lines[..head], &lines[lines.len() - tail..]);
    let note = std::iter::once(format!("[{left_out} lines are not shown]"));
    let shown = |lines: &[&str]| lines.iter().map(printable).collect::<Vec<_>>();
    shown(first)
        .into_iter()
        .chain(note)
        .chain(shown(last))
        .collect()
}

/// A line without control characters, split at spaces into rows of at most `width` columns. A longer word is not split.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let options = textwrap::Options::new(width.max(MIN_COLUMNS))
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    let rows = textwrap::wrap(&line, options).into_iter();
    rows.map(Cow::into_owned).collect()
}

/// A line without control characters, cut to at most `width` characters.
fn printable(line: &str, width: usize) -> String {
    let width = width.max(MIN_COLUMNS);
    let line = line.replace('\t', "    ");
    let mut shown: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(width + 1)
        .collect();
    if let Some((end, _)) = shown.char_indices().nth(width - 1)
        && shown.chars().count() > width
    {
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
        let check = |text: &str, expect: &[&str]| assert_eq!(excerpt(text, 90), expect);
        check("", &[]);
        check("a\n\n \nb\n", &["a", "b"]);
        assert_eq!(excerpt(&lines(21), 90).len(), 21);
        let cut = excerpt(&lines(40), 90);
        assert_eq!(cut[10..13], ["11", "[19 lines are not shown]", "31"]);
        assert_eq!(
            (cut.len(), cut[0].as_str(), cut[21].as_str()),
            (22, "1", "40")
        );
    }

    #[test]
    fn lines_are_printable_and_bounded() {
        let check = |line: &str, expect: &str| assert_eq!(printable(line, 90), expect);
        check("a\tb", "a    b");
        check("\x1b[31mred\x07\r", "[31mred");
        check(&"ä".repeat(90), &"ä".repeat(90));
        check(&"ä".repeat(91), &format!("{}…", "ä".repeat(89)));
    }

    #[test]
    fn narration_is_wrapped_between_words() {
        let check = |line: &str, expect: &[&str]| assert_eq!(wrapped(line, 92), expect);
        check("", &[""]);
        check("one\x07  two", &["one two"]);
        let (most, more) = ("ä".repeat(92), "ä".repeat(93));
        check(&format!("a {most} b"), &["a", &most, "b"]);
        check(&format!("{more} b"), &[&more, "b"]);
        let half = "x".repeat(46);
        check(&format!("{half} {half}"), &[&half, &half]);
        check("a-b /c/d", &["a-b /c/d"]);
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
