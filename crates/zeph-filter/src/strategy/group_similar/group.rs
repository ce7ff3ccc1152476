//! Groups of units of equal shape, and the lines of a grouped result.

use super::super::kind::Kind;
use super::RARE;
use crate::line::OwnedLine;

/// The units of one shape.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) kind: Kind,
    /// All units, and those that are emitted in any case.
    pub(super) count: u64,
    pub(super) shown: u64,
    /// Lines of a unit.
    pub(super) lines: u64,
    /// The second line of a plain group with at most [`RARE`] lines.
    pub(super) second: Option<OwnedLine>,
    /// The last line, if it is not emitted already.
    pub(super) last: Option<OwnedLine>,
    /// The entry that the count follows.
    pub(super) entry: usize,
}

impl Group {
    /// Units that are left out.
    pub(super) fn missing(&self) -> u64 {
        match self.kind {
            Kind::Plain if self.count <= RARE => 0,
            _ => (self.count - self.shown).saturating_sub(u64::from(self.last.is_some())),
        }
    }
}

/// A line of the result.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) line: OwnedLine,
    /// The group whose count follows the line.
    pub(super) group: Option<usize>,
    pub(super) role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A line of the output.
    Line,
    /// A line without letters and digits; it stays after the line that precedes it in the output.
    Bare,
    /// A line that another strategy says.
    Said,
}
