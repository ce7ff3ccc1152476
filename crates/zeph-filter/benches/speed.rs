//! The time that the filter takes for 1 MB, which OUT-11 limits: `cargo bench -p zeph-filter --bench speed`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use zeph_filter::FilterPipeline;

/// The size of an output in bytes.
const BYTES: usize = 1_000_000;
/// The size of a pipe read.
const PIECE: usize = 64 * 1024;
/// The longest time for one output on one core.
const MAX_TIME: Duration = Duration::from_millis(50);

/// A text of [`BYTES`] bytes; `line` appends the line with a number and a pseudo-random value.
fn text(line: impl Fn(&mut String, u64, u64) -> std::fmt::Result) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= BYTES {
            break;
        }
        let random = (number + 1_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        line(&mut text, number, random ^ random >> 29).unwrap();
    }
    text.truncate(text.floor_char_boundary(BYTES));
    text
}

/// A name of five to eight letters.
fn name(random: u64) -> String {
    let letters = (0..5 + random % 4).map(|place| b'a' + (random >> (5 * place + 8)) as u8 % 26);
    letters.map(char::from).collect()
}

/// Kinds of text without a rule.
fn kinds() -> Vec<(&'static str, String)> {
    const COLOURS: [&str; 3] = ["\x1b[31m", "\x1b[1;33m", "\x1b[38;5;245m"];
    vec![
        (
            "log",
            text(|text, number, random| {
                let second = number % 60;
                let path = name(random);
                writeln!(
                    text,
                    "2026-11-02T10:07:{second:02}.{:03}Z INFO http::server: request id={random:016x} path=/api/{path}/{} took={}ms",
                    number % 1000,
                    random % 9_973,
                    random % 977
                )
            }),
        ),
        (
            "log of errors",
            text(|text, number, random| {
                let second = number % 60;
                let user = name(random);
                writeln!(
                    text,
                    "2026-11-02 10:07:{second:02},123 ERROR [worker-{}] pool: connection {random:08x} of {user} failed: timeout after {}s",
                    number % 8,
                    random % 31
                )
            }),
        ),
        (
            "prose",
            text(|text, number, random| {
                let end = if number % 12 == 11 { ".\n" } else { " " };
                write!(text, "{}{end}", name(random % 5000))
            }),
        ),
        (
            "prose beyond ASCII",
            text(|text, number, random| {
                let end = if number % 9 == 8 { "。\n" } else { " " };
                write!(text, "größe{}日本{end}", name(random % 500))
            }),
        ),
        (
            "numbers",
            text(|text, _, random| writeln!(text, "{random}")),
        ),
        (
            "columns of numbers",
            text(|text, number, random| {
                writeln!(
                    text,
                    "{number:6} {:8.3} {:5}% {}",
                    random as f64 / 1e17,
                    random % 100,
                    random >> 32
                )
            }),
        ),
        (
            "stack traces",
            text(|text, number, random| {
                let class = name(random % 300);
                match number % 12 {
                    0 => writeln!(text, "java.lang.IllegalStateException: no {class} in pool"),
                    11 => writeln!(text, "Caused by: java.io.IOException: {class}"),
                    _ => writeln!(text, "\tat org.shop.{class}.Run(Run.java:{})", random % 400),
                }
            }),
        ),
        (
            "Python tracebacks",
            text(|text, number, random| match number % 9 {
                0 => writeln!(text, "Traceback (most recent call last):"),
                8 => writeln!(text, "ValueError: bad {}", name(random % 300)),
                at if at % 2 == 1 => {
                    writeln!(
                        text,
                        "  File \"/srv/app/{}.py\", line {}, in run",
                        name(random % 99),
                        random % 400
                    )
                }
                _ => writeln!(text, "    self.{}(value)", name(random % 99)),
            }),
        ),
        (
            "paths",
            text(|text, _, random| {
                writeln!(
                    text,
                    "./src/{}/{}/{}.rs",
                    name(random % 40),
                    name(random % 900),
                    name(random)
                )
            }),
        ),
        (
            "JSON lines",
            text(|text, number, random| {
                writeln!(
                    text,
                    r#"{{"ts":"2026-11-02T10:07:{:02}Z","level":"info","user":{},"path":"/{}","ms":{}.{}}}"#,
                    number % 60,
                    random % 99_991,
                    name(random),
                    random % 97,
                    random % 89
                )
            }),
        ),
        (
            "source code",
            text(|text, number, random| match number % 5 {
                0 => writeln!(
                    text,
                    "fn {}(input: &str) -> Result<Vec<u8>, Error> {{",
                    name(random)
                ),
                4 => writeln!(text, "}}\n"),
                _ => writeln!(
                    text,
                    "    let {} = parse(&input[{}..], &options)?;",
                    name(random),
                    number % 70
                ),
            }),
        ),
        (
            "coloured text",
            text(|text, number, random| {
                let colour = COLOURS[(random % 3) as usize];
                writeln!(
                    text,
                    "{colour}src/app-{number}.ts\x1b[0m:\x1b[33m{number}\x1b[0m - \x1b[90mTS6133:\x1b[0m unused {}\x1b[K",
                    name(random)
                )
            }),
        ),
        (
            "coloured words",
            text(|text, number, random| {
                let colour = COLOURS[(random % 3) as usize];
                let end = if number % 12 == 11 { "\n" } else { " " };
                write!(text, "{colour}{}\x1b[0m{end}", name(random))
            }),
        ),
        (
            "progress bars",
            text(|text, number, _| {
                let bar = "█".repeat((number % 41) as usize);
                let end = if number % 200 == 199 { "\n" } else { "" };
                write!(
                    text,
                    "\r\x1b[K\x1b[32m{:>3}%\x1b[0m |{bar:<40}| {number}/1000{end}",
                    number % 101
                )
            }),
        ),
        (
            "ASCII progress bars",
            text(|text, number, _| {
                let bar = "#".repeat((number % 41) as usize);
                let end = if number % 200 == 199 { "\n" } else { "" };
                write!(
                    text,
                    "\r{:>3}% [{bar:<40}] {number}/1000{end}",
                    number % 101
                )
            }),
        ),
        (
            "redrawn lines",
            text(|text, number, random| {
                let up = if number % 8 == 7 { "\x1b[8A" } else { "" };
                writeln!(
                    text,
                    "\x1b[2K layer {}: {} MB of {} MB{up}",
                    number % 8,
                    random % 90,
                    90
                )
            }),
        ),
        (
            "backspaces",
            text(|text, number, _| {
                let end = if number % 100 == 99 { "\n" } else { "" };
                write!(text, "{:>3}%\x08\x08\x08\x08{end}", number % 101)
            }),
        ),
        (
            "short lines",
            text(|text, _, random| {
                writeln!(text, "{}", &name(random)[..(1 + random % 4) as usize])
            }),
        ),
        (
            "lines of one letter",
            text(|text, _, _| writeln!(text, "y")),
        ),
        (
            "blank lines",
            text(|text, number, _| writeln!(text, "{}", if number % 2 == 0 { "" } else { "  " })),
        ),
        (
            "one long line",
            text(|text, _, random| write!(text, "{} ", name(random))),
        ),
        (
            "random characters",
            text(|text, _, random| {
                let characters =
                    (0..8).map(|at| char::from(b' ' + (random >> (7 * at)) as u8 % 95));
                let characters: String = characters.collect();
                writeln!(
                    text,
                    "{characters}{}",
                    "\n".repeat((random % 3 == 0).into())
                )
            }),
        ),
        (
            "random lines of words and signs",
            text(|text, number, random| {
                let sign = [": ", " [", "] ", "(", "). ", "::", "=", "\"", " - ", "\n"]
                    [(random >> 7) as usize % 10];
                let word = [
                    "Error", "error", "fail", "warn", "at", "E", "exit", "timed", "test", "ok",
                ];
                match number % 3 {
                    0 => write!(text, "{}{sign}", word[random as usize % 10]),
                    1 => write!(text, "{}{sign}", random % 1000),
                    _ => write!(text, "{}{sign}", name(random)),
                }
            }),
        ),
        (
            "Base64",
            text(|text, number, random| {
                let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                let part =
                    (0..10).map(|at| char::from(letters[(random >> (6 * at)) as usize % 64]));
                let part: String = part.collect();
                write!(text, "{part}{}", if number % 7 == 6 { "\n" } else { "" })
            }),
        ),
        (
            "warnings",
            text(|text, number, random| {
                writeln!(
                    text,
                    "src/{}.c:{}:{}: warning: unused variable '{}' [-Wunused]",
                    name(random % 50),
                    number % 900,
                    random % 80,
                    name(random)
                )
            }),
        ),
        (
            "errors",
            text(|text, number, random| {
                writeln!(
                    text,
                    "src/{}.c:{}:{}: error: '{}' undeclared",
                    name(random % 50),
                    number % 900,
                    random % 80,
                    name(random)
                )
            }),
        ),
        (
            "CRLF",
            text(|text, number, random| write!(text, "row {number} of {}\r\n", name(random))),
        ),
    ]
}

