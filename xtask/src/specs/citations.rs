//! Citations: doc comments on tests that name the requirements they prove.
//!
//! The word `Proves` starts a line of the comment. IDs follow, separated by commas, spaces or `and`, on one
//! or more lines, up to a full stop, a colon or another word. A test attribute is between the comment and the
//! function.

use super::{is_id, resembles_id};

/// A test that cites a requirement.
#[derive(Debug, PartialEq)]
pub(super) struct Citation {
    pub(super) id: String,
    /// `file:line` of the comment.
    pub(super) at: String,
    /// Name of the test function.
    pub(super) test: String,
}

/// The maximum number of lines between the comment and its function.
const REACH: usize = 12;

/// The citations of a source file, and the findings about invalid citations.
pub(super) fn parse(path: &str, text: &str) -> (Vec<Citation>, Vec<String>) {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let mut citations = Vec::new();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(first) = cited(line) else { continue };
        let at = format!("{path}:{}", index + 1);
        let (ids, malformed) = ids_from(first, &lines[index + 1..]);
        if let Some(word) = malformed {
            findings.push(format!("{at}: `{word}` is no requirement ID"));
        }
        if ids.is_empty() {
            continue;
        }
        let test = if line.starts_with("///") {
            test_below(&lines[index + 1..])
        } else {
            None
        };
        match test {
            Some(test) => citations.extend(ids.into_iter().map(|id| Citation {
                id,
                at: at.clone(),
                test: test.to_owned(),
            })),
            None => findings.push(format!(
                "{at}: {} cited by what is no test; put `///` directly above the test attribute",
                ids.join(", ")
            )),
        }
    }
    (citations, findings)
}

/// The text after `Proves`, if a comment line starts with it.
fn cited(line: &str) -> Option<&str> {
    let comment = line.strip_prefix("//")?;
    let comment = comment.strip_prefix(['/', '!']).unwrap_or(comment);
    comment.trim_start().strip_prefix("Proves ")
}

/// The IDs from `first` on, and a word that resembles an ID but is not one.
fn ids_from(first: &str, below: &[&str]) -> (Vec<String>, Option<String>) {
    let more = below.iter().map_while(|line| line.strip_prefix("///"));
    let mut ids = Vec::new();
    for word in std::iter::once(first)
        .chain(more)
        .flat_map(str::split_whitespace)
    {
        let bare = word.trim_end_matches([',', '.', ':', ';']);
        if is_id(bare) {
            ids.push(bare.to_owned());
        } else if bare != "and" {
            return (ids, resembles_id(bare).then(|| bare.to_owned()));
        }
        if word.ends_with(['.', ':', ';']) {
            break;
        }
    }
    (ids, None)
}

/// The name of the test function after the comments and attributes at the start of the lines.
fn test_below<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut is_test = false;
    for line in lines.iter().take(REACH) {
        if let Some(name) = function_name(line) {
            return is_test.then_some(name);
        }
        is_test |= is_test_attribute(line);
        // An item of another kind ends the search.
        let item = [
            "struct ", "enum ", "mod ", "impl ", "const ", "use ", "let ", "}",
        ];
        if item.iter().any(|item| line.starts_with(item)) {
            return None;
        }
    }
    None
}

fn is_test_attribute(line: &str) -> bool {
    let Some(attribute) = line.strip_prefix("#[") else {
        return false;
    };
    let end = attribute.find(['(', ']']).unwrap_or(attribute.len());
    let name = attribute[..end].trim();
    name == "test" || name.ends_with("::test")
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line;
    for modifier in ["pub(crate) ", "pub ", "async "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let name = &name[..end.unwrap_or(name.len())];
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], expect: &[(&str, &str)], findings: usize) {
        let (citations, wrong) = parse("a.rs", &lines.join("\n"));
        let found: Vec<_> = citations
            .iter()
            .map(|citation| (citation.id.as_str(), citation.test.as_str()))
            .collect();
        assert_eq!(found, expect, "{lines:?}");
        assert_eq!(wrong.len(), findings, "{lines:?}: {wrong:?}");
    }

    #[test]
    fn all_kinds_of_tests_cite() {
        check(
            &["/// Proves EXE-1.", "#[test]", "fn a() {"],
            &[("EXE-1", "a")],
            0,
        );
        check(
            &[
                "    /// Proves EXE-1.",
                "    #[tokio::test]",
                "    async fn b_2() {",
            ],
            &[("EXE-1", "b_2")],
            0,
        );
        check(
            &[
                "/// Proves EXE-1.",
                "#[tokio::test(flavor = \"multi_thread\")]",
                "async fn c() {",
            ],
            &[("EXE-1", "c")],
            0,
        );
        check(
            &[
                "proptest! {",
                "/// Proves EXE-1.",
                "#[test]",
                "fn d(x in 0..9) {",
            ],
            &[("EXE-1", "d")],
            0,
        );
        check(
            &[
                "/// About.",
                "/// Proves EXE-1.",
                "/// More.",
                "#[cfg(unix)]",
                "#[test]",
                "fn e() {",
            ],
            &[("EXE-1", "e")],
            0,
        );
    }

    #[test]
    fn lists_of_ids_are_parsed() {
        let ids = |text: &str| ids_from(text, &[]).0.join(" ");
        assert_eq!(ids("EXE-1, EXE-2 and CLI-2a."), "EXE-1 EXE-2 CLI-2a");
        assert_eq!(ids("EXE-1: as EXE-2 says"), "EXE-1");
        assert_eq!(ids("EXE-1 for EXE-2"), "EXE-1");
        assert_eq!(ids("EXE-1"), "EXE-1");
        assert_eq!(ids("that it works"), "");
        assert_eq!(ids(""), "");
        check(
            &[
                "/// Proves EXE-1,",
                "/// EXE-2.",
                "/// EXE-3 is another matter.",
                "#[test]",
                "fn a() {",
            ],
            &[("EXE-1", "a"), ("EXE-2", "a")],
            0,
        );
    }

    #[test]
    fn malformed_ids_are_reported() {
        check(&["/// Proves EXE1.", "#[test]", "fn a() {"], &[], 1);
        check(
            &["/// Proves EXE-1, EXE-2..EXE-4.", "#[test]", "fn a() {"],
            &[("EXE-1", "a")],
            1,
        );
        check(&["/// Proves that a < b.", "#[test]", "fn a() {"], &[], 0);
    }

    #[test]
    fn citation_without_a_test_is_reported() {
        check(&["/// Proves EXE-1.", "fn helper() {"], &[], 1);
        check(&["// Proves EXE-1.", "#[test]", "fn a() {"], &[], 1);
        check(&["//! Proves EXE-1.", "", "#[test]", "fn a() {"], &[], 1);
        check(&["/// Proves EXE-1."], &[], 1);
        check(
            &["/// Proves EXE-1.", "struct S;", "#[test]", "fn a() {"],
            &[],
            1,
        );
        check(&["/// Proves EXE-1.", "#[testing]", "fn a() {"], &[], 1);
        let mut far = vec!["/// Proves EXE-1."];
        far.extend(["/// Text."; REACH]);
        far.extend(["#[test]", "fn a() {"]);
        check(&far, &[], 1);
    }

    #[test]
    fn other_text_is_not_a_citation() {
        check(&["let s = \"/// Proves EXE-1.\";"], &[], 0);
        check(&["/// It Proves EXE-1.", "#[test]", "fn a() {"], &[], 0);
        check(&[""], &[], 0);
        check(&[], &[], 0);
    }
}
