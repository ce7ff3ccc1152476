//! `--output-schema`: a turn with a response that matches a JSON Schema.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_core::{Agent, AttachedPrompt, TurnEnd, TurnOutcome};
use zeph_llm::{Usage, Usd};

use super::{UsageError, usage};

/// The number of repeated requests for a response that does not follow its schema.
const SCHEMA_RETRIES: usize = 2;

/// A schema for the response.
pub(super) struct ResponseSchema {
    schema: Value,
    validator: jsonschema::Validator,
}

impl ResponseSchema {
    /// Reads a schema from a file.
    ///
    /// # Errors
    /// A usage error if the file cannot be read, or is not a JSON Schema.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .with_context(|| UsageError(format!("--output-schema {name} cannot be read")))?;
        let schema: Value = serde_json::from_str(&text)
            .with_context(|| UsageError(format!("--output-schema {name} is not valid JSON")))?;
        let validator = jsonschema::validator_for(&schema).map_err(|error| {
            usage(format!(
                "--output-schema {name} is not a JSON Schema: {error}"
            ))
        })?;
        Ok(Self { schema, validator })
    }

    /// The schema as JSON.
    pub(super) fn value(&self) -> &Value {
        &self.schema
    }

    /// The response as JSON text, or the reason why it is invalid.
    fn check(&self, answer: &str) -> Result<String, String> {
        let text = unfenced(answer);
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        let faults: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(5)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        if faults.is_empty() {
            Ok(text.to_owned())
        } else {
            Err(faults.join("; "))
        }
    }

    /// Runs a turn with a response that has to follow the schema; a wrong response is requested
    /// again. The counts of the outcome cover all attempts.
    pub(super) async fn run(
        &self,
        agent: &mut Agent,
        AttachedPrompt { text, mut images }: AttachedPrompt,
        cancel: &CancellationToken,
    ) -> TurnOutcome {
        let mut prompt = format!(
            "{text}\n\nYour final response must be only JSON, without a fence, that matches this JSON \
             Schema:\n{}",
            self.schema
        );
        let (mut total, mut cost) = (Usage::default(), Some(Usd::default()));
        let (mut iterations, mut tool_calls) = (0, 0);
        let mut attempt = 0;
        loop {
            let images = std::mem::take(&mut images);
            let mut outcome = agent.run_turn_with_images(&prompt, images, cancel).await;
            total.add(outcome.usage);
            outcome.usage = total;
            cost = cost.zip(outcome.cost).map(|(sum, cost)| sum.plus(cost));
            outcome.cost = cost;
            iterations += outcome.iterations;
            outcome.iterations = iterations;
            tool_calls += outcome.tool_calls;
            outcome.tool_calls = tool_calls;
            if outcome.end != TurnEnd::Done {
                return outcome;
            }
            match self.check(&outcome.text) {
                Ok(answer) => {
                    outcome.text = answer;
                    return outcome;
                }
                Err(fault) if attempt < SCHEMA_RETRIES => {
                    attempt += 1;
                    prompt = format!(
                        "Your response does not match the JSON Schema: {fault}. Respond again with \
                         only the corrected JSON."
                    );
                }
                Err(fault) => {
                    outcome.end = TurnEnd::Error;
                    outcome.message = Some(format!(
                        "the response does not match the schema after {} attempts: {fault}",
                        attempt + 1
                    ));
                    return outcome;
                }
            }
        }
    }
}

/// The text inside a fence around the complete response, otherwise the response.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    answer
        .strip_prefix("```json")
        .or_else(|| answer.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"))
        .map_or(answer, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_around_the_whole_response_is_removed() {
        let check = |answer, expect| assert_eq!(unfenced(answer), expect);
        check("{\"a\": 1}", "{\"a\": 1}");
        check("```json\n{\"a\": 1}\n```\n", "{\"a\": 1}");
        check("```\n[1]\n```", "[1]");
        check("```json\n{}", "```json\n{}");
    }
}
