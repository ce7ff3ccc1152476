//! The `policy` layer: a call that the policy denies does not run, in no mode, on neither path, and
//! nobody is asked. The model reads that it was denied; by what is for the person and the trail.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, SharedRegistry, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::gate::parsed_call::{redirected, subject_after};
use crate::gate::policy::{PolicyEffect, PolicyEnforcer};
use crate::gate::{PathResolver, ToolTarget};

/// What the model reads of a denied call.
pub const DENIED: &str = "policy denied this call";

/// See the module.
#[derive(Clone)]
pub struct PolicyLayer {
    policy: Arc<PolicyEnforcer>,
    places: Arc<PathResolver>,
    registry: SharedRegistry,
}

impl PolicyLayer {
    /// A layer that decides by `policy`; paths begin at `places`.
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
        // The `known` layer stands before this one; a tool that is unknown here fails closed.
        let Some(def) = registry.get(&call.tool) else {
            return Err(ToolError::blocked(DENIED));
        };
        let subject = subject_after(call, def, &self.places, cx.last_read());
        let trust = cx.trace().trust;
        let decision = self.policy.decide(&subject, trust);
        cx.trace().record_rule_match(&decision.to_string());
        match decision.effect {
            PolicyEffect::Allow => Ok(()),
            PolicyEffect::Deny => {
                cx.emit(ToolEvent::Warning {
                    call_id: call.id.clone(),
                    text: format!("the policy did not let {} run: {decision}", def.id),
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
