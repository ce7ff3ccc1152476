//! The message about a command that the user ran with `!`: its text for the model, and the parts of that text.

/// The start of each message.
const START: &str = "[the user ran a command";
/// The end of the first line, and the start of the command.
const COMMAND: &str = "]\n$ ";

/// The message about a command and its output. The first line counts the lines of a long command.
pub(super) fn message_text(command: &str, output: &str) -> String {
    let lines = match line_count(command) {
        1 => String::new(),
        lines => format!(" of {lines} lines"),
    };
    format!("{START}{lines}{COMMAND}{command}\n{output}")
}

/// The command and its output in a message; `None` for other messages.
pub(super) fn parse(text: &str) -> Option<(&str, &str)> {
    let (count, rest) = text.strip_prefix(START)?.split_once(COMMAND)?;
    let count = match count.strip_prefix(" of ") {
        None if count.is_empty() => 1,
        None => return None,
        Some(count) => count.strip_suffix(" lines")?.parse::<usize>().ok()?,
    };
    let mut ends = rest.match_indices('\n').map(|(at, _)| at);
    let end = ends.nth(count.checked_sub(1)?).unwrap_or(rest.len());
    let (command, output) = rest.split_at(end);
    Some((command, output.strip_prefix('\n').unwrap_or(output)))
}

fn line_count(command: &str) -> usize {
    1 + command.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-6: a stored command is read as it was typed, also if it has several lines.
    #[test]
    fn message_is_parsed_into_its_command_and_output() {
        let check = |command: &str, output: &str| {
            let text = message_text(command, output);
            assert_eq!(parse(&text), Some((command, output)), "{text}");
        };
        check("ls -a", ".\n..");
        check("ls\nrm a.txt", "a.txt\n");
        check("cat <<E\n\nE\n", "");
        check("", "x");
        assert_eq!(message_text("ls", "."), "[the user ran a command]\n$ ls\n.");
        for other in [
            "",
            "[the user ran a command",
            "[the user ran a command of lines]\n$ ls\n",
            "[the user ran a command of 0 lines]\n$ ls\n",
            "[the user ran a commandeered]\n$ ls\n",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
