//! The output of `tree`: branches drawn by columns of four characters.

use super::branches::Branches;
use crate::confidence::FilterConfidence;
use crate::line::{ExitInfo, Line, Sink};
use crate::strategy::Strategy;

/// The deepest level; deeper entries count as this deep.
const MAX_LEVEL: usize = 64;

/// Shows as many entries as the budget of their branch allows.
pub(super) struct Tree {
    /// Entries up to which all of them are shown.
    room: usize,
    branches: Branches,
}

impl Tree {
    /// Shows about `room` entries.
    pub(super) fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            branches: Branches::default(),
        }
    }
}

/// The level of an entry and its name.
fn entry(line: &str) -> Option<(usize, &str)> {
    let is_branch = |c: &char| {
        matches!(
            c,
            '│' | '├' | '└' | '─' | '|' | '`' | '-' | '+' | '\\' | ' ' | '\u{a0}'
        )
    };
    let start = line.trim_start_matches([' ', '\u{a0}', '│', '|']);
    if !start.starts_with(['├', '└', '`', '|', '+', '\\']) && !line.contains("|--") {
        return None;
    }
    let columns = line.chars().take_while(is_branch).count();
    let name = line.trim_start_matches(|c| is_branch(&c));
    (columns >= 4).then_some(((columns / 4).min(MAX_LEVEL), name))
}

impl Strategy for Tree {
    fn line(&mut self, line: Line<'_>, _out: &mut dyn Sink) {
        match entry(line.text) {
            Some((level, name)) => self.branches.entry(level, name, line),
            None => self.branches.text(line),
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        let branches = std::mem::take(&mut self.branches);
        let room = match branches.entries() > self.room as u64 {
            true => self.room + self.room / 2,
            false => usize::MAX,
        };
        match branches.show(room, out) {
            true => FilterConfidence::Full,
            false => FilterConfidence::Fallback,
        }
    }
}
