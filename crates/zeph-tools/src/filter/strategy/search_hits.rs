//! `search_hits`: what grep, ripgrep and their like find, where it is too much to be read: by file, with numbers.
//!
//! Up to `max_bytes` all of it stays, as it was asked for. Of more, each file is told with the number of its hits
//! and the first of them, as many as fit; where there are too many files, they are told by folder.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;

use super::excerpt::keep_cut;
use super::places::{Budget, Places, share};
use super::{FilterConfidence, Recipe, Strategy};
use crate::filter::line::{End, Held, Line, Sink};

/// Files that are told apart.
const MOST_FILES: usize = 20_000;
/// Of so many at most hits are shown; others are told by folder.
const SHOWN_FILES: usize = 200;
/// First hits of a file that are held, and bytes of all of them.
const HELD: usize = 60;
const MOST_HELD: usize = 2 * 1024 * 1024;
/// Bytes of a hit.
const MOST_LINE: usize = 300;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Outputs of no more bytes stay as they are.
    #[serde(default = "most_bytes")]
    max_bytes: usize,
}

fn most_bytes() -> usize {
    40_000
}

/// The most that may be asked for: what is held back is bounded by it.
const MOST_BYTES: usize = 1024 * 1024;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn Recipe>, String> {
    let params: Params = super::params(table)?;
    if params.max_bytes > MOST_BYTES {
        return Err(format!("`max_bytes` may be {MOST_BYTES} at most"));
    }
    Ok(Arc::new(params))
}

impl Recipe for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(SearchHits {
            max_bytes: self.max_bytes,
            early: Some(Vec::new()),
            bytes: 0,
            files: Vec::new(),
            index: HashMap::new(),
            held: 0,
            heading: String::new(),
            others: 0,
            last: 0,
        })
    }
}

/// The hits in one file.
#[derive(Debug)]
struct File {
    path: String,
    number: u64,
    count: u64,
    hits: Vec<Held>,
}

struct SearchHits {
    max_bytes: usize,
    /// All lines, until they are too many.
    early: Option<Vec<Held>>,
    bytes: usize,
    files: Vec<File>,
    index: HashMap<String, usize>,
    held: usize,
    /// The file whose hits follow, as ripgrep tells it on a terminal.
    heading: String,
    /// Hits in files beyond those that are told apart.
    others: u64,
    last: u64,
}

/// The file of `src/a.rs:12:text` and of `src/a.rs-13-context`; `None` of `src/a.rs` and of `12:text`.
fn file_of(text: &str) -> Option<&str> {
    let at = text.find(':').filter(|at| *at > 0)?;
    let path = &text[..at];
    let numbered = path.bytes().all(|byte| byte.is_ascii_digit());
    (!numbered && !path.starts_with([' ', '\t'])).then_some(path)
}

impl SearchHits {
    fn sort(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if text.is_empty() || text == "--" {
            return;
        }
        let Some(path) = file_of(text) else {
            if text.starts_with(|c: char| c.is_ascii_digit()) && !self.heading.is_empty() {
                let path = self.heading.clone();
                self.add(&path, line);
            } else if text.starts_with([' ', '\t']) {
                keep_cut(line, MOST_LINE, out);
            } else {
                self.heading.clear();
                self.heading.push_str(text);
                if text.contains(": ") || text.starts_with("grep") {
                    keep_cut(line, MOST_LINE, out);
                }
            }
            return;
        };
        // grep: src: Permission denied
        if text[path.len() + 1..].starts_with(' ') && !path.contains(['/', '.']) {
            keep_cut(line, MOST_LINE, out);
            return;
        }
        self.add(path, line);
    }

    fn add(&mut self, path: &str, line: Line<'_>) {
        let at = match self.index.get(path) {
            Some(at) => *at,
            None if self.files.len() == MOST_FILES => {
                self.others += 1;
                return;
            }
            None => {
                self.index.insert(path.to_owned(), self.files.len());
                self.files.push(File {
                    path: path.to_owned(),
                    number: line.number,
                    count: 0,
                    hits: Vec::new(),
                });
                self.files.len() - 1
            }
        };
        let file = &mut self.files[at];
        file.count += 1;
        if file.hits.len() < HELD && self.held < MOST_HELD {
            let text = &line.text[..line.text.floor_char_boundary(MOST_LINE)];
            self.held += text.len() + size_of::<Held>();
            file.hits.push(Line { text, ..line }.into());
        }
    }

