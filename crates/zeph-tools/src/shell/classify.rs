//! Classification of the exit of a command: whether it is a failure of the call or a result.

use crate::category::ToolErrorCategory;

/// Texts on standard error that make a non-zero exit a permanent failure.
const PERMANENT: [&str; 2] = ["permission denied", "no such file or directory"];

/// The error category of a finished command. `None` means a plain result: a test suite that fails is a result, not an
/// error. Exit code 0 is always a success.
///
/// `stderr` is the head and the tail of standard error.
#[must_use]
pub fn classify(exit_code: i32, stderr: &str) -> Option<ToolErrorCategory> {
    match exit_code {
        0 => None,
        126 => Some(ToolErrorCategory::PolicyBlocked),
        127 => Some(ToolErrorCategory::PermanentFailure),
        _ if PERMANENT
            .iter()
            .any(|phrase| contains_ignore_case(stderr, phrase)) =>
        {
            Some(ToolErrorCategory::PermanentFailure)
        }
        _ => None,
    }
}

/// Whether `text` contains `phrase` (ASCII, lower case), regardless of case.
fn contains_ignore_case(text: &str, phrase: &str) -> bool {
    text.as_bytes()
        .windows(phrase.len())
        .any(|window| window.eq_ignore_ascii_case(phrase.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ToolErrorCategory::{PermanentFailure, PolicyBlocked};

    /// Proves SH-6.
    #[test]
    fn exits_are_classified() {
        let check = |code, stderr, expect| assert_eq!(classify(code, stderr), expect, "{code}");
        check(0, "", None);
        check(0, "cat: x: Permission denied", None);
        check(0, "No such file or directory", None);
        check(1, "", None);
        check(1, "3 tests failed", None);
        check(101, "thread panicked", None);
        check(126, "", Some(PolicyBlocked));
        check(126, "no such file or directory", Some(PolicyBlocked));
        check(127, "", Some(PermanentFailure));
        check(1, "cat: x: Permission denied", Some(PermanentFailure));
        check(2, "PERMISSION DENIED", Some(PermanentFailure));
        check(
            2,
            "ls: 'ä': No such file or directory\nmore",
            Some(PermanentFailure),
        );
        check(1, "no such file", None);
        check(143, "", None);
    }
}
