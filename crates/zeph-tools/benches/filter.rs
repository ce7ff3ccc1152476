//! How fast output is filtered: `cargo bench -p zeph-tools --bench filter`.
//!
//! `rules` filters the fixtures of each built-in rule, repeated to some megabytes, as a command would
//! print them; `no_rule` text that no rule is for; `sanitize` what a progress bar prints. Targets: 150 MB/s
//! for any rule, 500 MB/s where there is none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::path::Path;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use zeph_tools::filter::Filters;

/// Bytes of an output.
const BYTES: usize = 8 * 1024 * 1024;
/// What one read of a pipe brings at most.
const PIECE: usize = 64 * 1024;
/// The characters that are read.
const MAX_CHARS: usize = 50_000;

fn main() {
    divan::main();
}

/// The rules that have fixtures.
fn names() -> Vec<String> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/filter/rules");
    let mut names: Vec<String> = std::fs::read_dir(rules)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The command of a rule's first fixture, and the outputs of all of them, again and again.
fn printed(rule: &str) -> (String, String) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/filter/rules")
        .join(rule);
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "raw"))
        .collect();
    paths.sort();
    let case = std::fs::read_to_string(paths[0].with_extension("toml")).unwrap();
    let case: toml::Table = toml::from_str(&case).unwrap();
    let command = case["command"].as_str().unwrap().to_owned();
    let outputs = paths.iter().map(|path| std::fs::read(path).unwrap());
    let outputs: Vec<String> = outputs
        .map(|raw| String::from_utf8_lossy(&raw).into_owned())
        .collect();
    let once: String = outputs.concat();
    (command, once.repeat(BYTES / once.len() + 1))
}

fn filter(bencher: Bencher<'_, '_>, command: &str, text: &str) {
    let filters = Filters::default();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| {
            let mut run = filters.start(command, MAX_CHARS);
            let mut rest = black_box(text);
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
                run.push(piece);
                rest = more;
            }
            run.finish(Some(0))
        });
}

#[divan::bench(args = names(), sample_count = 5, sample_size = 1)]
fn rules(bencher: Bencher<'_, '_>, rule: &str) {
    let (command, text) = printed(rule);
    filter(bencher, &command, &text);
}

#[divan::bench(args = ["log", "numbers", "source"], sample_count = 5, sample_size = 1)]
fn no_rule(bencher: Bencher<'_, '_>, kind: &str) {
    let mut text = String::new();
    for number in 0_u64.. {
        if text.len() > BYTES {
            break;
        }
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let _ = match kind {
            "log" => writeln!(
                text,
                "2026-11-02T10:{:02}:{:02}.{:03}Z INFO pool::worker: request {hash:016x} took {} ms, {} bytes",
                number / 60 % 60,
                number % 60,
                number % 1000,
                hash % 977,
                hash % 65_537
            ),
            "numbers" => writeln!(text, "{hash}"),
            _ => writeln!(
                text,
                "    let {} = parse(&input[{}..], &options)?;",
                ["head", "body", "tail"][(number % 3) as usize],
                number % 70
            ),
        };
    }
    filter(bencher, "unheard-of --option", &text);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn sanitize(bencher: Bencher<'_, '_>) {
    let mut text = String::new();
    for number in 0.. {
        if text.len() > BYTES {
            break;
        }
        let _ = write!(
            text,
            "\r\x1b[K\x1b[32m{:>3}%\x1b[0m |{:<40}| {number}/1000",
            number % 101,
            "█".repeat(number % 41)
        );
        if number % 200 == 199 {
            text.push('\n');
        }
    }
    filter(bencher, "unheard-of --option", &text);
}
