//! The validation layer: a call of an unknown tool or with invalid arguments ends here.
//!
//! It resolves aliases, checks and repairs the arguments, and expands `~` in paths. If the check fails
//! and a repairer is available, the repairer is asked once, also for a repeated call. The inner layers
//! receive the id of the tool and valid arguments. A call that was cancelled before it began, or that
//! its caller refuses, also ends here.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Next, SharedRegistry, ToolLayer};
use crate::argument_repair::{InvalidArguments, RepairOutcome, arguments};
use crate::cache::split_note;
use crate::call::ToolCall;
use crate::context::{CallContext, UserDecision};
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::{ToolResult, brief};
use crate::gate::PathResolver;
use crate::params::{self, Prepared};

/// The maximum length of strings in the notes on an invalid call, in bytes.
const NOTED_BYTES: usize = 256;

/// The layer that validates calls.
pub struct ValidationLayer {
    registry: SharedRegistry,
    places: Arc<PathResolver>,
}

impl ValidationLayer {
    /// Creates a layer that knows the tools of `registry`, and the home directory of `places`.
    #[must_use]
    pub fn new(registry: SharedRegistry, places: Arc<PathResolver>) -> Self {
        Self { registry, places }
    }
}

#[async_trait]
impl ToolLayer for ValidationLayer {
    fn name(&self) -> &'static str {
        "known"
    }

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let registry = self.registry.load_full();
        let Some(def) = registry.get(&call.tool) else {
            cx.trace().resolved = Some((call.tool.clone(), shortened(&call.params)));
            return Err(ToolError::ToolNotFound {
                id: call.tool.clone(),
                near: registry.suggestions(&call.tool),
            });
        };
        cx.trace().resolved = Some((
            def.id.to_string(),
            shortened(&without_contents(def, &call.params)),
        ));
        if let UserDecision::Refused(reason) = &cx.answer {
            return Err(ToolError::blocked(reason.clone()));
        }
        if cx.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let (mut prepared, reformatted) = match params::prepare_as(def, &call.tool, &call.params) {
            Ok(prepared) => (prepared, None),
            Err(fault) => {
                let (prepared, note) = reformat(def, call, cx, fault).await?;
                (prepared, Some(note))
            }
        };
        let params = prepared.params.as_ref().unwrap_or(&call.params);
        if let Some(expanded) = def.about.expand_home(params, self.places.home())? {
            prepared.params = Some(expanded);
        }
        if prepared.params.is_none() && def.id == call.tool {
            cx.trace().resolved = Some((call.tool.clone(), without_contents(def, &call.params)));
            return next.run(call, cx).await;
        }
        let resolved = ToolCall {
            tool: def.id.to_string(),
            params: prepared.params.unwrap_or_else(|| call.params.clone()),
            ..call.clone()
        };
        {
            let mut trace = cx.trace();
            trace.resolved = Some((
                resolved.tool.clone(),
                without_contents(def, &resolved.params),
            ));
            let notes = reformatted.iter().chain(&prepared.repairs);
            trace.repairs = notes.cloned().collect();
        }
        for note in reformatted.iter().chain(&prepared.repairs) {
            cx.emit(ToolEvent::Notice {
                call_id: call.id.clone(),
                text: note.clone(),
            });
        }
        // The repairer chose the arguments, so the model must be informed.
        let ran = reformatted.as_ref().map(|_| {
            let ran = shortened(&without_contents(def, &resolved.params));
            format!("the arguments did not match the schema; the call ran with {ran}")
        });
        let mut output = match (next.run(&resolved, cx).await, &ran) {
            (Err(error), Some(ran)) => return Err(error.noted(ran)),
            (result, _) => result?,
        };
        if !prepared.repairs.is_empty() {
            let repairs = prepared.repairs.join("; ");
            output.display = Some(noted(output.display(), &format!("(repaired: {repairs})")));
        }
        if let Some(note) = reformatted {
            output.display = Some(noted(output.display(), &format!("({note})")));
        }
        if let Some(ran) = ran {
            output.summary = noted(&output.summary, &format!("[{ran}]"));
        }
        Ok(output)
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// Asks the repairer once for valid arguments, and checks them. Returns them with a note.
///
/// # Errors
/// The first failure, if no repairer is available or its arguments are invalid; a cancellation.
async fn reformat(
    def: &ToolDef,
    call: &ToolCall,
    cx: &CallContext,
    fault: ToolError,
) -> Result<(Prepared, String), ToolError> {
    let asked = cx.trace().reformatted.clone();
    let (Some(reformat), true) = (&cx.reformat, fault.category().traits().reformat) else {
        return Err(fault);
    };
    let note = format!("reformatted by {}: {}", reformat.name(), brief(&fault));
    let said = fault.to_string();
    let params = match asked {
        RepairOutcome::To(params) => params,
        RepairOutcome::InVain => return Err(fault),
        RepairOutcome::No => {
            let misfit = InvalidArguments {
                def,
                sent: &call.params,
                fault: &said,
            };
            let answer = cx.cancel.run_until_cancelled(reformat.reformat(misfit));
            let answer = answer.await.ok_or_else(ToolError::cancelled)?;
            let Some(params) = answer.as_deref().and_then(arguments) else {
                cx.trace().reformatted = RepairOutcome::InVain;
                return Err(fault);
            };
            params
        }
    };
    match params::prepare_as(def, &call.tool, &params) {
        Ok(mut prepared) => {
            cx.trace().reformatted = RepairOutcome::To(params.clone());
            prepared.params.get_or_insert(params);
            Ok((prepared, note))
        }
        Err(error) => {
            tracing::debug!(tool = %def.id, %error, "the reformatted arguments do not match the \
                schema either");
            cx.trace().reformatted = RepairOutcome::InVain;
            Err(fault)
        }
    }
}

/// Adds a note before `text`. A note from the cache remains the first line.
fn noted(text: &str, note: &str) -> String {
    let (cached, rest) = split_note(text);
    let cached = cached.map(|line| format!("{line}\n")).unwrap_or_default();
    format!("{cached}{note}\n{rest}")
}

/// Returns the arguments, with contents of files replaced by their size.
fn without_contents(def: &ToolDef, params: &Value) -> Value {
    let is_content = |name: &str| {
        let field = def
            .param_aliases
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name, |(_, field)| field);
        def.content_params.contains(&field)
    };
    match params {
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if is_content(name) => (name.clone(), size_of(text)),
                other => (name.clone(), other.clone()),
            })
            .collect(),
        other => shortened(other),
    }
}

/// Returns invalid arguments, with long strings replaced by their size, because they may be contents of files.
fn shortened(params: &Value) -> Value {
    match params {
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), shortened(value)))
            .collect(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::String(text) if text.len() > NOTED_BYTES => size_of(text),
        other => other.clone(),
    }
}

fn size_of(text: &str) -> Value {
    Value::String(format!("[{} bytes]", text.len()))
}
