#![doc = include_str!("../README.md")]
//! # Structure
//! - `edit`: the entry point; `encoding` finds text in UTF-8 and UTF-16.
//! - `fuzzy_match`: the search that tolerates one kind of difference; `lines` and `indentation` serve it.
//! - `nearest_match`: the most similar place, for error messages.
//! - `diff`: unified diffs and changed lines.
#![deny(missing_docs)]

mod diff;
mod edit;
mod encoding;
mod fuzzy_match;
mod indentation;
mod lines;
mod nearest_match;

pub use diff::{changed_lines, text_diff, unified_diff};
pub use edit::{EditError, Edited, Replacement, edit};
pub use fuzzy_match::ToleratedDifference;
pub use nearest_match::{NearestMatch, find_nearest, is_too_long};
