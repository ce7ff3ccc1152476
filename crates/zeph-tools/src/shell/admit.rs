//! Whether a command may run: the blocklist's verdict, as an error or as a question.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::context::{Answer, ApprovedBy, CallContext};
use crate::def::Risk;
use crate::error::{Confirmation, ToolError};
use crate::layers::CallPath;

use super::bash::{BASH, BashParams};
use super::config::ShellConfig;
use super::cwd;
use super::policy::{PolicyError, ShellPolicyHandle, Start, Verdict, claim_source};

/// The gate before every command, on both paths.
pub(super) struct Admission {
    policy: ShellPolicyHandle,
    /// What must not be destroyed, wherever a command starts.
    start: Start,
    /// How much a command can harm.
    risk: Risk,
}

impl Admission {
    /// The gate of commands that start in `project` (absolute).
    ///
    /// # Errors
    /// [`PolicyError`]s when the blocklist of `config` is wrong.
    pub(super) fn new(
        config: &ShellConfig,
        project: &Path,
        home: Option<&OsStr>,
        risk: Risk,
    ) -> Result<Self, Vec<PolicyError>> {
        Ok(Self {
            policy: ShellPolicyHandle::new(config)?,
            start: Start {
                cwd: project.to_owned(),
                home: home.map(PathBuf::from),
                roots: cwd::protected(project, &config.allowed_paths),
            },
            risk,
        })
    }

    /// The blocklist; what is rebuilt through it holds for the calls that follow.
    pub(super) fn policy(&self) -> ShellPolicyHandle {
        self.policy.clone()
    }

    /// Whether a command would be asked about.
    pub(super) fn would_ask(&self, params: &BashParams) -> bool {
        matches!(self.decide(params), Verdict::Ask { .. })
    }

    /// Refuses what is blocked on both paths, and asks on the normal one where nothing has been
    /// agreed to. The paths that the command names are noted in any case.
    ///
    /// # Errors
    /// A refusal, or the question.
    pub(super) fn admit(
        &self,
        path: CallPath,
        params: &BashParams,
        cx: &CallContext,
    ) -> Result<(), ToolError> {
        cx.trace().claim_source = claim_source(&params.command);
        match self.decide(params) {
            Verdict::Allow => Ok(()),
            Verdict::Block { what } => Err(ToolError::blocked(format!(
                "the shell's blocklist refuses this command: {what}"
            ))),
            Verdict::Ask { .. } if path == CallPath::Confirmed => {
                cx.trace().approved_by = ApprovedBy::User;
                Ok(())
            }
            Verdict::Ask { why } => match &cx.answer {
                Answer::No(Some(told)) => Err(ToolError::blocked(format!(
                    "the user refused this call and says: {told}"
                ))),
                Answer::No(None) => Err(ToolError::blocked("the user refused this call")),
                answer => Err(ToolError::ConfirmationRequired(Box::new(Confirmation {
                    tool: BASH.to_owned(),
                    subject: params.command.clone(),
                    risk: self.risk,
                    reason: format!("{why}."),
                    hint: if *answer == Answer::CanAsk {
                        String::new()
                    } else {
                        "Nobody can be asked here: --yes allows every question once.".to_owned()
                    },
                }))),
            },
        }
    }

    /// What the blocklist says about a command; it stands on both paths.
    fn decide(&self, params: &BashParams) -> Verdict {
        let policy = self.policy.load();
        match &params.cwd {
            None => policy.decide(&params.command, &self.start),
            Some(cwd) => {
                let start = Start {
                    cwd: self.start.cwd.join(cwd),
                    ..self.start.clone()
                };
                policy.decide(&params.command, &start)
            }
        }
    }
}
