//! The terminal interface: output, input and questions.

mod alternate_screen;
pub mod ask;
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
mod interactive;
mod key_press;
mod keyboard;
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
pub mod signals;
mod style;
mod turn;
mod type_ahead;
mod typed_input;

pub use channel::{TerminalChannel, TerminalOptions};
pub use complete::{CompletionLists, ModelWords};
pub use interactive::{Converse, InteractiveOptions, SessionEnd, run_line_interface};
pub use restore::{has_full_screen, put_back};
pub use session_picker::{PickerEntry, SessionPicker, pick};
pub use style::{Style, TerminalEnv};

/// The parts that the full screen shares.
#[cfg(feature = "full-screen")]
mod shared {
    pub(crate) use super::branch::branch_of;
    pub(crate) use super::clipboard::sequence as clipboard_sequence;
    pub(crate) use super::complete::{Words, open_quote};
    pub(crate) use super::history::InputHistory;
    pub(crate) use super::interactive::{cost as cost_line, is_broken_off, trouble};
    pub(crate) use super::keyboard::{Keyboard, is_connected};
    pub(crate) use super::lend::{LendableScreen, OutputEnd, TerminalLender};
    pub(crate) use super::notify::{signal as notification, title as title_sequence};
    pub(crate) use super::queue::Queue;
    pub(crate) use super::restore::{enter_full_screen, leave_full_screen, note_title};
    pub(crate) use super::server_dialog::{
        described as field_description, label as field_label, text as server_question,
    };
    pub(crate) use super::session_picker::{LineStyle, Picked};
}
#[cfg(feature = "full-screen")]
pub(crate) use shared::*;
