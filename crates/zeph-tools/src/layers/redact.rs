//! The `redact` layer: what a tool yields holds no secret's value.
//!
//! Summary, display, machine form, errors and what comes with them; a line at the end names the
//! kinds that were found, never a value. What `read` yields holds the file's own text, or `edit`
//! could not match it: there, values that are known are replaced, and others are told of.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;
use crate::output::ToolOutput;
use crate::overflow::Overflow;
use crate::secrets::{Kinds, SecurityPatterns};

/// The tool whose text must be that of the file.
const VERBATIM: &str = "read";

/// See the module.
pub struct RedactLayer {
    secrets: Arc<SecurityPatterns>,
}

/// What is done with the texts of one result.
struct Pass<'s> {
    secrets: &'s Arc<SecurityPatterns>,
    /// Only known values are replaced.
    verbatim: bool,
    found: Kinds,
}

impl RedactLayer {
    /// A layer that replaces what `secrets` finds.
    #[must_use]
    pub fn new(secrets: Arc<SecurityPatterns>) -> Self {
        Self { secrets }
    }
}

impl Pass<'_> {
    /// What a text becomes; `None` when it stays.
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
            std::borrow::Cow::Owned(text) => Some(text),
            std::borrow::Cow::Borrowed(_) => None,
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

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let mut result = next.run(call, cx).await;
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

    fn would_ask(&self, _call: &ToolCall) -> bool {
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
