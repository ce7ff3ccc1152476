//! The screen model: the conversation and the state of the session as the user sees them.
//!
//! The model is pure. [`Transcript::apply`] takes the events of the channel, and the line interface and the full screen
//! show the same blocks. A view contains no logic of its own.

mod call;
mod output_tail;
pub(crate) mod permission_answers;
mod recap;
pub(crate) mod render;
#[cfg(feature = "full-screen")]
mod resources;
mod session_status;
mod transcript;

pub(crate) use call::{Call, CallResult};
pub(crate) use output_tail::OutputTail;
pub use recap::{RecapItem, recap};
#[cfg(feature = "full-screen")]
pub use resources::Resources;
pub(crate) use session_status::SessionStatus;
pub(crate) use transcript::{Activity, Block, Severity, Transcript};
