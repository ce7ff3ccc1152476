//! Entries of a tree with a budget per branch: every top-level entry stays, and big branches become counts.

use crate::line::{Line, OwnedLine, Sink};
use crate::strategy::generated::is_generated;
use crate::strategy::group_paths::share;

/// Nodes that are stored below the top level.
const MAX_NODES: usize = 20_000;
/// Children of one entry that are stored.
const MAX_CHILDREN: usize = 200;
/// Top-level entries that are stored.
const MAX_TOP: usize = 2_000;

/// An entry, or a line that is not an entry.
#[derive(Debug)]
struct Node {
    line: OwnedLine,
    /// Indexes of the stored children.
    children: Vec<usize>,
    /// Descendants that are not stored.
    uncounted: u64,
    /// All descendants, computed by [`Branches::show`].
    total: u64,
    /// Whether tools generate its content (`node_modules`).
    generated: bool,
    /// Whether the line is in the result.
    shown: bool,
    /// Descendants that neither are shown nor are counted by a shown descendant.
    folded: u64,
}

/// Stores entries in preorder and shows a selection of them.
#[derive(Debug, Default)]
pub(super) struct Branches {
    nodes: Vec<Node>,
    /// Indexes of roots: the entries of level 0 and lines that are not entries.
    roots: Vec<usize>,
    /// For each level the last entry; `None` if it was not stored.
    path: Vec<Option<usize>>,
    /// Entries, stored or not.
    entries: u64,
    /// Top-level entries.
    top: usize,
}

impl Branches {
    /// The number of entries.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds a line that is not an entry: a root, a summary, a message.
    pub(super) fn text(&mut self, line: Line<'_>) {
        let at = self.push(line, "");
        self.roots.push(at);
        self.path.clear();
        self.path.push(Some(at));
    }

    /// Adds an entry `name` at `level`; level 1 is the top level.
    pub(super) fn entry(&mut self, level: usize, name: &str, line: Line<'_>) {
        self.entries += 1;
        let level = level.max(1);
        if self.path.is_empty() {
            self.path.push(None);
        }
        self.path.truncate(level);
        let parent = self.path.iter().rev().find_map(|node| *node);
        let is_top = level == 1 || parent.is_none();
        let children = parent.map_or(0, |parent| self.nodes[parent].children.len());
        let room = match is_top {
            true => self.top < MAX_TOP,
            false => self.nodes.len() < MAX_NODES + self.top && children < MAX_CHILDREN,
        };
        while self.path.len() < level {
            self.path.push(None);
        }
        if !room {
            if let Some(parent) = parent {
                self.nodes[parent].uncounted += 1;
            }
            self.path.push(None);
            return;
        }
        self.top += usize::from(is_top);
        let at = self.push(line, name);
        match parent {
            Some(parent) => self.nodes[parent].children.push(at),
            None => self.roots.push(at),
        }
        self.path.push(Some(at));
    }

    fn push(&mut self, line: Line<'_>, name: &str) -> usize {
        self.nodes.push(Node {
            line: line.into(),
            children: Vec::new(),
            uncounted: 0,
            total: 0,
            generated: is_generated(name.trim_end_matches('/')),
            shown: false,
            folded: 0,
        });
        self.nodes.len() - 1
    }

    /// Emits all roots and top-level entries, and about `room` lines in total. Returns whether entries are missing.
    pub(super) fn show(mut self, room: usize, out: &mut dyn Sink) -> bool {
        self.count();
        let roots = std::mem::take(&mut self.roots);
        let mut top = Vec::new();
        for at in roots {
            let node = &mut self.nodes[at];
            node.shown = true;
            node.folded = node.uncounted;
            top.extend(node.children.iter().copied());
        }
        self.share_out(&top, room.saturating_sub(top.len()));
        let mut shown: Vec<&Node> = self.nodes.iter().filter(|node| node.shown).collect();
        shown.sort_by_key(|node| node.line.number);
        let mut missing = false;
        for node in shown {
            if node.folded == 0 {
                out.keep(node.line.line());
                continue;
            }
            missing = true;
            let more = if node.folded == node.total {
                ""
            } else {
                "more "
            };
            let unit = if node.folded == 1 { "entry" } else { "entries" };
            let text = format!("{} … {} {more}{unit}", node.line.text, node.folded);
            out.say(node.line.number, &text);
        }
        missing
    }

    /// Computes the descendants of each node: children come after their parents.
    fn count(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let children = node.children.iter();
            let below: u64 = children.map(|child| 1 + self.nodes[*child].total).sum();
            self.nodes[at].total = below + self.nodes[at].uncounted;
        }
    }

    /// Shows these siblings, and distributes `room` lines among their descendants.
    fn share_out(&mut self, siblings: &[usize], room: usize) {
        // Generated content gets lines only if there is nothing else.
        let only_generated = siblings.iter().all(|at| self.nodes[*at].generated);
        let wants: Vec<usize> = siblings
            .iter()
            .map(|at| match self.nodes[*at].generated && !only_generated {
                true => 0,
                false => usize::try_from(self.nodes[*at].total).unwrap_or(usize::MAX),
            })
            .collect();
        for (at, room) in siblings.iter().zip(share(room, &wants)) {
            self.nodes[*at].shown = true;
            self.descend(*at, room);
        }
    }

    /// Shows at most `room` descendants of a node that is shown.
    fn descend(&mut self, at: usize, room: usize) {
        const FEW: usize = 3;
        let children = std::mem::take(&mut self.nodes[at].children);
        let fits = children.len() <= room;
        let (shown, hidden) = match fits {
            true => children.split_at(children.len()),
            false if room >= FEW => children.split_at(room),
            false => children.split_at(0),
        };
        let hidden = hidden.iter().map(|child| 1 + self.nodes[*child].total);
        self.nodes[at].folded = self.nodes[at].uncounted + hidden.sum::<u64>();
        self.share_out(shown, room.saturating_sub(shown.len()));
    }
}
