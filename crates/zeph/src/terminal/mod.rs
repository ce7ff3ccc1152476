//! The terminal interface: output, input and questions.

mod alternate_screen;
pub(crate) mod ask;
mod burst;
mod channel;
mod check_in_dialog;
mod clipboard;
mod complete;
mod completion_menu;
mod confirm_dialog;
mod diff_text;
mod editor;
mod fuzzy;
mod history;
pub(crate) mod interactive;
mod keyboard;
mod lend;
mod line;
mod markdown;
mod reasoning;
mod remember_dialog;
mod restore;
mod screen;
mod server_dialog;
pub(crate) mod signals;
mod spinner;
mod style;
mod tool_lines;

pub(crate) use channel::{TerminalChannel, TerminalOptions};
pub(crate) use complete::{CompletionLists, ModelWords};
pub(crate) use confirm_dialog::{plain_question, session_scope};
pub(crate) use interactive::{Converse, InteractiveOptions, SessionEnd};
pub(crate) use restore::put_back;
