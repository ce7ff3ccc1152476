//! The `keep_matching` strategy: it retains only lines that match a pattern.

use std::sync::Arc;

use regex::RegexSet;
use serde::Deserialize;

use super::patterns::{any_matches, compile};
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, Sink};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Regular expressions. A line without a match is omitted.
    patterns: Vec<String>,
}

#[derive(Debug)]
struct PatternSet(RegexSet);

struct KeepMatching {
    wanted: RegexSet,
    kept: bool,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    Ok(Arc::new(PatternSet(compile(&params.patterns)?)))
}

impl StrategyFactory for PatternSet {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(KeepMatching {
            wanted: self.0.clone(),
            kept: false,
        })
    }
}

impl Strategy for KeepMatching {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if any_matches(&self.wanted, line.text) {
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
