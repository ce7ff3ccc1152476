//! The `git_diff` strategy: small diffs are unchanged, and the files of large diffs have fair shares.
//!
//! The headers of files are always shown. For lock files and generated files only the number of lines is shown.
//! Other files share `max_diff_lines`; changed lines have priority over context. The result is a diff, except
//! lines in brackets that state the omissions.

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

/// The maximum lines of a diff that is unchanged.
const WHOLE_LINES: usize = 400;
/// The maximum bytes of a diff that is unchanged.
const WHOLE_BYTES: usize = 48 * 1024;
/// Buffered bytes. After this limit lines of files are omitted.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Buffered lines outside of files, for example of commit messages.
const MAX_OTHER_LINES: usize = 2000;
/// The maximum bytes of these lines.
const MAX_OTHER_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Lines in hunks that are shown of a large diff.
    #[serde(default = "five_hundred")]
    max_diff_lines: usize,
}

fn five_hundred() -> usize {
    500
}

/// The maximum for the parameter.
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
    /// The diff may be small.
    Early,
    Large,
    /// The diff has so many files that only their names are stored. The patch is that of the current file.
    Names(Box<Names>, Patch),
    /// The output is not a diff.
    Foreign,
}

struct GitDiff {
    max_lines: usize,
    /// The maximum lines per file. It is halved if all files together have too many bytes.
    share: usize,
    state: State,
    early: Vec<OwnedLine>,
    bytes: usize,
    /// The limit in bytes, after which lines of files are omitted.
    most: usize,
    parser: Parser,
    items: Vec<Item>,
    sizes: Sizes,
    /// The lines outside of files, and their bytes.
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

    /// Starts to store only the names of files.
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

    /// Omits the lines of each file beyond its share. The share is halved until the size is sufficient.
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
        // If headers use most of the memory, the next check is after as many bytes again.
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
                // If the headers had not fitted, the state would be `Names`.
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
