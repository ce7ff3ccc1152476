//! The context of a call on its way through the stack.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::argument_repair::{ArgumentRepairer, RepairOutcome};
use crate::contract::call_key::CacheKey;
use crate::contract::confinement::{AccessPrompt, Confinement};
use crate::contract::extensions::Extensions;
use crate::contract::judge_decision::JudgeDecision;
use crate::contract::question::QuestionPort;
use crate::contract::quota::BatchQuota;
use crate::error::ToolError;
use crate::event::{EventSink, NoEvents, ToolEvent};
use crate::executor::SkillEnv;
use crate::permission_mode::Mode;
use crate::secrets::Kinds;
use crate::trust::TrustLevel;
use crate::user_terminal::UserTerminal;

/// The origin of the approval of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovedBy {
    /// No question was needed.
    #[default]
    Auto,
    /// The user approved the call, or made it.
    User,
    /// A policy rule.
    Policy,
    /// An earlier approval.
    Remembered,
}

impl ApprovedBy {
    /// Returns the name in audit entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::User => "user",
            Self::Policy => "policy",
            Self::Remembered => "remembered",
        }
    }
}

/// The known decision of the user when the call enters the stack on the normal path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum UserDecision {
    /// The user can be asked: a gate that needs a question returns `ConfirmationRequired`, and no audit entry is
    /// written until the decision.
    #[default]
    CanAsk,
    /// No user is present: `ConfirmationRequired` is final and audited.
    Nobody,
    /// The user declined, optionally with a reason.
    No(Option<String>),
    /// The caller itself refuses the call, for this reason: it enters the stack only to be audited.
    Refused(String),
}

/// The origin of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A model.
    #[default]
    Model,
    /// The user, by `zeph tools call` or a script for `zeph tools run`.
    User,
    /// The user, who typed it as `!command`. No gate judges it, and no sandbox limits it. No text of a model or of a file
    /// becomes such a call.
    Typed,
}

/// The decision of the adversarial gate about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JudgeResult {
    /// The tool and the arguments that were judged.
    pub of: CacheKey,
    /// The decision.
    pub decision: JudgeDecision,
}

/// The notes of layers and tools about a call, for the audit entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditNotes {
    /// The origin of the approval.
    pub approved_by: ApprovedBy,
    /// The trust level of the origin of the call.
    pub trust: TrustLevel,
    /// The rule that decided, with its place in the configuration.
    pub policy_match: Option<String>,
    /// The number of executions.
    pub attempts: u32,
    /// The possibly invented arguments.
    pub suspects: Vec<String>,
    /// The repairs of the arguments.
    pub repairs: Vec<String>,
    /// The outcome of a repair by a model.
    pub reformatted: RepairOutcome,
    /// The source of the data that it reads, as in [`crate::AuditEntry::claim_source`].
    pub claim_source: Option<String>,
    /// The id of the tool and the validated arguments, once known.
    pub resolved: Option<(String, serde_json::Value)>,
    /// Whether a skill declares the tool, which runs as a command of `bash`.
    pub is_skill_tool: bool,
    /// Whether the quota has counted it.
    pub counted: bool,
    /// The decision of the adversarial gate; `None` if it did not judge the call.
    pub judged: Option<JudgeResult>,
    /// The reason why its executor requires confirmation, if an executor gives one.
    pub confirmation_reason: Option<String>,
    /// Whether an allow rule with the exact text of its command replaces that confirmation, by the verdict of the shell's
    /// own policy. The rules are matched without that policy.
    pub can_be_allowed_exactly: bool,
    /// Whether the changes of the call were rolled back.
    pub rolled_back: bool,
    /// The access that the sandbox refused to its command, if the command failed for that reason.
    pub sandbox_refusal: Option<String>,
    /// Whether this machine cannot enforce the sandbox in which the call may run without confirmation.
    pub sandbox_missing: bool,
    /// Why permanent approvals could not be read and do not apply.
    pub unread_approvals: Option<String>,
    /// The secrets that were found in its output.
    pub secrets: Kinds,
}

/// A check of the target of a redirect, before any request to it.
pub(crate) type RedirectGuard =
    Arc<dyn Fn(&CallContext, &str) -> Result<(), ToolError> + Send + Sync>;

