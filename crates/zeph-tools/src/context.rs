//! What accompanies one call on its way through the stack.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::argument_repair::{ArgumentRepairer, RepairOutcome};
use crate::cache::CacheKey;
use crate::error::ToolError;
use crate::event::{EventSink, NoEvents, ToolEvent};
use crate::executor::SkillEnv;
use crate::gate::command::ParsedCommandCache;
use crate::gate::llm_judge::Decision;
use crate::gate::quota::BatchQuota;
use crate::secrets::Kinds;
use crate::trust::TrustLevel;

/// Who let a call run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovedBy {
    /// No question was needed.
    #[default]
    Auto,
    /// The user said yes, or made the call.
    User,
    /// A policy rule.
    Policy,
    /// A remembered decision.
    Remembered,
}

impl ApprovedBy {
    /// The name in audit entries.
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

/// What is known about the user's will when the call enters the stack on the normal path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum UserDecision {
    /// Someone can be asked: a gate that wants to ask returns `ConfirmationRequired`, and no
    /// audit entry is written until the answer is there.
    #[default]
    CanAsk,
    /// Nobody can be asked: `ConfirmationRequired` is final and audited.
    Nobody,
    /// The user was asked and said no, with a reason perhaps.
    No(Option<String>),
    /// The caller refuses the call itself, for this reason: it enters the stack only to be audited.
    Refused(String),
}

/// Whose idea a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A model's.
    #[default]
    Model,
    /// The user's, who typed it: `!command`, `zeph tools call`, a script for `zeph tools run`.
    User,
}

/// What a second opinion on a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeResult {
    /// The tool and the arguments that were judged.
    pub of: CacheKey,
    /// What came of it.
    pub decision: Decision,
}

/// What layers and tools note about a call, for the audit entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditNotes {
    /// Who let it run.
    pub approved_by: ApprovedBy,
    /// How far its origin was trusted.
    pub trust: TrustLevel,
    /// The rule that decided, with its place.
    pub policy_match: Option<String>,
    /// How often it was executed.
    pub attempts: u32,
    /// What may be made up in its arguments.
    pub suspects: Vec<String>,
    /// What was repaired in them.
    pub repairs: Vec<String>,
    /// What came of asking for arguments that fit.
    pub reformatted: RepairOutcome,
    /// Where what it reads comes from, as [`crate::AuditEntry::claim_source`] says.
    pub claim_source: Option<String>,
    /// The tool's own id and its validated arguments, once known.
    pub resolved: Option<(String, serde_json::Value)>,
    /// Whether the quota has counted it.
    pub counted: bool,
    /// What the adversarial gate decided; `None` where it did not look.
    pub judged: Option<JudgeResult>,
    /// The reason why its executor requires confirmation, if an executor gives one.
    pub confirmation_reason: Option<String>,
    /// Whether what it had done was taken back.
    pub rolled_back: bool,
    /// The secrets that were found in what it printed.
    pub secrets: Kinds,
}

/// Judges where a redirect leads, before anything is asked for there.
pub(crate) type RedirectGuard =
    Arc<dyn Fn(&CallContext, &str) -> Result<(), ToolError> + Send + Sync>;

/// What accompanies one call: the way to stop it, the way to tell of it, the notes on it.
#[derive(Clone)]
pub struct CallContext {
    /// Cancelled when the call shall stop. Tools obey it.
    pub cancel: CancellationToken,
    /// What the user said, or whether there is a user.
    pub answer: UserDecision,
    /// Whether whoever reads the result takes images.
    pub takes_images: bool,
    /// Whether the result may be kept: tools then say what it rests on.
    pub may_be_kept: bool,
    /// Whose idea it is.
    pub origin: Origin,
    /// Who can put arguments right that do not fit; `None` where nobody can.
    pub reformat: Option<Arc<dyn ArgumentRepairer>>,
    seats: Arc<BatchQuota>,
    /// The digest of what a person agreed to, as the question said it.
    pub approved: Option<[u8; 32]>,
    /// What stands for the content of the file whose change a person was shown, where they were
    /// ([`crate::preview::basis`]).
    pub shown: Option<[u8; 32]>,
    redirects: Vec<RedirectGuard>,
    skill_env: Option<Arc<SkillEnv>>,
    events: Arc<dyn EventSink>,
    last_read: Arc<ParsedCommandCache>,
    trace: Arc<Mutex<AuditNotes>>,
}

