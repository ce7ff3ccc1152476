//! The `hooks` layer: programs of the user see a call before and after it runs, and can refuse it.
//!
//! A call passes here more than once if a tool asks the user, or if a command runs again without its first sandbox.
//! The hooks run once before the call and once after it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::permission::command::runs_again;
use super::{Next, ToolLayer};
use crate::cache::CacheKey;
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::contract::call_hooks::{CallHooks, hook_blocks};
use crate::error::ToolError;
use crate::feedback::ToolResult;
use crate::secrets::SecurityPatterns;

/// The layer that runs the hooks of calls.
pub struct HookLayer {
    hooks: Arc<dyn CallHooks>,
    secrets: Arc<SecurityPatterns>,
}

/// The hooks that ran before a call.
#[derive(Default)]
struct PassedHooks(Mutex<Option<(CacheKey, Vec<String>)>>);

impl HookLayer {
    /// Creates a layer that runs `hooks`, and removes `secrets` from their texts.
    #[must_use]
    pub fn new(hooks: Arc<dyn CallHooks>, secrets: Arc<SecurityPatterns>) -> Self {
        Self { hooks, secrets }
    }

    /// Runs the hooks before the call, unless they have passed this call already.
    async fn before(&self, call: &ToolCall, cx: &CallContext) -> Result<Vec<String>, ToolError> {
        let passed = cx.extensions().get::<PassedHooks>();
        let key = CacheKey::new(&call.tool, &call.params);
        {
            let passed = passed.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, texts)) = passed.as_ref().filter(|(of, _)| *of == key) {
                return Ok(texts.clone());
            }
        }
        let texts = self.hooks.before_call(call, cx).await;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let texts = texts.map_err(|reason| ToolError::blocked(self.clean(&reason)))?;
        *passed.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, texts.clone()));
        Ok(texts)
    }

    /// The text of a hook without secrets.
    fn clean(&self, text: &str) -> String {
        self.secrets.redact(text).text.into_owned()
    }

    fn blocks(&self, event: &str, texts: &[String]) -> String {
        let texts: Vec<String> = texts.iter().map(|text| self.clean(text)).collect();
        hook_blocks(event, &texts)
    }
}

#[async_trait]
impl ToolLayer for HookLayer {
    fn name(&self) -> &'static str {
        "hooks"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let before = self.before(call, cx).await?;
        let mut result = next.run(call, cx).await;
        let is_refused = result.as_ref().is_err_and(ToolError::is_refusal);
        if is_refused || cx.cancel.is_cancelled() || runs_again(cx, &result) {
            return result;
        }
        let after = self.hooks.after_call(call, cx, &result).await;
        let blocks = self.blocks("before_call", &before) + &self.blocks("after_call", &after);
        if blocks.is_empty() {
            return result;
        }
        let output = match &mut result {
            Ok(output) => Some(output),
            Err(error) => error.output_mut(),
        };
        match output {
            Some(output) => {
                // The user sees the result itself.
                output.display.get_or_insert_with(|| output.summary.clone());
                output.summary.push_str(&blocks);
                result
            }
            None => result.map_err(|error| error.noted(blocks.trim().to_owned())),
        }
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
