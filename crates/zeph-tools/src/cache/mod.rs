//! The result cache: a repeated call returns its earlier result while that is valid.
//!
//! Three parts decide, and none of them reads a file: [`catalog`] lists the cacheable tools, [`key`] compares
//! calls, and [`ToolResultCache`] stores results within limits of time and size. Only the tool knows whether a
//! result is valid: it returns a [`CacheValidity`] with the result, and a result without one is not stored.
//!
//! [`ResultCaches`] has one cache per session and invalidates results when files change. [`crate::layers::cache`] uses it.

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
