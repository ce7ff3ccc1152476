//! Rust sources: each module starts with `//!`, and the size of files is limited.

/// The number of non-test lines that results in a warning.
const WARN: usize = 400;
/// The maximum number of non-test lines of a file.
const LIMIT: usize = 500;

/// A missing module header: `//!` must be the first line except for inner attributes.
pub(super) fn header(path: &str, text: &str) -> Option<String> {
    let mut open = 0_i64;
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            continue;
        }
        if open > 0 || line.starts_with("#![") {
            // An attribute may span lines. Brackets in its strings are rare enough to ignore.
            open += line.matches('[').count() as i64 - line.matches(']').count() as i64;
            continue;
        }
        let documented = line
            .strip_prefix("//!")
            .is_some_and(|text| !text.trim().is_empty());
        return (!documented)
            .then(|| format!("{path}: the module lacks a `//!` line that says what it is"));
    }
    Some(format!("{path}: nothing but attributes and blank lines"))
}

/// The comparison of a file with the size limits.
#[derive(Debug, PartialEq)]
pub(super) enum Size {
    Fits,
    Large(String),
    TooLarge(String),
}

pub(super) fn size(path: &str, text: &str) -> Size {
    let lines = if is_test_file(path) {
        0
    } else {
        non_test_lines(text)
    };
    if lines > LIMIT {
        Size::TooLarge(format!(
            "{path}: {lines} non-test lines, the limit is {LIMIT}; give a part of it its own file"
        ))
    } else if lines > WARN {
        Size::Large(format!(
            "{path}: {lines} non-test lines; {LIMIT} is the limit"
        ))
    } else {
        Size::Fits
    }
}

/// Whether a file is `tests.rs` or in a directory `tests`.
pub(super) fn is_test_file(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    parts.next() == Some("tests.rs") || parts.any(|part| part == "tests")
}

/// The number of lines before the inline test module, which is an unindented `#[cfg(test)]` before a `mod`
/// with a body.
pub(super) fn non_test_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test,") {
            continue;
        }
        let item = lines[at + 1..]
            .iter()
            .find(|line| !line.starts_with("#[") && !line.starts_with("//"));
        if item.is_some_and(|item| item.contains("mod ") && item.trim_end().ends_with('{')) {
            return at;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_headers_are_required() {
        let check = |text: &str, good: bool| {
            assert_eq!(header("a.rs", text).is_none(), good, "{text:?}");
        };
        check("//! What it is.\n", true);
        check("\n\n//! What it is.\n", true);
        check("#![deny(missing_docs)]\n//! What it is.\n", true);
        check("#![allow(\n    a,\n    b\n)]\n\n//! What it is.\n", true);
        check(
            "#![doc = include_str!(\"../README.md\")]\n//! # Map\n",
            true,
        );
        check("//!\n//! late", false);
        check("// a comment\n//! late", false);
        check("/// outer\nfn f() {}", false);
        check("use a;\n//! late", false);
        check("#![deny(missing_docs)]", false);
        check("", false);
    }

    #[test]
    fn test_modules_do_not_count() {
        let check = |text: &str, expect: usize| {
            assert_eq!(non_test_lines(text), expect, "{text:?}");
        };
        check("a\nb\n", 2);
        check("a\n#[cfg(test)]\nmod tests {\n}\n", 1);
        check("a\n#[cfg(test)]\n#[allow(x)]\n// why\nmod tests {\n}\n", 1);
        check("a\n#[cfg(all(test, unix))]\npub(crate) mod tests {\n}\n", 1);
        // A test module in its own file does not end the count.
        check("a\n#[cfg(test)]\nmod tests;\nb\n", 4);
        // A helper for tests does not end it either.
        check("a\n#[cfg(test)]\nfn f() {\n}\nb\n", 5);
        check("a\n    #[cfg(test)]\n    mod inner {\n", 3);
        check("a\n#[cfg(test)]", 2);
        check("", 0);
    }

    #[test]
    fn file_sizes_are_limited() {
        let lines = |n: usize| "x\n".repeat(n);
        assert_eq!(size("src/a.rs", &lines(WARN)), Size::Fits);
        assert!(matches!(size("src/a.rs", &lines(WARN + 1)), Size::Large(_)));
        assert!(matches!(size("src/a.rs", &lines(LIMIT)), Size::Large(_)));
        assert!(matches!(
            size("src/a.rs", &lines(LIMIT + 1)),
            Size::TooLarge(_)
        ));
        assert_eq!(size("tests/it/a.rs", &lines(LIMIT + 1)), Size::Fits);
        assert_eq!(size("src/a/tests.rs", &lines(LIMIT + 1)), Size::Fits);
        let tested = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            lines(9),
            lines(LIMIT)
        );
        assert_eq!(size("src/a.rs", &tested), Size::Fits);
    }
}
