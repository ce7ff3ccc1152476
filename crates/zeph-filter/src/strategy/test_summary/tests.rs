//! Tests of the formats of cargo.
#![allow(clippy::unwrap_used)]

use proptest::prelude::{Strategy as Strategy_, prop_assert, prop_oneof, proptest};

use super::super::group_by_rule;
use super::super::testing::run;
use super::*;

fn strategy(text: &str) -> Box<dyn Strategy> {
    make(toml::from_str(text).unwrap()).unwrap().start()
}

fn cargo(input: &str, exit_code: i32) -> (String, FilterConfidence) {
    run(strategy("format = 'cargo'"), input, Some(exit_code))
}

fn nextest(input: &str, exit_code: i32) -> (String, FilterConfidence) {
    run(strategy("format = 'nextest'"), input, Some(exit_code))
}

#[test]
fn parameters_are_checked() {
    let check = |text: &str, expect: &str| {
        let error = make(toml::from_str(text).unwrap()).unwrap_err();
        assert!(error.starts_with(expect), "{error}");
    };
    let formats: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    check(
        "format = 'abc'",
        &format!(
            "there is no format `abc`; there are: {}",
            formats.join(", ")
        ),
    );
    check(
        "max_failures = -1",
        "invalid value: integer `-1`, expected usize",
    );
}

const RESULT: &str =
    "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";

/// Proves OUT-7: the result of a killed run has the names of the tests that failed so far.
#[test]
fn killed_run_lists_its_failures() {
    let killed = "running 3 tests\ntest a ... ok\ntest b ... FAILED\n";
    assert_eq!(
        cargo(killed, 137),
        (
            "test b ... FAILED\nrunning 3 tests\ntest a ... ok".to_owned(),
            FilterConfidence::Partial
        )
    );
    let nothing_failed = "running 3 tests\ntest a ... ok\ntest b ... ok\n";
    assert_eq!(cargo(nothing_failed, 137).1, FilterConfidence::Fallback);
}

/// Proves OUT-7b: it failed, and nothing says why.
#[test]
fn contradicting_exit_code_causes_a_fallback() {
    let passed = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
    assert_eq!(cargo(passed, 0).1, FilterConfidence::Full);
    assert_eq!(cargo(passed, 1).1, FilterConfidence::Fallback);
    assert_eq!(cargo("hello\nworld\n", 0).1, FilterConfidence::Fallback);
    assert_eq!(nextest("hello\nworld\n", 0).1, FilterConfidence::Fallback);
}

#[test]
fn captured_output_does_not_end_section() {
    let printed = format!(
        "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nfailures:\n\nnot a name\ntest result: ok. 9 passed; 0 failed\ntest b ... ok\nthread 'a' panicked at src/a.rs:1:2:\nboom\n\nfailures:\n    a\n\n{RESULT}\n"
    );
    assert_eq!(
        cargo(&printed, 101).0,
        format!(
            "---- a stdout ----\nnot a name\ntest result: ok. 9 passed; 0 failed\ntest b ... ok\nthread 'a' panicked at src/a.rs:1:2:\nboom\n{RESULT}"
        )
    );
}

/// Proves OUT-4: failures beyond `max_failures` are shown with name, place and message.
#[test]
fn failures_beyond_limit_are_summarized() {
    let names: Vec<String> = (0..30).map(|n| format!("tests::case_{n}")).collect();
    let mut printed = "running 30 tests\n".to_owned();
    printed.extend(names.iter().map(|name| format!("test {name} ... FAILED\n")));
    printed.push_str("\nfailures:\n\n");
    for name in &names {
        let noise = "chatter\n".repeat(40);
        printed.push_str(&format!("---- {name} stdout ----\n{noise}\nthread '{name}' (12) panicked at src/a.rs:1:2:\nassertion `left == right` failed\n  left: 1\n right: 2\n\n"));
    }
    printed.push_str("\nfailures:\n");
    printed.extend(names.iter().map(|name| format!("    {name}\n")));
    printed.push_str(&format!("\n{RESULT}\n"));
    let (text, confidence) = cargo(&printed, 101);
    assert_eq!(confidence, FilterConfidence::Full);
    for name in &names {
        assert!(
            text.contains(&format!(
                "thread '{name}' (12) panicked at src/a.rs:1:2:\nassertion `left == right` failed\n  left: 1\n right: 2"
            )),
            "{text}"
        );
    }
    assert_eq!(text.matches("chatter").count(), 10 * 11);
    assert_eq!(text.matches("[… 29 lines …]").count(), 10);
}

#[test]
fn backtrace_retains_only_user_frames() {
    let printed = format!(
        "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n\nthread 'a' (7) panicked at src/a.rs:9:1:\nboom\nstack backtrace:\n   0: __rustc::rust_begin_unwind\n             at /rustc/5980/library/std/src/panicking.rs:689:5\n   1: own::deep\n             at ./src/a.rs:9:1\n   2: own::deep\n             at ./src/a.rs:8:1\n   3: own::deep\n             at ./src/a.rs:8:1\n   4: own::a\n             at ./src/a.rs:3:1\n   5: own::a::{{{{closure}}}}\n             at ./src/a.rs:2:1\n   6: core::ops::function::FnOnce::call_once\n             at /rustc/5980/library/core/src/ops/function.rs:250:5\nnote: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n\n\nfailures:\n    a\n\n{RESULT}\n"
    );
    assert_eq!(
        cargo(&printed, 101).0,
        format!(
            "---- a stdout ----\nthread 'a' (7) panicked at src/a.rs:9:1:\nboom\n   1: own::deep at ./src/a.rs:9:1\n   2: own::deep at ./src/a.rs:8:1 ×2\n   4: own::a at ./src/a.rs:3:1\n{RESULT}"
        )
    );
}