impl AuditNotes {
    /// Notes the rule of a gate that decided, behind those of the gates before it.
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
    /// A context of a model's call whose events go to `events`.
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
            events,
            last_read: Arc::default(),
            trace: Arc::default(),
        }
    }

    /// The same, for a reader who takes images or does not.
    #[must_use]
    pub fn with_image_support(mut self, takes_images: bool) -> Self {
        self.takes_images = takes_images;
        self
    }

    /// The same, where arguments that do not fit may be put right.
    #[must_use]
    pub fn with_argument_repair(self, reformat: Option<Arc<dyn ArgumentRepairer>>) -> Self {
        Self { reformat, ..self }
    }

    /// The same, for a result that may be kept.
    #[must_use]
    pub fn is_cacheable(&self) -> Self {
        Self {
            may_be_kept: true,
            ..self.clone()
        }
    }

    /// A context without events, where nobody can be asked.
    #[must_use]
    pub fn headless() -> Self {
        Self::new(
            CancellationToken::new(),
            Arc::new(NoEvents),
            UserDecision::Nobody,
        )
    }

    /// The same call with another answer: the notes go on.
    #[must_use]
    pub fn with_answer(&self, answer: UserDecision) -> Self {
        Self {
            answer,
            ..self.clone()
        }
    }

    /// The same call after a person agreed to what has this digest.
    #[must_use]
    pub fn with_approval(&self, digest: [u8; 32]) -> Self {
        Self {
            approved: Some(digest),
            ..self.clone()
        }
    }

    /// The same call whose change of a file a person was shown, made from this content.
    #[must_use]
    pub fn with_preview_digest(self, basis: Option<[u8; 32]>) -> Self {
        Self {
            shown: basis,
            ..self
        }
    }

    /// The same call with what its skills add to the environment of commands.
    #[must_use]
    pub fn with_skill_env(&self, env: SkillEnv) -> Self {
        Self {
            skill_env: (!env.is_empty()).then(|| Arc::new(env)),
            ..self.clone()
        }
    }

    /// What the skills of this call add to the environment of commands.
    #[must_use]
    pub fn skill_env(&self) -> Option<&SkillEnv> {
        self.skill_env.as_deref()
    }

    /// The same for a call of this origin.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// The same for one of several calls that the quota admits together.
    #[must_use]
    pub fn with_batch_quota(self, seats: Arc<BatchQuota>) -> Self {
        Self { seats, ..self }
    }

    /// What it shares with the other calls of its answer.
    #[must_use]
    pub fn seats(&self) -> &BatchQuota {
        &self.seats
    }

    /// The same call of which `judge` judges every redirect, beside those that do so already.
    pub(crate) fn with_redirect_guard(&self, judge: RedirectGuard) -> Self {
        let mut cx = self.clone();
        cx.redirects.push(judge);
        cx
    }

    /// Judges where a redirect leads by all that let the call run.
    ///
    /// # Errors
    /// The first refusal.
    #[cfg(feature = "web")]
    pub(crate) fn judge_redirect(&self, url: &str) -> Result<(), ToolError> {
        self.redirects.iter().try_for_each(|judge| judge(self, url))
    }

    /// Tells of the call.
    pub fn emit(&self, event: ToolEvent) {
        self.events.emit(event);
    }

    /// The sink that [`CallContext::emit`] uses, for tasks that outlive the borrow.
    #[must_use]
    pub fn events(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.events)
    }

    /// The command that a gate read last.
    pub(crate) fn last_read(&self) -> &ParsedCommandCache {
        &self.last_read
    }

    /// The notes on the call.
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
