//! The result cache: a repeated call returns its earlier result while that is valid.
//!
//! Three parts decide, and none of them reads a file: the [`CachePolicy`](crate::def::CachePolicy) of a tool, [`CacheKey`] compares
//! calls, and [`ToolResultCache`] stores results within limits of time and size. Only the tool knows whether a
//! result is valid: it returns a [`CacheValidity`] with the result, and a result without one is not stored.
//!
//! [`ResultCaches`] has one cache per session and invalidates results when files change. [`crate::layers::cache`] uses it.

mod background;
pub mod config;
pub mod note;
mod sessions;
mod table;

pub use crate::contract::cache_validity::{CacheValidity, FreshnessCheck};
pub use crate::contract::call_key::CacheKey;
pub use background::BackgroundActivity;
pub use config::ResultCacheConfig;
pub use note::{note, split_note};
pub use sessions::{CacheLookup, CacheStatus, MutationGuard, ResultCaches};
pub use table::{CachedResult, DualClockInstant, ToolResultCache};
