//! Parser for Biome: place and rule before a line of `━`, the message below, then the source, a suggested fix
//! and notes with indentation.
//!
//! ```text
//! src/a.ts:3:23 lint/suspicious/noExplicitAny  FIXABLE  ━━━━━━━━━━
//!
//!   × Unexpected any. Specify a different type.
//! ```

use super::{Diagnostic, Dialect, ExitInfo, Found, Line};

/// Bytes of a message.
const MAX_MESSAGE_BYTES: usize = 1000;

#[derive(Default)]
struct Biome {
    /// The diagnostic whose message follows or may continue.
    open: Diagnostic,
    at: Section,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    Outside,
    /// After place and rule.
    Header,
    Message,
    /// After the message.
    Below,
}

pub(super) fn start() -> Box<dyn Dialect> {
    Box::new(Biome::default())
}

/// Parses place and rule. The place is empty for a message about the whole run.
fn header(text: &str) -> Option<(&str, &str)> {
    let head = text.strip_suffix("━━")?.trim_end_matches('━').trim_ascii();
    if text.starts_with(' ') {
        return None;
    }
    let head = head.strip_suffix("FIXABLE").unwrap_or(head).trim_ascii();
    Some(head.rsplit_once(' ').unwrap_or(("", head)))
}

/// Parses level and text of `  × Unexpected any.`
fn message(text: &str) -> Option<(&'static str, &str)> {
    let rest = text.strip_prefix("  ")?;
    [("× ", "error"), ("! ", "warning"), ("i ", "info")]
        .into_iter()
        .find_map(|(sign, level)| Some((level, rest.strip_prefix(sign)?)))
}

impl Biome {
    fn close(&mut self, found: &mut Found<'_>) {
        let said = matches!(self.at, Section::Message | Section::Below);
        let at = std::mem::take(&mut self.at);
        if said || (at == Section::Header && !self.open.place.is_empty()) {
            found.diagnostic(&self.open);
        }
    }
}

impl Dialect for Biome {
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>) {
        let text = line.text.trim_ascii_end();
        let line = Line { text, ..line };
        if let Some((place, rule)) = header(text) {
            self.close(found);
            self.open = Diagnostic {
                number: line.number,
                place: place.to_owned(),
                code: Some(rule.to_owned()),
                ..Diagnostic::default()
            };
            self.at = Section::Header;
            return;
        }
        match (self.at, message(text)) {
            // A message about the whole run.
            (Section::Header, Some(_)) if self.open.place.is_empty() => {
                self.at = Section::Outside;
                found.keep_after(line);
            }
            (Section::Header, Some((level, said))) => {
                level.clone_into(&mut self.open.level);
                said.clone_into(&mut self.open.message);
                self.at = Section::Message;
            }
            (Section::Message, _) if text.is_empty() => self.at = Section::Below,
            (Section::Message, None) if text.starts_with("    ") => {
                if self.open.message.len() + text.len() < MAX_MESSAGE_BYTES {
                    self.open.message.push(' ');
                    self.open.message.push_str(text.trim_ascii());
                }
            }
            (Section::Header | Section::Below, _) if text.is_empty() || text.starts_with("  ") => {}
            _ => {
                self.close(found);
                found.keep_after(line);
            }
        }
    }

    fn finish(&mut self, _end: ExitInfo, found: &mut Found<'_>) {
        self.close(found);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::super::super::testing::run;
    use super::super::make;
    use super::*;

    #[test]
    fn headers_are_read() {
        let rule = "lint/suspicious/noExplicitAny";
        for fixable in ["", " FIXABLE "] {
            let text = format!("src/a b.ts:3:23 {rule} {fixable} ━━━━━━━━");
            assert_eq!(header(&text), Some(("src/a b.ts:3:23", rule)), "{text}");
        }
        assert_eq!(header("src/a.ts format ━━━━"), Some(("src/a.ts", "format")));
        assert_eq!(header("lint ━━━━━━━━"), Some(("", "lint")));
        assert_eq!(header("  a ━━━━━━━━"), None);
        assert_eq!(header("src/a.ts:3:23 lint/x/y"), None);
    }

    /// Proves OUT-7: each place, the rule and the message; messages about the run.
    #[test]
    fn diagnostics_are_grouped_by_rule() {
        let of = |place: &str| {
            format!(
                "{place} lint/suspicious/noVar ━━━━━━━━━━━━━━━\n\n  × Use let.\n    Or const.\n  \n  > 3 │ var a;\n      │ ^^^\n  \n  i See the docs.\n\n"
            )
        };
        let input = format!(
            "{}{}src/c.ts format ━━━━━━\n\n  × Formatter would have printed the following content:\n  \n    1   │ - a\nChecked 3 files in 27ms. No fixes applied.\nFound 3 errors.\nlint ━━━━━━━━━━\n\n  × Some errors were emitted while running checks.\n",
            of("src/a.ts:3:1"),
            of("src/b.ts:9:1")
        );
        let recipe = make(toml::from_str("dialect = 'biome'").unwrap()).unwrap();
        let (text, _) = run(recipe.start(), &input, Some(1));
        assert_eq!(
            text,
            "error: Use let. Or const. (lint/suspicious/noVar) ×2\n  src/a.ts:3:1 src/b.ts:9:1\nerror: Formatter would have printed the following content: (format) --> src/c.ts\nChecked 3 files in 27ms. No fixes applied.\nFound 3 errors.\n  × Some errors were emitted while running checks."
        );
    }
}
