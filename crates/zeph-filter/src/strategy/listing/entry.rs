//! Parser for the lines of a listing: a path, or other text.

use memchr::{memchr, memchr_iter, memchr3};

/// A line of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry<'t> {
    /// The path of a file or a folder.
    Path(&'t str),
    /// The folder whose entries follow.
    Section,
    /// Something else.
    Other,
}

/// Parses lines in sequence.
#[derive(Debug)]
pub(super) struct Reader {
    ls: bool,
    /// The folder of the last section with a slash, then the name of the last entry.
    path: String,
    /// Bytes of the folder; 0 without a section.
    folder: usize,
    /// True if the previous line was empty, or at the start.
    after_blank: bool,
}

impl Reader {
    /// Creates a parser for the output of ls, or for one path per line.
    pub(super) fn new(ls: bool) -> Self {
        Self {
            ls,
            path: String::new(),
            folder: 0,
            after_blank: true,
        }
    }

    /// Parses the next line.
    pub(super) fn read<'t>(&'t mut self, line: &'t str) -> Entry<'t> {
        let after_blank = std::mem::replace(&mut self.after_blank, line.is_empty());
        let is_bare = is_bare(line);
        if !is_bare && (is_blank(line) || is_message(line)) {
            return Entry::Other;
        }
        if !self.ls && is_bare {
            return Entry::Path(line);
        }
        if !self.ls {
            return match path(line) {
                Some(path) => Entry::Path(path),
                None => Entry::Other,
            };
        }
        if after_blank
            && !is_bare
            && let Some(folder) = line.strip_suffix(':')
        {
            self.path.clear();
            self.path.push_str(folder);
            self.path.push('/');
            self.folder = self.path.len();
            return Entry::Section;
        }
        let name = match long_name(line) {
            _ if is_bare && line.is_ascii() => line,
            Some(name) => name,
            None if is_total(line) => return Entry::Other,
            None => line,
        };
        if matches!(name, "." | ".." | "./" | "../") {
            return Entry::Section;
        }
        if self.folder == 0 {
            return Entry::Path(name);
        }
        self.path.truncate(self.folder);
        self.path.push_str(name);
        Entry::Path(&self.path)
    }
}

/// Returns true if a line has neither a space nor a colon. It is a path; most lines are.
fn is_bare(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_graphic) && memchr3(b' ', b':', b'\t', bytes).is_none()
}

/// Returns true if a line is empty or has only spaces.
pub(super) fn is_blank(line: &str) -> bool {
    let shown = line.as_bytes().first().is_some_and(u8::is_ascii_graphic);
    !shown && line.trim_ascii().is_empty()
}

/// Verbs of archivers before a path.
const DOES: [&str; 5] = ["adding", "inflating", "extracting", "creating", "updating"];

/// Returns true for a message: `find: ‘x’: Permission denied`, `tar: x: Cannot open`, `./a: No such file or
/// directory`.
fn is_message(line: &str) -> bool {
    let mut colons = memchr_iter(b':', line.as_bytes());
    let Some(at) = colons.find(|at| line.as_bytes().get(at + 1) == Some(&b' ')) else {
        return false;
    };
    let (program, rest) = (&line[..at], &line[at + 2..]);
    let short = program.len() <= 24
        && program
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    (short && !DOES.contains(&program)) || rest.contains(": ")
}

/// Returns true for `total 48`, in any language: a word and a size.
fn is_total(line: &str) -> bool {
    // Most names are one word.
    let parts_words = |byte: &u8| *byte <= b' ' || !byte.is_ascii();
    if line.len() >= 32 || !line.as_bytes().iter().any(parts_words) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    let size = |word: &&str| {
        word.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_digit())
    };
    (2..=3).contains(&words.len())
        && words.last().is_some_and(size)
        && !size(&words[0])
        && !words[0].contains(['.', '/'])
}

