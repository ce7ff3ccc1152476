//! The changes of one file in a diff, and the selection of the shown lines.

use super::super::group_paths::share;
use super::hunk::{Body, Gone, Hunk, Text};
use super::parse::Kind;
use crate::line::{Line, OwnedLine, Sink};

/// Names of lock files.
const LOCKS: &[&str] = &[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "go.sum",
    "go.work.sum",
    "bun.lockb",
    "packages.lock.json",
    "gradle.lockfile",
    "Package.resolved",
    "project.assets.json",
    "MODULE.bazel.lock",
];
/// Suffixes of generated files.
const MADE: &[&str] = &[
    ".lock",
    ".min.js",
    ".min.css",
    ".min.mjs",
    ".map",
    ".pb.go",
    "_pb2.py",
    "_pb2_grpc.py",
    ".pb.cc",
    ".pb.h",
    ".g.dart",
    ".freezed.dart",
    ".designer.cs",
    ".bundle.js",
];
/// Folders of fetched and generated files that may be in a repository.
const FOLDERS: &[&str] = &["/node_modules/", "/dist/", "/vendor/", "/third_party/"];
/// The length in bytes from which a line counts as generated.
const MINIFIED: usize = 2000;
/// Stored bytes of the header of a hunk, which contains a line of the file after the positions.
const MAX_HUNK_HEADER_BYTES: usize = 4096;
/// Bytes of a file name in further headers. No system has longer names.
const MAX_NAME_BYTES: usize = 4096;
/// Bytes of memory per stored line, in addition to its text.
const LINE: usize = 64;

/// The changes of one file.
pub(super) struct Patch {
    headers: Vec<OwnedLine>,
    hunks: Vec<Hunk>,
    /// The texts of the lines in the hunks.
    texts: String,
    /// Omitted hunks at the end, and their lines.
    rest: (u64, Gone),
    added: u64,
    removed: u64,
    /// True if a line is so long that it is probably generated.
    minified: bool,
}

/// The selection of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Headers {
    All,
    /// Headers except object names and repeated file names.
    Few,
}

impl Patch {
    pub(super) fn new(header: OwnedLine) -> Self {
        Self {
            headers: vec![header],
            hunks: Vec::new(),
            texts: String::new(),
            rest: (0, Gone::default()),
            added: 0,
            removed: 0,
            minified: false,
        }
    }

    pub(super) fn header(&mut self, header: OwnedLine) {
        self.headers.push(header);
    }

    pub(super) fn hunk(&mut self, header: Line<'_>) {
        let end = header.text.floor_char_boundary(MAX_HUNK_HEADER_BYTES);
        let text = &header.text[..end];
        self.hunks.push(Hunk {
            header: Line { text, ..header }.into(),
            lines: Vec::new(),
        });
    }

    pub(super) fn body(&mut self, kind: Kind, line: Line<'_>) {
        self.added += u64::from(kind == Kind::Added);
        self.removed += u64::from(kind == Kind::Removed);
        self.minified |= line.text.len() > MINIFIED;
        if let Some(hunk) = self.hunks.last_mut() {
            hunk.lines.push(Body {
                kind,
                held: Some(Text::push(line, &mut self.texts)),
                gone: Gone::default(),
            });
        }
    }

    /// Removes the hunks.
    pub(super) fn forget_hunks(&mut self) {
        self.hunks.clear();
        self.texts = String::new();
    }

    /// Returns true for a generated file, whose lines are omitted first.
    pub(super) fn is_generated(&self) -> bool {
        self.minified
            || self.headers.iter().any(|header| {
                let name = header
                    .text
                    .rsplit(['/', ' ', '"'])
                    .find(|part| !part.is_empty());
                let names_it = ["diff ", "--- ", "+++ "]
                    .iter()
                    .any(|sign| header.text.starts_with(sign));
                let by_name = name.is_some_and(|name| {
                    LOCKS.contains(&name) || MADE.iter().any(|ending| name.ends_with(ending))
                });
                names_it && (by_name || FOLDERS.iter().any(|folder| header.text.contains(folder)))
            })
    }

    pub(super) fn headers(&self, which: Headers) -> impl Iterator<Item = &OwnedLine> {
        let (first, rest) = self.headers.split_at(1);
        let says = move |header: &&OwnedLine| which == Headers::All || self.says_more(&header.text);
        first.iter().chain(rest.iter().filter(says))
    }

    /// Returns true if a further header is one of [`Headers::Few`].
    pub(super) fn says_more(&self, header: &str) -> bool {
        let first = self.headers.first();
        let bare = first.is_some_and(|first| !first.text.starts_with("diff "));
        let old = ["index ", "--- ", "+++ "];
        bare || !old.iter().any(|sign| header.starts_with(sign))
    }

    /// Returns true if a further header is the first one with the file name of its side.
    pub(super) fn names_it(&self, header: &str) -> bool {
        let is_first = |sign: &str| {
            header.starts_with(sign) && self.headers.iter().all(|held| !held.text.starts_with(sign))
        };
        header.len() <= MAX_NAME_BYTES && (is_first("--- ") || is_first("+++ "))
    }

