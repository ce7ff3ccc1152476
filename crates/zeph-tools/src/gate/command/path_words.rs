//! Paths in the words of a command, and the files that match a pattern.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::gate::path_globs::compile;

/// The maximum number of directory entries that are checked for one pattern.
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of parts of one word that are checked.
const MAX_PARTS: usize = 256;
/// Characters that separate paths from other parts of a word: `--file=PATH`, `if=PATH`, `HEAD:PATH`,
/// `@PATH`, lists.
const SEPARATORS: &[char] = &['=', ':', '@', ','];

/// The files that match a pattern.
pub(crate) struct Expanded {
    /// The files that were found.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether these are all files.
    pub(crate) complete: bool,
}

/// The files below `base` that match the pattern `rest`. With `dots`, `*` also matches names that begin with a dot.
pub(crate) fn expand(base: &Path, rest: &Path, dots: bool) -> Expanded {
    let mut expanded = Expanded {
        paths: Vec::new(),
        complete: false,
    };
    let Some(Ok(glob)) = pattern_glob(rest).as_deref().map(compile) else {
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
            // Patterns follow links to directories.
            if level + 1 < depth && path.is_dir() {
                waiting.push((path, level + 1));
            }
        }
    }
    expanded.complete = true;
    expanded
}

/// The parts of a word that may be paths: the whole word, the text after a separator or between two of them, the text
/// after a short option, and the path of a `file:` URL. Other URLs have no such part.
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

/// A URL with `*` instead of each `{…}`: curl requests every alternative.
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

/// The tokens of a program that may be file names.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_alphanumeric() || "_./~+%-".contains(c)))
        .filter(|token| !token.is_empty())
        .take(4 * MAX_PARTS)
        .collect()
}

/// A shell pattern that matches exactly this text.
pub(crate) fn literal(text: &str) -> String {
    text.replace('[', "[[]")
        .replace('*', "[*]")
        .replace('?', "[?]")
}

/// Converts a shell pattern to a glob. Its braces were expanded before; the remaining ones are plain characters.
pub(crate) fn braces_escaped(pattern: &str) -> String {
    pattern.replace('{', "[{]").replace('}', "[}]")
}

/// Converts a pattern of the shell, after quote removal, to a glob that matches at least the same
/// paths. `None` if it has `..` or is not UTF-8.
pub(crate) fn pattern_glob(pattern: &Path) -> Option<String> {
    let names = pattern.components().map(|part| match part {
        Component::Normal(name) => name.to_str().map(name_glob),
        _ => None,
    });
    Some(names.collect::<Option<Vec<_>>>()?.join("/"))
}

/// Converts one component of such a pattern. `\`, `{` and `}` are plain characters: they were quoted.
/// The text from the first `[` to the last `]` becomes `*`: quotes may hide brackets, and a glob has
/// no `[[:lower:]]`. `?` becomes one to four of them: in the shell, it matches a character of several bytes.
pub(crate) fn name_glob(name: &str) -> String {
    if name == "**" {
        return name.to_owned();
    }
    let widened = match (name.find('['), name.rfind(']')) {
        (Some(start), Some(end)) if start < end => {
            format!("{}*{}", &name[..start], &name[end + 1..])
        }
        _ => name.to_owned(),
    };
    let mut glob = String::with_capacity(widened.len());
    for character in widened.chars() {
        match character {
            '*' | '?' if glob.ends_with('*') => {}
            '*' => glob.push('*'),
            '?' => glob.push_str("{?,??,???,????}"),
            '[' | '{' | '}' | '\\' => glob.extend(['[', character, ']']),
            other => glob.push(other),
        }
    }
    glob
}
