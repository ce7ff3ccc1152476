//! Display of tool calls: the line at the start, and the lines of the result.

use serde_json::Value;
use zeph_tools::cache::split_note;
use zeph_tools::plural::pluralize;

use super::style::{BOLD, CYAN, DIM, GREEN, RED, Style};
use crate::output::sanitize::{clean, first_line};

/// The maximum number of characters of a subject in its line.
const SUBJECT_CHARS: usize = 160;
/// Lines of a diff that are shown of a result.
const DIFF_LINES: usize = 60;
/// Lines of any other result that are shown; a longer one is counted.
const RESULT_LINES: usize = 5;
/// Lines of a failure.
const FAILURE_LINES: usize = 12;
/// Lines of remarks about a command with streamed output.
const REMARKS: usize = 4;
/// Characters of a line of output.
const LINE_CHARS: usize = 400;

/// The target of a call: its command, path, pattern or URL, otherwise its arguments.
pub(super) fn subject(params: &Value) -> String {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let subject = match (text("source"), text("destination")) {
        (Some(from), Some(to)) => Some(format!("{from} → {to}")),
        _ => match (text("pattern").or_else(|| text("query")), text("path")) {
            (Some(pattern), Some(path)) => Some(format!("{pattern} in {path}")),
            (Some(pattern), None) => Some(pattern.to_owned()),
            _ => ["command", "path", "file_path", "url", "title", "name"]
                .into_iter()
                .find_map(text)
                .map(str::to_owned),
        },
    };
    match subject {
        Some(subject) => first_line(&subject, SUBJECT_CHARS),
        None if params.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => first_line(&params.to_string(), SUBJECT_CHARS),
    }
}

/// The line of a call that begins.
pub(super) fn started(tool: &str, params: &Value, style: Style) -> String {
    let mark = style.paint(CYAN, "●");
    let tool = style.paint(BOLD, &first_line(tool, 60));
    let subject = subject(params);
    if subject.is_empty() {
        format!("{mark} {tool}\n")
    } else {
        format!("{mark} {tool} {subject}\n")
    }
}

/// The lines of a call that ended. `streamed` is how many lines of output were shown or counted
/// while it ran: they are not shown again.
pub(super) fn finished(
    failed: bool,
    display: &str,
    streamed: usize,
    duration_ms: u64,
    style: Style,
) -> String {
    let display = clean(display);
    let text = display.trim_matches('\n');
    let time = if duration_ms >= 1000 {
        #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
        let seconds = duration_ms as f64 / 1000.0;
        format!(" ({seconds:.1} s)")
    } else {
        String::new()
    };
    if failed {
        let most = if streamed > 0 { 1 } else { FAILURE_LINES };
        return block(text, most, &time, |line| style.paint(RED, line), style);
    }
    if streamed > 0 {
        let told = remarks(text).unwrap_or_else(|| format!("done, {}", count(streamed)));
        return block(&told, REMARKS, &time, ToOwned::to_owned, style);
    }
    let (note, body) = split_note(text);
    let lines = body.lines().count();
    if note.is_none() && is_diff(text) {
        let body: Vec<&str> = without_header(text).collect();
        return block(
            &body.join("\n"),
            DIFF_LINES,
            &time,
            |line| diff_line(line, style),
            style,
        );
    }
    match lines {
        0 => block("done", 1, &time, |line| style.paint(DIM, line), style),
        1..=RESULT_LINES => block(
            text,
            RESULT_LINES + 1,
            &time,
            |line| style.paint(DIM, line),
            style,
        ),
        _ => block(
            &match note {
                Some(note) => format!("{}, {}", count(lines), note.trim_matches(['[', ']'])),
                None => count(lines),
            },
            1,
            &time,
            |line| style.paint(DIM, line),
            style,
        ),
    }
}

/// The lines after a command that had the terminal: its failure, or its remarks.
pub(super) fn finished_at_terminal(failed: bool, display: &str, style: Style) -> String {
    let display = clean(display);
    let text = display.trim_matches('\n');
    if failed {
        // The lines that follow are the output.
        let reason = text.lines().next().unwrap_or_default();
        return block(reason, 1, "", |line| style.paint(RED, line), style);
    }
    let told = remarks(text).unwrap_or_default();
    block(&told, REMARKS, "", ToOwned::to_owned, style)
}

/// The lines at the end of a command's result that are not its output, such as `[exit code: 1]`.
fn remarks(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().rev().take(REMARKS).collect();
    let count = lines
        .iter()
        .take_while(|line| line.starts_with('['))
        .count();
    let lines: Vec<&str> = lines[..count].iter().rev().copied().collect();
    (count > 0).then(|| lines.join("\n"))
}

/// A line of a running command's output.
pub(super) fn output_line(line: &str, style: Style) -> String {
    // Text that a carriage return would overwrite is omitted.
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or(line);
    format!(
        "  {}\n",
        style.paint(DIM, &format!("│ {}", cut(&clean(line))))
    )
}

