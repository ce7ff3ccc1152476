//! `git_diff`: small diffs whole; of large ones every file, and a fair share of each.
//!
//! The headers of files always stay. Lock files and generated files are told by the number of
//! their lines; the others share `max_diff_lines`, changed lines before those around them. What is
//! shown is a diff still: no line of it is ours except those in brackets, which say what is not
//! shown at their place.

mod hunk;
mod parse;
mod patch;
mod select;

use std::sync::Arc;

use serde::Deserialize;

use super::{FilterConfidence, Recipe, Strategy};
use crate::filter::line::{End, Held, Line, Sink};
use parse::{Kind, Parser};
use patch::Patch;
use select::Item;

/// Diffs up to so many lines stay whole.
const WHOLE_LINES: usize = 400;
/// And up to so many bytes.
const WHOLE_BYTES: usize = 48 * 1024;
/// Bytes that are held before files have to give up lines.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Lines around the diffs, of messages for one, that are held.
const MOST_OTHER: usize = 2000;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Lines of hunks that stay of a large diff.
    #[serde(default = "five_hundred")]
    max_diff_lines: usize,
}

fn five_hundred() -> usize {
    500
}

/// The most that may be asked for.
const MOST_LINES: usize = 100_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn Recipe>, String> {
    let params: Params = super::params(table)?;
    if params.max_diff_lines == 0 || params.max_diff_lines > MOST_LINES {
        return Err(format!("`max_diff_lines` may be 1 to {MOST_LINES}"));
    }
    Ok(Arc::new(params))
}

impl Recipe for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(GitDiff {
            max_lines: self.max_diff_lines,
            share: self.max_diff_lines,
            state: State::Early,
            early: Vec::new(),
            bytes: 0,
            parser: Parser::default(),
            items: Vec::new(),
            others: 0,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It may be a small one.
    Early,
    Large,
    /// It is no diff.
    Foreign,
}

struct GitDiff {
    max_lines: usize,
    /// Lines that a file may hold; halved whenever all files together hold too much.
    share: usize,
    state: State,
    early: Vec<Held>,
    bytes: usize,
    parser: Parser,
    items: Vec<Item>,
    /// Lines of no file that are held.
    others: usize,
}

impl GitDiff {
    fn grow(&mut self, out: &mut dyn Sink) {
        let early = std::mem::take(&mut self.early);
        let mut parser = Parser::default();
        let is_diff = early
            .iter()
            .any(|held| parser.kind(&held.text) == Kind::File);
        if !is_diff {
            self.state = State::Foreign;
            early.iter().for_each(|held| out.keep(held.line()));
            return;
        }
        self.state = State::Large;
        self.bytes = 0;
        for held in early {
            self.take(held);
        }
    }

    fn take(&mut self, held: Held) {
        let kind = self.parser.kind(&held.text);
        self.bytes += held.text.len() + size_of::<Held>();
        match (kind, self.items.last_mut()) {
            (Kind::File, _) => self.items.push(Item::Patch(Patch::new(held))),
            (Kind::Header, Some(Item::Patch(patch))) => patch.header(held),
            (Kind::Hunk, Some(Item::Patch(patch))) => patch.hunk(held),
            (
                Kind::Context | Kind::Added | Kind::Removed | Kind::Note,
                Some(Item::Patch(patch)),
            ) => patch.body(kind, held),
            _ => {
                self.others += 1;
                if self.others <= MOST_OTHER {
                    self.items.push(Item::Other(held));
                }
            }
        }
        if self.bytes > MOST_BYTES {
            self.shrink();
        }
    }

    /// Every file gives up what is beyond its share; the share is halved until that is enough.
    fn shrink(&mut self) {
        loop {
            self.bytes = 0;
            for item in &mut self.items {
                if let Item::Patch(patch) = item {
                    patch.shrink(self.share);
                }
                self.bytes += item.memory();
            }
            if self.bytes <= MOST_BYTES / 2 || self.share == 0 {
                return;
            }
            self.share /= 2;
        }
    }
}

impl Strategy for GitDiff {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        match self.state {
            State::Foreign => out.keep(line),
            State::Large => self.take(line.into()),
            State::Early => {
                self.bytes += line.text.len() + 1;
                self.early.push(line.into());
                if self.early.len() > WHOLE_LINES || self.bytes > WHOLE_BYTES {
                    self.grow(out);
                }
            }
        }
    }

    fn finish(&mut self, _end: End, out: &mut dyn Sink) -> FilterConfidence {
        self.early.iter().for_each(|held| out.keep(held.line()));
        if self.state != State::Large {
            return FilterConfidence::Fallback;
        }
        if select::tell(&mut self.items, self.max_lines, out) {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[cfg(test)]
mod tests;
