//! What in the words of a command may be a path, and what files a pattern stands for.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::gate::path_globs::compile;

/// How many entries of directories are looked at for one pattern.
const MAX_ENTRIES: usize = 10_000;
/// How many parts of one word are looked at.
const MAX_PARTS: usize = 256;
/// What separates paths from other things in a word: `--file=PATH`, `if=PATH`, `HEAD:PATH`,
/// `@PATH`, lists.
const SEPARATORS: &[char] = &['=', ':', '@', ','];

/// What a pattern stands for.
pub(crate) struct Expanded {
    /// The files, as far as they were found.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether that is all.
    pub(crate) complete: bool,
}

/// The files below `base` that the pattern `rest` stands for; with `dots`, `*` also matches names
/// that begin with a dot.
pub(crate) fn expand(base: &Path, rest: &Path, dots: bool) -> Expanded {
    let mut expanded = Expanded {
        paths: Vec::new(),
        complete: false,
    };
    let climbs = rest.components().any(|part| part == Component::ParentDir);
    let glob = rest.to_str().filter(|_| !climbs).map(braces_escaped);
    let Some(Ok(glob)) = glob.as_deref().map(compile) else {
        return expanded;
    };
    let depth = if rest.to_str().is_some_and(|text| text.contains("**")) {
        usize::MAX
    } else {
        rest.components().count()
    };
    let dotted: Vec<bool> = rest
        .components()
        .map(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
        .collect();
    let matcher = glob.compile_matcher();
    let mut left = MAX_ENTRIES;
    let mut waiting = vec![(base.to_owned(), 0)];
    while let Some((directory, level)) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if left == 0 {
                return expanded;
            }
            left -= 1;
            let name = entry.file_name();
            let dot = name.as_encoded_bytes().starts_with(b".");
            if dot && !dots && !dotted.get(level).copied().unwrap_or(false) {
                continue;
            }
            let path = directory.join(name);
            if path
                .strip_prefix(base)
                .is_ok_and(|path| matcher.is_match(path))
            {
                expanded.paths.push(path.clone());
            }
            // Patterns go through links to directories.
            if level + 1 < depth && path.is_dir() {
                waiting.push((path, level + 1));
            }
        }
    }
    expanded.complete = true;
    expanded
}

/// What in a word may be a path: the whole, what stands behind a separator or between two of them,
/// what follows a short option, and the path of a `file:` URL; of other URLs nothing.
pub(crate) fn parts(word: &str) -> Vec<&str> {
    let (word, behind) = match word.split_once("://") {
        None => (word, None),
        Some((before, path)) => {
            let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
            let scheme = before.rsplit(|c| !is_scheme(c)).next().unwrap_or_default();
            let is_file = scheme.eq_ignore_ascii_case("file");
            let before = &before[..before.len() - scheme.len()];
            (
                before,
                path.find('/').filter(|_| is_file).map(|at| &path[at..]),
            )
        }
    };
    let mut parts = vec![word];
    parts.extend(behind);
    let short = word
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))
        .and_then(|rest| rest.char_indices().nth(1).map(|(at, _)| &rest[at..]));
    parts.extend(short);
    for (at, _) in word.match_indices(SEPARATORS).take(MAX_PARTS) {
        parts.push(&word[at + 1..]);
    }
    if word.contains(SEPARATORS) {
        parts.extend(word.split(SEPARATORS).take(MAX_PARTS));
    }
    parts.retain(|part| !part.is_empty() && !part.contains('\0'));
    parts
}

/// The text with `%XX` decoded, as in the path of a `file:` URL; `None` if it has none, or not UTF-8 by it.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let mut is_encoded = false;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                is_encoded = true;
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|_| is_encoded)
}

/// A URL with each `{…}` as `*`: curl requests every alternative.
pub(crate) fn any_alternative(url: &str) -> String {
    let mut pattern = String::with_capacity(url.len());
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        pattern.push_str(before);
        pattern.push('*');
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    pattern + rest
}

/// The tokens of a program that may be names of files.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_alphanumeric() || "_./~+%-".contains(c)))
        .filter(|token| !token.is_empty())
        .take(4 * MAX_PARTS)
        .collect()
}

/// A text as a shell's pattern that stands for itself.
pub(crate) fn literal(text: &str) -> String {
    text.replace('[', "[[]")
        .replace('*', "[*]")
        .replace('?', "[?]")
}

/// A shell's pattern as a glob: braces have been expanded before, those that are left are plain.
pub(crate) fn braces_escaped(pattern: &str) -> String {
    pattern.replace('{', "[{]").replace('}', "[}]")
}
