//! The two traits of an executor: one for static use and an object-safe one.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::trust::TrustLevel;

/// The environment variables that a skill adds to its own calls.
pub type SkillEnv = BTreeMap<String, String>;

/// The result of an executor; `Ok(None)` means that it does not own the tool.
pub type ExecutorResult = Result<Option<ToolOutput>, ToolError>;

/// An executor of the calls of the tools that it owns.
///
/// No method has a default body: otherwise a wrapper could omit a method without an error.
pub trait ToolExecutor: Send + Sync {
    /// Runs a call, or asks for confirmation with [`ToolError::ConfirmationRequired`].
    ///
    /// # Errors
    /// The failure of the call.
    fn execute_tool_call(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> impl Future<Output = ExecutorResult> + Send;

    /// Runs a call that the user has approved. Skips only the question.
    ///
    /// # Errors
    /// The failure of the call.
    fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> impl Future<Output = ExecutorResult> + Send;

    /// Returns the tools that it owns.
    fn tool_definitions(&self) -> Vec<ToolDef>;

    /// Sets or clears the environment variables of a skill.
    fn set_skill_env(&self, env: Option<SkillEnv>);

    /// Sets the trust level for the next calls.
    fn set_effective_trust(&self, trust: TrustLevel);

    /// Whether a failed call of this tool may be repeated automatically.
    fn is_tool_retryable(&self, tool_id: &str) -> bool;

    /// Whether this call needs a question.
    fn requires_confirmation(&self, call: &ToolCall) -> bool;
}

/// The object-safe form of [`ToolExecutor`].
#[async_trait]
pub trait ErasedToolExecutor: Send + Sync {
    /// See [`ToolExecutor::execute_tool_call`].
    async fn execute_tool_call_erased(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult;
    /// See [`ToolExecutor::execute_tool_call_confirmed`].
    async fn execute_tool_call_confirmed_erased(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult;
    /// See [`ToolExecutor::tool_definitions`].
    fn tool_definitions_erased(&self) -> Vec<ToolDef>;
    /// See [`ToolExecutor::set_skill_env`].
    fn set_skill_env_erased(&self, env: Option<SkillEnv>);
    /// See [`ToolExecutor::set_effective_trust`].
    fn set_effective_trust_erased(&self, trust: TrustLevel);
    /// See [`ToolExecutor::is_tool_retryable`].
    fn is_tool_retryable_erased(&self, tool_id: &str) -> bool;
    /// See [`ToolExecutor::requires_confirmation`].
    fn requires_confirmation_erased(&self, call: &ToolCall) -> bool;
}

#[async_trait]
impl<E: ToolExecutor> ErasedToolExecutor for E {
    async fn execute_tool_call_erased(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        self.execute_tool_call(call, cx).await
    }

    async fn execute_tool_call_confirmed_erased(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        self.execute_tool_call_confirmed(call, cx).await
    }

    fn tool_definitions_erased(&self) -> Vec<ToolDef> {
        self.tool_definitions()
    }

    fn set_skill_env_erased(&self, env: Option<SkillEnv>) {
        self.set_skill_env(env);
    }

    fn set_effective_trust_erased(&self, trust: TrustLevel) {
        self.set_effective_trust(trust);
    }

    fn is_tool_retryable_erased(&self, tool_id: &str) -> bool {
        self.is_tool_retryable(tool_id)
    }

    fn requires_confirmation_erased(&self, call: &ToolCall) -> bool {
        self.requires_confirmation(call)
    }
}

/// A [`ToolExecutor`] around an erased executor. Delegates every method.
#[derive(Clone)]
pub struct DynExecutor(pub Arc<dyn ErasedToolExecutor>);

impl ToolExecutor for DynExecutor {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        self.0.execute_tool_call_erased(call, cx).await
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        self.0.execute_tool_call_confirmed_erased(call, cx).await
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        self.0.tool_definitions_erased()
    }

    fn set_skill_env(&self, env: Option<SkillEnv>) {
        self.0.set_skill_env_erased(env);
    }

    fn set_effective_trust(&self, trust: TrustLevel) {
        self.0.set_effective_trust_erased(trust);
    }

    fn is_tool_retryable(&self, tool_id: &str) -> bool {
        self.0.is_tool_retryable_erased(tool_id)
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        self.0.requires_confirmation_erased(call)
    }
}
