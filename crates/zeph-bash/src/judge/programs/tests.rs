//! Tests of the program table: it is valid, and the verdicts match `allowed.txt` and `refused.txt`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod wrappers;

use super::*;
use crate::Verdict;
use crate::tests::{all_wrong, command, decide};

/// Proves SH-12.
#[test]
fn table_of_the_sources_is_valid() {
    let table = Table::read(SOURCES).unwrap();
    assert!(table.rows.len() > 100);
    assert!(table.variables.len() > 10);
    for variable in &table.variables {
        let program = variable.program.as_deref();
        assert_eq!(
            program.is_some(),
            variable.kind == Kind::Options,
            "{:?}",
            variable.names
        );
        assert!(
            program.is_none_or(|name| table.by_name.contains_key(name)),
            "{program:?}"
        );
    }
}

/// Proves SH-12: a table that cannot be read is an error, not an empty table.
#[test]
fn table_with_errors_is_refused() {
    let check = |text: &str, expect: &str| {
        let error = Table::read(&[("x.toml", text)]).unwrap_err();
        assert!(error.contains(expect), "{text}: {error}");
    };
    check("program = 1", "x.toml");
    check("[[program]]\nname = ['x']\nother = 1", "unknown field");
    check(
        "[[program]]\nnames = ['x']\nscript = ['x']",
        "not an option",
    );
    check("[[program]]\nnames = ['x', 'x']", "two rows");
    check("[[program]]\nnames = ['x']\nkeys_of = 'y'", "no keys");
    check(
        "[[variable]]\nnames = ['X']\nkind = 'what'",
        "unknown variant",
    );
}

/// Proves SH-12.
#[test]
fn normal_use_of_the_programs_is_allowed() {
    all_wrong(include_str!("tests/allowed.txt"), |line| {
        match decide(&command(line)) {
            Verdict::Allow => Ok(()),
            other => Err(format!("{line}\n    {other:?}")),
        }
    });
}

/// Proves SH-11, SH-12: `B` marks commands that are blocked, `A` those that need confirmation.
#[test]
fn text_that_programs_run_is_judged() {
    all_wrong(include_str!("tests/refused.txt"), |line| {
        let Some((kind, line)) = line.split_once(' ') else {
            return Err(format!("not an entry: {line}"));
        };
        match (kind, decide(&command(line))) {
            ("#", _) | ("B", Verdict::Block { .. }) | ("A", Verdict::Ask { .. }) => Ok(()),
            (_, other) => Err(format!("{kind} {line}\n    {other:?}")),
        }
    });
}
