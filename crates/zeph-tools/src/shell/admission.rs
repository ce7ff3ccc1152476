//! Whether a command may run: the blocklist's verdict, as an error or as a question.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::call::ToolCall;
use crate::confirmation::Confirmation;
use crate::context::{ApprovedBy, CallContext, Origin, UserDecision};
use crate::contract::call_path::CallPath;
use crate::def::Risk;
use crate::error::ToolError;
use crate::gate::ApprovalOptions;
use crate::gate::command::ParsedCommandCache;
use crate::gate::parsed_call::digest;
use crate::provenance;

use super::bash::{BASH, BashParams};
use super::config::ShellConfig;
use super::cwd;
use zeph_bash::{Parsed, PolicyError, Verdict, WorkingDirState};

use super::policy_handle::ShellPolicyHandle;
use super::read_guard::ReadGuard;
use super::version_control;

/// The gate before every command, on both paths.
pub(crate) struct CommandGate {
    policy: ShellPolicyHandle,
    /// What must not be destroyed, wherever a command starts.
    start: WorkingDirState,
    /// What commands may not read.
    reads: Arc<ReadGuard>,
    /// Whether that is hidden from them.
    hidden: AtomicBool,
    /// How much a command can harm.
    risk: Risk,
    /// Whether `sh` runs the commands, because bash is not installed.
    sh: bool,
}