/// The context of a call: cancellation, events, and notes.
#[derive(Clone)]
pub struct CallContext {
    /// Cancelled to stop the call. Tools must obey it.
    pub cancel: CancellationToken,
    /// The decision of the user, or whether a user is present.
    pub answer: UserDecision,
    /// Whether the reader of the result accepts images.
    pub takes_images: bool,
    /// Whether the result may be cached: tools then return its validity.
    pub may_be_kept: bool,
    /// The origin of the call.
    pub origin: Origin,
    /// The repairer of invalid arguments, if one is available.
    pub reformat: Option<Arc<dyn ArgumentRepairer>>,
    seats: Arc<BatchQuota>,
    /// The digest of the approved call, as in the question.
    pub approved: Option<[u8; 32]>,
    /// The digest of the file content in the preview that the user saw, if any ([`crate::preview::basis`]).
    pub shown: Option<[u8; 32]>,
    redirects: Vec<RedirectGuard>,
    skill_env: Option<Arc<SkillEnv>>,
    confinement: Arc<Confinement>,
    access_prompt: Option<Arc<dyn AccessPrompt>>,
    questions: Option<Arc<dyn QuestionPort>>,
    terminal: Option<Arc<dyn UserTerminal>>,
    mode_cap: Option<Mode>,
    events: Arc<dyn EventSink>,
    extensions: Extensions,
    trace: Arc<Mutex<AuditNotes>>,
}

impl Origin {
    /// Whether the call is the user's own.
    #[must_use]
    pub fn is_user(self) -> bool {
        matches!(self, Self::User | Self::Typed)
    }
}

impl AuditNotes {
    /// Adds the rule of a gate that decided, after those of earlier gates.
    pub fn record_rule_match(&mut self, rule: &str) {
        match &mut self.policy_match {
            Some(noted) => {
                noted.push_str("; ");
                noted.push_str(rule);
            }
            none => *none = Some(rule.to_owned()),
        }
    }
}

impl CallContext {
    /// Creates the context of a call by a model, with events to `events`.
    #[must_use]
    pub fn new(
        cancel: CancellationToken,
        events: Arc<dyn EventSink>,
        answer: UserDecision,
    ) -> Self {
        Self {
            cancel,
            answer,
            takes_images: false,
            may_be_kept: false,
            origin: Origin::Model,
            seats: Arc::new(BatchQuota::of(1)),
            reformat: None,
            approved: None,
            shown: None,
            redirects: Vec::new(),
            skill_env: None,
            confinement: Arc::default(),
            access_prompt: None,
            questions: None,
            terminal: None,
            mode_cap: None,
            events,
            extensions: Extensions::default(),
            trace: Arc::default(),
        }
    }

    /// Sets whether the reader of the result accepts images.
    #[must_use]
    pub fn with_image_support(mut self, takes_images: bool) -> Self {
        self.takes_images = takes_images;
        self
    }

    /// Sets the repairer of invalid arguments.
    #[must_use]
    pub fn with_argument_repair(self, reformat: Option<Arc<dyn ArgumentRepairer>>) -> Self {
        Self { reformat, ..self }
    }

    /// Returns a copy for a call with a result that may be cached.
    #[must_use]
    pub fn is_cacheable(&self) -> Self {
        Self {
            may_be_kept: true,
            ..self.clone()
        }
    }

    /// Creates a context without events and without a user.
    #[must_use]
    pub fn headless() -> Self {
        Self::new(
            CancellationToken::new(),
            Arc::new(NoEvents),
            UserDecision::Nobody,
        )
    }

    /// Returns a copy with another decision; it shares the notes.
    #[must_use]
    pub fn with_answer(&self, answer: UserDecision) -> Self {
        Self {
            answer,
            ..self.clone()
        }
    }

    /// Returns a copy that carries the digest of the approved call.
    #[must_use]
    pub fn with_approval(&self, digest: [u8; 32]) -> Self {
        Self {
            approved: Some(digest),
            ..self.clone()
        }
    }

    /// Sets the digest of the file content in the preview that the user saw.
    #[must_use]
    pub fn with_preview_digest(self, basis: Option<[u8; 32]>) -> Self {
        Self {
            shown: basis,
            ..self
        }
    }

