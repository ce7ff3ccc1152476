//! Messages about the sandbox of a session's commands.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::denial_detection;
use crate::shell::read_guard::ReadGuard;
use zeph_exec::{CommandOutcome, EndReason, Plan};

/// The sandbox of a session's commands, and whether the user was warned about its missing parts.
#[derive(Debug, Default)]
pub(in crate::shell) struct SandboxNotices {
    /// The plan; `None` without a sandbox.
    plan: Option<Plan>,
    reads: Arc<ReadGuard>,
    warned: AtomicBool,
}

impl SandboxNotices {
    pub(in crate::shell) fn new(plan: Option<Plan>, reads: Arc<ReadGuard>) -> Self {
        Self {
            plan,
            reads,
            warned: AtomicBool::new(false),
        }
    }

    /// The warning for the user about the parts of the sandbox that this machine does not enforce. It is returned once.
    pub(in crate::shell) fn warning(&self, ended: &CommandOutcome) -> Option<String> {
        let lack = ended.unconfined.as_ref()?;
        let first = !self.warned.swap(true, Ordering::Relaxed);
        first.then(|| {
            format!(
                "Commands run without the whole OS sandbox: {lack}. \
                 `[tools.shell.sandbox] mode` says what to do about that."
            )
        })
    }

    /// The message for the model about the access that the sandbox refused to a failed command, which started in
    /// `place`. `all` has the output of both streams.
    pub(in crate::shell) fn refusal(
        &self,
        ended: &CommandOutcome,
        place: &Path,
        stderr: &str,
        all: &str,
    ) -> Option<String> {
        let plan = self.plan.as_ref()?;
        let code = ended.exit.code;
        if ended.cause != EndReason::Finished {
            return None;
        }
        let denied = |path: &Path| self.reads.denied(path);
        // With `2>&1`, the error is in the other stream. No other error names a denied path.
        if !self.reads.is_empty()
            && let Some(message) = denial_detection::read(denied, place, code, all)
        {
            return Some(message);
        }
        if ended.unconfined.is_some() {
            return None;
        }
        denial_detection::message(plan, place, code, stderr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeph_exec::runner::Exit;

    fn ended(unconfined: Option<&str>, cause: EndReason) -> CommandOutcome {
        CommandOutcome {
            exit: Exit {
                code: 1,
                signal: None,
            },
            cause,
            background: Vec::new(),
            lingering: false,
            unconfined: unconfined.map(str::to_owned),
            restarted: false,
        }
    }

    /// Proves SH-20.
    #[test]
    fn the_user_is_warned_once() {
        let told = SandboxNotices::new(None, Arc::default());
        assert_eq!(told.warning(&ended(None, EndReason::Finished)), None);
        let lacking = ended(Some("it lacks much"), EndReason::Finished);
        let warning = told.warning(&lacking).unwrap();
        assert!(warning.contains("it lacks much"), "{warning}");
        assert_eq!(told.warning(&lacking), None);
    }

    /// Proves SH-21: without a sandbox, or for a stopped command, no denial is reported.
    #[test]
    fn only_a_sandbox_that_stands_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("sh: 1: {}/x: Permission denied", dir.path().display());
        let plan = Plan {
            writable: vec!["/nowhere".into()],
            network: true,
            required: false,
            hidden: None,
            unreadable: Vec::new(),
            shared: Vec::new(),
        };
        let check = |plan: Option<&Plan>, unconfined, cause, expect| {
            let told = SandboxNotices::new(plan.cloned(), Arc::default());
            let refusal = told.refusal(&ended(unconfined, cause), Path::new("/"), &line, &line);
            assert_eq!(refusal.is_some(), expect, "{refusal:?}");
        };
        check(Some(&plan), None, EndReason::Finished, true);
        check(Some(&plan), Some("all"), EndReason::Finished, false);
        check(Some(&plan), None, EndReason::TimedOut, false);
        check(None, None, EndReason::Finished, false);
    }
}
