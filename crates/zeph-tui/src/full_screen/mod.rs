//! The full screen, `zeph --tui`: a view of the screen model and a source of inputs.
//!
//! It contains no logic of the agent. [`TuiChannel`] puts events into the model and shows questions as dialogs, `app` is the
//! pure state of the interface, `draw` draws it, and `run` connects keys, timers and turns.

mod app;
mod attention;
mod blocks;
mod channel;
mod completion;
mod dialog;
mod dialog_options;
mod draw;
mod draw_dialog;
mod form;
mod help;
mod input;
mod key_bindings;
mod key_reader;
mod panels;
mod prompt;
mod question;
mod rendered;
mod rows;
mod run;
mod screen;
mod search;
mod show;
mod signals;
mod vi;

pub use channel::TuiChannel;
pub use run::{ReadResources, run_full_screen};
