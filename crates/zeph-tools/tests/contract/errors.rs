//! Categories of failures, and the effect of a note.

use std::io;
use std::path::Path;
use std::time::Duration;

use zeph_tools::{
    ErrorKind, ErrorType, McpError, ToolError, ToolErrorCategory as Category, ToolOutput,
    format_for_llm,
};

fn shell(category: Category, exit_code: Option<i32>) -> ToolError {
    ToolError::Shell {
        exit_code,
        category,
        message: "m".to_owned(),
        output: Box::new(ToolOutput::text("printed")),
    }
}

/// Proves ERR-2.
#[test]
fn each_error_has_a_category_and_a_kind() {
    let check = |error: ToolError, category: Category| {
        assert_eq!(error.category(), category, "{error}");
        let transient = category.traits().retryable;
        let kind = if transient {
            ErrorKind::Transient
        } else {
            ErrorKind::Permanent
        };
        assert_eq!(error.kind(), kind, "{error}");
        // A note changes only the text.
        let (missing, refusal, form) = (
            error.is_missing(),
            error.is_refusal(),
            ErrorType::of(&error),
        );
        let noted = error.noted("why");
        assert_eq!(
            (noted.category(), noted.kind()),
            (category, kind),
            "{noted}"
        );
        let same = (
            noted.is_missing(),
            noted.is_refusal(),
            ErrorType::of(&noted),
        );
        assert_eq!(same, (missing, refusal, form), "{noted}");
        assert_eq!(noted.to_string().ends_with(" (why)"), !refusal, "{noted}");
    };
    for category in Category::ALL {
        check(shell(category, None), category);
        check(shell(category, Some(1)), category);
    }
    let reason = || "r".to_owned();
    check(
        ToolError::SnapshotFailed { reason: reason() },
        Category::PermanentFailure,
    );
    check(
        ToolError::PolicyBlocked { reason: reason() },
        Category::PolicyBlocked,
    );
    check(ToolError::cancelled(), Category::Cancelled);
    check(ToolError::invalid("x"), Category::InvalidParameters);
    let unparsable = ToolError::InvalidParameters {
        message: reason(),
        unparsable: true,
    };
    check(unparsable, Category::InvalidParameters);
    check(
        ToolError::TypeMismatch { message: reason() },
        Category::TypeMismatch,
    );
    check(
        ToolError::Missing { message: reason() },
        Category::PermanentFailure,
    );
    let limit = Duration::from_secs(1);
    check(
        ToolError::Timeout {
            what: reason(),
            limit,
        },
        Category::Timeout,
    );
    let gone = |kind: io::ErrorKind| ToolError::io("read", Path::new("a"), kind.into());
    check(gone(io::ErrorKind::NotFound), Category::PermanentFailure);
    check(gone(io::ErrorKind::ConnectionReset), Category::NetworkError);
}

/// Proves ERR-2: a refused call did not run; other errors are not refusals, regardless of their category.
#[test]
fn refusal_means_that_the_call_did_not_run() {
    let check = |error: ToolError, expect: bool| {
        assert_eq!(error.is_refusal(), expect, "{error}");
        assert_eq!(error.noted("why").is_refusal(), expect);
    };
    let failed = |category| ToolError::Failed {
        category,
        message: "m".to_owned(),
    };
    check(ToolError::blocked("r"), true);
    let (used, max, asked) = (1, 1, 1);
    check(ToolError::QuotaBlocked { used, max, asked }, true);
    check(ToolError::ConfirmationRequired(Box::default()), true);
    check(shell(Category::PolicyBlocked, None), true);
    check(shell(Category::PolicyBlocked, Some(126)), false);
    check(shell(Category::PermanentFailure, None), false);
    for category in Category::ALL {
        check(failed(category), false);
    }
    let gate = McpError::PolicyBlocked {
        reason: "r".to_owned(),
    };
    check(gate.into(), true);
    let login = McpError::Auth {
        server: "s".to_owned(),
        message: "m".to_owned(),
    };
    check(login.into(), false);
}

/// Proves ERR-2, ERR-3: output and text of an error can be read and replaced in spite of a note.
#[test]
fn note_follows_the_error_text() {
    let mut noted = shell(Category::ServerError, Some(1)).noted("tried 3 times");
    noted.change_texts(|text| *text = text.replace('m', "[secret]"));
    assert_eq!(noted.output().unwrap().summary, "printed");
    noted.output_mut().unwrap().summary = "changed".to_owned();
    let text = format_for_llm(&noted);
    assert!(
        text.contains("\nerror: [secret] (tried 3 times)\n"),
        "{text}"
    );
    assert!(text.ends_with("\n\nchanged"), "{text}");
}
