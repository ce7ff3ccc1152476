//! `zeph filter explain`: the rule that applies to a command.

use serde_json::json;
use zeph_tools::filter::{FilterPipeline, Plan, Subject};

use super::super::{Exit, print, print_as_is};
use crate::output::json_lines;

/// Prints how the output of `command` is filtered.
pub(super) fn run(filters: &FilterPipeline, command: &str, as_json: bool) -> anyhow::Result<Exit> {
    let plan = filters.plan(command);
    let part = Subject::of(command).map_or_else(String::new, |subject| subject.text);
    let (what, rule) = match &plan {
        Plan::Plain | Plan::InFull => ("plain", None),
        Plan::Unknown => ("unknown", None),
        Plan::Rule(rule) => ("rule", Some(rule)),
    };
    if as_json {
        let value = json!({
            "command": command,
            "part": part,
            "plan": what,
            "rule": rule.map(|rule| &rule.name),
            "strategies": rule.map(|rule| rule.strategies()),
            "on_failure": rule.and_then(|rule| rule.on_failure()),
        });
        print_as_is(&json_lines(&value)?)?;
        return Ok(Exit::Done);
    }
    let mut text = format!("the part of the command that the rule uses: {part}\n");
    match rule {
        Some(rule) => {
            text.push_str(&format!("rule: {} ({:?})\n", rule.name, rule.matches));
            text.push_str(&format!("strategies: {}\n", rule.strategies().join(", ")));
            if let Some(on_failure) = rule.on_failure() {
                text.push_str(&format!("if the command fails: {}\n", on_failure.join(", ")));
            }
        }
        None if matches!(plan, Plan::Plain) => {
            text.push_str("no rule: filters are off; only escapes and progress bars are removed\n");
        }
        None if matches!(plan, Plan::InFull) => text.push_str(
            "no rule: the output is requested in full; equal lines are grouped only if it is too long\n",
        ),
        None => text.push_str(
            "no rule for this command: outputs of 100 or more lines are grouped by similar lines\n",
        ),
    }
    print(&text)?;
    Ok(Exit::Done)
}
