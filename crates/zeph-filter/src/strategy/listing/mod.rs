//! `listing`: long lists of paths, by their folders.
//!
//! A list up to `max_lines` stays as it is. Of a longer one the paths outside of what tools fetched
//! and made stay, if they are few; all others are told by folder, with their number and some names.
//! What is no entry (errors, totals, summaries) stays.

mod branches;
mod entry;
mod tree;
mod usage;

use std::sync::Arc;

use foldhash::HashMap;
use memchr::memrchr;
use serde::Deserialize;

use super::generated::made;
use super::group_paths::{Budget, Places};
use super::line_buffer::HeldLines;
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};
use entry::{Entry, Reader, is_blank};

/// What the lines of a listing look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// A path a line, perhaps behind what an archiver does with it: find, fd, tar, unzip.
    Paths,
    /// Names, or long lines with names, in sections: ls.
    Ls,
    /// Branches: tree.
    Tree,
    /// Sizes of directories: du.
    Usage,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// What the lines look like.
    format: Format,
    /// Lists of up to so many lines stay as they are.
    #[serde(default = "sixty")]
    max_lines: usize,
    /// Lines for folders of a longer one.
    #[serde(default = "sixty")]
    max_folders: usize,
    /// Names in these lines.
    #[serde(default = "many_names")]
    max_names: usize,
}

fn sixty() -> usize {
    60
}

fn many_names() -> usize {
    150
}

/// The most that may be asked for: what is held back is bounded by it.
const MAX_ENTRIES: usize = 10_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params
        .max_lines
        .max(params.max_folders)
        .max(params.max_names)
        > MAX_ENTRIES
    {
        return Err(format!(
            "`max_lines`, `max_folders` and `max_names` may be {MAX_ENTRIES} at most"
        ));
    }
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        match self.format {
            Format::Tree => return Box::new(tree::Tree::new(self.max_lines)),
            Format::Usage => return Box::new(usage::Usage::new(self.max_lines)),
            Format::Paths | Format::Ls => {}
        }
        Box::new(Listing {
            params: *self,
            reader: Reader::new(self.format == Format::Ls),
            early: HeldLines::default(),
            long: false,
            made_counts: false,
            own: Vec::new(),
            made: Vec::new(),
            made_index: HashMap::default(),
            folder: String::new(),
            in_made: None,
            places: Places::default(),
            last: 0,
        })
    }
}

struct Listing {
    params: Params,
    reader: Reader,
    /// The first lines, as long as the list may be short.
    early: HeldLines,
    long: bool,
    /// Whether folders of what tools made are told apart: not in a list of their content alone.
    made_counts: bool,
    /// Entries outside of them, as long as they are few.
    own: Vec<(OwnedLine, String)>,
    /// The folders that tools made, with what is in them; the first as many as `own` may have.
    made: Vec<(String, Places)>,
    made_index: HashMap<String, usize>,
    /// The folder of the last path, with the slash behind it.
    folder: String,
    /// If that is one that tools made or in one: how long the name of that one is, and where in `made` it is.
    in_made: Option<(usize, usize)>,
    /// What is in neither.
    places: Places,
    last: u64,
}

impl Listing {
    /// The list is long: what came so far is sorted.
    fn sort_early(&mut self, out: &mut dyn Sink) {
        self.long = true;
        let early = std::mem::take(&mut self.early);
        let mut reader = Reader::new(self.params.format == Format::Ls);
        self.made_counts = early.iter().any(|held| match reader.read(held.text) {
            Entry::Path(path) => made(path).is_none(),
            Entry::Other | Entry::Section => false,
        });
        early.iter().for_each(|line| self.sort(line, out));
    }

    fn sort(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let path = match self.reader.read(line.text) {
            Entry::Path(path) => path,
            Entry::Section => return,
            Entry::Other => {
                if !is_blank(line.text) {
                    out.keep(line);
                }
                return;
            }
        };
        let folder = &path[..memrchr(b'/', path.as_bytes()).map_or(0, |at| at + 1)];
        if self.folder != folder {
            self.folder.clear();
            self.folder.push_str(folder);
            let end = made(folder).filter(|_| self.made_counts);
            let (made, index) = (&mut self.made, &mut self.made_index);
            self.in_made = end.and_then(|end| {
                let name = &path[..end];
                if let Some(at) = index.get(name) {
                    return Some((end, *at));
                }
                let at = made.len();
                (at < self.params.max_folders).then(|| {
                    made.push((name.to_owned(), Places::default()));
                    index.insert(name.to_owned(), at);
                    (end, at)
                })
            });
        }
        if let Some((end, at)) = self.in_made {
            self.made[at].1.add(path[end..].trim_start_matches('/'));
            return;
        }
        if self.params.format == Format::Paths
            && self.places.count() == 0
            && self.own.len() < self.params.max_lines
        {
            self.own.push((line.into(), path.to_owned()));
            return;
        }
        for (_, path) in self.own.drain(..) {
            self.places.add(&path);
        }
        self.places.add(path);
    }
}

impl Strategy for Listing {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.last = line.number;
        if self.long {
            self.sort(line, out);
            return;
        }
        self.early.push(line);
        if self.early.len() > self.params.max_lines {
            self.sort_early(out);
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        if !self.long {
            self.early.iter().for_each(|line| out.keep(line));
            return FilterConfidence::Fallback;
        }
        for (held, _) in &self.own {
            out.keep(held.line());
        }
        let Params {
            max_folders,
            max_names,
            ..
        } = self.params;
        let mut folders = std::mem::take(&mut self.made);
        folders.sort_by(|(one, _), (other, _)| one.cmp(other));
        let names = max_names / folders.len().max(1);
        for (folder, places) in folders {
            let lines = places.lines(Budget { folders: 1, names });
            for line in lines {
                let space = if line.starts_with('(') { " " } else { "" };
                out.say(self.last, &format!("{folder}/{space}{line}"));
            }
        }
        let budget = Budget {
            folders: max_folders,
            names: max_names,
        };
        for line in std::mem::take(&mut self.places).lines(budget) {
            out.say(self.last, &line);
        }
        FilterConfidence::Full
    }
}

#[cfg(test)]
mod tests;
