//! Whether a change has brought syntax errors, as tree-sitter reads the file.
//!
//! It is a hint: grammars do not know everything that compilers take, so what counts is that there
//! are more errors than before. Nothing here fails a call.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::time::{Duration, Instant};

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser};

use crate::file::edit::decoded;

/// Bytes from which on a file is not parsed.
const MAX_FILE_BYTES: usize = 1 << 20;
/// The time for parsing before and after; a change that takes longer is not judged.
const TIME: Duration = Duration::from_millis(50);
/// Errors that are counted.
const MAX_COUNTED: usize = 1000;
/// Errors that are named.
const MAX_NAMED: usize = 3;
/// Characters that are quoted.
const MAX_QUOTE_CHARS: usize = 60;

/// The language that the name of a file stands for.
fn language(path: &Path) -> Option<(&'static str, Language)> {
    Some(match path.extension()?.to_str()? {
        "rs" => ("Rust", tree_sitter_rust::LANGUAGE.into()),
        "py" | "pyi" => ("Python", tree_sitter_python::LANGUAGE.into()),
        "js" | "mjs" | "cjs" | "jsx" => ("JavaScript", tree_sitter_javascript::LANGUAGE.into()),
        "go" => ("Go", tree_sitter_go::LANGUAGE.into()),
        "java" => ("Java", tree_sitter_java::LANGUAGE.into()),
        // `.h` may be C++, whose every class would be an error.
        "c" => ("C", tree_sitter_c::LANGUAGE.into()),
        "json" => ("JSON", tree_sitter_json::LANGUAGE.into()),
        _ => return None,
    })
}

/// A place that does not parse.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// What is missing there; `None` where something stands that should not.
    missing: Option<String>,
    bytes: Range<usize>,
}

/// What to say when the content of `path` has more syntax errors than it had as `old` (`None` for
/// a file that was created). `None` when it has not, or when that cannot be told.
pub(super) fn rise(path: &Path, old: Option<&[u8]>, new: &[u8]) -> Option<String> {
    let (name, language) = language(path)?;
    let (old, new) = (old.map(decoded), decoded(new));
    if old
        .as_ref()
        .is_some_and(|old| old.len() > MAX_FILE_BYTES || *old == new)
        || new.len() > MAX_FILE_BYTES
    {
        return None;
    }
    let deadline = Instant::now() + TIME;
    let after = faults(&language, &new, deadline)?;
    if after.is_empty() {
        return None;
    }
    let old = old.unwrap_or_default();
    let before = faults(&language, &old, deadline)?;
    let more = after
        .len()
        .checked_sub(before.len())
        .filter(|more| *more > 0)?;
    let (start, tail) = common(&old, &new);
    let known: HashSet<_> = before
        .iter()
        .map(|fault| (&fault.missing, fault.bytes.clone()))
        .collect();
    let is_fresh = |fault: &&Fault| {
        let Range { start: from, end } = fault.bytes;
        let there = if end <= start {
            from..end
        } else if from >= new.len() - tail {
            let shift = |at: usize| at + old.len() - new.len();
            shift(from)..shift(end)
        } else {
            return true;
        };
        !known.contains(&(&fault.missing, there))
    };
    let mut named: Vec<&Fault> = after.iter().filter(is_fresh).collect();
    if named.is_empty() {
        named = after.iter().collect();
    }
    let said: Vec<String> = named
        .iter()
        .take(MAX_NAMED)
        .map(|fault| fault.said(&new, start))
        .collect();
    let errors = if more == 1 { "error" } else { "errors" };
    let than = if before.is_empty() {
        ""
    } else {
        " more than before"
    };
    let rest = if named.len() > MAX_NAMED { "; …" } else { "" };
    Some(format!(
        "Syntax ({name}): {more} {errors}{than}: {}{rest}",
        said.join("; ")
    ))
}

impl Fault {
    /// The fault in words. One that reaches over the change, which begins at `change`, is told
    /// where that is: it begins where the parser noticed nothing yet.
    fn said(&self, text: &[u8], change: usize) -> String {
        let at = if self.bytes.start < change && change < self.bytes.end {
            memchr::memrchr(b'\n', &text[..change]).map_or(0, |end| end + 1)
        } else {
            self.bytes.start
        };
        let line = memchr::memchr_iter(b'\n', &text[..at]).count() + 1;
        if let Some(missing) = &self.missing {
            return format!("line {line}: `{missing}` is missing");
        }
        let piece = &text[at..self.bytes.end.max(at)];
        let piece = piece
            .split(|byte| *byte == b'\n')
            .find(|line| !line.trim_ascii().is_empty());
        let piece = String::from_utf8_lossy(piece.unwrap_or_default().trim_ascii());
        match piece.char_indices().nth(MAX_QUOTE_CHARS) {
            Some((end, _)) => format!("line {line}: `{}…` does not parse", &piece[..end]),
            None => format!("line {line}: `{piece}` does not parse"),
        }
    }
}

/// The places of `text` that do not parse, up to a number; `None` when it takes too long.
fn faults(language: &Language, text: &[u8], deadline: Instant) -> Option<Vec<Fault>> {
    let mut parser = Parser::new();
    parser.set_language(language).ok()?;
    let mut go_on = |_: &ParseState| {
        if Instant::now() < deadline {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut go_on);
    let mut rest = |at: usize, _| text.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut rest, None, Some(options))?;
    let mut faults = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        faults.extend(fault(node));
        if faults.len() == MAX_COUNTED || Instant::now() >= deadline {
            return None;
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(faults);
            }
        }
    }
}

