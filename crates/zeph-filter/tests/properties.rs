//! Properties of filtered output, for each rule and any output.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use zeph_filter::{FilterPipeline, FilteredOutput};

/// A command of each rule for Python, Go, C, Java, Ruby, PHP, Perl and .NET.
const COMMANDS: &[&str] = &[
    "pytest",
    "python -m unittest",
    "go test ./...",
    "go build ./...",
    "gcc -c a.c",
    "make -j4",
    "cmake --build b",
    "ctest",
    "pip install x",
    "ruff check",
    "mypy .",
    "flake8",
    "mvn test",
    "gradle test",
    "rspec",
    "phpunit",
    "prove",
    "dotnet build",
    "tox",
];

/// Lines that change the state of a strategy. A number replaces `@`.
const FRAME: &[&str] = &[
    "",
    "",
    "============================= test session starts ==============================",
    "collected 3 items",
    "tests/test_a.py ..F.                                   [100%]",
    "tests/test_a.py::test_@ PASSED                                   [ 50%]",
    "=================================== FAILURES ===================================",
    "==================================== PASSES ====================================",
    "________________________________ test_one_more _________________________________",
    "    def test_a():",
    ">       assert f() == 3",
    "tests/test_a.py:12: AssertionError",
    "tests/test_a.py:13: in test_b",
    "_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ ",
    "----------------------------- Captured stdout call -----------------------------",
    "=============================== warnings summary ===============================",
    "=========================== short test summary info ============================",
    "========================= 1 failed, 2 passed in 0.02s ==========================",
    "======================================================================",
    "----------------------------------------------------------------------",
    "Ran 3 tests in 0.001s",
    "test_a (m.C.test_a) ... ok",
    "Traceback (most recent call last):",
    "  File \"/home/user/a.py\", line 5, in f",
    "  File \"/usr/lib/python3.11/unittest/case.py\", line 9, in g",
    "    x = 1",
    "=== RUN   TestA",
    "=== RUN   TestA/b",
    "=== CONT  TestA",
    "--- PASS: TestA (0.00s)",
    "    a_test.go:12: said @",
    "ok  \texample.com/a\t0.1s",
    "PASS",
    "FAIL",
    "goroutine 7 [running]:",
    "main.main()",
    "\t/home/user/a.go:7 +0x1d",
    "==================",
    "WARNING: DATA RACE",
    "src/a.c: In function 'main':",
    "src/a.c:4:@: warning: unused variable 'x' [-Wunused-variable]",
    "    4 |     int x;",
    "      |         ^",
    "        ^~~",
    "src/a.c:4:9: note: declared here",
    "make[1]: Entering directory '/home/user/a'",
    "gcc -Wall -c -o a.o a.c",
    "[ 50%] Building C object a.o",
    "F401 [*] `os` imported but unused",
    " --> a.py:1:@",
    "  |",
    "1 | import os",
    "help: Remove it",
    "./a.py:1:@: E401 multiple imports on one line",
    "[INFO] Scanning for projects...",
    "a.cs(5,@): warning CS0219: unused [a.csproj]",
    "ok 3 - fine",
    "words without a form",
    "\tat a.b.C(C.java:3)",
    "größer als je zuvor: ✓ @",
];

/// Lines that must not be lost, each with the text to search for.
const FACTS: &[(&str, &str)] = &[
    ("src/b.c:@:5: error: expected expression @", "src/b.c:@:5"),
    ("src/b.c:@:5: Fehler: Ausdruck erwartet", "src/b.c:@:5"),
    (
        "b.py:@: error: Name \"x@\" is not defined  [name-defined]",
        "b.py:@",
    ),
    (
        "Program.cs(@,13): error CS0103: no name y@ [a.csproj]",
        "Program.cs(@,13)",
    ),
    ("error[E0@]: mismatched types", "error[E0@]"),
    ("error: it went wrong @ times", "it went wrong @ times"),
    (
        "FAILED tests/test_b.py::test_@ - assert 1 == 2",
        "tests/test_b.py::test_@",
    ),
    ("E       ValueError: bad @", "ValueError: bad @"),
    ("ValueError: worse @", "ValueError: worse @"),
    ("--- FAIL: TestB@ (0.00s)", "TestB@"),
    ("    --- FAIL: TestC/sub@ (0.00s)", "TestC/sub@"),
    ("panic: lost @", "panic: lost @"),
    ("ERROR: test_d@ (m.C.test_d@)", "test_d@"),
    ("not ok @ - total", "not ok @"),
    ("make: *** [Makefile:@: all] Error 2", "Makefile:@"),
];

fn line() -> impl Strategy<Value = (String, Option<String>)> {
    let number = |text: &str, number: u32| text.replace('@', &number.to_string());
    prop_oneof![
        6 => (prop::sample::select(FRAME), 0..90_000u32).prop_map(move |(text, at)| (number(text, at), None)),
        3 => (prop::sample::select(FACTS), 10_000..90_000u32)
            .prop_map(move |((text, fact), at)| (number(text, at), Some(number(fact, at)))),
        1 => ".{0,30}".prop_map(|text| (text.replace(char::is_control, " "), None)),
    ]
}

fn run(
    command: &str,
    text: &str,
    cuts: &[prop::sample::Index],
    exit_code: Option<i32>,
) -> FilteredOutput {
    let mut ends: Vec<usize> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut.index(text.len() + 1)))
        .collect();
    ends.push(text.len());
    ends.sort_unstable();
    let mut run = FilterPipeline::default().start(command, 50_000);
    let mut start = 0;
    for end in ends {
        run.push(&text[start..end]);
        start = end;
    }
    run.finish(exit_code)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Proves OUT-7a, OUT-7b: in any order, cut anywhere, with any of the rules.
    #[test]
    fn no_fact_is_lost(
        command in prop::sample::select(COMMANDS),
        lines in prop::collection::vec(line(), 0..120),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        exit_code in prop::option::of(0..2i32),
    ) {
        let text: String = lines.iter().map(|(text, _)| format!("{text}\n")).collect();
        let result = run(command, &text, &cuts, exit_code);
        for fact in lines.iter().filter_map(|(_, fact)| fact.as_ref()) {
            prop_assert!(result.text.contains(fact.as_str()), "{command}: {fact} of\n{text}\nis not in\n{}", result.text);
        }
        prop_assert!(result.text.len() <= text.len());
        prop_assert_eq!(result, run(command, &text, &[], exit_code));
    }
}
