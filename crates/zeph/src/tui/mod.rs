//! The full screen, `zeph --tui`: a view of the screen model and a source of inputs.
//!
//! It contains no logic of the agent. [`TuiChannel`] puts events into the model and shows questions as dialogs, `app` is the
//! pure state of the interface, `draw` draws it, and `run` connects keys, timers and turns.

mod app;
mod blocks;
mod channel;
mod completion;
mod dialog;
mod dialog_options;
mod draw;
mod form;
mod input;
mod keys;
mod panels;
mod question;
mod rendered;
mod rows;
mod run;
mod screen;
mod search;

pub(crate) use channel::{TuiChannel, TuiOptions};
pub(crate) use run::{ReadResources, run};
