//! The approval question of a call: its effects, its parts with their decisions, the reason of the question, and the
//! scope of each decision.
//!
//! The user decides by this text, so nothing is hidden. Control characters and characters that reorder text are shown
//! as escapes, all parts of a command are shown, and cuts are marked.

use serde_json::Value;
use zeph_tools::gate::{ApprovalProposal, Grant};
use zeph_tools::{Confirmation, Risk};

use super::style::{BOLD, DIM, GREEN, RED, Style, YELLOW};
use super::tool_lines::{count, diff_line, without_header};
use crate::output::sanitize::{first_line, visible};

/// Lines of a new file that a question shows.
const CONTENT_LINES: usize = 20;
/// Lines of a diff that a question shows.
const DIFF_LINES: usize = 100;
/// The remark below a question about a change of a file.
const ACCEPT_ALL: &str = "/mode auto-edit (Shift-Tab at the prompt) accepts all changes of files";
/// Characters of a line of a file that a question shows.
const LINE_CHARS: usize = 400;

/// The question with its keys.
pub(super) fn question(question: &Confirmation, params: &Value, style: Style) -> String {
    let mut out = body(question, params, style);
    offered(question, style, &mut out);
    if question.preview.is_some() {
        say(&mut out, style, DIM, ACCEPT_ALL);
    }
    out.push_str(&keys(question));
    out
}

/// The question as plain text without keys, for a user at another program.
pub(crate) fn plain_question(question: &Confirmation, params: &Value) -> String {
    let text = body(question, params, Style::default());
    text.strip_prefix("? ").map(str::to_owned).unwrap_or(text)
}

/// The calls that an approval for the session covers, one per line; `None` if the question offers none.
pub(crate) fn session_scope(question: &Confirmation) -> Option<String> {
    match &question.offer.proposal {
        ApprovalProposal::Grants(grants) => {
            let lines: Vec<String> = grants.iter().map(grant).collect();
            Some(lines.join("\n"))
        }
        ApprovalProposal::ThisCall { .. } => Some("this very call".to_owned()),
        ApprovalProposal::Nothing { .. } => None,
    }
}

/// The call, its parts with their decisions, and the reason of the question.
fn body(question: &Confirmation, params: &Value, style: Style) -> String {
    let (risk, paint) = match question.risk {
        Risk::Safe => ("safe", GREEN),
        Risk::Medium => ("medium", YELLOW),
        Risk::High => ("high", RED),
    };
    let mut out = format!(
        "{} May {} run?  risk: {}\n",
        style.paint(YELLOW, "?"),
        style.paint(BOLD, &first_line(&question.tool, 60)),
        style.paint(paint, risk),
    );
    arguments(question, params, style, &mut out);
    for piece in &question.pieces {
        let depth = "  ".repeat(piece.depth.min(10));
        let text = visible(&piece.text).replace('\n', "\\n");
        let judged = visible(&piece.judged);
        let paint = if piece.asked { YELLOW } else { GREEN };
        let line = format!("    {depth}{text}  — {}\n", style.paint(paint, &judged));
        out.push_str(&line);
    }
    if !question.reason.is_empty() {
        say(&mut out, style, DIM, &format!("why: {}", question.reason));
    }
    out
}

/// The keys of the question.
pub(super) fn keys(question: &Confirmation) -> String {
    let mut keys = "  [1] once".to_owned();
    if has_session(question) {
        keys.push_str("  [2] this session");
    }
    if has_always(question) {
        keys.push_str("  [3] always");
    }
    keys.push_str("  [4] no  [5] no, and tell it why ");
    keys
}

/// Whether approval for the session is possible.
pub(super) fn has_session(question: &Confirmation) -> bool {
    !matches!(question.offer.proposal, ApprovalProposal::Nothing { .. })
}

/// Whether permanent approval is possible.
pub(super) fn has_always(question: &Confirmation) -> bool {
    let rules = matches!(question.offer.proposal, ApprovalProposal::Grants(_));
    rules && question.offer.project.is_some()
}

/// Formats a grant for the user.
pub(super) fn grant(grant: &Grant) -> String {
    let pattern = visible(&grant.pattern).replace('\n', "\\n");
    format!("{} `{pattern}`", visible(&grant.tool))
}

