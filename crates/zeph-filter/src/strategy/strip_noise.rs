//! The `strip_noise` strategy: it omits lines that match a pattern.

use std::sync::Arc;

use regex::RegexSet;
use serde::Deserialize;

use super::patterns::{any_matches, compile};
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, Sink};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Regular expressions. A line with a match is omitted.
    patterns: Vec<String>,
}

#[derive(Debug)]
struct Noise(RegexSet);

struct StripNoise {
    noise: RegexSet,
    stripped: bool,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    Ok(Arc::new(Noise(compile(&params.patterns)?)))
}

impl StrategyFactory for Noise {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(StripNoise {
            noise: self.0.clone(),
            stripped: false,
        })
    }

    fn judges_lines_alone(&self) -> bool {
        true
    }
}

impl Strategy for StripNoise {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if any_matches(&self.noise, line.text) {
            self.stripped = true;
        } else {
            out.keep(line);
        }
    }

    fn finish(&mut self, _end: ExitInfo, _out: &mut dyn Sink) -> FilterConfidence {
        if self.stripped {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}
