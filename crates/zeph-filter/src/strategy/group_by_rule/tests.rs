//! Tests of grouping and of the compiler's dialect.
#![allow(clippy::unwrap_used)]

use super::super::testing::run;
use super::*;

fn rustc(input: &str) -> (String, FilterConfidence) {
    let recipe = make(toml::from_str("dialect = 'rustc'").unwrap()).unwrap();
    run(recipe.start(), input, Some(101))
}

fn check(input: &str, expect: &str) {
    assert_eq!(rustc(input).0, expect);
}

#[test]
fn parameters_are_checked() {
    let error = make(toml::from_str("dialect = 'x'").unwrap()).unwrap_err();
    assert!(error.starts_with("there is no dialect `x`; there are: rustc"));
    assert!(make(toml::Table::new()).is_err());
}

/// Proves OUT-4: the message once, each location; the compiler names a lint with its first message.
#[test]
fn lints_are_grouped() {
    check(
        "warning: unused variable: `a`\n --> src/lib.rs:1:2\n  |\n1 | let a = 1;\n  |     ^ help: prefix it: `_a`\n  |\n  = note: `#[warn(unused_variables)]` (part of `#[warn(unused)]`) on by default\n\nwarning: unused import: `x`\n --> src/lib.rs:9:5\n  |\n\nwarning: unused variable: `b`\n --> src/lib.rs:2:2\n  |\n2 | let b = 1;\n  |     ^\n\nwarning: unused variable: `b`\n --> src/lib.rs:7:2\n  |\n\nwarning: `shop` (lib) generated 3 warnings\n    Finished `dev` profile\n",
        "warning: unused variable: `a` (unused_variables) ×3\n  src/lib.rs:1:2\n  src/lib.rs:2:2 src/lib.rs:7:2 unused variable: `b`\n  help: prefix it: `_a`\nwarning: unused import: `x` --> src/lib.rs:9:5\nwarning: `shop` (lib) generated 3 warnings\n    Finished `dev` profile",
    );
}

#[test]
fn lints_have_their_names_from_notes() {
    let named = |note: &str, expect: &str| {
        check(
            &format!("error: wrong\n --> a.rs:1:2\n  |\n  = {note}\n\n"),
            &format!("error: wrong{expect} --> a.rs:1:2"),
        );
    };
    named(
        "note: `-D unused-must-use` implied by `-D warnings`",
        " (unused_must_use)",
    );
    named(
        "note: `#[deny(clippy::eq_op)]` on by default",
        " (clippy::eq_op)",
    );
    named(
        "note: requested on the command line with `-W clippy::pedantic`",
        " (clippy::pedantic)",
    );
    named(
        "help: for further information visit https://rust-lang.github.io/rust-clippy/rust-1.95.0/index.html#len_zero",
        " (clippy::len_zero)",
    );
}

/// Proves OUT-7: an error with its code, message, place and notes.
#[test]
fn errors_are_whole_except_empty_gutters() {
    check(
        "error[E0502]: cannot borrow `*v`\n --> src/lib.rs:2:57\n  |\n2 | let first = &v[0]; v.push(1); use(first);\n  |              -     ^^^^^^^^^      ----- later used here\n  |              |     |\n  |              |     mutable borrow\n  |              immutable borrow\n  |\nhelp: clone it\n  |\n2 | let first = v[0].clone();\n  |                 ++++++++\n\nFor more information about this error, try `rustc --explain E0502`.\nerror: could not compile `shop` (lib) due to 1 previous error\n",
        "error[E0502]: cannot borrow `*v`\n --> src/lib.rs:2:57\n2 | let first = &v[0]; v.push(1); use(first);\n  |              -     ^^^^^^^^^      ----- later used here\n  |              |     mutable borrow\n  |              immutable borrow\nhelp: clone it\n2 | let first = v[0].clone();\nerror: could not compile `shop` (lib) due to 1 previous error",
    );
}

/// Proves OUT-7: of many errors each code, message and place.
#[test]
fn many_errors_are_grouped() {
    let mut input = String::new();
    for n in 0..40 {
        input.push_str(&format!(
            "error[E0308]: mismatched types\n --> src/lib.rs:{n}:1\n  |\n{n} | 1\n  | ^ expected `u8`, found `bool`\n\nerror[E0425]: cannot find function `f{n}` in this scope\n --> src/lib.rs:{n}:2\n  |\n{n} | f()\n  | ^ not found in this scope\n\n"
        ));
    }
    let (text, confidence) = rustc(&input);
    assert_eq!(confidence, FilterConfidence::Full);
    for n in 0..40 {
        assert!(text.contains(&format!(
            "error[E0425]: cannot find function `f{n}` in this scope"
        )));
        assert!(text.contains(&format!("src/lib.rs:{n}:1")), "{text}");
        assert!(text.contains(&format!("src/lib.rs:{n}:2")), "{text}");
    }
    assert!(text.contains("error[E0308]: mismatched types: expected `u8`, found `bool` ×39"));
    assert!(text.len() * 2 < input.len());
}

#[test]
fn text_without_a_diagnostic_is_unchanged() {
    for input in [
        "error: failed to parse manifest at `Cargo.toml`\n\nCaused by:\n  unknown key",
        "warning: unused manifest key: package.colour\nhello",
        "error: linking with `cc` failed: exit status: 1\n  |\n  = note: undefined symbol: quux_open\n          >>> referenced by main.rs:2",
        "warning\nerror[E1]",
        "error:",
    ] {
        let (text, _) = rustc(input);
        assert_eq!(text, input.replace("\n  |\n", "\n"));
    }
    assert_eq!(rustc("hello\nworld").1, FilterConfidence::Fallback);
}

#[test]
fn test_output_is_not_grouped() {
    let input = "     Running unittests src/lib.rs (target/a)\nwarning: unused\n --> src/lib.rs:1:2\n\nwarning: unused\n --> src/lib.rs:1:3\n";
    check(input, input.trim_end());
}

#[test]
fn short_form_is_grouped() {
    check(
        "src/lib.rs:1:2: warning: unused variable: `a`\nsrc/lib.rs:5:8: error[E0308]: mismatched types: expected `f64`\nsrc/lib.rs:3:4: warning: unused variable: `a`\nx: warning: y\n",
        "src/lib.rs:5:8: error[E0308]: mismatched types: expected `f64`\nx: warning: y\nwarning: unused variable: `a` ×2\n  src/lib.rs:1:2 src/lib.rs:3:4",
    );
}

#[test]
fn few_of_many_implementing_types_are_named() {
    let types: String = (0..8).map(|n| format!("            T{n}\n")).collect();
    check(
        &format!(
            "error[E0277]: no `Add`\n --> a.rs:1:2\n  |\n  = help: the following other types implement trait `Add`:\n{types}          and 9 others\n  = note: more\n"
        ),
        "error[E0277]: no `Add`\n --> a.rs:1:2\n  = help: the following other types implement trait `Add`:\n            T0\n            T1\n            T2\n          and 9 others\n  = note: more",
    );
}
