//! The `cache` layer: a call that was made before, and whose result still holds, is answered
//! without being made; a call that may change files puts an end to every result that rests on them.
//!
//! It stands within every gate: what is answered has been allowed just now, and is audited. What
//! it answers is what the layers within made of the output, so that a stored text is found under
//! the same reference.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::cache::catalog::{changes_files, is_cacheable};
use crate::cache::{CacheKey, CacheValidity, CachedResult, ResultCaches, note};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;
use crate::output::ToolOutput;
use crate::overflow::{Overflow, OverflowStore};

/// See the module.
pub struct CacheLayer {
    caches: Arc<ResultCaches>,
    overflow: Option<Arc<dyn OverflowStore>>,
}

impl CacheLayer {
    /// A layer that answers from `caches`. What is stored in `overflow` is answered only as long as
    /// it is there.
    #[must_use]
    pub fn new(caches: Arc<ResultCaches>, overflow: Option<Arc<dyn OverflowStore>>) -> Self {
        Self { caches, overflow }
    }

    /// The call's result if it was made before, else what comes of it now.
    async fn answer(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let key = CacheKey::new(&call.tool, &call.params);
        let (mut visit, found) = self.caches.visit(&call.conversation, key);
        if let Some((kept, age)) = found {
            let holds = self.holds(call, &kept).await;
            if self.caches.confirm(&visit, &kept, holds) {
                tracing::debug!(tool = %call.tool, age = age.as_secs(), "answered from the cache");
                cx.trace().claim_source.clone_from(&kept.claim_source);
                return Ok(told(&kept.output, age));
            }
        }
        let result = if changes_files(&call.tool) {
            let changing = self.caches.changing();
            let result = next.run(call, &cx.is_cacheable()).await;
            // What its own programs changed, it has seen.
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

    /// Whether a kept result is still what a call would yield.
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

/// An image takes much room and depends on who reads it; a text that was not stored is gone soon.
fn may_be_kept(output: &ToolOutput) -> bool {
    output.image.is_none() && !matches!(output.overflow, Some(Overflow::Spilled(_)))
}

/// The output, and that it is not new.
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

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        if is_cacheable(&call.tool) {
            return self.answer(call, cx, next).await;
        }
        let _changing = changes_files(&call.tool).then(|| self.caches.changing());
        next.run(call, cx).await
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