/// The line with the number of hidden lines of an output.
pub(super) fn more_lines(hidden: usize, style: Style) -> String {
    format!(
        "  {}\n",
        style.paint(DIM, &format!("│ … ({})", pluralize(hidden, "more line")))
    )
}

pub(super) fn count(lines: usize) -> String {
    if lines == 1 {
        "1 line".to_owned()
    } else {
        format!("{lines} lines")
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Lines under the mark of a result.
fn block(
    text: &str,
    most: usize,
    time: &str,
    paint: impl Fn(&str) -> String,
    style: Style,
) -> String {
    let total = text.lines().count();
    let mut out = String::new();
    for (at, line) in text.lines().take(most).enumerate() {
        out.push_str(if at == 0 { "  ⎿ " } else { "    " });
        out.push_str(&paint(&cut(line)));
        if at == 0 {
            out.push_str(&style.paint(DIM, time));
        }
        out.push('\n');
    }
    if total > most {
        let hidden = format!("    … ({} more)", count(total - most));
        out.push_str(&style.paint(DIM, &hidden));
        out.push('\n');
    }
    out
}

fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ ")) && text.lines().any(is_header)
}

fn is_header(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("+++ ")
}

/// The lines of a diff except the names of its files. In a hunk, a line that looks like one is a changed line.
pub(super) fn without_header(diff: &str) -> impl Iterator<Item = &str> {
    let mut in_hunk = false;
    diff.lines().filter(move |line| {
        in_hunk |= line.starts_with("@@");
        in_hunk || !is_header(line)
    })
}

pub(super) fn diff_line(line: &str, style: Style) -> String {
    match line.chars().next() {
        Some('+') => style.paint(GREEN, line),
        Some('-') => style.paint(RED, line),
        Some('@') => style.paint(CYAN, line),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Style = Style {
        terminal: true,
        colour: false,
        animate: false,
    };
    const COLOUR: Style = Style {
        terminal: true,
        colour: true,
        animate: true,
    };

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        let check = |params, expect: &str| {
            assert_eq!(started("tool", &params, PLAIN), format!("● tool{expect}\n"));
        };
        check(json!({"path": "src/lib.rs", "limit": 3}), " src/lib.rs");
        check(json!({"command": "ls\nrm x"}), " ls…");
        check(json!({"pattern": "fn", "path": "src"}), " fn in src");
        check(json!({"source": "a", "destination": "b"}), " a → b");
        check(json!({"other": [1, 2]}), " {\"other\":[1,2]}");
        check(json!({}), "");
        check(json!({"command": "a\u{1b}[2K\rb"}), " a\\u{1b}[2K\\u{d}b");
        check(json!("no object"), " \"no object\"");
    }

    #[test]
    fn results_are_short() {
        let check = |failed, display: &str, streamed, millis, expect: &str| {
            assert_eq!(finished(failed, display, streamed, millis, PLAIN), expect);
        };
        check(false, "", 0, 5, "  ⎿ done\n");
        check(false, "one", 0, 1500, "  ⎿ one (1.5 s)\n");
        check(false, "a\nb\n", 0, 5, "  ⎿ a\n    b\n");
        check(false, "1\n2\n3\n4\n5\n6\n", 0, 5, "  ⎿ 6 lines\n");
        let line = zeph_tools::cache::note(12);
        let long = format!("{line}\n1\n2\n3\n4\n5\n6\n");
        let told = "  ⎿ 6 lines, from the cache, 12 s old\n";
        check(false, &long, 0, 5, told);
        let short = format!("{line}\n1\n2\n3\n4\n5");
        let told = "  ⎿ [from the cache, 12 s old]\n    1\n    2\n    3\n    4\n    5\n";
        check(false, &short, 0, 5, told);
        check(false, "1\n2\n", 2, 5, "  ⎿ done, 2 lines\n");
        check(
            true,
            "it failed\nbecause",
            0,
            5,
            "  ⎿ it failed\n    because\n",
        );
        check(
            true,
            "exit 1\nprinted before",
            3,
            5,
            "  ⎿ exit 1\n    … (1 line more)\n",
        );
        check(false, "\x1b[31mred\x1b[0m", 0, 5, "  ⎿ red\n");
        check(
            false,
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n",
            0,
            5,
            "  ⎿ @@ -1 +1 @@\n    -old\n    +new\n",
        );
    }

    /// Proves CLI-4 for diffs in colour.
    #[test]
    fn diffs_are_coloured() {
        let text = finished(
            false,
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n",
            0,
            5,
            COLOUR,
        );
        assert!(text.contains("\x1b[31m-old\x1b[0m"), "{text:?}");
        assert!(text.contains("\x1b[32m+new\x1b[0m"), "{text:?}");
    }

    #[test]
    fn output_keeps_what_a_progress_bar_ends_with() {
        assert_eq!(output_line("10%\r50%\r100%\r", PLAIN), "  │ 100%\n");
        assert_eq!(output_line("\x1b[1mbold\x1b[0m", PLAIN), "  │ bold\n");
    }
}
