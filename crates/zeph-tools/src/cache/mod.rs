//! The result cache: a call that was made before, and whose answer still holds, is not made again.
//!
//! Three parts decide, none of which touches a file: [`catalog`] says which tools may be answered
//! from the cache at all, [`key`] says which calls are the same, and [`ToolResultCache`] keeps what
//! they yielded, for a time and within a bound. Whether an answer still holds only its tool knows:
//! it puts a [`CacheValidity`] beside it, and a result without one is not kept.
//!
//! [`ResultCaches`] has one cache a session and knows when files change below them;
//! [`crate::layers::cache`] asks it.

pub mod catalog;
pub mod config;
pub mod key;
pub mod note;
mod sessions;
mod table;
pub mod validity;

pub use config::ResultCacheConfig;
pub use key::CacheKey;
pub use note::{note, split_note};
pub use sessions::{CacheLookup, CacheStatus, MutationGuard, ResultCaches};
pub use table::{CachedResult, DualClockInstant, ToolResultCache};
pub use validity::{BackgroundActivity, CacheValidity, FreshnessCheck};
