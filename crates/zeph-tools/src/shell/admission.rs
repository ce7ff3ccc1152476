//! Admission of commands: the verdict of the blocklist and of the read rules, as an error or as a question.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

use crate::call::ToolCall;
use crate::confirmation::Confirmation;
use crate::context::{ApprovedBy, CallContext, UserDecision};
use crate::contract::call_path::CallPath;
use crate::def::Risk;
use crate::error::ToolError;
use crate::executor::SkillEnv;
use crate::gate::ApprovalOptions;
use crate::gate::command::ParsedCommandCache;
use crate::gate::parsed_call::digest;
use crate::provenance;

use super::bash::{BASH, BashParams};
use super::command::variable;
use super::config::ShellConfig;
use super::{cwd, env};
use zeph_bash::{Parsed, Verdict, WorkingDirState};

use super::policy_handle::ShellPolicyHandle;
use super::read_guard::ReadGuard;
use super::version_control;

/// Environment variables whose values the judge uses. They name directories or the user.
const KNOWN_VARIABLES: &[&str] = &[
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "TMPDIR",
    "USER",
    "LOGNAME",
];

/// The check of every command, on the normal and on the confirmed path.
pub(crate) struct CommandGate {
    policy: ShellPolicyHandle,
    /// The start directory of commands, and the directories that no command may destroy.
    start: WorkingDirState,
    /// The variables of all skills.
    skill_env: ArcSwapOption<SkillEnv>,
    /// The read rules for commands.
    reads: Arc<ReadGuard>,
    /// Whether denied files are hidden from commands.
    hidden: AtomicBool,
    /// The risk of a command.
    risk: Risk,
    /// Whether `sh` runs the commands, because bash is not installed.
    sh: bool,
}

impl CommandGate {
    /// Returns the gate of commands that start in `project` (absolute) with the variables of `base_env` that `config`
    /// passes.
    pub(super) fn new(
        policy: ShellPolicyHandle,
        config: &ShellConfig,
        project: &Path,
        base_env: &[(OsString, OsString)],
        risk: Risk,
    ) -> Self {
        Self {
            policy,
            start: WorkingDirState {
                cwd: project.to_owned(),
                home: variable(base_env, "HOME").map(PathBuf::from),
                roots: cwd::protected(project, &config.allowed_paths),
                variables: known_variables(&env::select(base_env, &config.env, None)),
            },
            skill_env: ArcSwapOption::empty(),
            reads: Arc::default(),
            hidden: AtomicBool::new(false),
            risk,
            sh: false,
        }
    }

    /// Sets whether `sh` runs the commands. Constructs that bash and `sh` read differently then require confirmation.
    pub(super) fn run_by_sh(self, sh: bool) -> Self {
        Self { sh, ..self }
    }

    /// Adds read rules. The gate then also refuses commands that name a denied path.
    pub(super) fn guarding(self, reads: Arc<ReadGuard>) -> Self {
        Self { reads, ..self }
    }

    /// The read rules for commands.
    pub(super) fn reads(&self) -> &ReadGuard {
        &self.reads
    }

    /// Sets whether denied files are hidden from commands. The initial value is `false`.
    pub(super) fn set_hidden(&self, hidden: bool) {
        self.hidden.store(hidden, Ordering::Relaxed);
    }

    /// Sets or clears the variables that all skills add to the environment.
    pub(super) fn set_skill_env(&self, env: Option<SkillEnv>) {
        self.skill_env.store(env.map(Arc::new));
    }

    /// The handle of the blocklist. A policy that is rebuilt through it applies to the calls that follow.
    pub(super) fn policy(&self) -> ShellPolicyHandle {
        self.policy.clone()
    }

    /// Whether a command would require confirmation.
    pub(super) fn would_ask(&self, params: &BashParams) -> bool {
        matches!(self.decide(params), Verdict::Ask { .. }) && self.reading(params, None).is_none()
    }

    /// The decision about a command before any question to the user.
    pub(super) fn verdict(&self, params: &BashParams) -> Verdict {
        match (self.decide(params), self.reading(params, None)) {
            (Verdict::Block { what }, _) | (_, Some(what)) => Verdict::Block { what },
            (verdict, None) => verdict,
        }
    }

