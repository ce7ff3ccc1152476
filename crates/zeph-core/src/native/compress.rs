//! `compress_context`: the model requests a summary of older messages.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use zeph_tools::def::CachePolicy;
use zeph_tools::{
    Annotations, CallContext, Tool, ToolCall, ToolDef, ToolError, ToolErrorCategory, ToolOutput,
};

use crate::compaction_request::PendingCompactions;

/// No parameters.
#[derive(Debug, Deserialize, JsonSchema)]
struct Params {}

/// The tool `compress_context`: it records the request, and the agent compacts the conversation before the next request
/// to the model.
pub struct CompressContext {
    def: ToolDef,
    requests: Arc<PendingCompactions>,
}

impl CompressContext {
    /// The tool, which records its requests in `requests`.
    #[must_use]
    pub fn new(requests: Arc<PendingCompactions>) -> Self {
        Self {
            def: ToolDef::new::<Params>(
                "compress_context",
                "Summarize older messages when the context is nearly full.",
                Annotations::SESSION_STATE,
            )
            .with_cache(CachePolicy::LEAVES_FILES),
            requests,
        }
    }
}

#[async_trait]
impl Tool for CompressContext {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if !self.requests.request(&call.conversation) {
            return Err(ToolError::Failed {
                category: ToolErrorCategory::PermanentFailure,
                message: "this session has no conversation to summarize".to_owned(),
            });
        }
        Ok(ToolOutput::text(
            "Older messages are summarized before your next response; if that fails, they stay.",
        ))
    }
}