impl CommandGate {
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
            start: WorkingDirState {
                cwd: project.to_owned(),
                home: home.map(PathBuf::from),
                roots: cwd::protected(project, &config.allowed_paths),
            },
            reads: Arc::default(),
            hidden: AtomicBool::new(false),
            risk,
            sh: false,
        })
    }

    /// The gate of commands that `sh` runs, if `sh`. Constructs that bash and `sh` read differently then require
    /// confirmation.
    pub(super) fn run_by_sh(self, sh: bool) -> Self {
        Self { sh, ..self }
    }

    /// The gate that also refuses commands that name what may not be read.
    pub(super) fn guarding(self, reads: Arc<ReadGuard>) -> Self {
        Self { reads, ..self }
    }

    /// What commands may not read.
    pub(super) fn reads(&self) -> &ReadGuard {
        &self.reads
    }

    /// Whether what is denied is hidden from commands; until this is said, it is taken not to be.
    pub(super) fn set_hidden(&self, hidden: bool) {
        self.hidden.store(hidden, Ordering::Relaxed);
    }

    /// The blocklist; what is rebuilt through it holds for the calls that follow.
    pub(super) fn policy(&self) -> ShellPolicyHandle {
        self.policy.clone()
    }

    /// Whether a command would be asked about.
    pub(super) fn would_ask(&self, params: &BashParams) -> bool {
        matches!(self.decide(params), Verdict::Ask { .. }) && self.reading(params).is_none()
    }

    /// What is said about a command before anybody is asked.
    pub(super) fn verdict(&self, params: &BashParams) -> Verdict {
        match (self.decide(params), self.reading(params)) {
            (Verdict::Block { what }, _) | (_, Some(what)) => Verdict::Block { what },
            (verdict, None) => verdict,
        }
    }

    /// Refuses what is blocked. The paths that the command names are noted then.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn refuse_blocked(
        &self,
        params: &BashParams,
        cx: &CallContext,
    ) -> Result<(Verdict, Arc<Parsed>), ToolError> {
        let start = self.start_of(params);
        let parsed = cx
            .extensions()
            .get::<ParsedCommandCache>()
            .parsed(&params.command);
        match self.judge(&parsed, &start) {
            Verdict::Block { what } => {
                cx.trace().claim_source = provenance::of_command(&params.command);
                Err(ToolError::blocked(format!(
                    "the shell's blocklist refuses this command: {what}"
                )))
            }
            verdict => Ok((verdict, parsed)),
        }
    }

    /// Refuses what is blocked on both paths, and asks on the normal one where nothing has been
    /// agreed to. Returns the text that the shell runs: the judged command in canonical form.
    ///
    /// # Errors
    /// A refusal, or the question.
    pub(super) fn admit(
        &self,
        path: CallPath,
        call: &ToolCall,
        params: &BashParams,
        cx: &CallContext,
    ) -> Result<String, ToolError> {
        let (verdict, parsed) = self.refuse_blocked(params, cx)?;
        let Some(text) = parsed.canonical().map(str::to_owned) else {
            return Err(ToolError::blocked(
                "a command that cannot be read is not run",
            ));
        };
        if let Some(runs) = parsed.rewritten().map(runs) {
            let mut trace = cx.trace();
            if !trace.repairs.contains(&runs) {
                trace.repairs.push(runs);
            }
        }
        cx.trace().claim_source = provenance::of_command(&params.command);
        if let Some(why) = self.reading(params) {
            return Err(ToolError::blocked(why));
        }
        match verdict {
            Verdict::Allow | Verdict::Block { .. } => Ok(text),
            Verdict::Ask { .. } if path == CallPath::Confirmed => {
                if cx.approved.is_some() || cx.origin == Origin::User {
                    let mut trace = cx.trace();
                    if trace.approved_by != ApprovedBy::Remembered {
                        trace.approved_by = ApprovedBy::User;
                    }
                }
                Ok(text)
            }
            Verdict::Ask { why } => match &cx.answer {
                UserDecision::No(Some(told)) => Err(ToolError::blocked(format!(
                    "the user declined this call: {told}"
                ))),
                UserDecision::No(None) => Err(ToolError::blocked("the user refused this call")),
                answer => Err(ToolError::ConfirmationRequired(Box::new(Confirmation {
                    tool: BASH.to_owned(),
                    subject: params.command.clone(),
                    risk: self.risk,
                    reason: match parsed.rewritten() {
                        None => format!("{why}."),
                        Some(text) => format!("{why}. {}", runs(text)),
                    },
                    hint: if *answer == UserDecision::CanAsk {
                        String::new()
                    } else {
                        format!("{}.", call.phase.without_questions())
                    },
                    digest: digest(BASH, &call.params),
                    offer: ApprovalOptions::nothing("the shell's own lists ask about it each time"),
                    ..Confirmation::default()
                }))),
            },
        }
    }

    /// What the blocklist says about a command; it stands on both paths.
    fn decide(&self, params: &BashParams) -> Verdict {
        let start = self.start_of(params);
        let parsed = Parsed::new(&params.command);
        self.judge(&parsed, &start)
    }

    fn judge(&self, parsed: &Parsed, start: &WorkingDirState) -> Verdict {
        let policy = self.policy.load();
        match policy.decide_parsed(parsed, start) {
            Verdict::Block { what } => Verdict::Block { what },
            verdict if !self.sh => verdict,
            verdict => match policy.decide_for_sh(parsed.text(), start) {
                Verdict::Allow => verdict,
                stricter => stricter,
            },
        }
    }

    /// What a command names that may not be read; it stands on both paths.
    fn reading(&self, params: &BashParams) -> Option<String> {
        if self.reads.is_empty() {
            return None;
        }
        let start = self.start_of(params);
        let named = self.policy.load().named(&params.command, &start);
        let hidden = self.hidden.load(Ordering::Relaxed);
        self.reads.refusal(&start.cwd, &named, hidden)
    }

    /// The folders in which denied files stay readable for this command.
    pub(super) fn readable_folders(&self, params: &BashParams) -> Vec<String> {
        if !self.reads.denies() {
            return Vec::new();
        }
        let start = self.start_of(params);
        let parsed = Parsed::new(&params.command);
        version_control::folders(&parsed, &start)
    }

    /// Where a command starts.
    fn start_of(&self, params: &BashParams) -> Cow<'_, WorkingDirState> {
        match &params.cwd {
            None => Cow::Borrowed(&self.start),
            Some(cwd) => Cow::Owned(WorkingDirState {
                cwd: self.start.cwd.join(cwd),
                ..self.start.clone()
            }),
        }
    }
}

/// The words that show the canonical text of a command.
pub(crate) fn runs(canonical: &str) -> String {
    format!("The shell runs: {}", canonical.trim())
}
