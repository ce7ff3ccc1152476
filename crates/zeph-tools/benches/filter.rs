//! Throughput of output filters: `cargo bench -p zeph-tools --bench filter`.
//!
//! `rules` filters the fixtures of each built-in rule, repeated to some megabytes. `end_to_end` also scans
//! for secrets; `small` has 50 kB of each. `no_rule` has text without a matching rule; `sanitize` has a
//! progress bar and coloured text. Targets: 150 MB/s for any rule, 500 MB/s without one, 5 ms for 50 kB.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use zeph_tools::filter::FilterPipeline;
use zeph_tools::secrets::{SecurityPatterns, StreamRedactor};

/// The size of an output in bytes.
const BYTES: usize = 8 * 1024 * 1024;
/// The maximum size of a pipe read.
const PIECE: usize = 64 * 1024;
/// The maximum number of characters for the model.
const MAX_CHARS: usize = 50_000;

fn main() {
    divan::main();
}

/// The rules that have fixtures.
fn names() -> Vec<String> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../zeph-filter/tests/fixtures");
    let mut names: Vec<String> = std::fs::read_dir(rules)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The command of a rule's first fixture, and the repeated outputs of all its fixtures with about `bytes`
/// bytes.
fn printed(rule: &str, bytes: usize) -> (String, String) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../zeph-filter/tests/fixtures")
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
    let mut text = once.repeat(bytes / once.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    (command, text)
}

/// The chunks in which a text arrives.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

fn filter(bencher: Bencher<'_, '_>, command: &str, text: &str) {
    let filters = FilterPipeline::default();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| {
            let mut run = filters.start(command, MAX_CHARS);
            pieces(black_box(text)).for_each(|piece| run.push(piece));
            run.finish(Some(0))
        });
}

#[divan::bench(args = names(), sample_count = 5, sample_size = 1)]
fn rules(bencher: Bencher<'_, '_>, rule: &str) {
    let (command, text) = printed(rule, BYTES);
    filter(bencher, &command, &text);
}

#[divan::bench(args = names(), sample_count = 100, sample_size = 1)]
fn small(bencher: Bencher<'_, '_>, rule: &str) {
    let (command, text) = printed(rule, 50_000);
    filter(bencher, &command, &text);
}

#[divan::bench(args = names(), sample_count = 5, sample_size = 1)]
fn end_to_end(bencher: Bencher<'_, '_>, rule: &str) {
    let (command, text) = printed(rule, BYTES);
    let filters = FilterPipeline::default();
    let secrets = Arc::new(SecurityPatterns::default());
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| {
            let mut redactor = StreamRedactor::new(Arc::clone(&secrets));
            let mut run = filters.start(&command, MAX_CHARS);
            pieces(black_box(&text)).for_each(|piece| run.push(&redactor.push(piece)));
            run.push(&redactor.finish());
            run.finish(Some(0))
        });
}

/// The repeated sources of this crate.
fn real() -> String {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => {
                    paths.push(path);
                }
                false => {}
            }
        }
    }
    paths.sort();
    let once: String = paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    once.repeat(BYTES / once.len() + 1)
}

/// Lines of twelve words from the sources, in an order that does not repeat.
fn words() -> String {
    let real = real();
    let mut words: Vec<&str> = real
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    words.retain(|word| word.len() > 2);
    words.sort_unstable();
    words.dedup();
    let mut text = String::new();
    for number in 0_usize.. {
        if text.len() > BYTES {
            break;
        }
        let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        text.push_str(words[place % words.len()]);
        text.push(if number % 12 == 11 { '\n' } else { ' ' });
    }
    text
}

/// A name of five to eight letters.
fn name(hash: u64) -> String {
    let length = 5 + (hash >> 60) % 4;
    let letters = (0..length).map(|place| b'a' + (hash >> (5 * place + 8)) as u8 % 26);
    letters.map(char::from).collect()
}

#[divan::bench(args = ["log", "requests", "json", "numbers", "source", "words", "short", "real"], sample_count = 5, sample_size = 1)]
fn no_rule(bencher: Bencher<'_, '_>, kind: &str) {
    let mut text = match kind {
        "words" => words(),
        "short" => "y\n".repeat(BYTES / 2),
        "real" => real(),
        _ => String::new(),
    };
    for number in 0_u64.. {
        if text.len() >= BYTES {
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
            // Each request has a unique path.
            "requests" => writeln!(
                text,
                "2026-11-02T10:{:02}:{:02}.{:03}Z INFO http::server: request id={hash:016x} method=GET path=/api/v1/{}/{} status=200 took={}ms",
                number / 60 % 60,
                number % 60,
                number % 1000,
                name(hash),
                hash % 9_973,
                hash % 977
            ),
            "json" => writeln!(
                text,
                r#"{{"ts":"2026-11-02T10:{:02}:{:02}Z","level":"info","msg":"request handled","user":{},"path":"/{}","ms":{}.{}}}"#,
                number / 60 % 60,
                number % 60,
                hash % 99_991,
                name(hash),
                hash % 97,
                hash % 89
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

#[divan::bench(args = ["progress", "coloured"], sample_count = 5, sample_size = 1)]
fn sanitize(bencher: Bencher<'_, '_>, kind: &str) {
    let mut text = String::new();
    for number in 0.. {
        if text.len() > BYTES {
            break;
        }
        if kind == "coloured" {
            let _ = writeln!(
                text,
                "\x1b[36msrc/app-{number}.ts\x1b[0m:\x1b[33m{number}\x1b[0m - \x1b[90mTS6133:\x1b[0m unused\x1b[K"
            );
            continue;
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
