//! A conversation as Markdown.

use std::fmt::Write as _;

use super::document::{Block, Call, Document};

/// Renders a conversation as Markdown.
pub(super) fn render(document: &Document) -> String {
    let mut text = format!("# {}\n\n", document.title);
    for (name, value) in &document.facts {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "- {name}: {value}");
    }
    // Messages of one speaker have one heading.
    let mut speaker = "";
    for block in &document.blocks {
        let next = match block {
            Block::Prompt(_) => "User",
            Block::Note(_) => "Note to the model",
            Block::Image(_) => speaker,
            Block::Response(_) | Block::Reasoning(_) | Block::Call(_) => "Zeph",
            Block::Summary(heading, _) => heading,
        };
        if next != speaker || matches!(block, Block::Prompt(_)) {
            let _ = write!(text, "\n## {next}\n");
            speaker = next;
        }
        match block {
            Block::Prompt(words)
            | Block::Note(words)
            | Block::Response(words)
            | Block::Summary(_, words) => {
                let _ = write!(text, "\n{}\n", words.trim_end());
            }
            Block::Reasoning(words) => {
                let quoted: String = words.lines().map(|line| format!("> {line}\n")).collect();
                let _ = write!(text, "\n> *Reasoning*\n>\n{quoted}");
            }
            Block::Image(kind) => {
                let _ = write!(text, "\n*Image ({kind})*\n");
            }
            Block::Call(call) => text.push_str(&of_call(call)),
        }
    }
    text
}

fn of_call(call: &Call) -> String {
    let mut text = format!("\n**{}** {}\n\n", call.tool, code(&call.title));
    text.push_str(&fenced("json", &call.arguments));
    match &call.result {
        None => text.push_str("\nNo result\n"),
        Some((result, is_error)) => {
            text.push_str(if *is_error {
                "\nFailure\n\n"
            } else {
                "\nResult\n\n"
            });
            text.push_str(&fenced("text", result));
        }
    }
    text
}

/// A code block with a fence that is longer than any in the text.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

/// A code span. Its delimiter is longer than any run of backticks in the text.
fn code(text: &str) -> String {
    let run = longest_run(text);
    let delimiter = "`".repeat(run + 1);
    let blank = if run > 0 { " " } else { "" };
    format!("{delimiter}{blank}{text}{blank}{delimiter}")
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-6: text inside a call cannot end its code block.
    #[test]
    fn fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("text", "a\n"), "```text\na\n```\n");
        assert_eq!(
            fenced("text", "```\na\n```"),
            "````text\n```\na\n```\n````\n"
        );
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a `b` ``c"), "``` a `b` ``c ```");
    }
}
