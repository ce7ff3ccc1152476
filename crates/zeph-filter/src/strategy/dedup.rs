//! The `dedup` strategy: it retains the first of consecutive lines that differ only in times and ids, with
//! their number.

use std::sync::Arc;

use serde::Deserialize;

use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};
use crate::line_template::{Mask, shape};

/// The strategy has no parameters.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {}

/// Replaces each run of equal lines, except for times and ids, by its first line and its length.
#[derive(Default)]
pub(super) struct Dedup {
    /// The shape that the lines of a run share, and the first of these lines.
    first: Option<(u64, OwnedLine)>,
    /// The number of lines in the run.
    count: u64,
    dropped: bool,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Dedup::default())
    }

    fn judges_lines_alone(&self) -> bool {
        true
    }
}

impl Dedup {
    fn end_run(&mut self, out: &mut dyn Sink) {
        let Some((_, first)) = self.first.take() else {
            return;
        };
        if self.count == 1 {
            out.keep(first.line());
        } else {
            self.dropped = true;
            out.say(first.number, &format!("{} (×{})", first.text, self.count));
        }
    }
}

impl Strategy for Dedup {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let shape = shape(line.text, Mask::Ids);
        if self
            .first
            .as_ref()
            .is_some_and(|(first, _)| *first == shape)
        {
            self.count += 1;
            return;
        }
        self.end_run(out);
        self.first = Some((shape, line.into()));
        self.count = 1;
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.end_run(out);
        if self.dropped {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}
