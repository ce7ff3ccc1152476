//! Parser for Bandit: `>> Issue: [B101:assert_used] Use of assert detected.`, then severity, link, place and
//! source.

use super::{Diagnostic, Dialect, ExitInfo, Found, Line};

#[derive(Default)]
struct Bandit {
    open: Option<Diagnostic>,
    /// True if the source follows.
    source: bool,
}

pub(super) fn start() -> Box<dyn Dialect> {
    Box::new(Bandit::default())
}

/// Returns true for a line of source: a number, a tab and the text.
fn is_source(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && matches!(text.as_bytes().get(digits), None | Some(b'\t'))
}

fn is_noise(text: &str) -> bool {
    text.is_empty()
        || text.starts_with("[main]\tINFO")
        || text.starts_with("\tTotal lines skipped ")
        || text.starts_with("\tTotal potential issues skipped ")
        || (text.len() > 10 && text.bytes().all(|byte| byte == b'-'))
}

impl Bandit {
    fn close(&mut self, found: &mut Found<'_>) {
        if let Some(open) = self.open.take() {
            found.diagnostic(&open);
        }
    }
}

impl Dialect for Bandit {
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>) {
        let text = line.text.trim_ascii_end();
        let line = Line { text, ..line };
        if let Some(issue) = text.strip_prefix(">> Issue: ") {
            self.close(found);
            self.source = false;
            let (code, message) = match issue.split_once("] ") {
                Some((code, message)) if code.starts_with('[') => {
                    (Some(format!("{code}]")), message)
                }
                _ => (None, issue),
            };
            self.open = Some(Diagnostic {
                number: line.number,
                code,
                message: message.to_owned(),
                ..Diagnostic::default()
            });
            return;
        }
        let said = text.trim_ascii_start();
        if let Some(open) = &mut self.open {
            if let Some(place) = said.strip_prefix("Location: ") {
                place.clone_into(&mut open.place);
                self.close(found);
                self.source = true;
                return;
            }
            if let Some((severity, confidence)) = said.split_once("   ")
                && severity.starts_with("Severity: ")
            {
                open.level = format!("{severity} {}", confidence.trim_ascii());
                return;
            }
            if said.starts_with("CWE: ") || said.starts_with("More Info: ") {
                return;
            }
            self.close(found);
        }
        if (self.source && is_source(text)) || is_noise(text) {
            return;
        }
        self.source = false;
        found.keep_after(line);
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

    /// Proves OUT-7: each place, the check and its severity.
    #[test]
    fn issues_are_grouped() {
        let issue = |place: &str| {
            format!(
                ">> Issue: [B101:assert_used] Use of assert detected.\n   Severity: Low   Confidence: High\n   CWE: CWE-703 (https://cwe.example/703)\n   More Info: https://bandit.example/b101\n   Location: {place}\n200\t        x\n201\t        assert x\n\n--------------------\n"
            )
        };
        let input = format!(
            "Run started:2026-05-01\n\nTest results:\n{}{}\nCode scanned:\n\tTotal lines of code: 7\n12 files\n",
            issue("shop/a.py:201:8"),
            issue("shop/b.py:7:4")
        );
        let recipe = make(toml::from_str("dialect = 'bandit'").unwrap()).unwrap();
        assert_eq!(
            run(recipe.start(), &input, Some(1)).0,
            "Run started:2026-05-01\nTest results:\nSeverity: Low Confidence: High: Use of assert detected. [B101:assert_used] ×2\n  shop/a.py:201:8 shop/b.py:7:4\nCode scanned:\n\tTotal lines of code: 7\n12 files"
        );
    }
}
