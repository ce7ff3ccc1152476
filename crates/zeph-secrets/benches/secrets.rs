//! Throughput of the secret scan: `cargo bench -p zeph-secrets --bench secrets`.
//!
//! All command output passes the scan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::sync::Arc;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use zeph_secrets::{SecurityPatterns, StreamRedactor};

/// The number of lines of a text.
const LINES: usize = 100_000;
/// The capacity of a pipe.
const PIECE: usize = 64 * 1024;

fn main() {
    divan::main();
}

fn text(line: impl Fn(&mut String, usize)) -> String {
    let mut text = String::new();
    for n in 0..LINES {
        line(&mut text, n);
    }
    text
}

fn redact(bencher: Bencher<'_, '_>, text: &str) {
    let secrets = Arc::new(SecurityPatterns::default());
    bencher.counter(BytesCount::of_str(text)).bench(|| {
        let mut stream = StreamRedactor::new(Arc::clone(&secrets));
        let mut bytes = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
            bytes += stream.push(black_box(piece)).len();
            rest = more;
        }
        bytes + stream.finish().len()
    });
}

#[divan::bench]
fn log(bencher: Bencher<'_, '_>) {
    let line = |text: &mut String, n: usize| {
        let _ = writeln!(
            text,
            "2026-01-02T03:04:05.{n:06}Z INFO worker-{} request {n:x} took {} ms, status=200",
            n % 8,
            n % 97
        );
    };
    redact(bencher, &text(line));
}

#[divan::bench]
fn code(bencher: Bencher<'_, '_>) {
    let line = |text: &mut String, n: usize| {
        let _ = writeln!(
            text,
            "        let key_{n} = self.tokens.get(&token).map(|entry| entry.password_hash({n}))?;"
        );
    };
    redact(bencher, &text(line));
}

#[divan::bench]
fn colours(bencher: Bencher<'_, '_>) {
    let line = |text: &mut String, n: usize| {
        let _ = writeln!(
            text,
            "\u{1b}[32mok\u{1b}[0m test module::case_{n} \u{1b}[2m({} ms)\u{1b}[m",
            n % 97
        );
    };
    redact(bencher, &text(line));
}