/// The command of the first fixture of each rule, and the repeated outputs of all its fixtures.
fn rules() -> Vec<(String, String, String)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let list = |path: &Path| {
        let entries = std::fs::read_dir(path).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let rule = |path: &Path| {
        let mut cases = list(path);
        cases.retain(|case| case.extension().is_some_and(|extension| extension == "raw"));
        let case = std::fs::read_to_string(cases.first()?.with_extension("toml")).unwrap();
        let case: toml::Table = toml::from_str(&case).unwrap();
        let raw = cases.iter().map(|case| std::fs::read(case).unwrap());
        let raw = String::from_utf8_lossy(&raw.collect::<Vec<_>>().concat()).into_owned();
        let mut text = raw.repeat(BYTES / raw.len() + 1);
        text.truncate(text.floor_char_boundary(BYTES));
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Some((name, case["command"].as_str().unwrap().to_owned(), text))
    };
    let folders = list(&fixtures);
    folders
        .iter()
        .filter(|path| path.is_dir())
        .filter_map(|path| rule(path))
        .collect()
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

/// The shortest time of several runs.
fn time(command: &str, text: &str) -> Duration {
    let filters = FilterPipeline::default();
    let run = |_| {
        let start = cpu_time();
        let mut run = filters.start(command, 50_000);
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
            run.push(piece);
            rest = more;
        }
        std::hint::black_box(run.finish(Some(0)));
        cpu_time() - start
    };
    (0..5).map(run).min().unwrap_or_default()
}

/// Prints the times, and fails if one exceeds the limit.
fn main() -> ExitCode {
    // Cargo builds benchmarks for tests without optimization.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let kinds = kinds();
    let texts = kinds
        .iter()
        .map(|(kind, text)| (*kind, "unheard-of --option", text));
    let rules = rules();
    let of_rules = rules
        .iter()
        .map(|(rule, command, text)| (rule.as_str(), command.as_str(), text));
    let mut slow = String::new();
    for (kind, command, text) in texts.chain(of_rules) {
        let took = time(command, text);
        println!("{:6.2} ms  {kind}", took.as_secs_f64() * 1e3);
        if took > MAX_TIME {
            let _ = writeln!(slow, "{kind}: {took:?}");
        }
    }
    match slow.is_empty() {
        true => ExitCode::SUCCESS,
        false => {
            println!("\nlonger than {MAX_TIME:?}:\n{slow}");
            ExitCode::FAILURE
        }
    }
}
