//! The stack of layers around the executors.
//!
//! A layer is one file with one job; policy is a value given to it. Only [`LayeredExecutor`]
//! implements [`ToolExecutor`] for the whole stack, so forwarding is written once.

pub mod adversarial;
pub mod anomaly;
pub mod audit;
#[cfg(feature = "shell")]
pub mod blocklist;
pub mod cache;
pub mod dependencies;
#[cfg(feature = "shell")]
pub mod filter_feedback;
pub mod grants;
pub mod hooks;
pub mod overflow;
pub mod permission;
pub mod policy;
pub mod quota;
pub mod redact;
pub mod reputation;
pub mod retry;
pub mod skill;
pub mod stack;
pub mod utility;
pub mod validate;

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tracing::Instrument as _;

use crate::call::ToolCall;
use crate::context::{ApprovedBy, CallContext, Origin};
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::executor::{ErasedToolExecutor, ExecutorResult, SkillEnv, ToolExecutor};
use crate::feedback::ToolResult;
use crate::gate::RuleSet;
use crate::output::OutputMetadata;
use crate::registry::ToolRegistry;
use crate::trust::TrustLevel;

pub use crate::contract::call_path::CallPath;
use crate::contract::effective_trust::EffectiveTrust;
pub(crate) use crate::contract::time::millis;
pub use crate::contract::time::now_ms;

/// A layer of the stack.
#[async_trait]
pub trait ToolLayer: Send + Sync {
    /// Returns its name in the stack.
    fn name(&self) -> &'static str;

    /// Handles a call: passes it to `next` or returns a result itself, and sees the result.
    ///
    /// # Errors
    /// The refusal of the layer, or an error of an inner layer: no layer swallows an error.
    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult;

    /// Whether the layer decides if a call may run. A command that the user typed skips such layers.
    fn is_gate(&self) -> bool;

    /// Whether the layer would ask about this call on the normal path.
    fn requires_confirmation(&self, call: &ToolCall) -> bool;
}

/// The inner layers and the executors, from the point of view of a layer.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Arc<dyn ToolLayer>],
    executors: &'a dyn ErasedToolExecutor,
    path: CallPath,
}

impl Next<'_> {
    /// Returns the path of the call.
    #[must_use]
    pub fn path(&self) -> CallPath {
        self.path
    }

    /// Switches to the confirmed path.
    #[must_use]
    pub fn confirmed(self) -> Self {
        Self {
            path: CallPath::Confirmed,
            ..self
        }
    }

    /// Whether the executor of the tool requires confirmation of this call.
    #[must_use]
    pub fn requires_confirmation(&self, call: &ToolCall) -> bool {
        self.executors.requires_confirmation_erased(call)
    }

    /// Whether the executor of the tool allows a retry of failed calls.
    #[must_use]
    pub fn is_retryable(&self, tool_id: &str) -> bool {
        self.executors.is_tool_retryable_erased(tool_id)
    }

    /// Passes the call to the next inner layer.
    ///
    /// # Errors
    /// Any error of the inner layers.
    pub async fn run(self, call: &ToolCall, cx: &CallContext) -> ToolResult {
        let mut layers = self.layers;
        while let Some((layer, rest)) = layers.split_first() {
            layers = rest;
            if cx.origin == Origin::Typed && layer.is_gate() {
                continue;
            }
            let span =
                tracing::debug_span!("layer", otel.name = layer.name(), zeph.layer = layer.name());
            let handled = layer.handle(call, cx, Next { layers, ..self });
            return handled.instrument(span).await;
        }
        cx.trace().attempts += 1;
        let answer = match self.path {
            CallPath::Normal => self.executors.execute_tool_call_erased(call, cx).await,
            CallPath::Confirmed => {
                self.executors
                    .execute_tool_call_confirmed_erased(call, cx)
                    .await
            }
        };
        answer?.ok_or_else(|| ToolError::ToolNotFound {
            id: call.tool.clone(),
            near: Vec::new(),
        })
    }
}

/// The registry that layers use; replaced as a whole with each request for the definitions.
pub type SharedRegistry = Arc<ArcSwap<ToolRegistry>>;

/// The stack: layers from the outside in, then the executors.
pub struct LayeredExecutor {
    layers: Vec<Arc<dyn ToolLayer>>,
    executors: Arc<dyn ErasedToolExecutor>,
    registry: SharedRegistry,
    rules: Arc<RuleSet>,
    trust: EffectiveTrust,
}

impl LayeredExecutor {
    /// Returns the names of the layers, from the outside in.
    #[must_use]
    pub fn layer_names(&self) -> Vec<&'static str> {
        self.layers.iter().map(|layer| layer.name()).collect()
    }

    /// Returns all tools, including hidden ones, as the gates use them.
    #[must_use]
    pub fn registry(&self) -> Arc<ToolRegistry> {
        self.registry.load_full()
    }

    async fn run(&self, path: CallPath, call: &ToolCall, cx: &CallContext) -> ToolResult {
        let start = Instant::now();
        {
            let mut trace = cx.trace();
            trace.trust = self.trust.get();
            // A confirmed call is judged again.
            trace.policy_match = None;
            if cx.origin == Origin::Typed {
                trace.approved_by = ApprovedBy::User;
            }
        }
        let next = Next {
            layers: &self.layers,
            executors: self.executors.as_ref(),
            path,
        };
        let mut result = next.run(call, cx).await;
        if let Ok(output) = &mut result {
            output.metadata = OutputMetadata {
                execution_time_ms: millis(start),
                data_size_bytes: output.summary.len() as u64,
                timestamp: now_ms(),
            };
        }
        result
    }
}

impl ToolExecutor for LayeredExecutor {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        self.run(CallPath::Normal, call, cx).await.map(Some)
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        self.run(CallPath::Confirmed, call, cx).await.map(Some)
    }

    /// Returns the definitions, and renews the registry of the layers, once a turn: the gates judge by the same
    /// definitions that the model received. Tools that rules can only deny are in the registry, but not exposed
    /// to the model.
    fn tool_definitions(&self) -> Vec<ToolDef> {
        let mut definitions = self.executors.tool_definitions_erased();
        let hidden = |def: &ToolDef| self.rules.hides(&def.id);
        let registry = ToolRegistry::new(definitions.clone()).without_hidden(hidden);
        self.registry.store(Arc::new(registry));
        definitions.retain(|def| !hidden(def));
        definitions
    }

    fn set_skill_env(&self, env: Option<SkillEnv>) {
        self.executors.set_skill_env_erased(env);
    }

    fn set_effective_trust(&self, trust: TrustLevel) {
        self.trust.set(trust);
        self.executors.set_effective_trust_erased(trust);
    }

    fn is_tool_retryable(&self, tool_id: &str) -> bool {
        self.executors.is_tool_retryable_erased(tool_id)
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        self.layers
            .iter()
            .any(|layer| layer.requires_confirmation(call))
            || self.executors.requires_confirmation_erased(call)
    }
}
