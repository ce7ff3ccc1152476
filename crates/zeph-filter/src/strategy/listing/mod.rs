//! The `listing` strategy: it groups long lists of paths by folder.
//!
//! A list up to `max_lines` is unchanged. Of a longer list, paths outside of generated folders are shown if
//! they are few. All others are grouped by folder, with their number and some names. Lines that are not entries
//! (errors, totals, summaries) are retained.

mod branches;
mod entry;
mod tree;
mod usage;

use std::sync::Arc;

use memchr::memrchr;
use serde::Deserialize;
use std::collections::HashMap;

use super::generated::generated_parent_end;
use super::group_paths::{Budget, Places};
use super::line_buffer::HeldLines;
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};
use entry::{Entry, Reader, is_blank};

/// The format of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// One path per line, optionally after the verb of an archiver: find, fd, tar, unzip.
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
    /// The format of the lines.
    format: Format,
    /// The maximum lines of a list that is unchanged.
    #[serde(default = "sixty")]
    max_lines: usize,
    /// Lines for the folders of a longer list.
    #[serde(default = "sixty")]
    max_folders: usize,
    /// The maximum number of names in these lines.
    #[serde(default = "many_names")]
    max_names: usize,
}

fn sixty() -> usize {
    60
}

fn many_names() -> usize {
    150
}

/// The maximum for the parameters. It limits the number of buffered lines.
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
            groups_generated: false,
            own: Vec::new(),
            generated: Vec::new(),
            generated_index: HashMap::default(),
            folder: String::new(),
            in_generated: None,
            places: Places::default(),
            last: 0,
        })
    }
}

struct Listing {
    params: Params,
    reader: Reader,
    /// The first lines, while the list may be short.
    early: HeldLines,
    long: bool,
    /// True if generated folders are grouped separately. This needs a path outside of them in the first lines.
    groups_generated: bool,
    /// Entries outside of generated folders, while they are few.
    own: Vec<(OwnedLine, String)>,
    /// The first `max_folders` generated folders, each with its paths.
    generated: Vec<(String, Places)>,
    generated_index: HashMap<String, usize>,
    /// The folder of the last path, with a trailing slash.
    folder: String,
    /// If that folder is generated: the length of the generated folder's name, and its index in `generated`.
    in_generated: Option<(usize, usize)>,
    /// Paths in neither `own` nor `generated`.
    places: Places,
    last: u64,
}

impl Listing {
    /// Sorts the first lines when the list becomes long.
    fn sort_early(&mut self, out: &mut dyn Sink) {
        self.long = true;
        let early = std::mem::take(&mut self.early);
        let mut reader = Reader::new(self.params.format == Format::Ls);
        self.groups_generated = early.iter().any(|held| match reader.read(held.text) {
            Entry::Path(path) => generated_parent_end(path).is_none(),
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
            let end = generated_parent_end(folder).filter(|_| self.groups_generated);
            let (generated, index) = (&mut self.generated, &mut self.generated_index);
            self.in_generated = end.and_then(|end| {
                let name = &path[..end];
                if let Some(at) = index.get(name) {
                    return Some((end, *at));
                }
                let at = generated.len();
                (at < self.params.max_folders).then(|| {
                    generated.push((name.to_owned(), Places::default()));
                    index.insert(name.to_owned(), at);
                    (end, at)
                })
            });
        }
        if let Some((end, at)) = self.in_generated {
            self.generated[at]
                .1
                .add(path[end..].trim_start_matches('/'));
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
        let mut folders = std::mem::take(&mut self.generated);
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
