//! The writer of `search_code` results. It reads each line from its file through the sandbox, because the index may be
//! outdated.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SearchQuery;
use super::index::Located;
use super::index_sync::{Refreshed, opened};
use crate::error::ToolError;
use crate::file::budget::{Budget, Stop};
use crate::file::cache_validation::DependencyTracker;
use crate::file::edit::decoded;
use crate::file::grep::{Line, lines_with};
use crate::file::lines::cut;
use crate::file::sandbox::Sandbox;
use crate::plural::{counted_as, pluralize};

/// The maximum number of bytes that are read from a file to show a line.
const MAX_SHOWN_BYTES: u64 = 2 << 20;

/// An incomplete result.
pub(super) struct ResultWriter<'a> {
    sandbox: &'a Arc<Sandbox>,
    most: usize,
    pub(super) text: String,
    pub(super) places: Vec<(PathBuf, u32)>,
    stale: usize,
    more: bool,
    partial: bool,
}

impl<'a> ResultWriter<'a> {
    pub(super) fn new(sandbox: &'a Arc<Sandbox>, most: usize) -> Self {
        Self {
            sandbox,
            most,
            text: String::new(),
            places: Vec::new(),
            stale: 0,
            more: false,
            partial: false,
        }
    }

    /// Adds symbols, each with the current text of its line.
    pub(super) fn symbols(&mut self, found: &[Located]) {
        let mut files: HashMap<&str, Option<Content>> = HashMap::new();
        for located in found {
            if self.places.len() == self.most {
                self.more = true;
                return;
            }
            let content = files
                .entry(&located.path)
                .or_insert_with(|| Content::of(self.sandbox, &located.path));
            // The name of a file that is gone or may not be read is not shown.
            let Some(content) = content else { continue };
            let symbol = &located.symbol;
            let line = String::from_utf8_lossy(content.line(symbol.line));
            let line = line.trim();
            let mut stale = "";
            if !has_name(line, &symbol.name) {
                self.stale += 1;
                stale = " (stale)";
            }
            let within = if symbol.container.is_empty() {
                String::new()
            } else {
                format!(" in {}", symbol.container)
            };
            self.text.push_str(&format!(
                "{}:{}: {} {}{within}{stale}: {}\n",
                self.sandbox.shown(Path::new(&located.path)),
                symbol.line,
                symbol.kind.word(),
                symbol.name,
                cut(line).0
            ));
            self.places.push((located.path.clone().into(), symbol.line));
        }
    }

    /// Adds lines that contain the query, up to the limit of results.
    pub(super) fn lines(
        &mut self,
        asked: &SearchQuery,
        budget: &Budget,
        stamps: &DependencyTracker,
    ) -> Result<(), ToolError> {
        let room = self.most - self.places.len();
        if room == 0 {
            return Ok(());
        }
        let start = self.sandbox.resolve(&asked.given)?;
        // The search also finds the lines of the symbols.
        let wanted = room + self.places.len();
        let (lines, stopped, more) =
            lines_with(self.sandbox, &start, &asked.query, wanted, budget, stamps)?;
        if stopped == Some(Stop::Cancelled) {
            return Err(ToolError::cancelled());
        }
        self.partial = stopped.is_some();
        let mut known: Vec<(PathBuf, u32)> = self.places.clone();
        known.sort();
        let mut lines = lines.into_iter().filter(|line: &Line| {
            let place = (line.path.clone(), line.number);
            known.binary_search(&place).is_err()
        });
        let mut heading = "Lines with the text:\n";
        for line in lines.by_ref().take(room) {
            self.text.push_str(heading);
            heading = "";
            let path = self.sandbox.shown(&line.path);
            self.text
                .push_str(&format!("{path}:{}: {}\n", line.number, line.text.trim()));
            self.places.push((line.path, line.number));
        }
        self.more |= more || lines.next().is_some();
        Ok(())
    }

    /// Adds notes about missing and outdated parts of the result.
    pub(super) fn notes(&mut self, refreshed: &Refreshed, meanwhile: bool, failed: Option<String>) {
        let mut notes = Vec::new();
        if self.places.is_empty() {
            self.text = format!(
                "No matches; {} of known languages.{}\n",
                pluralize(refreshed.files, "file"),
                refreshed.walked.left_out()
            );
        }
        if self.more {
            notes.push(format!(
                "the first {}; there are more: narrow `query` or `path`, or set `limit`",
                self.most
            ));
        }
        if refreshed.walked.stopped.is_some() {
            notes.push("partial: not all directories were searched in time; call again".to_owned());
        }
        if refreshed.left > 0 {
            notes.push(format!(
                "partial: {} of {} files changed or are new and are not indexed yet; call again",
                refreshed.left, refreshed.files
            ));
        }
        if self.partial {
            notes.push("partial: not all text was searched in time".to_owned());
        }
        if refreshed.unreadable > 0 {
            notes.push(format!(
                "{} could not be read",
                pluralize(refreshed.unreadable, "file")
            ));
        }
        if refreshed.partly > 0 && !self.more {
            notes.push(format!(
                "{} too large or too slow to parse: some of their symbols are unknown",
                counted_as(refreshed.partly, "file is", "files are")
            ));
        }
        if meanwhile {
            notes.push("another process changed the index in the meantime; call again".to_owned());
        }
        if self.stale > 0 {
            notes.push(format!(
                "{} stale: their files changed in the meantime",
                self.stale
            ));
        }
        notes.extend(failed.map(|failed| format!("no symbols: {failed}")));
        if notes.is_empty() {
            self.text.pop();
        } else {
            self.text.push_str(&format!("({})", notes.join("; ")));
        }
    }
}

/// Whether `line` contains `name`. A name has no white space that the source may have, as in
/// `operator ==`.
fn has_name(line: &str, name: &str) -> bool {
    let solid = |text: &str| text.split_whitespace().collect::<String>();
    line.contains(name) || solid(line).contains(&solid(name))
}

/// The current content of a file.
struct Content {
    text: Vec<u8>,
    /// The offsets of the lines.
    lines: Vec<usize>,
}

impl Content {
    /// Reads a file. Returns `None` if it is gone or may not be read.
    fn of(sandbox: &Sandbox, path: &str) -> Option<Self> {
        let (file, _) = opened(sandbox, path)?;
        let mut text = Vec::new();
        file.take(MAX_SHOWN_BYTES).read_to_end(&mut text).ok()?;
        let text = decoded(&text).into_owned();
        let ends = memchr::memchr_iter(b'\n', &text).map(|end| end + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Some(Self { text, lines })
    }

    /// Returns a line by its number, from 1; empty if the line does not exist.
    fn line(&self, number: u32) -> &[u8] {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let start = place.checked_sub(1).and_then(|place| self.lines.get(place));
        let end = self.lines.get(place).copied().unwrap_or(self.text.len());
        start
            .and_then(|start| self.text.get(*start..end))
            .unwrap_or_default()
    }
}
