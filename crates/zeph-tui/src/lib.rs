#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
//! # Structure
//! - `view`: the screen model, and its rendering as styled lines. It is pure.
//! - `terminal`: the line interface, and the modes of the terminal that both interfaces change.
//! - `full_screen`: the full screen (feature `full-screen`).
//! - [`sanitize`], [`ask`], [`signals`]: safe text, questions before a session, and signals, which the program uses
//!   without an interface too.

mod config;
#[cfg(feature = "full-screen")]
mod full_screen;
mod host;
mod pipe;
pub mod sanitize;
mod terminal;
mod view;

pub use config::{KeyBindings, Notify, TerminalConfig};
#[cfg(feature = "full-screen")]
pub use full_screen::{ReadResources, TuiChannel, run_full_screen};
pub use host::ViewHost;
pub use terminal::{
    CompletionLists, Converse, InteractiveOptions, ModelWords, PickerEntry, SessionEnd,
    SessionPicker, Style, TerminalChannel, TerminalEnv, TerminalOptions, ask, has_full_screen,
    pick, put_back, run_line_interface, signals,
};
#[cfg(feature = "full-screen")]
pub use view::Resources;
pub use view::render::{plain_question, session_scope};
pub use view::{RecapItem, recap};
