//! Output that is too long to be read at once: it is stored whole, and the model reads head, tail
//! and a reference.
//!
//! - [`config`]: the section `[tools.overflow]`.
//! - [`collector`]: a text of any length in bounded memory; [`truncate`]: its head and tail; [`notice`]: one of
//!   which a filter left something out.
//! - [`spill`]: all of it, compressed in blocks, on its way to the store.
//! - [`store`]: the port to what keeps it, and [`reference`](mod@reference) how it is called.
//! - [`summary`]: a summary by a model next to the reference.
//! - [`read`]: the tool `read_overflow`.
//!
//! The layer that ties these together is [`crate::layers::overflow`].

pub mod collector;
pub mod config;
pub mod notice;
pub mod read;
pub mod reference;
pub mod spill;
pub mod store;
pub mod summary;
pub mod truncate;

mod query;

pub use collector::{CollectedText, OutputCollector};
pub use config::OverflowConfig;
pub use notice::TruncationNotice;
pub use read::ReadOverflow;
pub use reference::OverflowRef;
pub use spill::{SpillBuffer, Spilled};
pub use store::{NewEntry, OverflowEntry, OverflowError, OverflowStore, StoredBlock};
pub use truncate::{Omitted, TruncatedText};

/// What a result carries of a text that was too long.
#[derive(Debug, Clone, PartialEq)]
pub enum Overflow {
    /// On its way to the store; the overflow layer takes it.
    Spilled(TruncatedText),
    /// The same of a text of which a filter left something out.
    Elided(TruncationNotice),
    /// In the store.
    Stored(OverflowRef),
}
