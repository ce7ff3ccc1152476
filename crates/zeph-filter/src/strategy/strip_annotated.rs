//! The `strip_annotated` strategy: it omits lines that begin with one of several prefixes.

use std::sync::Arc;

use serde::Deserialize;

use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, Sink};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Prefixes of the annotations, for example `note:`. Leading spaces are ignored.
    prefixes: Vec<String>,
}

#[derive(Debug)]
struct Prefixes(Arc<[String]>);

struct StripAnnotated {
    prefixes: Arc<[String]>,
    stripped: bool,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params
        .prefixes
        .iter()
        .any(|prefix| prefix.trim().is_empty())
    {
        return Err("a prefix is empty, and would match every line".to_owned());
    }
    Ok(Arc::new(Prefixes(params.prefixes.into())))
}

impl StrategyFactory for Prefixes {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(StripAnnotated {
            prefixes: Arc::clone(&self.0),
            stripped: false,
        })
    }

    fn judges_lines_alone(&self) -> bool {
        true
    }
}

impl Strategy for StripAnnotated {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text.trim_start();
        if self
            .prefixes
            .iter()
            .any(|prefix| text.starts_with(prefix.as_str()))
        {
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
