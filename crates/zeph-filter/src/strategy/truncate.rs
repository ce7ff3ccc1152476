//! The `truncate` strategy: it retains head and tail of a long output.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;

use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The maximum number of lines of an output that is unchanged.
    max_lines: usize,
    /// Lines that are retained at the start of a longer output.
    #[serde(default = "twenty")]
    head: usize,
    /// Lines that are retained at its end.
    #[serde(default = "twenty")]
    tail: usize,
}

fn twenty() -> usize {
    20
}

struct Truncate {
    params: Params,
    seen: usize,
    /// The lines after the head, as long as the whole output may be short enough.
    held: VecDeque<OwnedLine>,
}

/// The maximum for all parameters. It limits the number of buffered lines.
const MAX_LINES: usize = 100_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params.head.saturating_add(params.tail) > params.max_lines {
        return Err("`head` and `tail` together are more than `max_lines`".to_owned());
    }
    if params.max_lines > MAX_LINES {
        return Err(format!("`max_lines` may be {MAX_LINES} at most"));
    }
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Truncate {
            params: *self,
            seen: 0,
            held: VecDeque::new(),
        })
    }
}

impl Strategy for Truncate {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.seen += 1;
        let Params {
            max_lines,
            head,
            tail,
        } = self.params;
        if self.seen <= head {
            out.keep(line);
            return;
        }
        self.held.push_back(line.into());
        if self.seen > max_lines {
            let surplus = self.held.len() - tail;
            self.held.drain(..surplus);
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        for held in &self.held {
            out.keep(held.line());
        }
        if self.seen > self.params.max_lines {
            FilterConfidence::Partial
        } else {
            FilterConfidence::Full
        }
    }
}
