//! `zeph policy test`: runs the examples in the rules.

use std::fmt::Write as _;

use zeph_tools::gate::policy::PolicyEnforcer;
use zeph_tools::gate::{CallSubject, RuleOrigin};
use zeph_tools::{Phase, ToolDef};

use super::gates::Gates;
use super::{arguments_of, fitting};
use crate::cli::{Exit, print};
use crate::output::redact::redacted;

/// An example and its result.
struct Tried {
    origin: RuleOrigin,
    example: String,
    fault: Option<String>,
}

/// Tries the examples of all rules.
///
/// # Errors
/// If a disabled list has an invalid rule, or if standard output cannot be written.
pub(super) fn run(gates: &Gates) -> anyhow::Result<Exit> {
    let mut tried = Vec::new();
    for (tool, rule) in gates.loaded.rules.iter() {
        let about = |subject: &CallSubject<'_>| rule.is_about(subject);
        let lists = [
            (&rule.written.matches, true),
            (&rule.written.not_matches, false),
        ];
        for (examples, expected) in lists {
            for example in examples {
                let found = gates
                    .find(tool)
                    .map(|def| try_one(gates, def, example, &about));
                tried.push(judged(&rule.origin, example, expected, found, tool));
            }
        }
    }
    let policy = gates.whole_policy()?;
    for rule in policy.iter().flat_map(PolicyEnforcer::rules) {
        let about = |subject: &CallSubject<'_>| rule.is_about(subject);
        let lists = [
            (&rule.written().matches, true),
            (&rule.written().not_matches, false),
        ];
        for (examples, expected) in lists {
            for example in &examples.0 {
                let (tool, arguments) = example.trim().split_once(' ').unwrap_or((example, ""));
                let found = gates
                    .find(tool)
                    .map(|def| try_one(gates, def, arguments, &about));
                tried.push(judged(rule.origin(), example, expected, found, tool));
            }
        }
    }
    let failed = tried.iter().filter(|tried| tried.fault.is_some()).count();
    let mut text = String::new();
    for tried in &tried {
        if let Some(fault) = &tried.fault {
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "{}: `{}`: {:?} {fault}",
                tried.origin, tried.origin.key, tried.example
            );
        }
    }
    let _ = match tried.len() {
        0 => writeln!(text, "no rule has examples (`match` and `not_match`)"),
        all => writeln!(
            text,
            "{all} {}: {} right, {failed} wrong",
            if all == 1 { "example" } else { "examples" },
            all - failed
        ),
    };
    print(&redacted(&text))?;
    Ok(if failed == 0 {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Whether the rule matches the example, or why that is unknown.
fn try_one(
    gates: &Gates,
    def: &ToolDef,
    arguments: &str,
    is_about: &dyn Fn(&CallSubject<'_>) -> bool,
) -> Result<bool, String> {
    let params = arguments_of(def, arguments).map_err(|error| error.to_string())?;
    let fitting = match fitting(gates, def, &def.id, params.clone()) {
        // An example as plain text may omit other required arguments.
        Err(_) if !arguments.trim_start().starts_with('{') => gates.expanded(def, params),
        fitting => fitting,
    };
    let params = fitting.map_err(|error| error.to_string())?;
    let call = Gates::call(def, params, Phase::default());
    Ok(is_about(&gates.subject(&call, def)))
}

fn judged(
    origin: &RuleOrigin,
    example: &str,
    expected: bool,
    found: Option<Result<bool, String>>,
    tool: &str,
) -> Tried {
    let fault = match found {
        Some(Ok(found)) if found == expected => None,
        Some(Ok(true)) => Some("matches, but is listed in `not_match`".to_owned()),
        Some(Ok(false)) => Some("does not match, but is listed in `match`".to_owned()),
        Some(Err(error)) => Some(format!("is not a call: {error}")),
        None => Some(format!("names the unknown tool {tool:?}")),
    };
    Tried {
        origin: origin.clone(),
        example: example.to_owned(),
        fault,
    }
}
