//! Repair of invalid arguments, once per call: the port to the repairer, and the parser of its response.
//!
//! The result is only another set of arguments for the same tool. They are checked like the first ones, and pass
//! every gate.

use async_trait::async_trait;
use serde_json::Value;

use crate::def::ToolDef;
use crate::tafc::{Stripped, strip_tafc_fields};

/// Invalid arguments of a call.
#[derive(Debug, Clone, Copy)]
pub struct InvalidArguments<'a> {
    /// The tool.
    pub def: &'a ToolDef,
    /// The received arguments; a string if they were not JSON.
    pub sent: &'a Value,
    /// The fault.
    pub fault: &'a str,
}

/// A repairer of arguments: a model, asked once.
#[async_trait]
pub trait ArgumentRepairer: Send + Sync {
    /// Returns the name of the repairer.
    fn name(&self) -> &str;

    /// Returns the text of the response, if any. Dropping the future cancels the request.
    async fn reformat(&self, misfit: InvalidArguments<'_>) -> Option<String>;
}

/// The outcome of a repair, stored for the second pass of an approved call.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum RepairOutcome {
    /// No repair was requested.
    #[default]
    No,
    /// The repair failed: the first failure is final.
    InVain,
    /// The valid arguments.
    To(Value),
}

/// Parses the arguments in a response: one JSON object, alone or in a fence. Reasoning fields of the model are
/// removed.
#[must_use]
pub fn arguments(answer: &str) -> Option<Value> {
    let answer = answer.trim();
    let inner = match answer.strip_prefix("```") {
        None => answer,
        // The text after the opening of the fence names the language.
        Some(rest) => rest.strip_suffix("```")?.split_once('\n')?.1,
    };
    let value: Value = serde_json::from_str(inner).ok()?;
    let value = value.is_object().then_some(value)?;
    match strip_tafc_fields(value) {
        Stripped::Arguments(arguments) => Some(arguments),
        Stripped::OnlyReasoning => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Proves ERR-21 for the accepted responses.
    #[test]
    fn only_a_single_object_is_accepted() {
        let check = |answer: &str, expect: Option<Value>| {
            assert_eq!(arguments(answer), expect, "{answer:?}");
        };
        let a = || Some(json!({"a": 1}));
        check("{\"a\": 1}", a());
        check(" \n{\"a\": 1}\n", a());
        check("```json\n{\"a\": 1}\n```", a());
        check("```\n{\"a\":\n 1}\n```\n", a());
        check("{}", Some(json!({})));
        check("Here: {\"a\": 1}", None);
        check("{\"a\": 1}{\"a\": 2}", None);
        check("{\"a\": 1} done", None);
        check("```json\n{\"a\": 1}\n``` and more", None);
        check("```{\"a\": 1}```", None);
        check("[{\"a\": 1}]", None);
        check("\"{}\"", None);
        check("null", None);
        check("", None);
        check("```", None);
        check("``````", None);
        check(&"[".repeat(100_000), None);
    }

    proptest! {
        #[test]
        fn no_answer_panics(answer in "[`{}a\":1\n ]{0,40}") {
            if let Some(value) = arguments(&answer) {
                prop_assert!(value.is_object());
            }
        }
    }
}