#[test]
fn programs_without_tests_are_counted() {
    let empty = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
    let mut printed = String::new();
    for name in ["a", "b", "c"] {
        printed.push_str(&format!("   Doc-tests {name}\n{empty}"));
    }
    assert_eq!(
        cargo(&printed, 0).0,
        "Doc-tests a\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n[2 more: test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s]"
    );
}

#[test]
fn format_is_detected_from_the_output() {
    let check = |input: &str, expect: &str| assert_eq!(run(strategy(""), input, Some(0)).0, expect);
    check("hello\nworld\n", "hello\nworld");
    check(
        "hello\ntest a ... ok\ntest result: ok. 1 passed; 0 failed\n",
        "hello\ntest result: ok. 1 passed; 0 failed",
    );
    check(
        " Nextest run ID x\n        PASS [   0.003s] (1/3) shop a\n     Summary [   0.010s] 3 tests run\n",
        "     Summary [   0.010s] 3 tests run",
    );
}

#[test]
fn repeated_output_is_omitted() {
    let output = "  stdout ───\n\n    running 1 test\n    thread 'a' (3) panicked at src/a.rs:1:2:\n    boom\n\n";
    let printed = format!(
        "    Starting 1 test\n  TRY 1 FAIL [   0.003s] (───) shop a\n{output}   DELAY 2/2 by   0.050s (─────) shop a\n  TRY 2 FAIL [   0.003s] (1/1) shop a\n{output}────────────\n     Summary [   0.010s] 1 test run: 0 passed, 1 failed\n  TRY 1 FAIL [   0.003s] (───) shop a\n{output}  TRY 2 FAIL [   0.003s] (1/1) shop a\n{output}error: test run failed\n"
    );
    assert_eq!(
        nextest(&printed, 100).0,
        "    Starting 1 test\n  TRY 1 FAIL [   0.003s] (───) shop a\n    thread 'a' (3) panicked at src/a.rs:1:2:\n    boom\n  TRY 2 FAIL [   0.003s] (1/1) shop a\n    thread 'a' (3) panicked at src/a.rs:1:2:\n    boom\n     Summary [   0.010s] 1 test run: 0 passed, 1 failed\nerror: test run failed"
    );
}

/// Lines that a strategy recognizes, and some that no strategy recognizes.
const LINES: &[&str] = &[
    "   Compiling shop v0.1.0",
    "    Finished `test` profile [unoptimized] target(s) in 0.1s",
    "     Running unittests src/lib.rs (target/debug/deps/shop-1)",
    "   Doc-tests shop",
    "running 3 tests",
    "test a::b ... ok",
    "test a::c ... FAILED",
    "test a::d ... ignored, slow",
    "failures:",
    "successes:",
    "---- a::c stdout ----",
    "    a::c",
    "",
    "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
    "stack backtrace:",
    "   4: own::a",
    "             at ./src/a.rs:26:35",
    "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
    "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    "error: test failed, to rerun pass `--lib`",
    "warning: unused variable: `x`",
    " --> src/lib.rs:1:2",
    "  |",
    "1 | let x = 1;",
    "  |     ^ help: prefix it: `_x`",
    "  = note: `#[warn(unused_variables)]` on by default",
    "help: consider this",
    "error: could not compile `shop` (lib) due to 1 previous error",
    "────────────",
    " Nextest run ID 2ac7d135",
    "    Starting 3 tests across 1 binary",
    "        PASS [   0.003s] (1/3) shop a::b",
    "        FAIL [   0.003s] (2/3) shop a::c",
    "  TRY 2 FAIL [   0.003s] (2/3) shop a::c",
    "        SLOW [>  1.000s] (───) shop a::c",
    "  stdout ───",
    "  stderr ───",
    "--- STDERR:              shop a::c ---",
    "     Summary [   0.010s] 3 tests run: 2 passed, 1 failed",
    "error: test run failed",
    "some text",
    "    some text",
    "..F.i 12/20",
];

fn line() -> impl Strategy_<Value = String> {
    prop_oneof![
        8 => proptest::sample::select(LINES).prop_map(str::to_owned),
        1 => (0..50u32).prop_map(|n| format!("thread 't{n}' ({n}) panicked at src/p{n}.rs:{n}:1:")),
        1 => (0..50u32).prop_map(|n| format!("    thread 't{n}' panicked at src/p{n}.rs:{n}:1:")),
        1 => (0..50u32).prop_map(|n| format!("error[E{n:04}]: wrong {n}")),
        1 => "\\PC{0,40}",
    ]
}

proptest! {
    /// Proves OUT-7a: for any mix and any end of the lines, each panic and compiler error is retained, even
    /// without the fact guard.
    #[test]
    fn panics_and_compiler_errors_are_retained(lines in proptest::collection::vec(line(), 0..80), exit_code in 0..2i32) {
        let input = lines.join("\n");
        for format in ["cargo", "nextest"] {
            let group = group_by_rule::make(toml::from_str("dialect = 'rustc'").unwrap()).unwrap();
            let (grouped, _) = run(group.start(), &input, Some(exit_code));
            let (text, _) = run(strategy(&format!("format = '{format}'")), &grouped, Some(exit_code));
            for line in lines.iter().filter(|line| line.contains(" panicked at ") || line.starts_with("error[")) {
                prop_assert!(grouped.contains(line.trim()), "group_by_rule lost {line:?} of\n{input}");
                prop_assert!(text.contains(line.trim()), "{format} lost {line:?} of\n{grouped}\n---\n{text}");
            }
        }
    }
}
