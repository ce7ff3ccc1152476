//! The adversarial gate: a model judges a call against policies in plain language (`[tools.adversarial_policy]`).
//!
//! `question` formats the request, [`Verdict::of`] parses the response, and [`JudgeDecision`] is the outcome. The
//! port [`PolicyJudge`] hides the model.

mod question;
mod readable;

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use question::{Asked, Question, claim, question};

pub use crate::contract::judge_decision::{JudgeDecision, JudgeFailure, Verdict};

/// The tools that are not judged by default: they access only the memory of the agent, stored output, and texts
/// to load.
const EXEMPT: &[&str] = &[
    "memory_save",
    "memory_search",
    "read_overflow",
    "load_skill",
    "schedule_deferred",
];

/// A model judges calls before they run (`[tools.adversarial_policy]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdversarialPolicyConfig {
    /// Whether a model judges each call by `policies`.
    pub enabled: bool,
    /// The name of the provider with the model that checks calls; empty means the provider of the conversation.
    pub provider: String,
    /// Whether a call runs if the check fails: no provider, an error, no response in time, a response that is neither
    /// `ALLOW` nor `DENY`. By default, it is refused.
    pub fail_open: bool,
    /// The time limit of the check of a call in milliseconds, including all attempts of the provider.
    #[schemars(range(min = 1))]
    pub timeout_ms: u64,
    /// The policies: one sentence each about calls that are not allowed. `enabled` needs at least one.
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

/// An error of a judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// The request could not be sent, or it failed.
    #[error("{0}")]
    Failed(String),
    /// The response is not a complete text: it is truncated, a tool call, or a refusal.
    #[error("{0}")]
    NoAnswer(String),
}

/// A model that judges calls.
#[async_trait]
pub trait PolicyJudge: Send + Sync {
    /// Returns the provider and the model.
    fn name(&self) -> String;

    /// Returns the text of the response. Dropping the future cancels the request.
    ///
    /// # Errors
    /// [`JudgeError`].
    async fn judge(&self, question: &Question) -> Result<String, JudgeError>;
}

/// The gate: its settings, its policies, and its judge.
#[derive(Clone)]
pub struct AdversarialGate {
    /// The settings.
    pub config: AdversarialPolicyConfig,
    /// The policies, in groups that are judged separately, so that one group cannot argue for or against another.
    /// A call runs only if each group allows it.
    pub groups: Vec<Vec<String>>,
    /// The start directory of relative paths in calls.
    pub directory: String,
    /// The judge, or the reason for its absence.
    pub judge: Result<Arc<dyn PolicyJudge>, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PERM-20 for the accepted responses.
    #[test]
    fn only_a_single_word_is_a_verdict() {
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
        let check = |decision: JudgeDecision, name: &str, allows: bool| {
            assert_eq!(
                (decision.to_string().as_str(), decision.allows()),
                (name, allows)
            );
        };
        check(JudgeDecision::Judged(Verdict::Allow), "allow", true);
        check(JudgeDecision::Judged(Verdict::Deny), "deny", false);
        for (why, name) in [
            (JudgeFailure::Timeout, "timeout"),
            (JudgeFailure::Error, "error"),
            (JudgeFailure::NoAnswer, "no_answer"),
            (JudgeFailure::Unavailable, "unavailable"),
        ] {
            let decision = |fail_open| JudgeDecision::Unjudged { why, fail_open };
            check(decision(true), &format!("allow (fail_open: {name})"), true);
            check(
                decision(false),
                &format!("deny (fail_closed: {name})"),
                false,
            );
        }
    }

    #[test]
    fn default_refuses_and_exempts_harmless_tools() {
        let config = AdversarialPolicyConfig::default();
        assert!(!config.enabled && !config.fail_open && config.provider.is_empty());
        assert_eq!(config.exempt_tools, EXEMPT);
    }
}
