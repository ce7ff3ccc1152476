//! A hunk of a diff, and its omitted lines.

use super::super::group_paths::share;
use super::parse::Kind;
use crate::line::{Line, OwnedLine, Sink};

/// Bytes of a long line that count as one line of the budget.
const LINE: usize = 240;

/// A hunk.
pub(super) struct Hunk {
    /// The `@@` line.
    pub(super) header: OwnedLine,
    pub(super) lines: Vec<Body>,
}

/// A line of a hunk, or several consecutive omitted lines.
pub(super) struct Body {
    pub(super) kind: Kind,
    /// The line, unless it was omitted.
    pub(super) held: Option<Text>,
    pub(super) gone: Gone,
}

/// A line as a range of the texts of its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    /// [`Line::number`].
    pub(super) number: u64,
    pub(super) start: u32,
    pub(super) length: u32,
}

impl Text {
    /// Appends a line to the texts.
    pub(super) fn push(line: Line<'_>, texts: &mut String) -> Self {
        let start = texts.len() as u32;
        texts.push_str(line.text);
        Self {
            number: line.number,
            start,
            length: line.text.len() as u32,
        }
    }

    pub(super) fn line(self, texts: &str) -> Line<'_> {
        let start = self.start as usize;
        Line {
            number: self.number,
            text: &texts[start..start + self.length as usize],
        }
    }
}

/// Lines that are not shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gone {
    added: u64,
    removed: u64,
    context: u64,
}

impl Gone {
    pub(super) fn one(kind: Kind) -> Self {
        let mut gone = Self::default();
        match kind {
            Kind::Added => gone.added = 1,
            Kind::Removed => gone.removed = 1,
            _ => gone.context = 1,
        }
        gone
    }

    pub(super) fn add(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.context += other.context;
    }

    /// Formats the number of omitted lines: `[… +3 -2]`.
    pub(super) fn told(self) -> String {
        match (self.added, self.removed) {
            (0, 0) => "[…]".to_owned(),
            (added, 0) => format!("[… +{added}]"),
            (0, removed) => format!("[… -{removed}]"),
            (added, removed) => format!("[… +{added} -{removed}]"),
        }
    }
}

impl Body {
    /// Returns true unless the line is context. Notes such as `\ No newline at end of file` count as changed.
    pub(super) fn is_changed(&self) -> bool {
        self.kind != Kind::Context
    }

    pub(super) fn cost(&self) -> usize {
        self.held
            .as_ref()
            .map_or(0, |held| 1 + held.length as usize / LINE)
    }

    pub(super) fn give_up(&mut self) {
        if self.held.take().is_some() {
            self.gone.add(Gone::one(self.kind));
        }
    }
}

impl Hunk {
    /// Omits changed lines. Removed and added lines share the budget, and the first of each are retained.
    pub(super) fn give_up_changed(&mut self, budget: usize) {
        let wants = |kind: Kind| {
            self.lines
                .iter()
                .filter(|line| line.kind == kind)
                .map(Body::cost)
                .sum()
        };
        let wants = [wants(Kind::Removed), wants(Kind::Added)];
        let shares = share(budget, &wants);
        let [mut removed, mut added] = [shares[0], shares[1]];
        for line in &mut self.lines {
            let left = match line.kind {
                Kind::Removed => &mut removed,
                Kind::Added => &mut added,
                _ => continue,
            };
            let cost = line.cost();
            if cost > *left {
                *left = 0;
                line.give_up();
            } else {
                *left -= cost;
            }
        }
    }

    /// Omits notes that follow an omitted line.
    pub(super) fn give_up_notes(&mut self) {
        let mut shown = true;
        for line in &mut self.lines {
            match line.kind {
                Kind::Note if !shown => line.held = None,
                Kind::Note => {}
                _ => shown = line.held.is_some(),
            }
        }
    }

    /// Counts all lines, whether shown or omitted.
    pub(super) fn gone(&self) -> Gone {
        self.lines.iter().fold(Gone::default(), |mut gone, line| {
            gone.add(line.gone);
            if line.held.is_some() {
                gone.add(Gone::one(line.kind));
            }
            gone
        })
    }

    /// The distance of each line from a changed line that is shown.
    pub(super) fn distances(&self) -> Vec<usize> {
        let mut distances = vec![usize::MAX; self.lines.len()];
        let mut sweep = |order: &mut dyn Iterator<Item = usize>| {
            let mut distance = usize::MAX;
            for at in order {
                let line = &self.lines[at];
                distance = match line.is_changed() && line.held.is_some() {
                    true => 0,
                    false => distance.saturating_add(1),
                };
                distances[at] = distances[at].min(distance);
            }
        };
        sweep(&mut (0..self.lines.len()));
        sweep(&mut (0..self.lines.len()).rev());
        distances
    }

    /// The number of the last shown line.
    pub(super) fn end(&self) -> u64 {
        let shown = self.lines.iter().rev().find_map(|line| line.held.as_ref());
        shown.map_or(self.header.number, |held| held.number)
    }

    /// Joins consecutive omitted lines.
    pub(super) fn join_gone(&mut self) {
        let mut joined: Vec<Body> = Vec::new();
        for line in self.lines.drain(..) {
            match joined.last_mut() {
                Some(last) if last.held.is_none() && line.held.is_none() => {
                    last.gone.add(line.gone)
                }
                _ => joined.push(line),
            }
        }
        self.lines = joined;
    }

    /// Prints the hunk. `texts`: the texts of its file.
    pub(super) fn tell(&self, texts: &str, out: &mut dyn Sink) {
        out.keep(self.header.line());
        let mut gone = Gone::default();
        let mut number = self.header.number;
        let mut shown = false;
        for line in &self.lines {
            let Some(held) = line.held else {
                gone.add(line.gone);
                continue;
            };
            // Omitted context at the start of a hunk needs no note.
            let missing = gone.added + gone.removed > 0 || (shown && gone.context > 0);
            if missing {
                out.say(number, &gone.told());
            }
            gone = Gone::default();
            shown = true;
            number = held.number;
            out.keep(held.line(texts));
        }
        if gone.added + gone.removed > 0 {
            out.say(number, &gone.told());
        }
    }
}
