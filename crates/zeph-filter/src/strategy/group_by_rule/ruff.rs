//! Parser for ruff: code and message, ` --> place`, a source excerpt, and help, up to a blank line.
//!
//! The short form is that of other linters.

use super::gcc_style::one_line;
use super::{Diagnostic, Dialect, ExitInfo, Found, Line, OwnedLine};

struct Ruff {
    /// A line that may contain a code and a message.
    header: Option<OwnedLine>,
    open: Option<Diagnostic>,
}

pub(super) fn start() -> Box<dyn Dialect> {
    Box::new(Ruff {
        header: None,
        open: None,
    })
}

/// Parses code and message from `F401 [*] message`, `unused-import: message` or `error[rule]: message`.
fn header(text: &str) -> Option<(&str, &str)> {
    let (word, message) = text.split_once(' ')?;
    let word = word.strip_suffix(':').unwrap_or(word);
    let plausible = word.len() > 2
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_[]".contains(&byte))
        && (word.ends_with(|c: char| c.is_ascii_digit() || c == ']') || word.contains('-'));
    plausible.then_some((word, message))
}

impl Ruff {
    fn close(&mut self, found: &mut Found<'_>) {
        if let Some(diagnostic) = self.open.take() {
            found.diagnostic(&diagnostic);
        }
        if let Some(header) = self.header.take() {
            found.keep_after(header.line());
        }
    }
}

impl Dialect for Ruff {
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>) {
        let text = line.text.trim_ascii_end();
        if text.is_empty() {
            self.close(found);
            return;
        }
        if let Some(place) = text.trim_ascii_start().strip_prefix("--> ")
            && let Some(held) = self.header.take()
        {
            if let Some((code, message)) = header(&held.text) {
                self.open = Some(Diagnostic {
                    number: held.number,
                    level: String::new(),
                    code: Some(code.to_owned()),
                    message: message.to_owned(),
                    place: place.to_owned(),
                    help: None,
                });
                return;
            }
            self.header = Some(held);
        }
        if let Some(diagnostic) = one_line(line) {
            self.close(found);
            found.diagnostic(&diagnostic);
            return;
        }
        if self.open.is_some() {
            let body = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            if body.starts_with(['|', '+', '-'])
                || body.starts_with("...")
                || body.is_empty()
                || text.starts_with(' ')
            {
                return;
            }
            if text.starts_with("help: ") || text.starts_with("note: ") || text.starts_with("...") {
                return;
            }
        }
        self.close(found);
        if header(text).is_some() {
            self.header = Some(OwnedLine {
                number: line.number,
                text: text.to_owned(),
            });
        } else {
            found.keep_after(line);
        }
    }

    fn finish(&mut self, _end: ExitInfo, found: &mut Found<'_>) {
        self.close(found);
    }
}
