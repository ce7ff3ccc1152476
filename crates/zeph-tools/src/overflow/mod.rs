//! Storage of output that is too long for the model: the store holds all of it, and the model receives its start,
//! its end and a reference.
//!
//! - [`config`]: the section `[tools.overflow]`.
//! - [`collector`]: a text of any length in bounded memory; [`truncate`]: its start and end; [`notice`]: the note
//!   about text that a filter omitted.
//! - [`spill`]: the complete text, compressed in blocks, on its way to the store.
//! - [`store`]: the port to the store, and [`reference`](mod@reference) the ids of stored outputs.
//! - [`summary`]: a summary by a model next to the reference.
//!
//! The tool is [`crate::read_overflow`].
//!
//! The layer that combines these is [`crate::layers::overflow`].

pub mod collector;
pub mod config;
pub mod notice;
pub mod reference;
pub mod spill;
pub mod store;
pub mod summary;
pub mod truncate;

pub use collector::{CollectedText, OutputCollector};
pub use config::OverflowConfig;
pub use notice::TruncationNotice;
pub use reference::OverflowRef;
pub use spill::{SpillBuffer, Spilled};
pub use store::{NewEntry, OverflowEntry, OverflowError, OverflowStore, StoredBlock};
pub use truncate::{Omitted, TruncatedText};

/// The state of the long output of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Overflow {
    /// A shortened text on its way to the store; the overflow layer takes it.
    Spilled(TruncatedText),
    /// A text with parts that a filter omitted, on its way to the store.
    Elided(TruncationNotice),
    /// A stored text.
    Stored(OverflowRef),
}
