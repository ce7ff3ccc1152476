//! The `redact` layer: results of tools contain no values of secrets.
//!
//! It changes the summary, the display, the JSON result, errors and their outputs. A line at the end names the
//! kinds that were found, never a value. The result of `read` must contain the exact text of the file, because
//! `edit` matches it: there, only known values are replaced, and others are reported.
//!
//! Tools that store their arguments in the database of the agent receive them without the values. Texts of outer
//! layers, such as an error that quotes an argument, pass `withhold` at the outermost layer.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::feedback::ToolResult;
use crate::output::ToolOutput;
use crate::overflow::Overflow;
use crate::secrets::{Kinds, SecurityPatterns};

/// The tool that returns the exact text of a file.
const VERBATIM: &str = "read";

/// The tools that store their arguments in the database of the agent.
const KEEPS_ARGUMENTS: [&str; 4] = ["memory_save", "add_task", "update_task", "scheduler"];

/// Removes secrets from the final result of all layers: known values everywhere, and patterns in the texts of
/// failures.
pub(super) fn withhold(secrets: &Arc<SecurityPatterns>, result: &mut ToolResult) {
    let error = match result {
        Ok(output) => return withhold_known(secrets, output),
        Err(error) => error,
    };
    let change = |text: &mut String| {
        let changed = match secrets.shows() {
            true => secrets.redact_known(text),
            false => secrets.redact(text).text,
        };
        if let Cow::Owned(changed) = changed {
            *text = changed;
        }
    };
    if let ToolError::ConfirmationRequired(question) = error {
        change(&mut question.subject);
        change(&mut question.reason);
        change(&mut question.hint);
    }
    error.change_texts(change);
    if let Some(output) = error.output_mut() {
        withhold_known(secrets, output);
    }
}

fn withhold_known(secrets: &SecurityPatterns, output: &mut ToolOutput) {
    let texts = [&mut output.summary].into_iter().chain(&mut output.display);
    for text in texts {
        if let Cow::Owned(changed) = secrets.redact_known(text) {
            *text = changed;
        }
    }
    if let Some(raw) = &mut output.raw_response {
        secrets.redact_known_json(raw);
    }
}

/// The layer that replaces secrets in results.
pub struct RedactLayer {
    secrets: Arc<SecurityPatterns>,
}

/// The pass over the texts of one result.
struct Pass<'s> {
    secrets: &'s Arc<SecurityPatterns>,
    /// Whether only known values are replaced.
    verbatim: bool,
    found: Kinds,
}

impl RedactLayer {
    /// Creates a layer that replaces the matches of `secrets`.
    #[must_use]
    pub fn new(secrets: Arc<SecurityPatterns>) -> Self {
        Self { secrets }
    }
}

impl Pass<'_> {
    /// Returns the redacted text, or `None` if it does not change.
    fn text(&mut self, text: &str) -> Option<String> {
        let redacted = self.secrets.redact(text);
        self.found.extend(redacted.kinds);
        let text = if self.secrets.shows() {
            return None;
        } else if self.verbatim {
            self.secrets.redact_known(text)
        } else {
            redacted.text
        };
        match text {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        }
    }

    fn change(&mut self, text: &mut String) {
        if let Some(redacted) = self.text(text) {
            *text = redacted;
        }
    }

    fn output(&mut self, output: &mut ToolOutput) {
        match &mut output.overflow {
            Some(Overflow::Spilled(shortened)) => {
                shortened.rewrite(&mut output.summary, |part| self.text(part));
            }
            _ => self.change(&mut output.summary),
        }
        if let Some(display) = &mut output.display {
            self.change(display);
        }
        if let Some(raw) = &mut output.raw_response {
            if self.verbatim || self.secrets.shows() {
                let mut copy = raw.clone();
                self.found.extend(self.secrets.redact_json(&mut copy));
            } else {
                self.found.extend(self.secrets.redact_json(raw));
            }
        }
    }
}

#[async_trait]
impl ToolLayer for RedactLayer {
    fn name(&self) -> &'static str {
        "redact"
    }

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let mut result = if KEEPS_ARGUMENTS.contains(&call.tool.as_str()) {
            let mut kept = call.clone();
            self.secrets.redact_json(&mut kept.params);
            next.run(&kept, cx).await
        } else {
            next.run(call, cx).await
        };
        let mut pass = Pass {
            secrets: &self.secrets,
            verbatim: call.tool == VERBATIM,
            found: cx.trace().secrets,
        };
        match &mut result {
            Ok(output) => pass.output(output),
            Err(error) => {
                error.change_texts(|text| pass.change(text));
                if let Some(output) = error.output_mut() {
                    pass.output(output);
                }
            }
        }
        let replaced = !pass.verbatim && !self.secrets.shows();
        let Some(warning) = self.secrets.warning(pass.found, replaced) else {
            return result;
        };
        match &mut result {
            Ok(output) => append(output, &warning),
            Err(error) => match error.output_mut() {
                Some(output) => append(output, &warning),
                None => {
                    let mut told = false;
                    error.change_texts(|text| {
                        if !std::mem::replace(&mut told, true) {
                            text.push(' ');
                            text.push_str(&warning);
                        }
                    });
                }
            },
        }
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

fn append(output: &mut ToolOutput, line: &str) {
    let summary = &mut output.summary;
    if !summary.is_empty() && !summary.ends_with('\n') {
        summary.push('\n');
    }
    summary.push_str(line);
}
