//! The `policy` layer: a call that the policy denies does not run, in any mode and on any path, and no question
//! is asked. The model only learns that it was denied; the user and the audit trail receive the cause.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, SharedRegistry, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::gate::command::ParsedCommandCache;
use crate::gate::parsed_call::{redirected, subject_after};
use crate::gate::policy::{PolicyEffect, PolicyEnforcer};
use crate::gate::{PathResolver, ToolTarget};

/// The error text that the model receives for a denied call.
pub const DENIED: &str = "policy denied this call";

/// The layer that applies the policy.
#[derive(Clone)]
pub struct PolicyLayer {
    policy: Arc<PolicyEnforcer>,
    places: Arc<PathResolver>,
    registry: SharedRegistry,
}

impl PolicyLayer {
    /// Creates a layer that decides by `policy`; relative paths start at `places`.
    #[must_use]
    pub fn new(
        policy: Arc<PolicyEnforcer>,
        places: Arc<PathResolver>,
        registry: SharedRegistry,
    ) -> Self {
        Self {
            policy,
            places,
            registry,
        }
    }

    fn judge(&self, call: &ToolCall, cx: &CallContext) -> Result<(), ToolError> {
        let registry = self.registry.load_full();
        // The `known` layer precedes this one; an unknown tool fails closed.
        let Some(def) = registry.get(&call.tool) else {
            return Err(ToolError::blocked(DENIED));
        };
        let subject = subject_after(
            call,
            def,
            &self.places,
            &cx.extensions().get::<ParsedCommandCache>(),
        );
        let trust = cx.trace().trust;
        let decision = self.policy.decide(&subject, trust);
        cx.trace().record_rule_match(&decision.to_string());
        match decision.effect {
            PolicyEffect::Allow => Ok(()),
            PolicyEffect::Deny => {
                cx.emit(ToolEvent::Warning {
                    call_id: call.id.clone(),
                    text: format!("the policy denied {}: {decision}", def.id),
                });
                Err(ToolError::blocked(DENIED))
            }
        }
    }
}

#[async_trait]
impl ToolLayer for PolicyLayer {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        self.judge(call, cx)?;
        let about = self.registry.load().get(&call.tool).map(|def| def.about);
        if !matches!(about, Some(ToolTarget::Url(_))) {
            return next.run(call, cx).await;
        }
        let (layer, of) = (self.clone(), call.clone());
        let judge = move |cx: &CallContext, url: &str| {
            let registry = layer.registry.load_full();
            let call = registry.get(&of.tool);
            let call = call.and_then(|def| redirected(&of, def, url));
            layer.judge(&call.ok_or_else(|| ToolError::blocked(DENIED))?, cx)
        };
        next.run(call, &cx.with_redirect_guard(Arc::new(judge)))
            .await
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
