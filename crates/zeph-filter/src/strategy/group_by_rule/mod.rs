//! The `group_by_rule` strategy: diagnostics by the rule that they violate, each with its places.
//!
//! A dialect parses the output of a tool: a row in [`DIALECTS`] and a file. It emits lines that must be read in
//! full immediately and unchanged. It converts frequent messages to [`Diagnostic`] values. These are grouped:
//! the message once, then all its places.

mod bandit;
mod biome;
mod budget;
mod by_file;
mod eslint;
mod gcc_style;
mod group;
mod lint;
mod msbuild;
mod ruff;
mod rustc;
#[cfg(test)]
mod tests;
mod tsc;

use std::sync::Arc;

use serde::Deserialize;

use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};

use by_file::{Reader, Remarks};
use group::Groups;

/// The message of a tool about one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Diagnostic {
    /// The number of its first line.
    pub(super) number: u64,
    /// `warning`, `error`, …, as the tool prints it.
    pub(super) level: String,
    /// The name of the rule, if the tool printed it.
    pub(super) code: Option<String>,
    /// The message in one line.
    pub(super) message: String,
    /// The place as the tool prints it: `src/lib.rs:3:5`.
    pub(super) place: String,
    /// A suggested fix in one line. A group shows it once.
    pub(super) help: Option<String>,
}

/// Parser for the output of a tool.
pub(super) trait Dialect: Send {
    /// Processes the next line. Results are passed to `found`, possibly together with a later line.
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>);

    /// Processes the end of the output.
    fn finish(&mut self, end: ExitInfo, found: &mut Found<'_>);
}

/// Receiver of the results of a dialect.
pub(super) struct Found<'f> {
    groups: &'f mut Groups,
    out: &'f mut dyn Sink,
}

impl Found<'_> {
    /// Emits an unchanged line at its position.
    pub(super) fn keep(&mut self, line: Line<'_>) {
        self.out.keep(line);
    }

    /// Emits an unchanged diagnostic.
    pub(super) fn keep_diagnostic(&mut self, line: Line<'_>) {
        self.groups.understood();
        self.out.keep(line);
    }

    /// Emits an unchanged line after the groups.
    pub(super) fn keep_after(&mut self, line: Line<'_>) {
        self.groups.after(line, self.out);
    }

    /// Adds a diagnostic to the groups.
    pub(super) fn diagnostic(&mut self, diagnostic: &Diagnostic) {
        self.groups.add(diagnostic, self.out);
    }

    /// Prints the groups, because another section begins.
    pub(super) fn boundary(&mut self) {
        self.groups.flush(self.out);
    }
}

struct Row {
    /// The name of the dialect in rules.
    name: &'static str,
    start: fn() -> Box<dyn Dialect>,
}

/// All dialects.
const DIALECTS: &[Row] = &[
    Row {
        name: "rustc",
        start: rustc::start,
    },
    Row {
        name: "compiler",
        start: gcc_style::compiler,
    },
    Row {
        name: "linter",
        start: gcc_style::linter,
    },
    Row {
        name: "bandit",
        start: bandit::start,
    },
    Row {
        name: "biome",
        start: biome::start,
    },
    Row {
        name: "msbuild",
        start: msbuild::start,
    },
    Row {
        name: "ruff",
        start: ruff::start,
    },
];

struct LineRow {
    name: &'static str,
    start: fn() -> Box<dyn Reader>,
}

/// Dialects of tools that print each diagnostic in one line.
const LINE_DIALECTS: &[LineRow] = &[
    LineRow {
        name: "eslint",
        start: eslint::start,
    },
    LineRow {
        name: "lint",
        start: lint::start,
    },
    LineRow {
        name: "tsc",
        start: tsc::start,
    },
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    dialect: String,
}

#[derive(Debug)]
struct GroupByRule(fn() -> Box<dyn Dialect>);

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if let Some(row) = LINE_DIALECTS.iter().find(|row| row.name == params.dialect) {
        return Ok(Arc::new(ByFile(row.start)));
    }
    let found = DIALECTS.iter().find(|row| row.name == params.dialect);
    let row = found.ok_or_else(|| {
        let names = DIALECTS.iter().map(|row| row.name);
        let names: Vec<&str> = names
            .chain(LINE_DIALECTS.iter().map(|row| row.name))
            .collect();
        format!(
            "there is no dialect `{}`; there are: {}",
            params.dialect,
            names.join(", ")
        )
    })?;
    Ok(Arc::new(GroupByRule(row.start)))
}

impl StrategyFactory for GroupByRule {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Grouping {
            dialect: (self.0)(),
            groups: Groups::default(),
        })
    }

    /// Output without diagnostics needs no change.
    fn judges_lines_alone(&self) -> bool {
        true
    }
}

struct Grouping {
    dialect: Box<dyn Dialect>,
    groups: Groups,
}

impl Strategy for Grouping {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let groups = &mut self.groups;
        self.dialect.line(line, &mut Found { groups, out });
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        let groups = &mut self.groups;
        let mut found = Found { groups, out };
        self.dialect.finish(end, &mut found);
        found.boundary();
        if self.groups.seen() {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[derive(Debug)]
struct ByFile(fn() -> Box<dyn Reader>);

impl StrategyFactory for ByFile {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(LineByLine {
            reader: (self.0)(),
            remarks: Remarks::default(),
        })
    }

    /// Output without diagnostics needs no change.
    fn judges_lines_alone(&self) -> bool {
        true
    }
}

struct LineByLine {
    reader: Box<dyn Reader>,
    remarks: Remarks,
}

impl Strategy for LineByLine {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.reader.line(line, &mut self.remarks, out);
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.reader.finish(&mut self.remarks, out);
        self.remarks.tell(out);
        if self.remarks.seen() {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}
