//! Tables of commands for each class of decisions: `B` is blocked, `A` requires confirmation, `O` is allowed.
//!
//! `B:DIR` starts in a subdirectory of the sandbox.

use super::{Verdict, WorkingDirState, all_wrong, command, start};
use crate::ShellPolicy;

/// Checks each line of a table that has at least `rows` lines.
fn check(table: &str, rows: usize) {
    assert!(table.lines().count() >= rows);
    let policy = ShellPolicy::default();
    all_wrong(table, |line| {
        let Some((kind, line)) = line.split_once(' ') else {
            return Err(format!("not an entry: {line}"));
        };
        let (kind, directory) = kind.split_once(':').unwrap_or((kind, ""));
        let start = WorkingDirState {
            cwd: start().cwd.join(directory),
            ..start()
        };
        match (kind, policy.decide(&command(line), &start)) {
            ("#", _)
            | ("B", Verdict::Block { .. })
            | ("A", Verdict::Ask { .. })
            | ("O", Verdict::Allow) => Ok(()),
            (_, other) => Err(format!("{kind} {line}\n    {other:?}")),
        }
    });
}

/// Proves SH-11, SH-12.
#[test]
fn values_that_the_command_defines_are_judged_as_written() {
    check(include_str!("values.txt"), 200);
}

/// Proves SH-11.
#[test]
fn operands_that_are_not_resolved_require_confirmation() {
    check(include_str!("destroy.txt"), 100);
}

/// Proves SH-12.
#[test]
fn scripts_with_an_unresolved_part_are_judged_by_the_others() {
    check(include_str!("holes.txt"), 80);
}

/// Proves SH-12.
#[test]
fn renamed_commands_are_resolved_or_require_confirmation() {
    check(include_str!("names.txt"), 120);
}

/// Proves SH-12.
#[test]
fn scripts_on_standard_input_are_found_by_every_name() {
    check(include_str!("stdin.txt"), 90);
}

/// Proves SH-12.
#[test]
fn generated_scripts_are_judged_or_require_confirmation() {
    check(include_str!("written.txt"), 120);
}
