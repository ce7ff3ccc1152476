//! The `keep_matching` strategy: it retains only lines that match a pattern.

use std::sync::Arc;

use serde::Deserialize;

use super::patterns::{Finder, Patterns};
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, Sink};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Regular expressions. A line without a match is omitted.
    patterns: Vec<String>,
}

#[derive(Debug)]
struct PatternSet(Arc<Patterns>);

struct KeepMatching {
    wanted: Finder,
    kept: bool,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    let wanted = Patterns::new(&params.patterns)?;
    Ok(Arc::new(PatternSet(Arc::new(wanted))))
}

impl StrategyFactory for PatternSet {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(KeepMatching {
            wanted: Finder::new(&self.0),
            kept: false,
        })
    }
}

impl Strategy for KeepMatching {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if self.wanted.is_match(line.text) {
            self.kept = true;
            out.keep(line);
        }
    }

    fn finish(&mut self, _end: ExitInfo, _out: &mut dyn Sink) -> FilterConfidence {
        // Output without a matching line is not the output that the rule expects.
        if self.kept {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}