    /// Returns a copy with the environment variables of the skills of the call.
    #[must_use]
    pub fn with_skill_env(&self, env: SkillEnv) -> Self {
        Self {
            skill_env: (!env.is_empty()).then(|| Arc::new(env)),
            ..self.clone()
        }
    }

    /// Returns the environment variables of the skills of the call.
    #[must_use]
    pub fn skill_env(&self) -> Option<&SkillEnv> {
        self.skill_env.as_deref()
    }

    /// Returns a copy whose command runs in this sandbox.
    #[must_use]
    pub fn with_confinement(&self, confinement: Confinement) -> Self {
        Self {
            confinement: Arc::new(confinement),
            ..self.clone()
        }
    }

    /// Returns the sandbox of the command of the call.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Sets the port that asks the user about accesses that the sandbox refused. Without one, they stay refused.
    #[must_use]
    pub fn with_access_prompt(self, prompt: Option<Arc<dyn AccessPrompt>>) -> Self {
        Self {
            access_prompt: prompt,
            ..self
        }
    }

    /// Returns the port that asks the user about accesses that the sandbox refused.
    #[must_use]
    pub fn access_prompt(&self) -> Option<&Arc<dyn AccessPrompt>> {
        self.access_prompt.as_ref()
    }

    /// Sets the port that asks questions of MCP servers. Without one, they are declined.
    #[must_use]
    pub fn with_questions(self, questions: Option<Arc<dyn QuestionPort>>) -> Self {
        Self { questions, ..self }
    }

    /// Returns the port that asks questions of MCP servers.
    #[must_use]
    pub fn questions(&self) -> Option<&Arc<dyn QuestionPort>> {
        self.questions.as_ref()
    }

    /// Sets the terminal of the user, for a command that the user typed.
    #[must_use]
    pub fn with_terminal(self, terminal: Option<Arc<dyn UserTerminal>>) -> Self {
        Self { terminal, ..self }
    }

    /// Returns the terminal of the user, if the call may use it.
    #[must_use]
    pub fn terminal(&self) -> Option<&dyn UserTerminal> {
        self.terminal.as_deref()
    }

    /// Returns a copy with the least restrictive mode in which the call may be judged.
    #[must_use]
    pub fn with_mode_cap(&self, mode: Mode) -> Self {
        Self {
            mode_cap: Some(mode),
            ..self.clone()
        }
    }

    /// Returns the mode of the call in a session with this mode.
    #[must_use]
    pub fn capped_mode(&self, mode: Mode) -> Mode {
        self.mode_cap.map_or(mode, |cap| cap.min(mode))
    }

    /// Sets the origin.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Sets the quota state of the calls that the quota admits together.
    #[must_use]
    pub fn with_batch_quota(self, seats: Arc<BatchQuota>) -> Self {
        Self { seats, ..self }
    }

    /// Returns the quota state that the calls of the response share.
    #[must_use]
    pub fn seats(&self) -> &BatchQuota {
        &self.seats
    }

    /// Returns a copy with an additional check of each redirect.
    pub(crate) fn with_redirect_guard(&self, judge: RedirectGuard) -> Self {
        let mut cx = self.clone();
        cx.redirects.push(judge);
        cx
    }

    /// Checks the target of a redirect with all registered checks.
    ///
    /// # Errors
    /// The first refusal.
    #[cfg(feature = "web")]
    pub(crate) fn judge_redirect(&self, url: &str) -> Result<(), ToolError> {
        self.redirects.iter().try_for_each(|judge| judge(self, url))
    }

    /// Emits an event of the call.
    pub fn emit(&self, event: ToolEvent) {
        self.events.emit(event);
    }

    /// Returns the sink of [`CallContext::emit`], for tasks that outlive the borrow.
    #[must_use]
    pub fn events(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.events)
    }

    /// Returns the values that layers attach to the call.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Returns the notes on the call.
    pub fn trace(&self) -> MutexGuard<'_, AuditNotes> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext")
            .field("cancelled", &self.cancel.is_cancelled())
            .field("answer", &self.answer)
            .field("origin", &self.origin)
            .field("trace", &*self.trace())
            .finish_non_exhaustive()
    }
}
