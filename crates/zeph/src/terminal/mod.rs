//! The terminal: what a person sees, types and is asked.

mod always;
mod burst;
mod calls;
mod channel;
mod complete;
mod editor;
mod history;
pub(crate) mod interactive;
mod keyboard;
mod line;
mod markdown;
mod question;
mod restore;
pub(crate) mod sanitize;
mod screen;
mod spinner;
mod style;

pub(crate) use channel::{TerminalChannel, TerminalOptions};
pub(crate) use interactive::{Converse, InteractiveOptions, SessionEnd};
pub(crate) use restore::put_back;
