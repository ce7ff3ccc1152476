//! Markdown as styled lines.

use ratatui_core::style::Style;
use ratatui_core::text::Line;

use super::styled_text::{StyledText, safe};
use super::wrap::{Hanging, wrap};

/// The lines of a document of at most `width` columns, apart from code, which is not wrapped.
pub(crate) fn render(source: &str, width: usize) -> Vec<Line<'static>> {
    let text = safe(source);
    wrap(
        &StyledText::new(text.trim_end(), Style::new()),
        width,
        &Hanging::default(),
    )
}
