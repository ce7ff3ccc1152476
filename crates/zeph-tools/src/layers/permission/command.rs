//! The run of a decided command: in the sandbox that the decision implies, and again if that sandbox does not fit.

use super::{Pass, PermissionLayer};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::contract::confinement::{Confinement, SandboxAccess, SandboxProfile};
use crate::def::ToolDef;
use crate::feedback::ToolResult;
use crate::layers::Next;

impl PermissionLayer {
    /// Decides about a command, and runs it in the sandbox that the decision implies. If the sandbox refuses an access
    /// to a command that only reads, it is decided again as any other command. If the sandbox cannot be enforced, it is
    /// decided again as without one.
    pub(super) async fn run_command(
        &self,
        call: &ToolCall,
        def: &ToolDef,
        cx: &CallContext,
        next: &Next<'_>,
    ) -> ToolResult {
        loop {
            let (next, profile) = match self.judge(call, def, cx, next)? {
                Pass::Unchanged(profile) => (*next, profile),
                Pass::Approved => (next.confirmed(), SandboxProfile::Configured),
            };
            let cx = cx.with_confinement(Confinement {
                profile,
                access: self.granted_access(call),
            });
            let result = next.run(call, &cx).await;
            if result.is_ok() || !is_decided_again(profile, &cx) {
                return result;
            }
        }
    }

    /// The accesses that the user approved for more than one call.
    fn granted_access(&self, call: &ToolCall) -> Vec<SandboxAccess> {
        let grants = self.permissions.grants.of_conversation(&call.conversation);
        grants
            .iter()
            .filter_map(SandboxAccess::from_grant)
            .collect()
    }
}

/// Whether a command that failed with this profile is decided again: the sandbox could not be enforced, or it refused an
/// access to a command that only reads.
fn is_decided_again(profile: SandboxProfile, cx: &CallContext) -> bool {
    let trace = cx.trace();
    match profile {
        SandboxProfile::Configured => false,
        SandboxProfile::Unconfirmed => trace.sandbox_missing,
        SandboxProfile::ReadOnly => trace.sandbox_missing || trace.sandbox_refusal.is_some(),
    }
}

/// Whether a command with this result is decided again, so that the result is not its last one.
pub(in crate::layers) fn runs_again(cx: &CallContext, result: &ToolResult) -> bool {
    result.is_err() && is_decided_again(cx.confinement().profile, cx)
}

/// Returns a sentence about the access that the sandbox refused to the command, which ran as a read-only one before.
pub(super) fn after_refusal(cx: &CallContext) -> String {
    match &cx.trace().sandbox_refusal {
        None => String::new(),
        Some(refusal) => {
            let refused = refusal.split("; ").next().unwrap_or_default();
            format!(" It ran first in the read-only sandbox and failed: {refused}.")
        }
    }
}
