//! The screen model as styled lines, which both interfaces show.
//!
//! Every function is pure. Lines use only the 16 colours of the terminal's own theme and modifiers. Foreign text is
//! sanitized before it reaches a line.

mod activity;
mod ansi;
mod block;
mod call;
mod diff;
mod excerpt;
mod fence;
mod highlight;
mod markdown;
mod marked_command;
mod question;
mod status;
mod stream;
mod styled_text;
mod tasks;
mod wrap;

pub(crate) use activity::activity_line;
pub(crate) use ansi::to_ansi;
pub(crate) use block::block_lines;
pub(crate) use call::{call_result, call_title};
pub(crate) use markdown::render as render_markdown;
pub(crate) use question::{grant, option_lines, question_lines};
pub use question::{plain_question, session_scope};
pub(crate) use status::status_line;
pub(crate) use stream::MarkdownStream;
pub(crate) use styled_text::{DIM, fit, prefix_that_fits};
pub(crate) use tasks::task_lines;

/// The amount of a long text that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Detail {
    /// A bounded part, with the number of hidden lines.
    Brief,
    /// The same, with the key that shows the rest.
    #[default]
    Excerpt,
    /// The whole text.
    Full,
}

#[cfg(test)]
mod tests;
