//! Recall and false positives, by kind: `cargo test -p zeph-tools --test secrets -- --nocapture`
//! prints the tables of `docs/secrets.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_secrets::SecurityPatterns;

use crate::generate::{Sample, samples};
use crate::negatives;

/// The number of measured sets.
const SEEDS: u64 = 4;

/// Whether redaction removed all values.
fn is_gone(secrets: &Arc<SecurityPatterns>, sample: &Sample) -> bool {
    let redacted = secrets.redact(&sample.text).text;
    sample
        .values
        .iter()
        .all(|value| !redacted.contains(value.as_str()))
}

fn is_named(secrets: &Arc<SecurityPatterns>, sample: &Sample) -> bool {
    let kinds = secrets.redact(&sample.text).kinds;
    kinds.iter().any(|kind| secrets.name(kind) == sample.kind)
}

/// Proves OUT-20, OUT-21, OUT-22: redaction removes 98 % of the values of the labelled set, and 95 % of each
/// kind.
#[test]
fn recall_by_kind_is_high() {
    let secrets = Arc::new(SecurityPatterns::default());
    let mut by_kind: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut missed = Vec::new();
    for seed in 0..SEEDS {
        for sample in samples(seed) {
            let counts = by_kind.entry(sample.kind).or_default();
            counts[0] += 1;
            if is_gone(&secrets, &sample) {
                counts[1] += 1;
            } else {
                missed.push(format!(
                    "{} in {}: {:?}",
                    sample.kind,
                    sample.context,
                    sample.text.chars().take(160).collect::<String>()
                ));
            }
            counts[2] += usize::from(is_named(&secrets, &sample));
        }
    }
    println!("| kind | samples | recall | named so |\n|---|---|---|---|");
    let mut all = [0; 3];
    for (kind, counts) in &by_kind {
        let percent = |count: usize| 100.0 * count as f64 / counts[0] as f64;
        println!(
            "| `{kind}` | {} | {:.1} % | {:.1} % |",
            counts[0],
            percent(counts[1]),
            percent(counts[2])
        );
        for (sum, count) in all.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    println!(
        "| all | {} | {:.1} % | {:.1} % |",
        all[0],
        100.0 * all[1] as f64 / all[0] as f64,
        100.0 * all[2] as f64 / all[0] as f64
    );
    let missed: String = missed
        .iter()
        .take(40)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(by_kind.len(), 16, "a kind has no samples");
    for (kind, counts) in &by_kind {
        assert!(
            counts[1] * 100 >= counts[0] * 95,
            "{kind}: {} of {}\n{missed}",
            counts[1],
            counts[0]
        );
        assert!(
            counts[2] * 100 >= counts[0] * 80,
            "{kind} is called otherwise: {} of {}",
            counts[2],
            counts[0]
        );
    }
    assert!(
        all[1] * 100 >= all[0] * 98,
        "{} of {}\n{missed}",
        all[1],
        all[0]
    );
}

/// The lines of a text that redaction changes.
fn false_positives<'t>(secrets: &Arc<SecurityPatterns>, text: &'t str) -> Vec<&'t str> {
    if secrets.redact(text).kinds.values().is_empty() {
        return Vec::new();
    }
    text.lines()
        .filter(|line| !secrets.redact(line).kinds.values().is_empty())
        .collect()
}

/// The text files below a directory.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if path.is_dir() {
                if !name.starts_with('.') && !matches!(&*name, "target" | "corpus") {
                    directories.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Proves OUT-22: redaction changes at most one in 10,000 lines of texts without secrets. It changes no line
/// of generated texts, and hardly any of this project's sources, whose tests contain passwords and tokens.
///
/// `ZEPH_SECRETS_CORPUS=DIRECTORY` measures the files below it too.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "what else is measured is said in the environment"
)]
fn false_positives_by_text_are_few() {
    let secrets = Arc::new(SecurityPatterns::default());
    println!("| text | lines | false positives |\n|---|---|---|");
    let mut lines = 0;
    let mut wrong: Vec<String> = Vec::new();
    for (name, text) in negatives::texts(7) {
        let found = false_positives(&secrets, &text);
        lines += text.lines().count();
        println!("| {name} | {} | {} |", text.lines().count(), found.len());
        wrong.extend(
            found
                .iter()
                .map(|line| format!("{name}: {}", line.chars().take(200).collect::<String>())),
        );
    }
    assert!(lines >= 30_000);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let mut roots = vec![("this project", own.to_owned())];
    if let Some(corpus) = std::env::var_os("ZEPH_SECRETS_CORPUS") {
        roots.push(("sources of crates", corpus.into()));
    }
    for (name, root) in roots {
        let (mut lines, mut bytes) = (0, 0);
        let mut wrong = Vec::new();
        for path in files(&root) {
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            lines += text.lines().count();
            bytes += text.len();
            let found = false_positives(&secrets, &text);
            wrong.extend(found.iter().map(|line| {
                format!(
                    "{}: {}",
                    path.display(),
                    line.trim().chars().take(160).collect::<String>()
                )
            }));
        }
        println!(
            "| {name} ({} MB) | {lines} | {} |",
            bytes / 1_000_000,
            wrong.len()
        );
        assert!(lines > 10_000, "{}", root.display());
        assert!(
            wrong.len() * 10_000 <= lines,
            "{} in {lines} lines:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
}
