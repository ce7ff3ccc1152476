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

use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};
use parse::{Kind, Parser};
use patch::{Headers, Patch};
use select::{Item, Names, Sizes};

/// Diffs up to so many lines stay whole.
const WHOLE_LINES: usize = 400;
/// And up to so many bytes.
const WHOLE_BYTES: usize = 48 * 1024;
/// Bytes that are held before files have to give up lines.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Lines around the diffs, of messages for one, that are held.
const MAX_OTHER_LINES: usize = 2000;
/// Their bytes.
const MAX_OTHER_BYTES: usize = 1024 * 1024;

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
const MAX_LINES: usize = 100_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params.max_diff_lines == 0 || params.max_diff_lines > MAX_LINES {
        return Err(format!("`max_diff_lines` may be 1 to {MAX_LINES}"));
    }
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(GitDiff {
            max_lines: self.max_diff_lines,
            share: self.max_diff_lines,
            state: State::Early,
            early: Vec::new(),
            bytes: 0,
            most: MAX_BYTES,
            parser: Parser::default(),
            items: Vec::new(),
            sizes: Sizes::default(),
            others: (0, 0),
        })
    }
}

enum State {
    /// It may be a small one.
    Early,
    Large,
    /// It has so many files that their names alone are told; and the file that it is at.
    Names(Box<Names>, Patch),
    /// It is no diff.
    Foreign,
}

struct GitDiff {
    max_lines: usize,
    /// Lines that a file may hold; halved whenever all files together hold too much.
    share: usize,
    state: State,
    early: Vec<OwnedLine>,
    bytes: usize,
    /// Of more bytes than these files give up lines.
    most: usize,
    parser: Parser,
    items: Vec<Item>,
    sizes: Sizes,
    /// Lines of no file that are held, and their bytes.
    others: (usize, usize),
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
            self.take(held.line());
        }
    }

    fn take(&mut self, line: Line<'_>) {
        let kind = self.parser.kind(line.text);
        if let State::Names(names, patch) = &mut self.state {
            match kind {
                Kind::File => {
                    names.add(patch);
                    *patch = Patch::new(line.into());
                }
                Kind::Header if patch.names_it(line.text) => patch.header(line.into()),
                _ => {}
            }
            return;
        }
        self.bytes += line.text.len() + size_of::<OwnedLine>();
        match (kind, self.items.last_mut()) {
            (Kind::File, _) => {
                self.sizes.file(line.text);
                self.items.push(Item::Patch(Patch::new(line.into())));
            }
            (Kind::Header, Some(Item::Patch(patch))) => {
                let says_more = patch.says_more(line.text);
                self.sizes.header(line.text, says_more);
                let is_shown = says_more || self.sizes.headers() == Some(Headers::All);
                if is_shown || patch.names_it(line.text) {
                    patch.header(line.into());
                }
            }
            (Kind::Hunk, Some(Item::Patch(patch))) => patch.hunk(line),
            (
                Kind::Context | Kind::Added | Kind::Removed | Kind::Note,
                Some(Item::Patch(patch)),
            ) => patch.body(kind, line),
            _ => {
                let (lines, bytes) = &mut self.others;
                *lines += 1;
                *bytes += line.text.len();
                if *lines <= MAX_OTHER_LINES && *bytes <= MAX_OTHER_BYTES {
                    self.items.push(Item::Other(line.into()));
                }
            }
        }
        if matches!(kind, Kind::File | Kind::Header) && self.sizes.headers().is_none() {
            self.tell_names();
        } else if self.bytes > self.most {
            self.shrink();
        }
    }

    /// From now on names alone are held.
    fn tell_names(&mut self) {
        let mut names = Names::default();
        let patches = std::mem::take(&mut self.items).into_iter();
        let mut patches = patches.filter_map(|item| match item {
            Item::Patch(patch) => Some(patch),
            Item::Other(_) => None,
        });
        let Some(mut last) = patches.next_back() else {
            return;
        };
        patches.for_each(|patch| names.add(&patch));
        last.forget_hunks();
        self.state = State::Names(Box::new(names), last);
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
            if self.bytes <= MAX_BYTES / 2 || self.share == 0 {
                break;
            }
            self.share /= 2;
        }
        // Where headers take it all, as much again may come before all are looked at again.
        self.most = MAX_BYTES.max(2 * self.bytes);
    }
}

impl Strategy for GitDiff {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        match self.state {
            State::Foreign => out.keep(line),
            State::Large | State::Names(..) => self.take(line),
            State::Early => {
                self.bytes += line.text.len() + 1;
                self.early.push(line.into());
                if self.early.len() > WHOLE_LINES || self.bytes > WHOLE_BYTES {
                    self.grow(out);
                }
            }
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.early.iter().for_each(|held| out.keep(held.line()));
        let left_out = match std::mem::replace(&mut self.state, State::Foreign) {
            State::Early | State::Foreign => false,
            State::Names(mut names, last) => {
                names.add(&last);
                names.tell(out);
                true
            }
            State::Large => {
                // Where there was no room for them, names were held.
                let headers = self.sizes.headers().unwrap_or(Headers::Few);
                select::tell(&mut self.items, self.max_lines, &self.sizes, headers, out)
            }
        };
        if left_out {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[cfg(test)]
mod tests;
