//! Tests of the built-in filter rules with real output: `tests/fixtures/RULE/CASE.{raw,toml}`.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use zeph_filter::{FilterPipeline, FilteredOutput};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    command: String,
    exit_code: Option<i32>,
    /// Texts that the filtered output must contain.
    facts: Vec<String>,
    /// Texts that the filtered output must not contain.
    #[serde(default)]
    gone: Vec<String>,
    /// The maximum size of the filtered output in percent.
    max_percent: Option<u64>,
    /// The source of the output, if the real tool did not print it.
    #[allow(dead_code, reason = "for the reader of the file")]
    source: Option<String>,
}

/// The filtered output of a case whose raw text arrives in chunks of `piece` bytes.
fn filtered(case: &Case, raw: &[u8], piece: usize) -> FilteredOutput {
    let text = String::from_utf8_lossy(raw);
    let mut run = FilterPipeline::default().start(&case.command, 50_000);
    let mut rest = &*text;
    while !rest.is_empty() {
        let end = rest.floor_char_boundary(piece.max(4).min(rest.len()));
        run.push(&rest[..end]);
        rest = &rest[end..];
    }
    run.finish(case.exit_code)
}

fn cases(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            cases(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "raw") {
            found.push(path);
        }
    }
}

/// Checks one case and returns its faults.
fn check(path: &Path, show: bool) -> (String, usize, usize) {
    let raw = std::fs::read(path).unwrap();
    let case = std::fs::read_to_string(path.with_extension("toml")).unwrap();
    let case: Case = toml::from_str(&case).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let result = filtered(&case, &raw, usize::MAX);
    if show {
        std::fs::write(path.with_extension("filtered"), &result.text).unwrap();
    }
    let mut wrong = String::new();
    for fact in case
        .facts
        .iter()
        .filter(|fact| !result.text.contains(fact.as_str()))
    {
        let _ = writeln!(wrong, "  lost: {fact}");
    }
    for noise in case
        .gone
        .iter()
        .filter(|noise| result.text.contains(noise.as_str()))
    {
        let _ = writeln!(wrong, "  still there: {noise}");
    }
    if result.text.len() > raw.len() {
        let _ = writeln!(wrong, "  longer than the raw text");
    }
    let percent = (result.text.len() * 100).div_ceil(raw.len().max(1)) as u64;
    if case.max_percent.is_some_and(|most| percent > most) {
        let _ = writeln!(wrong, "  {percent} % are left");
    }
    if result != filtered(&case, &raw, 7) {
        let _ = writeln!(wrong, "  depends on how it is cut into pieces");
    }
    (wrong, raw.len(), result.text.len())
}

/// Proves OUT-6, OUT-7: with `FILTER_FIXTURES=directory` it checks the cases of that directory instead,
/// prints the filtered output of each and writes it next to them.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "other cases are checked on demand"
)]
fn facts_are_retained_and_noise_is_removed() {
    let elsewhere = std::env::var_os("FILTER_FIXTURES").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths = Vec::new();
    cases(elsewhere.as_ref().unwrap_or(&own), &mut paths);
    paths.sort();
    let (mut before, mut after, mut wrong) = (0, 0, String::new());
    for path in &paths {
        let (errors, raw, left) = check(path, elsewhere.is_some());
        (before, after) = (before + raw, after + left);
        if elsewhere.is_some() {
            println!(
                "{:>9} -> {:>8} {:>3} % {}",
                raw,
                left,
                left * 100 / raw.max(1),
                path.display()
            );
        }
        if !errors.is_empty() {
            let _ = write!(wrong, "{}\n{errors}", path.display());
        }
    }
    println!("{} cases, {before} -> {after} bytes", paths.len());
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Proves OUT-5: the tests in the built-in rules pass.
#[test]
fn tests_of_built_in_rules_pass() {
    let filters = FilterPipeline::default();
    let mut wrong = String::new();
    for rule in filters.book().rules() {
        for test in &rule.tests {
            let mut run = filters.start(&test.command, 50_000);
            run.push(&test.input);
            let result = run.finish(Some(test.exit_code));
            if result.rule.as_deref() != Some(&rule.name) {
                let _ = writeln!(wrong, "{}: its test is for {:?}", rule.name, result.rule);
            }
            if result.text.trim() != test.expected.trim() {
                let _ = writeln!(wrong, "{}:\n{}\n", rule.name, result.text);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
