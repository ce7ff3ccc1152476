//! Facts in long output, which survive the filters.

use crate::rig::{Home, assert_has};

/// Final error lines of many languages and tools.
const FACTS: &[&str] = &[
    "terminate called after throwing an instance of 'std::runtime_error'",
    "  what():  the ledger is closed",
    "ledger: ledger.c:41: main: Assertion `total >= 0' failed.",
    "Aborted (core dumped)",
    "Killed",
    "Bus error",
    "Out of memory: Killed process 4321 (ledger)",
    "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
    "==4321==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010",
    "ledger.rb:41:in 'total': divided by 0 (ZeroDivisionError)",
    "** (Mix) Could not compile dependency :ledger",
    "Unhandled exception. System.InvalidOperationException: total",
    "total is negative at ledger.pl line 41.",
    "PHP Fatal error:  Uncaught DivisionByZeroError: Division by zero",
    "E1124 10:00:00.000000    4321 ledger.go:41] total is negative",
    "{\"level\":50,\"msg\":\"total is negative\"}",
    "time=2026-11-24T10:00:00Z level=error msg=\"total is negative\"",
    "WARNING: the ledger is almost full",
    "ledger.py:41: DeprecationWarning: total() is deprecated",
    "make: *** [Makefile:12: ledger] Error 2",
    "error TS2304: Cannot find name 'total'.",
    "CONFLICT (content): Merge conflict in src/ledger.c",
    "curl: (7) Failed to connect to localhost port 8080",
    "lua: ledger.lua:41: attempt to call a nil value",
    "MyProblem: it went wrong",
];

/// Proves OUT-7, OUT-7a: each kind of fact survives in an output of thousands of lines, with and without a
/// rule.
#[test]
fn facts_in_long_output_survive() {
    let home = Home::new();
    home.config("");
    let mut printed = String::new();
    for number in 0..5000 {
        printed += &format!(
            "INFO  request {number} of the ledger took {}ms\n",
            number % 97
        );
        if number % 150 == 149
            && let Some(fact) = FACTS.get(number / 150)
        {
            if fact.starts_with("MyProblem") {
                printed += "Traceback (most recent call last):\n  File \"ledger.py\", line 41, in total\n    f()\n";
            }
            printed += &format!("{fact}\n");
        }
    }
    for command in [
        "./ledger --verbose",
        "make -j4",
        "npm install",
        "cargo build",
        "docker build .",
    ] {
        let args = ["filter", "--command", command, "--exit-code", "1"];
        let text = home.zeph(args).stdin(printed.clone()).code(0).stdout;
        assert_has(&text, FACTS);
        assert_has(&text, &["  File \"ledger.py\", line 41, in total"]);
        assert!(text.len() < printed.len() / 3, "{command}: {}", text.len());
    }
}

/// Proves OUT-7a: of thousands of similar warnings, the first ones and the count are shown.
#[test]
fn warnings_of_one_form_are_counted() {
    let home = Home::new();
    home.config("");
    let mut printed = String::new();
    for number in 0..10_000 {
        printed += &format!("WARNING: request {number} is slow\n");
    }
    printed += "Killed\n";
    printed += &"everything works as it should\n".repeat(2000);
    // The rule of make groups nothing, so head and tail stay within the threshold.
    for (command, max) in [("./ledger", 5000), ("make", 50_000)] {
        let args = ["filter", "--command", command, "--exit-code", "0"];
        let text = home.zeph(args).stdin(printed.clone()).code(0).stdout;
        assert_has(
            &text,
            &[
                "WARNING: request 0 is slow",
                "\nKilled\n",
                "×10000 like this",
            ],
        );
        assert!(text.len() < max, "{command}: {}", text.len());
    }
}
