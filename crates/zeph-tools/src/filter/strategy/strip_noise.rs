//! `strip_noise`: lines that match go.

use std::sync::Arc;

use regex::RegexSet;
use serde::Deserialize;

use super::{FilterConfidence, Recipe, Strategy};
use crate::filter::line::{End, Line, Sink};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Regular expressions; a line in which one is found goes.
    patterns: Vec<String>,
}

#[derive(Debug)]
struct Noise(Arc<RegexSet>);

struct StripNoise {
    noise: Arc<RegexSet>,
    stripped: bool,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn Recipe>, String> {
    let params: Params = super::params(table)?;
    let noise = super::patterns(&params.patterns)?;
    Ok(Arc::new(Noise(Arc::new(noise))))
}

impl Recipe for Noise {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(StripNoise {
            noise: Arc::clone(&self.0),
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

    fn finish(&mut self, _end: End, _out: &mut dyn Sink) -> FilterConfidence {
        if self.stripped {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}