    /// Refuses a blocked command, and then records the source of the paths that it names.
    ///
    /// # Errors
    /// The refusal, if the blocklist blocks the command.
    pub(crate) fn refuse_blocked(
        &self,
        params: &BashParams,
        cx: &CallContext,
    ) -> Result<(Verdict, Arc<Parsed>), ToolError> {
        let start = self.start_of(params, cx.skill_env());
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

    /// Refuses a blocked command on both paths. On the normal path, it also requires confirmation if the verdict asks
    /// for it. Returns the text that the shell runs: the judged command in canonical form.
    ///
    /// # Errors
    /// The refusal, or the request for confirmation.
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
                "the command cannot be parsed, so it does not run",
            ));
        };
        if let Some(runs) = parsed.rewritten().map(runs) {
            let mut trace = cx.trace();
            if !trace.repairs.contains(&runs) {
                trace.repairs.push(runs);
            }
        }
        cx.trace().claim_source = provenance::of_command(&params.command);
        if let Some(why) = self.reading(params, cx.skill_env()) {
            return Err(ToolError::blocked(why));
        }
        match verdict {
            Verdict::Allow | Verdict::Block { .. } => Ok(text),
            Verdict::Ask { .. } if path == CallPath::Confirmed => {
                if cx.approved.is_some() || cx.origin.is_user() {
                    let mut trace = cx.trace();
                    if trace.approved_by != ApprovedBy::Remembered {
                        trace.approved_by = ApprovedBy::User;
                    }
                }
                Ok(text)
            }
            Verdict::Ask { why, .. } => match &cx.answer {
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
                    offer: ApprovalOptions::nothing(
                        "the lists of the shell require confirmation \
                        each time",
                    ),
                    ..Confirmation::default()
                }))),
            },
        }
    }

    /// The decision of the blocklist about a command. It applies on both paths.
    fn decide(&self, params: &BashParams) -> Verdict {
        let start = self.start_of(params, None);
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
                Verdict::Ask {
                    why,
                    can_be_allowed_exactly,
                } => Verdict::Ask {
                    why,
                    can_be_allowed_exactly: can_be_allowed_exactly && !requires_each_time(&verdict),
                },
                block @ Verdict::Block { .. } => block,
            },
        }
    }

    /// The reason why the read rules refuse a command. It applies on both paths.
    fn reading(&self, params: &BashParams, of_call: Option<&SkillEnv>) -> Option<String> {
        if self.reads.is_empty() {
            return None;
        }
        let start = self.start_of(params, of_call);
        let named = self.policy.load().named(&params.command, &start);
        let hidden = self.hidden.load(Ordering::Relaxed);
        self.reads.refusal(&start.cwd, &named, hidden)
    }

    /// The folders in which denied files stay readable for this command.
    pub(super) fn readable_folders(&self, params: &BashParams) -> Vec<String> {
        if !self.reads.denies() {
            return Vec::new();
        }
        let start = self.start_of(params, None);
        let parsed = Parsed::new(&params.command);
        version_control::folders(&parsed, &start)
    }

    /// The directory in which a command starts, with the protected directories and the known variables. `of_call` are
    /// the variables of the call's skill.
    fn start_of(
        &self,
        params: &BashParams,
        of_call: Option<&SkillEnv>,
    ) -> Cow<'_, WorkingDirState> {
        let mut start = Cow::Borrowed(&self.start);
        if let Some(cwd) = &params.cwd {
            start.to_mut().cwd = self.start.cwd.join(cwd);
        }
        let all = self.skill_env.load();
        for (name, value) in all.as_deref().into_iter().chain(of_call).flatten() {
            if KNOWN_VARIABLES.contains(&name.as_str()) {
                start.to_mut().variables.insert(name.clone(), value.clone());
            }
        }
        start
    }
}

/// Whether no allow rule replaces the confirmation that a verdict requires.
const fn requires_each_time(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Ask {
            can_be_allowed_exactly: false,
            ..
        }
    )
}

/// The values of [`KNOWN_VARIABLES`] in `env`.
fn known_variables(env: &[(OsString, OsString)]) -> BTreeMap<String, String> {
    let known = |name: &&str| {
        let value = variable(env, name)?.to_str()?;
        Some(((*name).to_owned(), value.to_owned()))
    };
    KNOWN_VARIABLES.iter().filter_map(known).collect()
}

/// The message that shows the canonical text of a command.
pub(crate) fn runs(canonical: &str) -> String {
    format!("The shell runs: {}", canonical.trim())
}
