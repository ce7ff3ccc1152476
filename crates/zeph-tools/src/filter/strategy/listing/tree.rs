//! The branches of `tree`: of a large one the upper levels.

use crate::filter::confidence::FilterConfidence;
use crate::filter::line::{End, Held, Line, Sink};
use crate::filter::strategy::Strategy;

/// Levels that are told apart; what is deeper counts as this deep.
const MOST_LEVELS: usize = 64;

/// Shows as many levels as there is room for, whole, and says of each branch how much is below it.
pub(super) struct Tree {
    /// Entries that may be shown.
    room: usize,
    /// The entries of the levels shown, and lines that are none.
    held: Vec<Node>,
    /// Entries of each level.
    levels: [u64; MOST_LEVELS],
    /// Levels of which entries are held; those below are counted.
    shown: usize,
    /// Whether branches were seen.
    branches: bool,
}

struct Node {
    line: Held,
    /// From 1; `None`: no entry.
    level: Option<usize>,
    /// Entries below it that are not held.
    below: u64,
}

impl Tree {
    /// Shows about `room` entries.
    pub(super) fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            held: Vec::new(),
            levels: [0; MOST_LEVELS],
            shown: MOST_LEVELS,
            branches: false,
        }
    }

    /// Holds fewer levels, as long as there are too many entries and more than one level.
    fn lower(&mut self, most: usize) {
        let entries = |shown: usize, levels: &[u64]| levels.iter().take(shown).sum::<u64>();
        let deepest = self
            .levels
            .iter()
            .rposition(|count| *count > 0)
            .unwrap_or(0)
            + 1;
        let mut shown = self.shown.min(deepest);
        while shown > 1 && entries(shown, &self.levels) > most as u64 {
            shown -= 1;
        }
        if shown >= self.shown {
            return;
        }
        self.shown = shown;
        let mut kept: Vec<Node> = Vec::new();
        for node in self.held.drain(..) {
            if node.level.is_none_or(|level| level <= shown) {
                kept.push(node);
            } else if let Some(parent) = kept.iter_mut().rev().find(|node| node.level.is_some()) {
                parent.below += 1 + node.below;
            }
        }
        self.held = kept;
    }
}

/// The level of an entry: the columns of branches before its name, by four.
fn level(line: &str) -> Option<usize> {
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
    (columns >= 4).then_some((columns / 4).min(MOST_LEVELS))
}

impl Strategy for Tree {
    fn line(&mut self, line: Line<'_>, _out: &mut dyn Sink) {
        let level = level(line.text);
        if let Some(level) = level {
            self.branches = true;
            self.levels[level - 1] += 1;
            if level > self.shown {
                if let Some(parent) = self.held.iter_mut().rev().find(|node| node.level.is_some()) {
                    parent.below += 1;
                }
                return;
            }
        }
        self.held.push(Node {
            line: line.into(),
            level,
            below: 0,
        });
        if self.held.len().is_multiple_of(4096) {
            self.lower(self.room.max(2048));
        }
    }

    fn finish(&mut self, _end: End, out: &mut dyn Sink) -> FilterConfidence {
        let entries: u64 = self.levels.iter().sum();
        if self.branches && entries > self.room as u64 {
            self.lower(self.room * 2);
        }
        let mut left_out = false;
        for node in &self.held {
            left_out |= node.below > 0;
            if node.below > 0 {
                out.say(
                    node.line.number,
                    &format!("{} (+{} below)", node.line.text, node.below),
                );
            } else {
                out.keep(node.line.line());
            }
        }
        if left_out {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}
