//! The terminal interface: output, input and questions.

mod alternate_screen;
pub(crate) mod ask;
mod branch;
mod burst;
mod call_question;
mod channel;
mod check_in_dialog;
mod clipboard;
mod commit;
mod complete;
mod completion_menu;
pub(crate) mod decode;
mod diff_text;
mod editor;
pub(crate) mod external_editor;
mod fuzzy;
mod history;
pub(crate) mod interactive;
mod keyboard;
mod keys;
mod lend;
mod line;
mod live_region;
mod live_rows;
mod notify;
mod prompt_keys;
mod queue;
mod recap;
mod remember_dialog;
mod restore;
mod screen;
mod server_dialog;
mod session_picker;
mod session_switch;
pub(crate) mod signals;
mod style;
mod turn;
mod type_ahead;
mod typed_input;

#[cfg(feature = "tui")]
pub(crate) use branch::branch_of;
pub(crate) use channel::{TerminalChannel, TerminalOptions};
#[cfg(feature = "tui")]
pub(crate) use clipboard::copy as clipboard_sequence;
#[cfg(feature = "tui")]
pub(crate) use complete::Words;
pub(crate) use complete::{CompletionLists, ModelWords};
#[cfg(feature = "tui")]
pub(crate) use history::InputHistory;
pub(crate) use interactive::{Converse, InteractiveOptions, SessionEnd};
#[cfg(feature = "tui")]
pub(crate) use interactive::{cost as cost_line, is_broken_off, trouble};
#[cfg(feature = "tui")]
pub(crate) use keyboard::{Keyboard, is_connected};
#[cfg(feature = "tui")]
pub(crate) use lend::{LendableScreen, OutputEnd, TerminalLender};
#[cfg(feature = "tui")]
pub(crate) use notify::{signal as notification, title as title_sequence};
#[cfg(feature = "tui")]
pub(crate) use queue::Queue;
pub(crate) use restore::put_back;
#[cfg(feature = "tui")]
pub(crate) use restore::{enter_full_screen, leave_full_screen, note_title};
#[cfg(feature = "tui")]
pub(crate) use server_dialog::{
    described as field_description, label as field_label, text as server_question,
};
#[cfg(feature = "tui")]
pub(crate) use session_picker::{LineStyle, Picked};
pub(crate) use session_picker::{PickerEntry, SessionPicker, pick};