/// Parses the name at the end of a long line: `-rw-r--r-- 1 root root 4096 Nov 22 05:42 name`.
fn long_name(line: &str) -> Option<&str> {
    if !is_mode(line) {
        return None;
    }
    // Links, owner, group, size, and a date of two or three words.
    let rest = skip_words(line, 6)?;
    // `05:42 name`, or `22 05:42 name`.
    let (word, after) = rest.split_once(' ')?;
    let timed = word.bytes().any(|byte| byte == b':');
    let rest = if timed {
        after
    } else {
        skip_word(rest).unwrap_or(after)
    };
    let rest = match rest.split_once(' ') {
        // `05:42:01.000 +0100 name`
        Some((zone, after)) if zone.len() == 5 && zone.starts_with(['+', '-']) => after,
        Some((time, after)) if !timed && is_time_or_year(time) => after,
        _ => rest,
    };
    let name = rest.trim_start();
    if memchr(b'>', name.as_bytes()).is_none() {
        return Some(name);
    }
    Some(name.split_once(" -> ").map_or(name, |(name, _)| name))
}

fn is_time_or_year(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    digits == 4 && (word.len() == 4 || (word.len() == 5 && word.as_bytes()[2] == b':'))
}

/// Returns true for a mode: `drwxr-xr-x`, optionally with a sign after it.
fn is_mode(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() > 20
        && matches!(bytes[0], b'-' | b'd' | b'l' | b'c' | b'b' | b'p' | b's')
        && bytes[1..10]
            .iter()
            .all(|byte| matches!(byte, b'r' | b'w' | b'x' | b's' | b'S' | b't' | b'T' | b'-'))
        && matches!(bytes[10], b' ' | b'.' | b'+' | b'@')
}

/// What comes after a word and the spaces behind it.
fn skip_word(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(' ')?;
    Some(rest.trim_start_matches(' '))
}

/// Skips `count` words and the spaces after them.
fn skip_words(text: &str, count: usize) -> Option<&str> {
    (0..count).try_fold(text, |text, _| skip_word(text))
}

/// Parses the path in a line of find, du, tar, zip or git ls-tree.
fn path(line: &str) -> Option<&str> {
    if let Some(name) = long_name_of_archive(line) {
        return Some(name);
    }
    // The forms `4.0K<tab>path` and `100644 blob 1f0… <tab>path`.
    if let Some(at) = memchr(b'\t', line.as_bytes()) {
        let (before, path) = (&line[..at], &line[at + 1..]);
        let size = before.len() <= 12 && before.starts_with(|c: char| c.is_ascii_digit());
        let object = before.len() > 40 && before.starts_with(|c: char| c.is_ascii_digit());
        return (size || object).then_some(path);
    }
    let bare = line.trim_start();
    for does in DOES {
        if let Some(path) = bare
            .strip_prefix(does)
            .and_then(|rest| rest.strip_prefix(": "))
        {
            let end = path.rfind(" (").unwrap_or(path.len());
            return Some(path[..end].trim_end());
        }
    }
    // A sentence is not a path: summaries, headings.
    if bare.len() != line.len() || line.ends_with(':') {
        return None;
    }
    let sentence = memchr(b' ', line.as_bytes()).is_some() && {
        let words = line.split(' ').filter(|word| !word.is_empty()).count();
        words > 4 || (words > 1 && !line.contains('/') && !line.contains('.'))
    };
    (!sentence).then_some(line)
}

