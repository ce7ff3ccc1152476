//! Tables of patterns and of decisions.

mod pattern;
#[cfg(feature = "shell")]
mod permissions;
#[cfg(feature = "shell")]
pub(crate) mod tools;
