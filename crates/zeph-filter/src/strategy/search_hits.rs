//! The `search_hits` strategy: results of grep, ripgrep and similar tools, grouped by file if they are too
//! long.
//!
//! Up to `max_bytes` the output is unchanged. In longer output each file has the number of its hits and the
//! first hits that fit. If there are too many files, they are grouped by folder.

use std::sync::Arc;

use serde::Deserialize;
use std::collections::HashMap;

use super::excerpt::keep_cut;
use super::group_paths::{Budget, Places, share};
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};

/// Files that are distinguished.
const MAX_FILES: usize = 20_000;
/// The maximum number of files with shown hits. More files are grouped by folder.
const SHOWN_FILES: usize = 200;
/// Buffered first hits of a file, the total for few files, and bytes of all hits.
const HELD: usize = 60;
const HELD_OF_FEW: usize = 2_000;
const MAX_HELD_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of a hit.
const MAX_LINE_BYTES: usize = 300;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The maximum bytes of an output that is unchanged.
    #[serde(default = "most_bytes")]
    max_bytes: usize,
}

fn most_bytes() -> usize {
    40_000
}

/// The maximum for the parameter. It limits the number of buffered bytes.
const MAX_BYTES: usize = 1024 * 1024;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params.max_bytes > MAX_BYTES {
        return Err(format!("`max_bytes` may be {MAX_BYTES} at most"));
    }
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(SearchHits {
            max_bytes: self.max_bytes,
            early: Some(Vec::new()),
            bytes: 0,
            files: Vec::new(),
            index: HashMap::default(),
            held: 0,
            numbered: false,
            heading: Heading::None,
            around: false,
            others: 0,
            last: 0,
        })
    }
}

/// The hits in one file.
#[derive(Debug)]
struct File {
    /// Empty if the output does not name files, because only one was searched.
    path: String,
    /// The line with the name, above its hits.
    heading: Option<OwnedLine>,
    number: u64,
    count: u64,
    hits: Vec<OwnedLine>,
}

/// The file of the next hits, in the form of ripgrep on a terminal.
#[derive(Debug)]
enum Heading {
    None,
    /// A line that may be the name of a file.
    Maybe(OwnedLine),
    /// The index of the file.
    Of(usize),
}

struct SearchHits {
    max_bytes: usize,
    /// All lines, until they are too many.
    early: Option<Vec<OwnedLine>>,
    bytes: usize,
    files: Vec<File>,
    index: HashMap<String, usize>,
    held: usize,
    /// True if hits have line numbers.
    numbered: bool,
    heading: Heading,
    /// True if context lines were omitted.
    around: bool,
    /// Hits in files beyond [`MAX_FILES`].
    others: u64,
    last: u64,
}

/// The length of a leading number in bytes, and the sign after it.
fn number(text: &str) -> Option<(usize, u8)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = *text.as_bytes().get(digits).filter(|_| digits > 0)?;
    matches!(sign, b':' | b'-').then_some((digits, sign))
}

/// The file of `src/a.rs:12:text`.
fn numbered_hit(text: &str) -> Option<&str> {
    let colons = text.match_indices(':').map(|(at, _)| at).take(2);
    let at = colons.filter(|at| *at > 0).find(|at| {
        let behind = number(&text[at + 1..]);
        behind.is_some_and(|(_, sign)| sign == b':')
    })?;
    let path = &text[..at];
    let numbered = path.bytes().all(|byte| byte.is_ascii_digit());
    (!numbered && !is_around(path) && !path.starts_with([' ', '\t'])).then_some(path)
}

/// The file of `src/a.rs:text`.
fn bare_hit(text: &str) -> Option<&str> {
    let path = &text[..text.find(':')?];
    (path.contains(['/', '.']) && !path.contains([' ', '\t'])).then_some(path)
}

/// Returns true for a context line: `src/a.rs-13-text`.
fn is_around(text: &str) -> bool {
    text.match_indices('-').any(|(at, _)| {
        let behind = number(&text[at + 1..]);
        at > 0 && behind.is_some_and(|(_, sign)| sign == b'-')
    })
}

impl SearchHits {
    /// Sorts the first lines. They show whether hits have line numbers.
    fn sort_early(&mut self, early: &[OwnedLine], out: &mut dyn Sink) {
        self.numbered = early.iter().any(|held| {
            let text = held.text.as_str();
            numbered_hit(text).is_some() || number(text).is_some_and(|(_, sign)| sign == b':')
        });
        for held in early {
            self.sort(held.line(), out);
        }
    }

    fn sort(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if text.is_empty() || text == "--" {
            return;
        }
        if !self.numbered {
            match bare_hit(text) {
                Some(path) => self.add(path, line),
                None => keep_cut(line, MAX_LINE_BYTES, out),
            }
            return;
        }
        match (number(text), numbered_hit(text)) {
            (Some((_, b':')), _) => self.below_heading(line),
            (_, Some(path)) => self.add(path, line),
            (Some(_), None) => self.around = true,
            _ if is_around(text) => self.around = true,
            _ => {
                self.end_heading(out);
                self.heading = Heading::Maybe(line.into());
            }
        }
    }

    /// Ends a heading without hits, which is a message, not a file name.
    fn end_heading(&mut self, out: &mut dyn Sink) {
        if let Heading::Maybe(held) = std::mem::replace(&mut self.heading, Heading::None) {
            keep_cut(held.line(), MAX_LINE_BYTES, out);
        }
    }

