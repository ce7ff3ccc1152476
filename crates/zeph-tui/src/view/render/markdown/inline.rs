//! Inline Markdown: emphasis, code, links.

use pulldown_cmark::{Event, Tag, TagEnd};
use ratatui_core::style::{Modifier, Style};

use crate::sanitize::clean;
use crate::view::render::styled_text::{CYAN, DIM, StyledText, expand_tabs};

/// The state of inline text.
#[derive(Debug, Clone, Default)]
pub(super) struct Inline {
    /// The style of the block.
    pub(super) base: Style,
    strong: usize,
    emphasis: usize,
    strike: usize,
    /// The address of each open link, and its text so far.
    links: Vec<(String, String)>,
}

impl Inline {
    /// Whether text has the style of the block alone.
    pub(super) fn is_plain(&self) -> bool {
        self.strong + self.emphasis + self.strike + self.links.len() == 0
    }

    /// Adds one event to the text. Events of blocks are skipped.
    pub(super) fn event(&mut self, event: Event<'_>, out: &mut StyledText) {
        match event {
            Event::Start(Tag::Strong) => self.strong += 1,
            Event::Start(Tag::Emphasis) => self.emphasis += 1,
            Event::Start(Tag::Strikethrough) => self.strike += 1,
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.links.push((dest_url.into_string(), String::new()));
            }
            Event::End(TagEnd::Strong) => self.strong = self.strong.saturating_sub(1),
            Event::End(TagEnd::Emphasis) => self.emphasis = self.emphasis.saturating_sub(1),
            Event::End(TagEnd::Strikethrough) => self.strike = self.strike.saturating_sub(1),
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(out),
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => {
                self.text(&text, out);
            }
            Event::Code(code) => {
                self.note(&code);
                out.push(&decoded(&code), self.base.patch(CYAN));
            }
            Event::SoftBreak => out.push(" ", self.style()),
            Event::HardBreak => out.push("\n", self.style()),
            _ => {}
        }
    }

    /// Adds the address of a link after its text, if it is not the text.
    fn end_link(&mut self, out: &mut StyledText) {
        let Some((url, text)) = self.links.pop() else {
            return;
        };
        let bare = url.strip_prefix("mailto:").unwrap_or(&url);
        if !url.is_empty() && url != text && bare != text {
            out.push(&format!(" ({})", decoded(&url)), DIM);
        }
        self.note(&text);
    }

    fn text(&mut self, text: &str, out: &mut StyledText) {
        self.note(text);
        out.push(&decoded(text), self.style());
    }

    fn style(&self) -> Style {
        let mut style = self.base;
        for (count, modifier) in [
            (self.strong, Modifier::BOLD),
            (self.emphasis, Modifier::ITALIC),
            (self.strike, Modifier::CROSSED_OUT),
            (self.links.len(), Modifier::UNDERLINED),
        ] {
            if count > 0 {
                style = style.add_modifier(modifier);
            }
        }
        style
    }

    fn note(&mut self, text: &str) {
        if let Some((_, shown)) = self.links.last_mut() {
            shown.push_str(text);
        }
    }
}

/// Text of an event. Entities may encode control characters, which are removed after parsing.
pub(super) fn decoded(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    expand_tabs(&clean(text))
}
