//! Whether a stream is coloured and animated, and the styles that are used.

/// The environment variables that describe the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalEnv {
    /// `NO_COLOR`.
    pub no_color: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
    /// `TMUX` is set.
    pub is_in_tmux: bool,
}

impl TerminalEnv {
    /// Whether the terminal understands no escape sequences: `TERM` is empty, missing or `dumb`.
    pub(crate) fn is_dumb(&self) -> bool {
        matches!(self.term.as_deref(), None | Some("" | "dumb"))
    }
}

/// The style of a stream: colours and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Whether the stream is a terminal: control characters in foreign text are removed.
    pub terminal: bool,
    /// Whether colours and rendered Markdown are printed.
    pub colour: bool,
    /// Whether lines may be overwritten, for the spinner.
    pub animate: bool,
}

impl Style {
    /// The style of a stream, which is a `terminal` or not. `NO_COLOR` counts if it is not empty.
    pub(crate) fn decide(terminal: bool, env: &TerminalEnv, quiet: bool) -> Self {
        let smart = terminal && !env.is_dumb();
        let no_color = env
            .no_color
            .as_deref()
            .is_some_and(|value| !value.is_empty());
        Self {
            terminal,
            colour: smart && !no_color,
            animate: smart && !quiet,
        }
    }

    /// `text` with the escape sequence `paint`, if colours are on and `paint` is not empty.
    pub(crate) fn paint(self, paint: &str, text: &str) -> String {
        if self.colour && !text.is_empty() && !paint.is_empty() {
            format!("{paint}{text}{RESET}")
        } else {
            text.to_owned()
        }
    }
}

/// Ends every paint.
pub(crate) const RESET: &str = "\x1b[0m";
/// Headings, names.
pub(crate) const BOLD: &str = "\x1b[1m";
/// Less important text.
pub(crate) const DIM: &str = "\x1b[2m";
/// Errors.
pub(crate) const RED: &str = "\x1b[31m";
/// Added lines.
pub(crate) const GREEN: &str = "\x1b[32m";
/// Questions, notices.
pub(crate) const YELLOW: &str = "\x1b[33m";
/// Places in a diff.
pub(crate) const CYAN: &str = "\x1b[36m";

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-3 for the decision on colour.
    #[test]
    fn colour_is_for_smart_terminals_without_no_color() {
        let check = |terminal, no_color: Option<&str>, term: Option<&str>, quiet, expect| {
            let env = TerminalEnv {
                no_color: no_color.map(str::to_owned),
                term: term.map(str::to_owned),
                is_in_tmux: false,
            };
            let style = Style::decide(terminal, &env, quiet);
            assert_eq!(
                (style.terminal, style.colour, style.animate),
                expect,
                "{env:?}"
            );
        };
        let xterm = Some("xterm-256color");
        check(true, None, xterm, false, (true, true, true));
        check(true, Some(""), xterm, false, (true, true, true));
        check(true, Some("1"), xterm, false, (true, false, true));
        check(true, None, Some("dumb"), false, (true, false, false));
        check(true, None, Some(""), false, (true, false, false));
        check(true, None, None, false, (true, false, false));
        check(true, None, xterm, true, (true, true, false));
        check(false, None, xterm, false, (false, false, false));
    }

    #[test]
    fn paint_needs_colour() {
        let plain = Style::default();
        assert_eq!(plain.paint(RED, "x"), "x");
        let coloured = Style {
            colour: true,
            ..plain
        };
        assert_eq!(coloured.paint(RED, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(coloured.paint(RED, ""), "");
        assert_eq!(coloured.paint("", "x"), "x");
    }
}
