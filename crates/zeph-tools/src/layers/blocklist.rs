//! The `blocklist` layer: refuses commands that the blocklist of the shell contains.
//!
//! It precedes all rules and questions, so that the user is not asked about a command that cannot run. The
//! executor checks each command again.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::feedback::ToolResult;
use crate::shell::ShellExecutor;
use crate::shell::admission::CommandGate;
use crate::shell::bash::BASH;
use zeph_bash::Verdict;

/// The layer that applies the blocklist.
pub struct BlocklistLayer {
    admission: Arc<CommandGate>,
}

impl BlocklistLayer {
    /// Creates a layer that refuses the commands that the policy of `shell` blocks.
    #[must_use]
    pub fn new(shell: &ShellExecutor) -> Self {
        let admission = shell.gate();
        Self { admission }
    }
}

#[async_trait]
impl ToolLayer for BlocklistLayer {
    fn name(&self) -> &'static str {
        "blocklist"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        if call.tool == BASH {
            let verdict = self.admission.refuse_blocked(&call.parse()?, cx)?;
            if let (
                Verdict::Ask {
                    why,
                    can_be_allowed_exactly,
                },
                _,
            ) = verdict
            {
                let mut trace = cx.trace();
                trace.confirmation_reason = Some(why);
                trace.can_be_allowed_exactly = can_be_allowed_exactly;
            }
        }
        next.run(call, cx).await
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
