//! The vocabulary of `docs/STYLE.md`: denied names and phrases, and the form of commit subjects.
//!
//! `xtask/vocabulary.txt` lists how many denied terms each file may still have.
//! `cargo xtask tidy --lower-counts` writes the counts again if their sum does not rise.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

use super::source::non_test_lines;
use super::test_names;
use crate::project::{Project, TextFile};

/// The path of the counts, relative to the root.
const COUNTS: &str = "xtask/vocabulary.txt";
/// Files that define or quote denied terms. The entries about problems quote messages.
const EXEMPT: &[&str] = &[
    "docs/STYLE.md",
    "docs/troubleshooting.md",
    "xtask/src/tidy/vocabulary.rs",
    COUNTS,
];

/// Prefixes of constants that are limits without the standard prefix `MAX_…` or `MIN_…`.
const LIMITS: &[&str] = &[
    "MOST", "LONGEST", "DEEPEST", "LARGEST", "SHORTEST", "LEAST", "FURTHEST", "WIDEST",
];

/// Phrases that a standard term replaces. `docs/STYLE.md` lists the terms.
const PHRASES: &[&str] = &[
    "what is",
    "what was",
    "what it",
    "what they",
    "what a",
    "what the",
    "stands",
    "stood",
    "told",
    "tells",
    "is no",
    "is none",
    "whoever",
    "whatever",
    "wherever",
    "a person",
    "persons",
    "nobody",
    "somebody",
    "goes on",
    "go on",
    "looked for",
    "looked at",
    "lies",
    "beside",
    "of which",
    "of whom",
    "agreed to",
    "comes of",
    "came of",
    "anew",
    "leads to",
    "mend",
    "mended",
    "but for",
    "hand on",
    "hand over",
    "handed on",
    "in the place of",
    "no more",
    "any more",
    "taken back",
    "takes back",
    "put right",
    "machine form",
    "one after the other",
    "passed over",
    "rests on",
    "held against",
    "laid over",
    "see the module",
];

/// Phrases that no text of the program has: they are not plain technical English.
const TEXT_PHRASES: &[&str] = &[
    "a person",
    "agreed to",
    "broke off",
    "cannot be kept",
    "cannot be known",
    "could not be kept",
    "for good",
    "goes on",
    "handed on",
    "is asked",
    "is told",
    "leads out",
    "mended",
    "mends",
    "nobody",
    "passed over",
    "passes over",
    "shows when it",
    "somebody",
    "summed up",
    "taken back",
    "this very",
    "turns out",
    "whatever you",
    "wherever",
    "whoever",
];

/// The maximum length of a commit subject in characters.
const MAX_SUBJECT: usize = 72;
/// The number of checked commits.
const CHECKED_COMMITS: &str = "10";

/// Files with more denied terms than allowed, and commit subjects of another form.
pub(super) fn findings(project: &Project, files: &[TextFile]) -> Result<Vec<String>> {
    let allowed = allowed(project)?;
    let mut findings = Vec::new();
    for (path, found) in counts(files) {
        let may = allowed.get(&path).copied().unwrap_or(0);
        if found.len() > may {
            let (line, term) = &found[0];
            findings.push(format!(
                "{path}: {} denied terms, {may} are allowed; docs/STYLE.md has the terms to use \
                 (line {line}: `{term}`)",
                found.len()
            ));
        }
    }
    findings.extend(subjects(project).iter().filter_map(|text| subject(text)));
    Ok(findings)
}

/// Writes the lower counts. Files may have moved, but the sum must not rise.
///
/// # Errors
/// If the sum would rise, or a file cannot be read or written.
pub(super) fn lower_counts(project: &Project, files: &[TextFile]) -> Result<()> {
    let allowed: usize = allowed(project)?.values().sum();
    let mut text = String::new();
    let mut total = 0;
    for (path, found) in counts(files) {
        if !found.is_empty() {
            let _ = writeln!(text, "{} {path}", found.len());
        }
        total += found.len();
    }
    if total > allowed {
        bail!("the files have {total} denied terms, {allowed} are allowed");
    }
    std::fs::write(project.root.join(COUNTS), text).context(COUNTS)?;
    println!("{total} denied terms are left");
    Ok(())
}

/// The number of denied terms that each file may have.
fn allowed(project: &Project) -> Result<BTreeMap<String, usize>> {
    let text = match std::fs::read_to_string(project.root.join(COUNTS)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).context(COUNTS),
    };
    let entry = |line: &str| {
        let (count, path) = line.split_once(' ').context("`COUNT PATH` expected")?;
        anyhow::Ok((path.to_owned(), count.parse()?))
    };
    let entries = text
        .lines()
        .map(|line| entry(line).context(line.to_owned()));
    entries.collect::<Result<_>>().context(COUNTS)
}

/// The denied terms of each file, with their lines.
fn counts(files: &[TextFile]) -> BTreeMap<String, Vec<(usize, &'static str)>> {
    let checked = files
        .iter()
        .filter(|file| !EXEMPT.contains(&file.path.as_str()));
    checked
        .map(|file| (file.path.clone(), terms(&file.path, &file.text)))
        .collect()
}

