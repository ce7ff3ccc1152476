//! The `test_summary` strategy: it retains the failures of a test run with their output, and the summary of the
//! tool.
//!
//! Each test tool has its own format: a row in [`FORMATS`] and a file. If the rule does not name a format, the
//! first line that a format recognizes selects it.

mod cargo;
mod coverage;
mod failures;
mod go;
mod go_trace;
mod jest;
mod js_failure;
mod js_totals;
mod mocha;
mod nextest;
mod node_test;
mod pytest;
mod pytest_brief;
mod pytest_failure;
mod pytest_message;
mod pytest_progress;
mod pytest_sugar;
mod pytest_untitled;
mod python_traceback;
mod rust_backtrace;
mod rust_captured_output;
mod tap;
#[cfg(test)]
mod tests;
mod unittest;
mod vitest;
mod workspaces;

use std::sync::Arc;

use serde::Deserialize;

use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};

/// The limits from the parameters of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Failures that are shown with their output. Further failures are shown with name, place and message only.
    pub(super) max_failures: usize,
    /// Stack frames that are shown per failure.
    pub(super) truncate_stack_trace: usize,
}

/// The output format of a test tool.
struct Format {
    /// The name of the format in rules.
    name: &'static str,
    /// Returns true if only this tool prints such a line.
    recognizes: fn(&str) -> bool,
    start: fn(Limits) -> Box<dyn Strategy>,
}

/// All formats. Specific formats precede general ones.
const FORMATS: &[Format] = &[
    Format {
        name: "workspaces",
        recognizes: workspaces::recognizes,
        start: workspaces::start,
    },
    Format {
        name: "nextest",
        recognizes: nextest::recognizes,
        start: nextest::start,
    },
    Format {
        name: "cargo",
        recognizes: cargo::recognizes,
        start: cargo::start,
    },
    Format {
        name: "pytest",
        recognizes: pytest::recognizes,
        start: pytest::start,
    },
    Format {
        name: "go",
        recognizes: go::recognizes,
        start: go::start,
    },
    Format {
        name: "unittest",
        recognizes: unittest::recognizes,
        start: unittest::start,
    },
    Format {
        name: "vitest",
        recognizes: vitest::recognizes,
        start: vitest::start,
    },
    Format {
        name: "jest",
        recognizes: jest::recognizes,
        start: jest::start,
    },
    Format {
        name: "mocha",
        recognizes: mocha::recognizes,
        start: mocha::start,
    },
    Format {
        name: "node",
        recognizes: node_test::recognizes,
        start: node_test::start,
    },
    Format {
        name: "tap",
        recognizes: tap::recognizes,
        start: tap::start,
    },
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    format: Option<String>,
    #[serde(default = "ten")]
    max_failures: usize,
    #[serde(default = "fifty")]
    truncate_stack_trace: usize,
}

fn ten() -> usize {
    10
}

fn fifty() -> usize {
    50
}

#[derive(Debug)]
struct TestSummary {
    /// An index into [`FORMATS`].
    format: Option<usize>,
    limits: Limits,
}

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    let format = match params.format {
        None => None,
        Some(name) => {
            let found = FORMATS.iter().position(|format| format.name == name);
            Some(found.ok_or_else(|| {
                let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                format!(
                    "there is no format `{name}`; there are: {}",
                    names.join(", ")
                )
            })?)
        }
    };
    Ok(Arc::new(TestSummary {
        format,
        limits: Limits {
            max_failures: params.max_failures,
            truncate_stack_trace: params.truncate_stack_trace,
        },
    }))
}

impl StrategyFactory for TestSummary {
    fn start(&self) -> Box<dyn Strategy> {
        match self.format {
            Some(format) => (FORMATS[format].start)(self.limits),
            None => Box::new(Detect::new(self.limits)),
        }
    }
}

/// Lines and bytes that are searched for a format.
const MAX_LINES: usize = 2000;
const MAX_BYTES: usize = 256 * 1024;

/// Returns true for the line that npm prints before a script: `> shop@1.0.0 test`.
fn is_script(text: &str) -> bool {
    let Some((package, script)) = text
        .strip_prefix("> ")
        .and_then(|rest| rest.split_once(' '))
    else {
        return false;
    };
    package
        .rfind('@')
        .is_some_and(|at| at > 0 && package[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
        && !script.is_empty()
        && !script.contains(' ')
}

/// Detects the format by the printed lines. If several scripts run in sequence, each has its own format.
struct Detect {
    limits: Limits,
    held: Vec<OwnedLine>,
    bytes: usize,
    given_up: bool,
    found: Option<Box<dyn Strategy>>,
    /// The best confidence of the previous scripts.
    before: Option<FilterConfidence>,
}

impl Detect {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            held: Vec::new(),
            bytes: 0,
            given_up: false,
            found: None,
            before: None,
        }
    }

    /// Returns true if a format was found.
    fn understands(&self) -> bool {
        self.found.is_some() || self.before.is_some()
    }

    /// Starts the detection again for the next script.
    fn begin_anew(&mut self, out: &mut dyn Sink) {
        if let Some(mut found) = self.found.take() {
            // The exit code of the previous script is unknown.
            let confidence = found.finish(ExitInfo::default(), out);
            self.before = self.before.max(Some(confidence));
        }
        self.give_up(out);
        *self = Self {
            before: self.before,
            ..Self::new(self.limits)
        };
    }

    fn give_up(&mut self, out: &mut dyn Sink) {
        self.given_up = true;
        for held in self.held.drain(..) {
            out.keep(held.line());
        }
    }
}

impl Strategy for Detect {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let printed = |held: &OwnedLine| !held.text.is_empty();
        if is_script(line.text)
            && (self.found.is_some() || self.given_up || self.held.iter().any(printed))
        {
            self.begin_anew(out);
        }
        if let Some(found) = &mut self.found {
            found.line(line, out);
            return;
        }
        if self.given_up {
            out.keep(line);
            return;
        }
        if let Some(format) = FORMATS.iter().find(|format| (format.recognizes)(line.text)) {
            let mut strategy = (format.start)(self.limits);
            for held in self.held.drain(..) {
                strategy.line(held.line(), out);
            }
            strategy.line(line, out);
            self.found = Some(strategy);
            return;
        }
        self.bytes += line.text.len();
        self.held.push(line.into());
        if self.held.len() > MAX_LINES || self.bytes > MAX_BYTES {
            self.give_up(out);
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        let last = match &mut self.found {
            Some(found) => Some(found.finish(end, out)),
            None => {
                self.give_up(out);
                None
            }
        };
        self.before.max(last).unwrap_or(FilterConfidence::Fallback)
    }
}