/// Describes the scope of the decisions other than "once".
fn offered(question: &Confirmation, style: Style, out: &mut String) {
    let mut line = |text: &str| say(out, style, DIM, text);
    match &question.offer.proposal {
        ApprovalProposal::Grants(grants) => {
            line(match has_always(question) {
                true => "[2] until /clear or the end, and [3] for good, would let run:",
                false => "[2] until /clear or the end would let run:",
            });
            for given in grants {
                line(&format!("  {}", grant(given)));
            }
        }
        ApprovalProposal::ThisCall { why } => {
            line("[2] until /clear or the end would let run: this very call");
            line(&format!("[3] always is not offered: {why}"));
        }
        ApprovalProposal::Nothing { why } if why.is_empty() => {}
        ApprovalProposal::Nothing { why } => line(&format!("[2] and [3] are not offered: {why}")),
    }
}

fn say(out: &mut String, style: Style, paint: &str, text: &str) {
    for line in text.split('\n') {
        let line = style.paint(paint, &visible(line));
        out.push_str(&format!("  {line}\n"));
    }
}

/// Shows the arguments: the target first, contents last, a change of a file as a diff.
fn arguments(question: &Confirmation, params: &Value, style: Style, out: &mut String) {
    let Some(arguments) = params.as_object().filter(|all| !all.is_empty()) else {
        return say(out, style, "", &question.subject);
    };
    let diff = question.preview.as_ref().map(|preview| &preview.diff);
    let mut arguments: Vec<_> = arguments.iter().collect();
    arguments.sort_by_key(|(name, _)| place(name));
    for (name, value) in arguments {
        let mut marked = |mark: &str, text: &str, paint: &str| {
            for line in text.split('\n') {
                say(out, style, paint, &format!("{mark}{line}"));
            }
        };
        match (name.as_str(), value.as_str()) {
            ("old_string" | "new_string" | "content", Some(_)) if diff.is_some() => {}
            ("command", Some(command)) => marked("$ ", command, BOLD),
            ("old_string", Some(text)) => marked("- ", text, RED),
            ("new_string", Some(text)) => marked("+ ", text, GREEN),
            ("content", Some(text)) => {
                let lines: Vec<&str> = text.lines().collect();
                let head = &lines[..lines.len().min(CONTENT_LINES)];
                let head: Vec<String> = head.iter().map(|line| cut(line)).collect();
                marked("+ ", &head.join("\n"), GREEN);
                more(lines.len() - head.len(), style, out);
            }
            (name, Some(text)) => marked(&format!("{name}: "), text, ""),
            (name, None) => marked(&format!("{name}: "), &value.to_string(), ""),
        }
    }
    if let Some(diff) = diff {
        let lines: Vec<&str> = without_header(diff).collect();
        for line in lines.iter().take(DIFF_LINES) {
            let line = diff_line(&visible(&cut(line)), style);
            out.push_str(&format!("  {line}\n"));
        }
        if lines.is_empty() {
            say(out, style, DIM, "nothing would change");
        }
        more(lines.len().saturating_sub(DIFF_LINES), style, out);
    }
}

fn more(hidden: usize, style: Style, out: &mut String) {
    if hidden > 0 {
        say(out, style, DIM, &format!("… ({} more)", count(hidden)));
    }
}

/// A line of a file; a cut at its end is marked.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => {
            let hidden = line[end..].chars().count();
            format!("{}… ({hidden} characters more)", &line[..end])
        }
        None => line.to_owned(),
    }
}

