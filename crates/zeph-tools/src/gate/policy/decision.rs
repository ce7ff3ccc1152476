//! What the policy decides about a call, and by what.

use std::fmt;

use super::DEFAULT_EFFECT;
use super::config::PolicyEffect;
use crate::gate::rule::RuleOrigin;

/// What the policy decides about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision<'p> {
    /// What becomes of it.
    pub effect: PolicyEffect,
    /// By what.
    pub trace: Trace<'p>,
}

/// By what it was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace<'p> {
    /// Where the rule stands that decided, or the default.
    pub origin: &'p RuleOrigin,
    /// What of the call the rule is about; empty for the default.
    pub matched: Vec<Matched>,
}

/// What of a call a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// The tool, by this glob.
    Tool(String),
    /// A path as it was given, by this glob.
    Path(String, String),
    /// All paths, as they were given.
    Paths(Vec<String>),
    /// Something that shows only when the call runs.
    Unknown(String),
    /// The arguments, by this expression.
    Arguments(String),
    /// These variables are set.
    Environment(Vec<String>),
    /// The trust of the call.
    Trust(&'static str),
}

impl fmt::Display for Matched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(glob) => write!(f, "tool {glob:?}"),
            Self::Path(given, glob) => write!(f, "path {given:?} by {glob:?}"),
            Self::Paths(given) => write!(f, "paths {given:?}"),
            Self::Unknown(what) => write!(f, "{what}, which cannot be known before it runs"),
            Self::Arguments(expression) => write!(f, "arguments by {expression:?}"),
            Self::Environment(names) => write!(f, "environment {names:?}"),
            Self::Trust(level) => write!(f, "trust {level}"),
        }
    }
}

impl PolicyDecision<'_> {
    /// What was matched, in words.
    #[must_use]
    pub fn matched(&self) -> String {
        if self.is_default() {
            return "no rule is about the call".to_owned();
        }
        let matched: Vec<String> = self.trace.matched.iter().map(Matched::to_string).collect();
        matched.join(", ")
    }

    /// Whether no rule is about the call.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.trace.origin.key == DEFAULT_EFFECT
    }
}

/// `deny by tools.policy.rules[1] (FILE:12): tool "read", path "secret/key" by "secret/**"`
impl fmt::Display for PolicyDecision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.trace.origin;
        write!(
            f,
            "{} by {} ({origin}): {}",
            self.effect.as_str(),
            origin.key,
            self.matched()
        )
    }
}
