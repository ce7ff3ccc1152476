//! A chain of executors: the first one that owns a call runs it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::ToolDef;
use crate::executor::{ErasedToolExecutor, ExecutorResult, SkillEnv, ToolExecutor};
use crate::trust::TrustLevel;

/// An error of two executors that claim the same id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tool id {id:?} is claimed by executor {first:?} and by executor {second:?}; rename one of them"
)]
#[non_exhaustive]
pub struct DuplicateTool {
    /// The id (or alias) that is claimed twice.
    pub id: String,
    /// The earlier executor.
    pub first: &'static str,
    /// The later executor.
    pub second: &'static str,
}

/// A chain of named executors in the given order; the binary uses: skill, shell, file, web scrape, diagnostics,
/// MCP, native.
#[derive(Clone)]
pub struct CompositeExecutor {
    chain: Vec<(&'static str, Arc<dyn ErasedToolExecutor>)>,
}

impl CompositeExecutor {
    /// Creates a chain of `(name, executor)`.
    ///
    /// # Errors
    /// [`DuplicateTool`] if two definitions claim the same id or alias.
    pub fn new(
        chain: Vec<(&'static str, Arc<dyn ErasedToolExecutor>)>,
    ) -> Result<Self, DuplicateTool> {
        let mut owners: HashMap<String, &'static str> = HashMap::new();
        for (name, executor) in &chain {
            for def in executor.tool_definitions_erased() {
                let ids = std::iter::once(def.id.to_string())
                    .chain(def.aliases.iter().map(|alias| (*alias).to_owned()));
                for id in ids {
                    if let Some(first) = owners.insert(id.clone(), name) {
                        return Err(DuplicateTool {
                            id,
                            first,
                            second: name,
                        });
                    }
                }
            }
        }
        Ok(Self { chain })
    }
}

impl ToolExecutor for CompositeExecutor {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        for (_, executor) in &self.chain {
            if let Some(output) = executor.execute_tool_call_erased(call, cx).await? {
                return Ok(Some(output));
            }
        }
        Ok(None)
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        for (_, executor) in &self.chain {
            if let Some(output) = executor
                .execute_tool_call_confirmed_erased(call, cx)
                .await?
            {
                return Ok(Some(output));
            }
        }
        Ok(None)
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        self.chain
            .iter()
            .flat_map(|(_, executor)| executor.tool_definitions_erased())
            .collect()
    }

    fn set_skill_env(&self, env: Option<SkillEnv>) {
        for (_, executor) in &self.chain {
            executor.set_skill_env_erased(env.clone());
        }
    }

    fn set_effective_trust(&self, trust: TrustLevel) {
        for (_, executor) in &self.chain {
            executor.set_effective_trust_erased(trust);
        }
    }

    fn is_tool_retryable(&self, tool_id: &str) -> bool {
        self.chain
            .iter()
            .any(|(_, executor)| executor.is_tool_retryable_erased(tool_id))
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        self.chain
            .iter()
            .any(|(_, executor)| executor.requires_confirmation_erased(call))
    }
}
