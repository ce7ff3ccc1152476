//! The sandbox of a session's commands: it prepares the sandbox of each command, and finds the accesses that it refused.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::access_request::{AccessRequest, FailedCommand, request};
use super::config::SandboxConfig;
use super::profile::PreparedSandbox;
use super::{denial_detection, profile};
use crate::contract::confinement::{Confinement, SandboxAccess};
use crate::error::ToolError;
use crate::shell::read_guard::ReadGuard;
use zeph_exec::{CommandOutcome, EndReason, Plan};

/// The exit code of a file that cannot be executed. No write was refused then.
const NOT_EXECUTABLE: i32 = 126;

/// The sandbox of a session's commands, the warning about its missing parts, and the accesses that the user declined.
#[derive(Debug, Default)]
pub(in crate::shell) struct SessionSandbox {
    /// The plan; `None` without a sandbox.
    plan: Option<Plan>,
    reads: Arc<ReadGuard>,
    warned: AtomicBool,
    /// The accesses that the user declined, by conversation.
    declined: Mutex<Vec<(String, SandboxAccess)>>,
}

/// A command that ended, with its circumstances.
#[derive(Debug, Clone, Copy)]
pub(in crate::shell) struct FinishedCommand<'a> {
    pub(in crate::shell) ended: &'a CommandOutcome,
    pub(in crate::shell) sandbox: &'a PreparedSandbox,
    pub(in crate::shell) config: &'a SandboxConfig,
    /// The directory in which it started.
    pub(in crate::shell) place: &'a Path,
    pub(in crate::shell) project: &'a Path,
}

impl SessionSandbox {
    pub(in crate::shell) fn new(plan: Option<Plan>, reads: Arc<ReadGuard>) -> Self {
        Self {
            plan,
            reads,
            warned: AtomicBool::new(false),
            declined: Mutex::default(),
        }
    }

    /// The warning for the user about the parts of the sandbox that this machine does not enforce. It is returned once.
    pub(in crate::shell) fn warning(&self, ended: &CommandOutcome) -> Option<String> {
        let lack = ended.unconfined.as_ref()?;
        let first = !self.warned.swap(true, Ordering::Relaxed);
        first.then(|| {
            format!(
                "Commands run without the complete OS sandbox: {lack}. `[tools.shell.sandbox] \
                 mode = \"required\"` refuses to run them."
            )
        })
    }

    /// The accesses that the sandbox refused to a failed command. `all` has the output of both streams.
    pub(in crate::shell) fn refusal(
        &self,
        of: &FinishedCommand<'_>,
        stderr: &str,
        all: &str,
    ) -> Option<AccessRequest> {
        let session = self.plan.as_ref()?;
        let ended = of.ended;
        if ended.cause != EndReason::Finished || matches!(ended.exit.code, 0 | NOT_EXECUTABLE) {
            return None;
        }
        let denied = |path: &Path| self.reads.denied(path);
        // With `2>&1`, the error is in the other stream. No other error names a denied path.
        if !self.reads.is_empty()
            && let Some(message) = denial_detection::read(denied, of.place, all)
        {
            return Some(AccessRequest {
                access: Vec::new(),
                message,
            });
        }
        let plan = of.sandbox.plan.as_ref()?;
        if ended.unconfined.is_some() {
            return None;
        }
        let mut denials = ended.denials.clone();
        if denials.is_empty() {
            denials.extend(denial_detection::find_denial(plan, of.place, stderr));
        }
        request(
            &denials,
            &FailedCommand {
                plan,
                session,
                config: of.config,
                env: &of.sandbox.env,
                project: of.project,
            },
        )
    }

    /// The accesses of a request that the user can be asked about: those that the user did not decline yet.
    pub(in crate::shell) fn askable(
        &self,
        conversation: &str,
        request: &AccessRequest,
    ) -> Vec<SandboxAccess> {
        let declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        let is_declined = |access: &SandboxAccess| {
            let mut declined = declined.iter();
            declined.any(|(of, it)| of == conversation && it == access)
        };
        match request.access.iter().any(is_declined) {
            true => Vec::new(),
            false => request.access.clone(),
        }
    }

    /// Records that the user declined accesses. They are not asked about again in this conversation.
    pub(in crate::shell) fn decline(&self, conversation: &str, access: Vec<SandboxAccess>) {
        let mut declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        declined.extend(
            access
                .into_iter()
                .map(|access| (conversation.to_owned(), access)),
        );
    }

    /// Prepares the sandbox of a command.
    ///
    /// # Errors
    /// If the call may run only in a sandbox, and the session has none.
    pub(in crate::shell) fn prepare(
        &self,
        config: &SandboxConfig,
        confinement: &Confinement,
        programs: &[&str],
        env: Vec<(OsString, OsString)>,
    ) -> Result<PreparedSandbox, ToolError> {
        profile::prepare(self.plan.as_ref(), config, confinement, programs, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeph_exec::Sockets;
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
            denials: Vec::new(),
            restarted: false,
        }
    }

    /// Proves SH-20.
    #[test]
    fn user_is_warned_once() {
        let sandbox = SessionSandbox::new(None, Arc::default());
        assert_eq!(sandbox.warning(&ended(None, EndReason::Finished)), None);
        let lacking = ended(Some("it lacks much"), EndReason::Finished);
        let warning = sandbox.warning(&lacking).unwrap();
        assert!(warning.contains("it lacks much"), "{warning}");
        assert_eq!(sandbox.warning(&lacking), None);
    }

    /// Proves SH-21: without a sandbox, or for a stopped command, no denial is reported.
    #[test]
    fn denial_requires_an_active_sandbox() {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("sh: 1: {}/x: Permission denied", dir.path().display());
        let plan = Plan {
            writable: vec!["/nowhere".into()],
            sockets: Sockets::All,
            ..Plan::nothing()
        };
        let check = |plan: Option<&Plan>, unconfined, cause, expect| {
            let session = SessionSandbox::new(plan.cloned(), Arc::default());
            let config = SandboxConfig::default();
            let sandbox = session
                .prepare(&config, &Confinement::default(), &[], Vec::new())
                .unwrap();
            let finished = FinishedCommand {
                ended: &ended(unconfined, cause),
                sandbox: &sandbox,
                config: &config,
                place: Path::new("/"),
                project: Path::new("/"),
            };
            let refusal = session.refusal(&finished, &line, &line);
            assert_eq!(refusal.is_some(), expect, "{refusal:?}");
        };
        check(Some(&plan), None, EndReason::Finished, true);
        check(Some(&plan), Some("all"), EndReason::Finished, false);
        check(Some(&plan), None, EndReason::TimedOut, false);
        check(None, None, EndReason::Finished, false);
    }
}
