//! `group_by_rule`: diagnostics by the rule that they break, each with its place.
//!
//! A dialect reads what a tool prints: a row in [`DIALECTS`] and a file. What has to be read whole
//! it hands on at once, as it was; of what is told often in the same words it makes a
//! [`Diagnostic`], and these come in groups: the message once, all places behind it.

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

/// What a tool says of one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Diagnostic {
    /// The number of its first line.
    pub(super) number: u64,
    /// `warning`, `error`, …, as the tool prints it.
    pub(super) level: String,
    /// The name of the rule, if the tool has told it.
    pub(super) code: Option<String>,
    /// What is wrong, in one line.
    pub(super) message: String,
    /// Where, as the tool prints it: `src/lib.rs:3:5`.
    pub(super) place: String,
    /// How to mend it, in one line; told once in a group.
    pub(super) help: Option<String>,
}

/// Reads what a tool prints.
pub(super) trait Dialect: Send {
    /// Takes the next line. What it makes of it goes to `found`, now or with a later line.
    fn line(&mut self, line: Line<'_>, found: &mut Found<'_>);

    /// The output has ended.
    fn finish(&mut self, end: ExitInfo, found: &mut Found<'_>);
}

/// Where a dialect puts what it reads.
pub(super) struct Found<'f> {
    groups: &'f mut Groups,
    out: &'f mut dyn Sink,
}

impl Found<'_> {
    /// A line that stays as and where it is.
    pub(super) fn keep(&mut self, line: Line<'_>) {
        self.out.keep(line);
    }

    /// A diagnostic that stays as it is.
    pub(super) fn keep_diagnostic(&mut self, line: Line<'_>) {
        self.groups.understood();
        self.out.keep(line);
    }

    /// A line that stays as it is, behind the groups.
    pub(super) fn keep_after(&mut self, line: Line<'_>) {
        self.groups.after(line, self.out);
    }

    /// A diagnostic for the groups.
    pub(super) fn diagnostic(&mut self, diagnostic: &Diagnostic) {
        self.groups.add(diagnostic, self.out);
    }

    /// Something else begins: the groups are told here.
    pub(super) fn boundary(&mut self) {
        self.groups.flush(self.out);
    }
}

struct Row {
    /// As a rule names it.
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

/// The dialects of tools that tell each diagnostic in one line.
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

    /// Where there are no diagnostics, there is nothing to do.
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

    /// Where there are no diagnostics, there is nothing to do.
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
