//! The edit engine as the fuzz targets drive it; no part of the public interface.

use crate::file::apply_edit::{Replacement, splice};
use crate::file::fuzzy_match::ToleratedDifference;

/// A content after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// All of it.
    pub bytes: Vec<u8>,
    /// First and last line of each replacement, from 1.
    pub lines: Vec<(usize, usize)>,
    /// Whether the text occurred as it was given.
    pub exact: bool,
    /// Whether typographic signs were ignored.
    pub typography: bool,
}

/// Replaces `old` by `new`; `None` when that is refused.
#[must_use]
pub fn edit(content: &[u8], old: &str, new: &str, all: bool) -> Option<Edited> {
    let spliced = splice(content, Replacement { old, new, all }).ok()?;
    Some(Edited {
        bytes: spliced.bytes,
        lines: spliced.lines,
        exact: spliced.ignored.is_none(),
        typography: spliced.ignored == Some(ToleratedDifference::Typography),
    })
}
