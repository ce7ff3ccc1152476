//! The `cache` layer: returns a stored result for a repeated call if it is still valid. A call that may change
//! files invalidates all results that depend on files.
//!
//! It is inside every gate, so each cache hit has been allowed and is audited. The stored results have passed the
//! inner layers, so that a spilled text keeps its reference.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Next, SharedRegistry, ToolLayer};
use crate::cache::{CacheKey, CacheValidity, CachedResult, ResultCaches, note};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;
use crate::output::ToolOutput;
use crate::overflow::{Overflow, OverflowStore};

/// The layer that returns stored results.
pub struct CacheLayer {
    caches: Arc<ResultCaches>,
    overflow: Option<Arc<dyn OverflowStore>>,
    registry: SharedRegistry,
}

impl CacheLayer {
    /// Creates a layer that uses `caches`. A result with text in `overflow` is valid only while that text exists.
    #[must_use]
    pub fn new(
        caches: Arc<ResultCaches>,
        overflow: Option<Arc<dyn OverflowStore>>,
        registry: SharedRegistry,
    ) -> Self {
        Self {
            caches,
            overflow,
            registry,
        }
    }

    /// Returns the stored result of the call if it is valid, or runs the call.
    async fn answer(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        changes_files: bool,
        next: Next<'_>,
    ) -> ToolResult {
        let key = CacheKey::new(&call.tool, &call.params);
        let (mut visit, found) = self.caches.visit(&call.conversation, key);
        if let Some((kept, age)) = found {
            let holds = self.holds(call, &kept).await;
            if self.caches.confirm(&visit, &kept, holds) {
                tracing::debug!(tool = %call.tool, age = age.as_secs(), "result from the cache");
                cx.trace().claim_source.clone_from(&kept.claim_source);
                return Ok(told(&kept.output, age));
            }
        }
        let result = if changes_files {
            let changing = self.caches.changing();
            let result = next.run(call, &cx.is_cacheable()).await;
            // The result already reflects the changes of its own programs.
            changing.end_mutation(&mut visit);
            result
        } else {
            next.run(call, &cx.is_cacheable()).await
        };
        let mut output = result?;
        if let Some(basis) = output.basis.take()
            && may_be_kept(&output)
        {
            let kept = CachedResult {
                output: output.clone(),
                basis,
                claim_source: cx.trace().claim_source.clone(),
            };
            self.caches.keep(visit, kept);
        }
        Ok(output)
    }

    /// Whether a stored result is still the result of the call.
    async fn holds(&self, call: &ToolCall, kept: &CachedResult) -> bool {
        if let Some(Overflow::Stored(reference)) = &kept.output.overflow {
            let Some(store) = &self.overflow else {
                return false;
            };
            let found = store.find(&call.conversation, *reference).await;
            if !matches!(found, Ok(Some(_))) {
                return false;
            }
        }
        match &kept.basis {
            CacheValidity::Remote => true,
            CacheValidity::Files(witness) => witness.holds().await,
        }
    }
}

/// Whether an output may be stored. An image is large and depends on the model; a text that was not stored is
/// lost soon.
fn may_be_kept(output: &ToolOutput) -> bool {
    output.image.is_none() && !matches!(output.overflow, Some(Overflow::Spilled(_)))
}

/// Returns the output with a note that it is from the cache.
fn told(output: &ToolOutput, age: Duration) -> ToolOutput {
    let secs = age.as_secs();
    let line = note(secs);
    ToolOutput {
        summary: format!("{line}\n{}", output.summary),
        display: output
            .display
            .as_ref()
            .map(|display| format!("{line}\n{display}")),
        cached_secs: Some(secs),
        ..output.clone()
    }
}

#[async_trait]
impl ToolLayer for CacheLayer {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let policy = self.registry.load().cache_policy(&call.tool);
        if policy.is_cacheable {
            return self.answer(call, cx, policy.changes_files, next).await;
        }
        let _changing = policy.changes_files.then(|| self.caches.changing());
        next.run(call, cx).await
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
