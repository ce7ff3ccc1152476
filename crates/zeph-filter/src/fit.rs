//! Lines in bounded memory: all of them, and grouped by template if they are too many.

use super::confidence::FilterConfidence;
use super::head_tail::Kept;
use super::line::{ExitInfo, Line, Sink};
use super::strategy::{Strategy as _, Template};

/// When lines are grouped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grouping {
    /// Outputs of so many lines are grouped even if they are not too long.
    pub(super) from: Option<u64>,
    /// The highest percentage of the lines of a long output that may be left: otherwise its middle is cut.
    pub(super) max_percent: u64,
}

/// The highest percentage of the lines of an output that is not too long.
const MAX_PERCENT_SHORT: u64 = 50;

/// Stores lines until it is known how they are shown.
pub(super) struct Fit {
    kept: Kept,
    grouped: Option<(Template, Kept)>,
    lines: u64,
}

/// The lines that are shown.
pub(super) struct Fitted {
    pub(super) kept: Kept,
    /// All lines, if they are grouped although they are not too long.
    pub(super) whole: Option<Kept>,
    pub(super) grouped: bool,
    pub(super) confidence: FilterConfidence,
}

impl Fit {
    /// Creates a store for at most `budget` characters.
    ///
    /// `edge`: unchanged lines at the start and at the end of grouped output; `None` if lines are never
    /// grouped.
    pub(super) fn new(budget: usize, edge: Option<usize>) -> Self {
        Self {
            kept: Kept::new(budget),
            grouped: edge.map(|edge| (Template::with_edge(edge), Kept::new(budget))),
            lines: 0,
        }
    }

    /// Whether the lines are too long to be shown whole.
    pub(super) fn is_cut(&self) -> bool {
        self.kept.is_cut()
    }

    /// The lines as they are, or head and tail.
    pub(super) fn verbatim(self) -> Fitted {
        let confidence = match self.kept.is_cut() {
            true => FilterConfidence::Partial,
            false => FilterConfidence::Full,
        };
        Fitted {
            kept: self.kept,
            whole: None,
            grouped: false,
            confidence,
        }
    }

    /// The lines, grouped if they are too many and enough of them are alike.
    pub(super) fn choose(mut self, end: ExitInfo, grouping: Grouping) -> Fitted {
        let cut = self.is_cut();
        let wanted = cut || grouping.from.is_some_and(|from| self.lines >= from);
        let grouped = self.grouped.take().filter(|_| wanted);
        let Some((mut template, mut kept)) = grouped else {
            return self.verbatim();
        };
        let understood = template.finish(end, &mut kept) == FilterConfidence::Full;
        let max_percent = match cut {
            true => grouping.max_percent,
            false => grouping.max_percent.min(MAX_PERCENT_SHORT),
        };
        if !understood || template.emitted() * 100 > self.lines * max_percent {
            return self.verbatim();
        }
        Fitted {
            confidence: match cut || kept.is_cut() {
                true => FilterConfidence::Partial,
                false => FilterConfidence::Full,
            },
            kept,
            whole: (!cut).then_some(self.kept),
            grouped: true,
        }
    }
}

impl Sink for Fit {
    fn keep(&mut self, line: Line<'_>) {
        self.lines += 1;
        self.kept.keep(line);
        if let Some((template, kept)) = &mut self.grouped {
            template.line(line, kept);
        }
    }

    fn say(&mut self, number: u64, text: &str) {
        self.kept.say(number, text);
        if let Some((template, _)) = &mut self.grouped {
            template.say(number, text);
        }
    }
}
