//! Tables of patterns and of decisions.

mod pattern;
#[cfg(feature = "shell")]
mod permissions;
