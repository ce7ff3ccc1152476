//! The question about a call while it is open: its text, the selected answer and the typed reason.

use ratatui_core::style::{Color, Style};
use ratatui_core::text::Line;
use serde_json::Value;
use zeph_tools::Confirmation;

use super::live_region::{LiveRows, Size};
use crate::view::permission_answers::{AnswerOption, default_option, options};
use crate::view::render::{Detail, option_lines, question_lines};

/// The sign before a typed reason.
pub(super) const REASON: &str = "  tell it why: ";

/// An open question.
#[derive(Debug)]
pub(super) struct CallQuestion {
    question: Confirmation,
    params: Value,
    options: Vec<AnswerOption>,
    pub(super) selected: usize,
    /// A remark about the last key.
    pub(super) note: Option<&'static str>,
    /// The number of ignored inputs.
    pub(super) ignored: usize,
    /// The reason while it is typed: the visible text and the column of the cursor.
    pub(super) reason: Option<(String, usize)>,
    /// The text is in the scrollback, so only the keys are painted.
    pub(super) is_printed: bool,
}

impl CallQuestion {
    pub(super) fn new(question: Confirmation, params: Value) -> Self {
        let options = options(&question);
        Self {
            selected: default_option(&options),
            question,
            params,
            options,
            note: None,
            ignored: 0,
            reason: None,
            is_printed: false,
        }
    }

    /// The text of the question.
    pub(super) fn lines(&self, width: usize, detail: Detail) -> Vec<Line<'static>> {
        question_lines(&self.question, &self.params, width, detail)
    }

    /// The keys without a selection, for a terminal that paints nothing in place.
    pub(super) fn keys(&self, width: usize) -> Vec<Line<'static>> {
        option_lines(&self.options, None, width)
    }

    /// The rows to paint: the text unless it is printed, and the keys.
    pub(super) fn rows(&self, size: Size) -> LiveRows {
        let mut rows = match self.is_printed {
            true => Vec::new(),
            false => self.lines(size.columns, Detail::Excerpt),
        };
        if let Some((text, column)) = &self.reason {
            let cursor = (rows.len(), REASON.len() + column);
            rows.push(Line::from(format!("{REASON}{text}")));
            return LiveRows {
                rows,
                cursor: Some(cursor),
            };
        }
        if let Some(note) = self.note {
            let style = Style::new().fg(Color::Yellow);
            // The number makes each ignored input visible.
            let times = match self.ignored {
                0 | 1 => String::new(),
                times => format!(" ({times} times)"),
            };
            rows.push(Line::styled(format!("  {note}{times}"), style));
        }
        rows.extend(option_lines(
            &self.options,
            Some(self.selected),
            size.columns,
        ));
        LiveRows { rows, cursor: None }
    }
}

#[cfg(test)]
mod tests {
    use zeph_tools::gate::ApprovalProposal;

    use super::*;

    /// Proves CLI-4b, PERM-7: the selected answer is visible without colours, is not an approval, and the keys fit.
    #[test]
    fn no_is_selected_first_and_keys_fit() {
        let mut confirmation = Confirmation::default();
        confirmation.offer.proposal = ApprovalProposal::ThisCall { why: String::new() };
        let question = CallQuestion::new(confirmation, Value::Null);
        let shown = |columns| {
            let rows = question.rows(Size { columns, rows: 24 }).rows;
            let texts = rows.iter().map(ToString::to_string);
            texts.filter(|row| row.contains('[')).collect::<Vec<_>>()
        };
        assert!(
            shown(80).contains(
                &"  [1] once  [2] this session ›[4] no  [5] no, and tell it why".to_owned()
            ),
            "{:?}",
            shown(80)
        );
        assert!(
            shown(30).iter().all(|row| row.chars().count() <= 30),
            "{:?}",
            shown(30)
        );
        assert!(shown(30).iter().any(|row| row.contains("›[4] no")));
    }
}
