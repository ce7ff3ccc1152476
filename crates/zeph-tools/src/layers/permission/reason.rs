//! Texts about the decision of the permission layer.

use crate::context::CallContext;
use crate::gate::{CallSubject, Grant};

/// Describes the approval that let a call run, for the audit trail.
pub(super) fn remembered(used: &[Grant]) -> String {
    let used: Vec<String> = used
        .iter()
        .map(|grant| format!("{} {:?}", grant.tool, grant.pattern))
        .collect();
    match used.is_empty() {
        true => "this call was approved before".to_owned(),
        false => format!("remembered {}", used.join(", ")),
    }
}

/// Describes the text that the shell runs, if it differs in more than quoting and layout.
pub(super) fn rewritten(subject: &CallSubject<'_>) -> String {
    let command = subject.command.as_ref();
    let text = command.and_then(|command| command.rewritten.as_deref());
    text.map_or_else(String::new, |text| {
        format!(" The shell runs: {}", text.trim())
    })
}

/// Returns the error text of a call that the user declined.
pub(super) fn refusal(told: Option<&str>) -> String {
    match told {
        Some(told) => format!("the user declined this call: {told}"),
        None => "the user refused this call".to_owned(),
    }
}

/// Returns a sentence about permanent approvals that could not be read, so that they do not apply.
pub(super) fn without_approvals(cx: &CallContext) -> String {
    let trace = cx.trace();
    let error = trace.unread_approvals.as_deref().unwrap_or_default();
    match error.lines().next() {
        None => String::new(),
        Some(error) => {
            format!(" Permanent approvals do not apply, because reading them failed: {error}.")
        }
    }
}