    /// Adds a hit without the name of its file.
    fn below_heading(&mut self, line: Line<'_>) {
        match std::mem::replace(&mut self.heading, Heading::None) {
            Heading::Maybe(held) => {
                self.add(&held.text, line);
                if let Some(at) = self.index.get(&held.text).copied() {
                    self.files[at].heading = Some(held);
                    self.heading = Heading::Of(at);
                }
            }
            Heading::Of(at) => {
                self.hit(at, line);
                self.heading = Heading::Of(at);
            }
            Heading::None => self.add("", line),
        }
    }

    fn add(&mut self, path: &str, line: Line<'_>) {
        let at = match self.index.get(path) {
            Some(at) => *at,
            None if self.files.len() == MAX_FILES => {
                self.others += 1;
                return;
            }
            None => {
                self.index.insert(path.to_owned(), self.files.len());
                self.files.push(File {
                    path: path.to_owned(),
                    heading: None,
                    number: line.number,
                    count: 0,
                    hits: Vec::new(),
                });
                self.files.len() - 1
            }
        };
        self.hit(at, line);
    }

    fn hit(&mut self, at: usize, line: Line<'_>) {
        let most = HELD.max(HELD_OF_FEW / self.files.len().max(1));
        let file = &mut self.files[at];
        file.count += 1;
        if file.hits.len() < most && self.held < MAX_HELD_BYTES {
            let text = &line.text[..line.text.floor_char_boundary(MAX_LINE_BYTES)];
            self.held += text.len() + size_of::<OwnedLine>();
            file.hits.push(Line { text, ..line }.into());
        }
    }

    /// Prints the hits of each file that fit.
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
            file.name(out);
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
                let name = match file.path.as_str() {
                    "" => String::new(),
                    path => format!("{path}: "),
                };
                out.say(file.number, &format!("{name}… {more} more"));
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
                file.name(out);
                keep_cut(hit.line(), MAX_LINE_BYTES / 2, out);
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

impl File {
    /// Prints the heading of the file, if its hits do not contain the name.
    fn name(&self, out: &mut dyn Sink) {
        if let Some(heading) = &self.heading {
            keep_cut(heading.line(), MAX_LINE_BYTES, out);
        }
    }
}

/// Formats the number of hits and files.
fn found(hits: u64, files: usize, around: bool) -> String {
    let around = match around {
        true => "; the lines around them are omitted",
        false => "",
    };
    let (hits, files) = (pluralize(hits, "hit"), pluralize(files as u64, "file"));
    format!("{hits} in {files}{around}")
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
            self.sort_early(&early, out);
        }
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        if let Some(early) = self.early.take() {
            early.iter().for_each(|held| out.keep(held.line()));
            return FilterConfidence::Fallback;
        }
        self.end_heading(out);
        let hits = self.files.iter().map(|file| file.count).sum::<u64>() + self.others;
        if self.files.is_empty() {
            return FilterConfidence::Fallback;
        }
        let files = self.files.len();
        out.say(self.last, &found(hits, files, self.around));
        if files <= SHOWN_FILES {
            self.tell_files(out);
        } else {
            self.tell_folders(out);
        }
        FilterConfidence::Partial
    }
}

/// Formats a number with a noun: `1 file`, `2 files`.
fn pluralize(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
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
    fn search_hit_line_names_its_file() {
        let check = |text: &str, numbered, bare| {
            assert_eq!(numbered_hit(text), numbered, "{text}");
            assert_eq!(bare_hit(text), bare, "{text}");
        };
        check("src/a.rs:12:x", Some("src/a.rs"), Some("src/a.rs"));
        check("Makefile:12:x", Some("Makefile"), None);
        check("with space.md:3:x", Some("with space.md"), None);
        check("src/a.rs:x", None, Some("src/a.rs"));
        check("12:x", None, None);
        check("src/a.rs", None, None);
        check("2026-01-01 10:00:07 x", None, None);
        check("src/a.rs-12-let x: u8", None, None);
        assert!(is_around("src/a.rs-12-let x: u8"));
        assert!(!is_around("src/a-b.rs"));
    }

    /// Proves OUT-7d: each hit is shown with its file.
    #[test]
    fn hits_below_headings_and_around_others_keep_their_file() {
        let check = |text: &str| collected(make, "max_bytes = 2000", text, Some(0));
        let line = |n: usize| format!("{n}:let total = {n};\n");
        let many: String = (1..400).map(line).collect();
        let (told, _) = check(&format!(
            "src/a.rs\n{many}\nsrc/b.rs\n{many}Binary file c.png matches\n"
        ));
        assert!(
            told.contains("798 hits in 2 files\nsrc/a.rs\n1:let total = 1;\n"),
            "{told}"
        );
        assert!(told.contains("\nsrc/b.rs\n1:let total = 1;\n"), "{told}");
        assert!(told.contains("Binary file c.png matches\n"), "{told}");
        let (told, _) = check(&many);
        assert!(told.starts_with("399 hits in 1 file\n1:let total = 1;\n2:let"));
        assert!(told.len() > 1500 && told.contains("\n… "), "{told}");
        let around = |n: usize| {
            let path = format!("src/f{}.rs", n % 3);
            format!("{path}-{n}-let x: u8\n{path}:{}:let total\n--\n", n + 1)
        };
        let (told, _) = check(&(1..200).map(around).collect::<String>());
        let head = "199 hits in 3 files; the lines around them are omitted\n";
        assert!(told.starts_with(head), "{told}");
        assert!(!told.contains("let x"), "{told}");
    }

    /// Proves OUT-7d.
    #[test]
    fn many_hits_are_grouped_by_file() {
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
