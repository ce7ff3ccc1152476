//! The `permission` layer: allow, ask or deny. The confirmed path skips asking alone.

use async_trait::async_trait;
use serde_json::Value;

use super::{CallPath, Next, SharedRegistry, ToolLayer};
use crate::call::ToolCall;
use crate::context::{Answer, ApprovedBy, CallContext};
use crate::def::ToolDef;
use crate::error::{Confirmation, ToolError};
use crate::feedback::ToolResult;
use crate::mode::Mode;
use crate::permissions::{Decision, decide};

/// See the module.
pub struct PermissionLayer {
    mode: Mode,
    registry: SharedRegistry,
}

impl PermissionLayer {
    /// A layer that decides by `mode`.
    #[must_use]
    pub fn new(mode: Mode, registry: SharedRegistry) -> Self {
        Self { mode, registry }
    }
}

#[async_trait]
impl ToolLayer for PermissionLayer {
    fn name(&self) -> &'static str {
        "permission"
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let registry = self.registry.load_full();
        // The `known` layer stands before this one; a tool that is unknown here fails closed.
        let Some(def) = registry.get(&call.tool) else {
            return Err(ToolError::blocked("no permission rule knows this tool"));
        };
        match (decide(self.mode, &def.annotations), next.path()) {
            (Decision::Allow, _) => {}
            (Decision::Ask { .. }, CallPath::Confirmed) => {
                cx.trace().approved_by = ApprovedBy::User;
            }
            (Decision::Ask { reason, hint }, CallPath::Normal) => {
                if let Answer::No(told) = &cx.answer {
                    return Err(ToolError::blocked(refusal(told.as_deref())));
                }
                return Err(ToolError::ConfirmationRequired(Box::new(Confirmation {
                    tool: def.id.to_string(),
                    subject: subject(def, &call.params),
                    risk: def.annotations.risk,
                    reason: reason.to_owned(),
                    hint: if cx.answer == Answer::Nobody {
                        hint.to_owned()
                    } else {
                        String::new()
                    },
                })));
            }
            (Decision::Deny { reason }, _) => return Err(ToolError::blocked(reason)),
        }
        next.run(call, cx).await
    }

    fn would_ask(&self, call: &ToolCall) -> bool {
        self.registry
            .load()
            .get(&call.tool)
            .is_some_and(|def| matches!(decide(self.mode, &def.annotations), Decision::Ask { .. }))
    }
}

fn refusal(told: Option<&str>) -> String {
    match told {
        Some(told) => format!("the user refused this call and says: {told}"),
        None => "the user refused this call".to_owned(),
    }
}

/// What a call is about, in a line or in the lines of its command: the first required argument,
/// else all arguments.
#[must_use]
pub fn subject(def: &ToolDef, params: &Value) -> String {
    let first = def
        .parameters
        .get("required")
        .and_then(Value::as_array)
        .and_then(|names| names.first())
        .and_then(Value::as_str)
        .and_then(|name| params.get(name))
        .and_then(Value::as_str);
    match first {
        Some(text) => text.to_owned(),
        None if params.as_object().is_none_or(serde_json::Map::is_empty) => String::new(),
        None => params.to_string(),
    }
}