/// The position of an argument in a question: the target first, contents last.
fn place(name: &str) -> u8 {
    match name {
        "command" | "path" | "source" => 0,
        "destination" => 1,
        "old_string" => 3,
        "new_string" | "content" => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_tools::gate::DisplayPart;
    use zeph_tools::preview::Preview;

    use super::*;

    const PLAIN: Style = Style {
        terminal: true,
        colour: false,
        animate: false,
    };
    const KEYS: &str = "  [1] once  [4] no  [5] no, and tell it why ";
    const WHY: &str = "  why: no rule allows it\n";

    fn confirmation(tool: &str) -> Confirmation {
        Confirmation {
            tool: tool.to_owned(),
            subject: "the subject".to_owned(),
            reason: "no rule allows it".to_owned(),
            risk: Risk::High,
            ..Confirmation::default()
        }
    }

    fn asked(tool: &str, params: Value) -> String {
        question(&confirmation(tool), &params, PLAIN)
    }

    /// Proves PERM-2, PERM-7 for the text of the question.
    #[test]
    fn a_question_shows_all_that_would_run() {
        let long = format!("echo {}\nrm -rf x", "a".repeat(500));
        assert_eq!(
            asked("bash", json!({ "command": long })),
            format!(
                "? May bash run?  risk: high\n  $ echo {}\n  $ rm -rf x\n{WHY}{KEYS}",
                "a".repeat(500)
            )
        );
        assert_eq!(
            asked(
                "edit",
                json!({"new_string": "z", "old_string": "x\ny", "path": "a.rs"})
            ),
            format!("? May edit run?  risk: high\n  path: a.rs\n  - x\n  - y\n  + z\n{WHY}{KEYS}")
        );
        let content = "line\n".repeat(22);
        let shown = asked("write", json!({"path": "a", "content": content}));
        assert_eq!(shown.matches("  + line\n").count(), 20);
        assert!(shown.contains("  … (2 lines more)\n"), "{shown}");
        let shown = asked("write", json!({"path": "a", "content": "b".repeat(500)}));
        assert!(shown.contains("b… (100 characters more)\n"), "{shown}");
        assert!(asked("x", json!({})).contains("  the subject\n"));
        assert!(asked("x", json!({"n": 3})).contains("  n: 3\n"));
        let both = asked("move_path", json!({"destination": "b", "source": "a"}));
        assert!(both.contains("  source: a\n  destination: b\n"), "{both}");
    }

    #[test]
    fn nothing_hides_in_a_question() {
        let shown = asked(
            "bash",
            json!({"command": "ls \u{1b}[8m; rm -rf ~\u{1b}[0m\r# harmless\u{202e}"}),
        );
        assert!(
            shown.contains("$ ls \\u{1b}[8m; rm -rf ~\\u{1b}[0m\\u{d}# harmless\\u{202e}\n"),
            "{shown}"
        );
    }

    /// Proves PERM-7: the diff, the parts with their decisions, and the scope of each answer.
    #[test]
    fn a_question_shows_parts_diffs_and_scopes() {
        let piece = |text: &str, asked, judged: &str, depth| DisplayPart {
            text: text.to_owned(),
            depth,
            asked,
            judged: judged.to_owned(),
        };
        let mut bash = confirmation("bash");
        bash.pieces = vec![
            piece("sudo rm\u{202e} x", true, "asked, runs another command", 0),
            piece("rm\nx", false, "allowed by the rule `rm *` (c.toml:3)", 1),
        ];
        bash.offer.proposal = ApprovalProposal::ThisCall {
            why: "`sudo` runs another command".to_owned(),
        };
        let shown = question(&bash, &json!({"command": "sudo rm x"}), PLAIN);
        assert_eq!(
            shown,
            format!(
                "? May bash run?  risk: high\n  $ sudo rm x\n    \
                 sudo rm\\u{{202e}} x  — asked, runs another command\n      \
                 rm\\nx  — allowed by the rule `rm *` (c.toml:3)\n{WHY}  \
                 [2] until /clear or the end would let run: this very call\n  \
                 [3] always is not offered: `sudo` runs another command\n  \
                 [1] once  [2] this session  [4] no  [5] no, and tell it why "
            )
        );
        let mut write = confirmation("write");
        write.preview = Some(Preview {
            diff: "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\u{1b}[8m\n+++ hidden\n".to_owned(),
            basis: [0; 32],
        });
        write.offer.proposal = ApprovalProposal::Grants(vec![Grant {
            tool: "write".to_owned(),
            pattern: "/p/x".to_owned(),
        }]);
        write.offer.project = Some("/p".into());
        let shown = question(&write, &json!({"path": "x", "content": "new"}), PLAIN);
        assert_eq!(
            shown,
            format!(
                "? May write run?  risk: high\n  path: x\n  \
                 @@ -1 +1,2 @@\n  -old\n  +new\\u{{1b}}[8m\n  +++ hidden\n{WHY}  \
                 [2] until /clear or the end, and [3] for good, would let run:\n    \
                 write `/p/x`\n  {ACCEPT_ALL}\n  \
                 [1] once  [2] this session  [3] always  [4] no  [5] no, and tell it why "
            )
        );
        write.offer.project = None;
        assert!(!has_always(&write) && has_session(&write));
    }
}
