//! Arguments that do not fit are put right once: the port to who can, and how its answer is read.
//!
//! What comes of it is no more than other arguments of the same tool: they are checked as the first
//! ones were, and pass every gate.

use async_trait::async_trait;
use serde_json::Value;

use crate::def::ToolDef;
use crate::tafc::{Stripped, strip_tafc_fields};

/// Arguments that do not fit.
#[derive(Debug, Clone, Copy)]
pub struct InvalidArguments<'a> {
    /// The tool.
    pub def: &'a ToolDef,
    /// What was sent; a string where it was no JSON.
    pub sent: &'a Value,
    /// What is wrong with it.
    pub fault: &'a str,
}

/// Asks for arguments that fit: a model, once.
#[async_trait]
pub trait ArgumentRepairer: Send + Sync {
    /// Who is asked.
    fn name(&self) -> &str;

    /// The text of the answer; `None` when there is none. Cancellation is dropping the future.
    async fn reformat(&self, misfit: InvalidArguments<'_>) -> Option<String>;
}

/// What came of asking, noted for the second way of a call that someone agreed to.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum RepairOutcome {
    /// Nobody was asked.
    #[default]
    No,
    /// Nothing came of it: the first failure is final.
    InVain,
    /// The arguments that fit.
    To(Value),
}

/// The arguments in an answer: the text is one JSON object, or one in a fence. What a model reasoned in
/// them is taken out.
#[must_use]
pub fn arguments(answer: &str) -> Option<Value> {
    let answer = answer.trim();
    let inner = match answer.strip_prefix("```") {
        None => answer,
        // What stands behind the fence's opening names the language.
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

    /// Proves ERR-21 for what is taken as an answer.
    #[test]
    fn one_object_is_taken_and_nothing_else() {
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