    /// The hits of each file, as many as fit.
    fn tell_files(&self, out: &mut dyn Sink) {
        let heads: usize = self.files.iter().map(|file| file.path.len() + 16).sum();
        let size = |file: &File| {
            file.hits
                .iter()
                .map(|hit| hit.text.len() + 1)
                .sum::<usize>()
        };
        let wants: Vec<usize> = self.files.iter().map(size).collect();
        let shares = share(self.max_bytes.saturating_sub(heads), &wants);
        for (file, room) in self.files.iter().zip(shares) {
            let mut used = 0;
            let mut shown = 0;
            for hit in &file.hits {
                used += hit.text.len() + 1;
                if used > room && shown > 0 {
                    break;
                }
                out.keep(hit.line());
                shown += 1;
            }
            if shown < file.count {
                let more = file.count - shown;
                out.say(file.number, &format!("{}: … {more} more", file.path));
            }
        }
    }

    fn tell_folders(&self, out: &mut dyn Sink) {
        let mut places = Places::default();
        self.files.iter().for_each(|file| places.add(&file.path));
        let mut most: Vec<&File> = self.files.iter().collect();
        most.sort_by_key(|file| std::cmp::Reverse(file.count));
        for file in most.iter().take(SHOWN_FILES / 4) {
            if let Some(hit) = file.hits.first() {
                keep_cut(hit.line(), MOST_LINE / 2, out);
            }
            if file.count > 1 {
                out.say(file.number, &format!("{}: {} hits", file.path, file.count));
            }
        }
        let budget = Budget {
            folders: 60,
            names: 150,
        };
        out.say(self.last, "Files with hits, by folder:");
        for line in places.lines(budget) {
            out.say(self.last, &line);
        }
    }
}

impl Strategy for SearchHits {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        self.last = line.number;
        let Some(early) = &mut self.early else {
            self.sort(line, out);
            return;
        };
        self.bytes += line.text.len() + 1;
        early.push(line.into());
        if self.bytes > self.max_bytes
            && let Some(early) = self.early.take()
        {
            for held in early {
                self.sort(held.line(), out);
            }
        }
    }

    fn finish(&mut self, _end: End, out: &mut dyn Sink) -> FilterConfidence {
        if let Some(early) = self.early.take() {
            early.iter().for_each(|held| out.keep(held.line()));
            return FilterConfidence::Fallback;
        }
        let hits = self.files.iter().map(|file| file.count).sum::<u64>() + self.others;
        if self.files.is_empty() {
            return FilterConfidence::Fallback;
        }
        let files = self.files.len();
        out.say(self.last, &format!("{hits} hits in {files} files"));
        if files <= SHOWN_FILES {
            self.tell_files(out);
        } else {
            self.tell_folders(out);
        }
        FilterConfidence::Partial
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::collected;
    use super::*;

    fn hits(files: usize, each: usize) -> String {
        let line = |n: usize| format!("src/f{}.rs:{}:let total = {n};\n", n / each, n % each);
        (0..files * each).map(line).collect()
    }

    #[test]
    fn a_line_names_its_file() {
        let check = |text: &str, expect| assert_eq!(file_of(text), expect, "{text}");
        check("src/a.rs:12:x", Some("src/a.rs"));
        check("12:x", None);
        check("src/a.rs", None);
        check("  x: y", None);
    }

    /// Proves OUT-7d.
    #[test]
    fn too_many_hits_are_told_by_file() {
        let check = |text: &str| collected(make, "max_bytes = 2000", text, Some(0));
        let few = hits(3, 9);
        assert_eq!(check(&few), (few, FilterConfidence::Fallback));
        let (told, confidence) = check(&hits(5, 400));
        assert_eq!(confidence, FilterConfidence::Partial);
        assert!(
            told.starts_with("2000 hits in 5 files\nsrc/f0.rs:0:let total = 0;\n"),
            "{told}"
        );
        assert!(told.contains("src/f4.rs:0:let total = 1600;\n"), "{told}");
        assert!(told.contains("src/f4.rs: … "), "{told}");
        let (told, _) = check(&hits(900, 2));
        assert!(told.contains("1800 hits in 900 files\n"), "{told}");
        assert!(told.contains("src/ (900): f0.rs f1.rs"), "{told}");
    }
}