    /// The path of the file on the new side, or on the old side for a removed file.
    pub(super) fn path(&self) -> &str {
        let named = |sign: &str| {
            self.headers
                .iter()
                .find_map(|header| header.text.strip_prefix(sign))
        };
        let new = named("+++ ").filter(|path| *path != "/dev/null");
        let path = new.or_else(|| named("--- ")).unwrap_or_else(|| {
            let first = self.headers.first().map_or("", |header| &header.text);
            let words = first.strip_prefix("diff --git ").unwrap_or(first);
            words.rfind(" b/").map_or(words, |at| &words[at + 1..])
        });
        let path = path.split('\t').next().unwrap_or(path);
        let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
        bare.unwrap_or(path)
    }

    /// Returns true if lines were omitted.
    pub(super) fn is_cut(&self) -> bool {
        self.rest.0 > 0 || self.lines().any(|line| line.held.is_none())
    }

    /// The number of the first line.
    pub(super) fn number(&self) -> u64 {
        self.headers.first().map_or(0, |header| header.number)
    }

    /// Bytes and number of the stored lines.
    pub(super) fn size(&self) -> (usize, usize) {
        let held = self.lines().filter_map(|line| line.held.as_ref());
        held.fold((0, 0), |(bytes, lines), held| {
            (bytes + held.length as usize + 1, lines + 1)
        })
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let of = |held: &OwnedLine| held.text.len() + size_of::<OwnedLine>();
        let lines = self
            .lines()
            .map(|line| line.held.map_or(0, |held| held.length as usize) + LINE);
        let hunks = self.hunks.iter().map(|hunk| of(&hunk.header));
        self.headers.iter().map(of).sum::<usize>() + hunks.sum::<usize>() + lines.sum::<usize>()
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &Body> {
        self.hunks.iter().flat_map(|hunk| &hunk.lines)
    }

    /// The budget in lines for all changed lines and the headers of hunks.
    pub(super) fn wants_changed(&self) -> usize {
        let changed = self.lines().filter(|line| line.is_changed());
        self.hunks.len() + changed.map(Body::cost).sum::<usize>()
    }

    pub(super) fn wants_context(&self) -> usize {
        self.lines()
            .filter(|line| !line.is_changed())
            .map(Body::cost)
            .sum()
    }

    /// Omits lines beyond `budget`, and releases their memory.
    pub(super) fn shrink(&mut self, budget: usize) {
        let changed = self.wants_changed();
        if changed + self.wants_context() > budget {
            self.give_up(budget.min(changed), budget.saturating_sub(changed));
        }
        let texts = std::mem::take(&mut self.texts);
        for hunk in &mut self.hunks {
            hunk.join_gone();
            for held in hunk.lines.iter_mut().filter_map(|line| line.held.as_mut()) {
                *held = Text::push(held.line(&texts), &mut self.texts);
            }
        }
    }

    /// Omits lines until the changed lines need at most `changed` lines of the budget and the context
    /// `context`.
    pub(super) fn give_up(&mut self, changed: usize, context: usize) {
        let hunks = changed.max(1);
        for hunk in self.hunks.drain(hunks.min(self.hunks.len())..) {
            self.rest.0 += 1;
            self.rest.1.add(hunk.gone());
        }
        let room = changed.saturating_sub(self.hunks.len());
        let wants = |hunk: &Hunk| {
            hunk.lines
                .iter()
                .filter(|line| line.is_changed())
                .map(Body::cost)
                .sum()
        };
        let wants: Vec<usize> = self.hunks.iter().map(wants).collect();
        for (hunk, share) in self.hunks.iter_mut().zip(share(room, &wants)) {
            hunk.give_up_changed(share);
        }
        self.give_up_context(context);
        self.hunks.iter_mut().for_each(Hunk::give_up_notes);
    }

    /// Omits context. Lines near shown changes are retained first.
    fn give_up_context(&mut self, budget: usize) {
        let mut by_distance: Vec<(usize, usize, usize)> = Vec::new();
        for (at, hunk) in self.hunks.iter().enumerate() {
            let distances = hunk.distances();
            let lines = hunk.lines.iter().enumerate();
            let context = lines.filter(|(_, line)| !line.is_changed() && line.held.is_some());
            by_distance.extend(
                context.map(|(line, _)| (distances.get(line).copied().unwrap_or(0), at, line)),
            );
        }
        by_distance.sort_unstable();
        let mut left = budget;
        for (distance, hunk, line) in by_distance {
            let Some(line) = self
                .hunks
                .get_mut(hunk)
                .and_then(|hunk| hunk.lines.get_mut(line))
            else {
                continue;
            };
            let cost = line.cost();
            if distance == usize::MAX || cost > left {
                line.give_up();
                left = if cost > left { 0 } else { left };
            } else {
                left -= cost;
            }
        }
    }

    pub(super) fn tell(&self, headers: Headers, out: &mut dyn Sink) {
        for header in self.headers(headers) {
            out.keep(header.line());
        }
        for hunk in &self.hunks {
            hunk.tell(&self.texts, out);
        }
        if let (1.., gone) = self.rest
            && let Some(last) = self.hunks.last()
        {
            let (hunks, told) = (self.rest.0, gone.told());
            out.say(last.end(), &format!("[… {hunks} more hunks {told}]"));
        }
    }

    /// Prints the headers, and the number of changed lines.
    pub(super) fn tell_short(&self, headers: Headers, out: &mut dyn Sink) {
        for header in self.headers(headers) {
            out.keep(header.line());
        }
        if let Some(hunk) = self.hunks.first() {
            let (added, removed) = (self.added, self.removed);
            out.say(hunk.header.number, &format!("[+{added} -{removed}]"));
        }
    }
}
