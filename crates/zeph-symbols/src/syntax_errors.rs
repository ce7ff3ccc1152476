//! The syntax errors that a change adds.
//!
//! The result is a hint. Grammars reject some code that compilers accept, so only an increase is reported.

use std::collections::HashSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use tree_sitter::Node;

use crate::language::Language;
use crate::parse::parse;

/// Longer files are not parsed.
const MAX_FILE_BYTES: usize = 1 << 20;
/// The time limit for parsing both contents.
const TIME: Duration = Duration::from_millis(50);
/// The number of errors at which a comparison is given up.
const MAX_COUNTED: usize = 1000;
/// Errors that a result names.
const MAX_NAMED: usize = 3;
/// Characters of a quotation.
const MAX_QUOTE_CHARS: usize = 60;

/// The name and the grammar of a language; `None` if its errors are not reliable.
fn grammar(language: Language) -> Option<(&'static str, tree_sitter::Language)> {
    Some(match language {
        Language::C => ("C", tree_sitter_c::LANGUAGE.into()),
        Language::Go => ("Go", tree_sitter_go::LANGUAGE.into()),
        Language::Java => ("Java", tree_sitter_java::LANGUAGE.into()),
        Language::JavaScript => ("JavaScript", tree_sitter_javascript::LANGUAGE.into()),
        Language::Json => ("JSON", tree_sitter_json::LANGUAGE.into()),
        Language::Python => ("Python", tree_sitter_python::LANGUAGE.into()),
        Language::Rust => ("Rust", tree_sitter_rust::LANGUAGE.into()),
        // Macros of C++ are errors to its grammar, and so are some casts of TypeScript.
        Language::CHeader | Language::Cpp | Language::TypeScript => return None,
    })
}

/// A place that does not parse.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// The missing token; `None` for unexpected text.
    missing: Option<String>,
    bytes: Range<usize>,
}

/// Describes the syntax errors that `new` has in addition to those of `old` (empty for a created file). Both are UTF-8,
/// possibly with invalid bytes.
///
/// `None` if there are not more errors than before, or if that is unknown: the language is not supported, or the
/// contents are too long.
#[must_use]
pub fn new_syntax_errors(language: Language, old: &[u8], new: &[u8]) -> Option<String> {
    let (name, grammar) = grammar(language)?;
    if old == new || old.len() > MAX_FILE_BYTES || new.len() > MAX_FILE_BYTES {
        return None;
    }
    let deadline = Instant::now() + TIME;
    let after = faults(&grammar, new, deadline)?;
    if after.is_empty() {
        return None;
    }
    let before = faults(&grammar, old, deadline)?;
    let more = after
        .len()
        .checked_sub(before.len())
        .filter(|more| *more > 0)?;
    let (start, tail) = common(old, new);
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
        .map(|fault| fault.describe(new, start))
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
    /// The fault as text. A fault that spans the start of the change is reported at the line of `change`: the parser
    /// notices the error only later, so the fault begins too early.
    fn describe(&self, text: &[u8], change: usize) -> String {
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

/// The places of `text` that do not parse; `None` if there are too many, or if it takes too long.
fn faults(language: &tree_sitter::Language, text: &[u8], deadline: Instant) -> Option<Vec<Fault>> {
    let tree = parse(language, text, || Instant::now() >= deadline)?;
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

    use std::path::Path;

    use super::*;

    fn errors(name: &str, old: &[u8], new: &[u8]) -> Option<String> {
        new_syntax_errors(Language::from_path(Path::new(name))?, old, new)
    }

    /// Proves FILE-23a.
    #[test]
    fn new_errors_are_reported_with_line_and_cause() {
        let check = |name: &str, old: Option<&str>, new: &str, expect: Option<&str>| {
            let said = errors(name, old.unwrap_or_default().as_bytes(), new.as_bytes());
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
        // Old errors are not reported, before and after the change.
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
            let said = errors(name, b"", text.as_bytes());
            assert!(
                said.as_ref().is_some_and(|said| said.contains("line ")),
                "{name}: {said:?}"
            );
        }
    }

    #[test]
    fn invalid_utf8_is_not_a_new_error() {
        assert_eq!(
            errors("a.rs", b"// \xe9\nfn a() {}", b"// \xe9\nfn b() {}"),
            None
        );
    }

    #[test]
    fn long_files_and_slow_comparisons_are_skipped() {
        let long = "a".repeat(MAX_FILE_BYTES + 1);
        assert_eq!(errors("a.rs", b"", long.as_bytes()), None);
        for name in ["a.rs", "a.py", "a.js", "a.go", "a.java", "a.c", "a.json"] {
            for piece in ["(", "[", "{", "<", "a(", "if x ", "\"", "{\"a\":"] {
                let text = piece.repeat(MAX_FILE_BYTES / piece.len());
                let start = Instant::now();
                let _ = errors(name, b"", text.as_bytes());
                assert!(
                    start.elapsed() < 100 * TIME,
                    "{name} {piece:?}: {:?}",
                    start.elapsed()
                );
            }
        }
    }

    proptest! {
        /// Proves FILE-23a: any content is accepted.
        #[test]
        fn any_content_is_accepted(
            old in "[a-z{}()\\[\\];:,.\"'<>=\n é\u{0}-]{0,80}",
            new in proptest::collection::vec(any::<u8>(), 0..80),
            name in proptest::sample::select(vec!["a.rs", "a.py", "a.js", "a.go", "a.java", "a.c", "a.json"]),
        ) {
            let _ = errors(name, old.as_bytes(), &new);
            let mut mixed = old.clone().into_bytes();
            mixed.extend_from_slice(&new);
            let _ = errors(name, old.as_bytes(), &mixed);
            let _ = errors(name, &mixed, old.as_bytes());
        }
    }
}
