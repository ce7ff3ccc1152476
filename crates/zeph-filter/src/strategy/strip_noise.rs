//! The `strip_noise` strategy: it omits lines that match a pattern.

use std::sync::Arc;

use serde::Deserialize;

use super::patterns::{Finder, Patterns};
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, Sink};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Regular expressions. A line with a match is omitted.
    patterns: Vec<String>,
}

#[derive(Debug)]
struct Noise(Arc<Patterns>);

struct StripNoise {
    noise: Finder,
    stripped: bool,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    let noise = Patterns::new(&params.patterns)?;
    Ok(Arc::new(Noise(Arc::new(noise))))
}

impl StrategyFactory for Noise {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(StripNoise {
            noise: Finder::new(&self.0),
            stripped: false,
        })
    }

    fn judges_lines_alone(&self) -> bool {
        true
    }
}

impl Strategy for StripNoise {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if self.noise.is_match(line.text) {
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
