//! The `known` layer: what is no tool, or does not fit its schema, goes no further.
//!
//! It resolves aliases, mends and checks the arguments; the layers within see the tool's own id
//! and arguments that fit. A call that was cancelled before it began, or that
//! its caller refuses, ends here too.

use async_trait::async_trait;
use serde_json::Value;

use super::{Next, SharedRegistry, ToolLayer};
use crate::cache::split_note;
use crate::call::ToolCall;
use crate::context::{Answer, CallContext};
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::params;

/// Strings longer than this stay out of the notes on a call that was not understood.
const NOTED_BYTES: usize = 256;

/// See the module.
pub struct KnownLayer {
    registry: SharedRegistry,
}

impl KnownLayer {
    /// A layer that knows the tools of `registry`.
    #[must_use]
    pub fn new(registry: SharedRegistry) -> Self {
        Self { registry }
    }
}

#[async_trait]
impl ToolLayer for KnownLayer {
    fn name(&self) -> &'static str {
        "known"
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let registry = self.registry.load_full();
        let Some(def) = registry.get(&call.tool) else {
            cx.trace().resolved = Some((call.tool.clone(), shortened(&call.params)));
            return Err(ToolError::ToolNotFound {
                id: call.tool.clone(),
                near: registry.near(&call.tool),
            });
        };
        cx.trace().resolved = Some((
            def.id.to_string(),
            shortened(&without_contents(def, &call.params)),
        ));
        if let Answer::Refused(reason) = &cx.answer {
            return Err(ToolError::blocked(reason.clone()));
        }
        if cx.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let prepared = params::prepare(def, &call.params)?;
        if prepared.params.is_none() && def.id == call.tool {
            cx.trace().resolved = Some((call.tool.clone(), without_contents(def, &call.params)));
            return next.run(call, cx).await;
        }
        let resolved = ToolCall {
            id: call.id.clone(),
            tool: def.id.to_string(),
            params: prepared.params.unwrap_or_else(|| call.params.clone()),
            caller_id: call.caller_id.clone(),
            phase: call.phase,
            conversation: call.conversation.clone(),
            batch: call.batch.clone(),
        };
        {
            let mut trace = cx.trace();
            trace.resolved = Some((
                resolved.tool.clone(),
                without_contents(def, &resolved.params),
            ));
            trace.repairs.clone_from(&prepared.repairs);
        }
        for repair in &prepared.repairs {
            cx.emit(ToolEvent::Notice {
                call_id: call.id.clone(),
                text: repair.clone(),
            });
        }
        let mut output = next.run(&resolved, cx).await?;
        if !prepared.repairs.is_empty() {
            // That it came from the cache stays the first line.
            let (note, rest) = split_note(output.display());
            let note = note.map(|note| format!("{note}\n")).unwrap_or_default();
            output.display = Some(format!(
                "{note}(repaired: {})\n{rest}",
                prepared.repairs.join("; "),
            ));
        }
        Ok(output)
    }

    fn would_ask(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// The arguments, with contents of files replaced by their size.
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

/// Arguments that were not understood, with long strings replaced by their size: they may be
/// contents of files.
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