/// Parses the name in a line of tar, `-rw-r--r-- root/root 1234 2026-05-01 10:00 path`, or of `find -ls`.
fn long_name_of_archive(line: &str) -> Option<&str> {
    let bare = line.trim_start();
    if is_mode(bare) {
        let rest = skip_words(bare, 5)?;
        let name = rest
            .split_once(" -> ")
            .or_else(|| rest.split_once(" link to "));
        return Some(name.map_or(rest, |(name, _)| name));
    }
    // Inode and blocks precede the mode.
    if !bare.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = skip_words(bare, 2)?;
    if is_mode(rest) { long_name(rest) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found() {
        let check = |line, expect: Option<&str>| {
            let expect = expect.map_or(Entry::Other, Entry::Path);
            assert_eq!(Reader::new(false).read(line), expect, "{line}");
        };
        check("./a/b.rs", Some("./a/b.rs"));
        check("README", Some("README"));
        check("./my file.txt", Some("./my file.txt"));
        check("4.0K\tsrc/a", Some("src/a"));
        check(
            "100644 blob 83baae61804e65cc73a7201a7252750c76066a30\tsrc/a b",
            Some("src/a b"),
        );
        check("  adding: src/a.js (deflated 54%)", Some("src/a.js"));
        check("  inflating: src/a.js  ", Some("src/a.js"));
        check(
            "-rw-r--r-- root/root      1234 2026-05-01 10:00 src/a b",
            Some("src/a b"),
        );
        check(
            "   1234      4 -rw-r--r--   1 root  root  512 May  1 10:00 ./src/a",
            Some("./src/a"),
        );
        check("find: ‘./x’: Permission denied", None);
        check("find: './x': Keine Berechtigung", None);
        check("tar: x: Cannot open: No such file or directory", None);
        check("./x: Permission denied", Some("./x: Permission denied"));
        check("sending incremental file list", None);
        check("total size is 1,234  speedup is 1.00", None);
        check("sent 1,234 bytes  received 56 bytes  1.00 bytes/sec", None);
        check("Archive:  x.zip", None);
        check("", None);
    }

    #[test]
    fn names_of_ls_are_found() {
        let check = |line, expect: &str| {
            let mut reader = Reader::new(true);
            assert_eq!(reader.read("src:"), Entry::Section);
            assert_eq!(reader.read(line), Entry::Path(expect), "{line}");
        };
        check("a.rs", "src/a.rs");
        check("a b.rs", "src/a b.rs");
        check(
            "-rw-r--r-- 1 root root 4096 Nov 22 05:42 a b.rs",
            "src/a b.rs",
        );
        check("-rw-r--r-- 1 root root 4096 Nov 22  2025 a.rs", "src/a.rs");
        check("drwxr-xr-x. 12 root root   4096 22. Nov 05:42 a", "src/a");
        check(
            "-rw-r--r-- 1 root root 4096 2026-11-22 05:42 a.rs",
            "src/a.rs",
        );
        check(
            "-rw-r--r-- 1 root root 4096 2026-11-22 05:42:01.123456789 +0100 a.rs",
            "src/a.rs",
        );
        check("lrwxrwxrwx 1 root root 8 Nov 22 05:42 a -> b", "src/a");
        let mut reader = Reader::new(true);
        assert_eq!(reader.read("total 48"), Entry::Other);
        assert_eq!(reader.read("insgesamt 4,0K"), Entry::Other);
        assert_eq!(
            reader.read("ls: cannot access 'x': No such file or directory"),
            Entry::Other
        );
        assert_eq!(reader.read("a:"), Entry::Path("a:"));
        assert_eq!(
            reader.read("drwxr-xr-x 12 root root 4096 Nov 22 05:42 .."),
            Entry::Section
        );
    }

    proptest::proptest! {
        #[test]
        fn bare_line_is_a_path(line in "[-drwxa-c0-9./ö\u{a0}: \t]{1,30}|[-drwx0-9a.:,()]{1,40}") {
            if is_bare(&line) {
                proptest::prop_assert!(!is_blank(&line) && !is_message(&line));
                proptest::prop_assert_eq!(path(&line), Some(line.as_str()));
                if line.is_ascii() {
                    proptest::prop_assert!(long_name(&line).is_none() && !is_total(&line));
                }
            }
        }

        #[test]
        fn any_line_is_read(lines in proptest::collection::vec("[-drwx0-9 a:./>\t]{0,70}|.*", 0..5)) {
            for ls in [false, true] {
                let mut reader = Reader::new(ls);
                for line in &lines {
                    let _ = reader.read(line);
                }
            }
        }
    }
}
