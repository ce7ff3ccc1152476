//! The decision of the judge of the adversarial gate about a call.

use std::fmt;

/// The verdict of the judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No policy forbids the call.
    Allow,
    /// A policy forbids the call.
    Deny,
}

impl Verdict {
    /// Parses a response: `ALLOW` or `DENY` in any case, with only ASCII blanks around it. Any other text is not
    /// a verdict.
    #[must_use]
    pub fn of(answer: &str) -> Option<Self> {
        match answer.trim_ascii() {
            word if word.eq_ignore_ascii_case("allow") => Some(Self::Allow),
            word if word.eq_ignore_ascii_case("deny") => Some(Self::Deny),
            _ => None,
        }
    }
}

/// The reason for a missing verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JudgeFailure {
    /// No judge is available.
    Unavailable,
    /// The request failed.
    Error,
    /// The response was not one of the two words.
    NoAnswer,
    /// The judge exceeded the time limit.
    Timeout,
}

impl JudgeFailure {
    /// Returns the name in audit entries.
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

/// The outcome for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JudgeDecision {
    /// A verdict of the judge.
    Judged(Verdict),
    /// No verdict; the configuration decides.
    Unjudged {
        /// The reason.
        why: JudgeFailure,
        /// Whether such calls run.
        fail_open: bool,
    },
}

impl JudgeDecision {
    /// Whether the call may run.
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
impl fmt::Display for JudgeDecision {
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
