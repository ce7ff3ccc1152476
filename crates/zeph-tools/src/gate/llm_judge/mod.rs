//! The adversarial gate: a model judges a call against policies in plain language
//! (`[tools.adversarial_policy]`).
//!
//! [`question`] writes what the judge is sent, [`Verdict::of`] reads its answer, [`Decision`] is what
//! comes of it. Who judges is behind the port [`PolicyJudge`].

mod question;
mod readable;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use question::{Asked, Question, claim, question};

/// The tools that are not judged unless the configuration says otherwise: they touch nothing but the
/// agent's own memory, stored output, and words to load.
const EXEMPT: &[&str] = &[
    "memory_save",
    "memory_search",
    "read_overflow",
    "load_skill",
    "schedule_deferred",
];

/// What a model judges calls by, before they run (`[tools.adversarial_policy]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdversarialPolicyConfig {
    /// Have a model judge each call against `policies`.
    pub enabled: bool,
    /// The name of the provider whose model judges; empty means that of the conversation.
    pub provider: String,
    /// Let a call run that could not be judged: no provider, an error, no answer in time, an answer that is neither `ALLOW` nor `DENY`. By default it is refused.
    pub fail_open: bool,
    /// Milliseconds that judging one call may take, all attempts of the provider included.
    #[schemars(range(min = 1))]
    pub timeout_ms: u64,
    /// What calls must not do, a sentence each. `enabled` needs at least one.
    pub policies: Vec<String>,
    /// The tools whose calls are not judged.
    pub exempt_tools: Vec<String>,
}

impl Default for AdversarialPolicyConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            provider: String::new(),
            fail_open: false,
            timeout_ms: 15_000,
            policies: Vec::new(),
            exempt_tools: EXEMPT.iter().map(|&name| name.to_owned()).collect(),
        }
    }
}

/// What a judge says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No policy forbids the call.
    Allow,
    /// One does.
    Deny,
}

impl Verdict {
    /// What an answer says: `ALLOW` or `DENY`, in any case, with nothing but ASCII blanks around.
    /// Anything else is no verdict.
    #[must_use]
    pub fn of(answer: &str) -> Option<Self> {
        match answer.trim_ascii() {
            word if word.eq_ignore_ascii_case("allow") => Some(Self::Allow),
            word if word.eq_ignore_ascii_case("deny") => Some(Self::Deny),
            _ => None,
        }
    }
}

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeFailure {
    /// There is nobody to ask.
    Unavailable,
    /// Asking failed.
    Error,
    /// The answer was none of the two words.
    NoAnswer,
    /// It took too long.
    Timeout,
}

impl JudgeFailure {
    /// The name in audit entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Error => "error",
            Self::NoAnswer => "no_answer",
            Self::Timeout => "timeout",
        }
    }
}

/// What comes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The judge has said.
    Judged(Verdict),
    /// It has not, and the configuration decides.
    Unjudged {
        /// Why.
        why: JudgeFailure,
        /// Whether such calls run.
        fail_open: bool,
    },
}

impl Decision {
    /// Whether the call goes on.
    #[must_use]
    pub fn allows(self) -> bool {
        match self {
            Self::Judged(verdict) => verdict == Verdict::Allow,
            Self::Unjudged { fail_open, .. } => fail_open,
        }
    }
}

/// The value of `adversarial_policy_decision` in audit entries: `allow`, `deny`,
/// `allow (fail_open: timeout)`, `deny (fail_closed: timeout)`.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Judged(Verdict::Allow) => f.write_str("allow"),
            Self::Judged(Verdict::Deny) => f.write_str("deny"),
            Self::Unjudged { why, fail_open } => {
                let decision = match fail_open {
                    true => "allow (fail_open: ",
                    false => "deny (fail_closed: ",
                };
                write!(f, "{decision}{})", why.as_str())
            }
        }
    }
}

/// Why a judge gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// It could not be asked, or the request failed.
    #[error("{0}")]
    Failed(String),
    /// What came is no text of its own: cut off, a call, a refusal.
    #[error("{0}")]
    NoAnswer(String),
}

/// Judges calls: a model.
#[async_trait]
pub trait PolicyJudge: Send + Sync {
    /// Who it is: provider and model.
    fn name(&self) -> String;

    /// The text of its answer. Cancellation is dropping the future.
    ///
    /// # Errors
    /// [`JudgeError`].
    async fn judge(&self, question: &Question) -> Result<String, JudgeError>;
}

/// The gate: its settings, what it judges by, and who judges.
#[derive(Clone)]
pub struct AdversarialGate {
    /// The settings.
    pub config: AdversarialPolicyConfig,
    /// The policies, in groups that are judged apart: one group cannot speak for or against another.
    /// A call runs only when each group lets it.
    pub groups: Vec<Vec<String>>,
    /// The directory where relative paths of calls begin.
    pub directory: String,
    /// Who judges; else why nobody does.
    pub judge: Result<Arc<dyn PolicyJudge>, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PERM-20 for what counts as an answer.
    #[test]
    fn one_word_counts_and_nothing_else() {
        let check = |answer: &str, expect: Option<Verdict>| {
            assert_eq!(Verdict::of(answer), expect, "{answer:?}");
        };
        let (allow, deny) = (Some(Verdict::Allow), Some(Verdict::Deny));
        check("ALLOW", allow);
        check("DENY", deny);
        check(" \n allow\r\n", allow);
        check("Deny\n", deny);
        for answer in [
            "",
            " ",
            "ALLOW.",
            "\"ALLOW\"",
            "**ALLOW**",
            "`ALLOW`",
            "ALLOW DENY",
            "DENY ALLOW",
            "ALLOW\nDENY",
            "ALLOW ALLOW",
            "ALLOWED",
            "ALLOW: no policy forbids it",
            "I would say ALLOW",
            "not DENY",
            "<think>fine</think>ALLOW",
            "{\"decision\": \"ALLOW\"}",
            "yes",
            "ＡＬＬＯＷ",
            "АLLOW",
            "ALLOW\u{200b}",
            "\u{a0}ALLOW",
            "ALLOW\0",
        ] {
            check(answer, None);
        }
    }

    /// Proves PERM-20 for the values in audit entries.
    #[test]
    fn decisions_have_stable_names() {
        let check = |decision: Decision, name: &str, allows: bool| {
            assert_eq!(
                (decision.to_string().as_str(), decision.allows()),
                (name, allows)
            );
        };
        check(Decision::Judged(Verdict::Allow), "allow", true);
        check(Decision::Judged(Verdict::Deny), "deny", false);
        for (why, name) in [
            (JudgeFailure::Timeout, "timeout"),
            (JudgeFailure::Error, "error"),
            (JudgeFailure::NoAnswer, "no_answer"),
            (JudgeFailure::Unavailable, "unavailable"),
        ] {
            let decision = |fail_open| Decision::Unjudged { why, fail_open };
            check(decision(true), &format!("allow (fail_open: {name})"), true);
            check(
                decision(false),
                &format!("deny (fail_closed: {name})"),
                false,
            );
        }
    }

    #[test]
    fn the_default_refuses_and_exempts_what_touches_nothing() {
        let config = AdversarialPolicyConfig::default();
        assert!(!config.enabled && !config.fail_open && config.provider.is_empty());
        assert_eq!(config.exempt_tools, EXEMPT);
    }
}