/// The denied terms of one file with their lines, from 1: phrases in comments of Rust and in prose of Markdown, and
/// names of limits and tests in Rust.
fn terms(path: &str, text: &str) -> Vec<(usize, &'static str)> {
    let is_rust = path.ends_with(".rs");
    if !is_rust && !path.ends_with(".md") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let program_lines = match path.starts_with("crates/") && !path.contains("test") {
        true => non_test_lines(text),
        false => 0,
    };
    for (at, line) in text.lines().enumerate() {
        let prose = match is_rust {
            true => line.trim_start().strip_prefix("//"),
            false => Some(line),
        };
        if let Some(prose) = prose {
            let prose = prose.to_lowercase();
            for phrase in PHRASES {
                let count = occurrences(&prose, phrase);
                found.extend(std::iter::repeat_n((at + 1, *phrase), count));
            }
        } else {
            found.extend(limit(line).map(|name| (at + 1, name)));
            if at < program_lines {
                let words = literal(line).to_lowercase();
                let denied = TEXT_PHRASES.iter();
                let denied = denied.filter(|phrase| occurrences(&words, phrase) > 0);
                found.extend(denied.map(|phrase| (at + 1, *phrase)));
            }
        }
    }
    if is_rust {
        found.extend(test_names::terms(text));
    }
    found
}

/// The part of a line of code that may be in a string literal: from the first quote on, or the whole line if the literal
/// continues on the next one.
fn literal(line: &str) -> &str {
    match line.split_once('"') {
        Some((_, rest)) => rest,
        None if line.ends_with('\\') => line,
        None => "",
    }
}

/// The denied beginning of the constant that a line defines.
fn limit(line: &str) -> Option<&'static str> {
    let (_, rest) = line.split_once("const ")?;
    LIMITS.iter().copied().find(|begin| {
        let after = rest.strip_prefix(begin);
        after.is_some_and(|after| after.starts_with(['_', ':']))
    })
}

/// Occurrences of a phrase as whole words.
fn occurrences(text: &str, phrase: &str) -> usize {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'');
    let is_whole = |at: usize| {
        !text[..at].ends_with(is_inner) && !text[at + phrase.len()..].starts_with(is_inner)
    };
    text.match_indices(phrase)
        .filter(|(at, _)| is_whole(*at))
        .count()
}

/// The subjects of the last commits; empty outside a repository.
fn subjects(project: &Project) -> Vec<String> {
    let log = project
        .sh
        .cmd("git")
        .args(["log", "--no-merges", "--format=%s", "-n"]);
    let log = log.arg(CHECKED_COMMITS).quiet().ignore_stderr().read();
    log.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The fault of a commit subject. Its form is `crate: imperative verb …`.
fn subject(text: &str) -> Option<String> {
    let length = text.chars().count();
    if length > MAX_SUBJECT {
        return Some(format!(
            "commit `{text}`: the subject has {length} characters, {MAX_SUBJECT} is the limit"
        ));
    }
    let is_area = |area: &str| {
        let is_name = |name: &str| {
            let mut chars = name.chars();
            !name.is_empty()
                && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        area.split(", ").all(is_name)
    };
    let fits = text.split_once(": ").is_some_and(|(area, rest)| {
        is_area(area) && rest.starts_with(|c: char| c.is_ascii_lowercase())
    });
    (!fits).then(|| format!("commit `{text}`: the subject is not of the form `crate: verb …`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_comments_and_names_are_found() {
        let check = |path: &str, text: &str, expect: &[&str]| {
            let found: Vec<_> = terms(path, text)
                .into_iter()
                .map(|(_, term)| term)
                .collect();
            assert_eq!(found, expect, "{text}");
        };
        check("a.rs", "/// The file that is told.", &["told"]);
        check(
            "a.rs",
            "    // What is read, and what is not.",
            &["what is", "what is"],
        );
        check("a.rs", "let told = \"what is read\";", &[]);
        check("crates/a/src/a.rs", "    \"Nobody is here\"", &["nobody"]);
        check("crates/a/src/a_tests.rs", "    \"Nobody is here\"", &[]);
        check("crates/a/src/a.rs", "    says nobody \\", &["nobody"]);
        check("crates/a/src/a.rs", "    nobody(\"a\");", &[]);
        let inline = "#[cfg(test)]\nmod tests {\n    \"nobody\"\n}";
        check("crates/a/src/a.rs", inline, &[]);
        check("a.rs", "const MOST_LINES: usize = 1;", &["MOST"]);
        check("a.rs", "pub(crate) const LEAST: u8 = 1;", &["LEAST"]);
        check("a.rs", "const MOSTLY: u8 = 1;", &[]);
        check("a.rs", "const MAX_LINES: usize = 1;", &[]);
        check("a.md", "It stands there; it understands.", &["stands"]);
        check("a.md", "There is nothing.", &[]);
        check("a.toml", "# what is read", &[]);
    }

    #[test]
    fn subject_has_a_crate_and_a_verb() {
        let check = |text: &str, is_valid: bool| {
            assert_eq!(subject(text).is_none(), is_valid, "{text}");
        };
        check("tools: name the limit", true);
        check("tools, llm: name the limit", true);
        check("zeph-bash: parse loops", true);
        check("Name the limit", false);
        check("tools: Name the limit", false);
        check("tools:name the limit", false);
        check("Tools: name the limit", false);
        check(&format!("tools: {}", "a".repeat(65)), true);
        check(&format!("tools: {}", "a".repeat(66)), false);
    }
}