fn fault(node: Node<'_>) -> Option<Fault> {
    (node.is_missing() || node.is_error()).then(|| Fault {
        missing: node.is_missing().then(|| node.kind().to_owned()),
        bytes: node.byte_range(),
    })
}

/// The number of equal bytes at the start of `old` and `new`, and at the end of the rest.
fn common(old: &[u8], new: &[u8]) -> (usize, usize) {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(room);
    (same, tail.take_while(|(a, b)| a == b).count())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Proves FILE-23a.
    #[test]
    fn a_rise_is_told_with_line_and_cause() {
        let check = |name: &str, old: Option<&str>, new: &str, expect: Option<&str>| {
            let said = rise(Path::new(name), old.map(str::as_bytes), new.as_bytes());
            assert_eq!(said.as_deref(), expect, "{name}: {old:?} {new:?}");
        };
        let rust = "fn a() {\n    b();\n}\n\nfn c() {\n    d();\n}\n";
        check("a.rs", Some(rust), &rust.replace("b()", "e()"), None);
        check(
            "a.rs",
            Some(rust),
            &rust.replace("d();\n}", "d();\n"),
            Some("Syntax (Rust): 1 error: line 5: `fn c() {` does not parse"),
        );
        check(
            "a.rs",
            Some(rust),
            &rust.replace("b();", "let e = b()"),
            Some("Syntax (Rust): 1 error: line 2: `;` is missing"),
        );
        // What was wrong before is no news, wherever it stands.
        let wrong = format!("fn x( {{}}\n{rust}fn y( {{}}\n");
        check("a.rs", Some(&wrong), &wrong.replace("b()", "e(1, 2)"), None);
        check("a.rs", Some(&wrong), rust, None);
        check("a.txt", Some(rust), "fn", None);
        check("rs", None, "fn", None);
        check("a.json", None, "{\"a\": 1}", None);
        check(
            "a.json",
            Some("{}"),
            "{\"a\": 1,}",
            Some("Syntax (JSON): 1 error: line 1: `,` does not parse"),
        );
        check("a.py", None, "def a():\n    return 1\n", None);
        check("a.js", None, "const a = (b) => <i>{b}</i>;\n", None);
        check("a.go", None, "package a\n\nfunc b() {}\n", None);
        check("a.java", None, "class A { void b() {} }\n", None);
        check("a.c", None, "int main(void) { return 0; }\n", None);
        for (name, text) in [
            ("a.py", "def a(:\n    return 1\n"),
            ("a.mjs", "const a = {;\n"),
            ("a.go", "package a\n\nfunc b( {}\n"),
            ("a.java", "class A { void b( {} }\n"),
            ("a.c", "int main(void { return 0; }\n"),
        ] {
            let said = rise(Path::new(name), None, text.as_bytes());
            assert!(
                said.as_ref().is_some_and(|said| said.contains("line ")),
                "{name}: {said:?}"
            );
        }
    }

    #[test]
    fn other_encodings_are_read_and_bad_bytes_are_no_news() {
        let utf16 = |text: &str| -> Vec<u8> {
            let units = [0xfeff].into_iter().chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        let path = Path::new("a.rs");
        assert_eq!(
            rise(path, Some(&utf16("fn a() {}")), &utf16("fn b() {}")),
            None
        );
        assert!(rise(path, Some(&utf16("fn a() {}")), &utf16("fn b( {}")).is_some());
        assert_eq!(
            rise(path, Some(b"// \xe9\nfn a() {}"), b"// \xe9\nfn b() {}"),
            None
        );
    }

    #[test]
    fn what_is_long_or_takes_long_is_not_judged() {
        let long = "a".repeat(MAX_FILE_BYTES + 1);
        assert_eq!(rise(Path::new("a.rs"), None, long.as_bytes()), None);
        for name in ["a.rs", "a.py", "a.js", "a.go", "a.java", "a.c", "a.json"] {
            for piece in ["(", "[", "{", "<", "a(", "if x ", "\"", "{\"a\":"] {
                let text = piece.repeat(MAX_FILE_BYTES / piece.len());
                let start = Instant::now();
                let _ = rise(Path::new(name), Some(b""), text.as_bytes());
                assert!(
                    start.elapsed() < 100 * TIME,
                    "{name} {piece:?}: {:?}",
                    start.elapsed()
                );
            }
        }
    }

    proptest! {
        /// Proves FILE-23a: it never blocks, whatever the content.
        #[test]
        fn anything_is_taken(
            old in "[a-z{}()\\[\\];:,.\"'<>=\n é\u{0}-]{0,80}",
            new in proptest::collection::vec(any::<u8>(), 0..80),
            name in proptest::sample::select(vec!["a.rs", "a.py", "a.js", "a.go", "a.java", "a.c", "a.json"]),
        ) {
            let _ = rise(Path::new(name), Some(old.as_bytes()), &new);
            let mut mixed = old.clone().into_bytes();
            mixed.extend_from_slice(&new);
            let _ = rise(Path::new(name), Some(old.as_bytes()), &mixed);
            let _ = rise(Path::new(name), Some(&mixed), old.as_bytes());
        }
    }
}
