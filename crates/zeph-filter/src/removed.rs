//! The forms of the lines of an output, reported when a rule removes every line.

use std::collections::BTreeMap;

use super::head_tail::OutputLine;
use super::line::{Line, OwnedLine};
use super::line_template::{Mask, shape as form_of};

/// Forms that are reported; further lines are counted only.
const MAX_FORMS: usize = 30;
/// Bytes of a reported line.
const MAX_LINE: usize = 300;

/// Lines of one form.
#[derive(Debug)]
struct Form {
    first: OwnedLine,
    count: u64,
}

/// Counts lines by form.
#[derive(Debug, Default)]
pub(super) struct Removed {
    forms: BTreeMap<u64, Form>,
    /// Lines of further forms, and the number of the last one.
    others: u64,
    last: u64,
}

impl Removed {
    /// Counts a line.
    pub(super) fn see(&mut self, line: Line<'_>) {
        if line.text.trim_ascii().is_empty() {
            return;
        }
        let form = form_of(line.text, Mask::Shape);
        if let Some(form) = self.forms.get_mut(&form) {
            form.count += 1;
        } else if self.forms.len() < MAX_FORMS {
            let end = line.text.floor_char_boundary(MAX_LINE);
            let first = OwnedLine {
                number: line.number,
                text: line.text[..end].to_owned(),
            };
            self.forms.insert(form, Form { first, count: 1 });
        } else {
            self.others += 1;
            self.last = line.number;
        }
    }

    /// Whether no line was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The first line of each form with its count, in order.
    pub(super) fn report(&self) -> Vec<OutputLine> {
        let line = |form: &Form| OutputLine {
            number: form.first.number,
            text: match form.count {
                1 => form.first.text.clone(),
                count => format!("{} [×{count} like this]", form.first.text),
            },
            ours: form.count > 1,
        };
        let mut lines: Vec<OutputLine> = self.forms.values().map(line).collect();
        lines.sort_by_key(|line| line.number);
        if self.others > 0 {
            lines.push(OutputLine {
                number: self.last,
                text: format!("[{} lines of other forms]", self.others),
                ours: true,
            });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-7, OUT-7d.
    #[test]
    fn lines_are_reported_by_form() {
        let check = |lines: &[&str], expect: &[&str]| {
            let mut removed = Removed::default();
            for (text, number) in lines.iter().zip(1..) {
                removed.see(Line { number, text });
            }
            let report: Vec<String> = removed.report().into_iter().map(|line| line.text).collect();
            assert_eq!(report, expect);
        };
        check(&[], &[]);
        check(&["", "  "], &[]);
        check(&["built a", "built b"], &["built a", "built b"]);
        check(
            &["fetched 1 rows", "done", "fetched 22 rows", ""],
            &["fetched 1 rows [×2 like this]", "done"],
        );
        let words: Vec<String> = (0..40_u8)
            .map(|number| format!("a line of {}", char::from(b'A' + number)))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut expect = words[..30].to_vec();
        expect.push("[10 lines of other forms]");
        check(&words, &expect);
    }
}
