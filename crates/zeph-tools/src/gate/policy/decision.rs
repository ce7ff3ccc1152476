//! The decision of the policy about a call, with its cause.

use std::fmt;

use super::DEFAULT_EFFECT;
use super::config::PolicyEffect;
use crate::gate::rule::RuleOrigin;

/// The statement about a value that only the running call determines.
const UNKNOWN: &str = "unknown before it runs";

/// The decision of the policy about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyDecision<'p> {
    /// The effect on the call.
    pub effect: PolicyEffect,
    /// The cause.
    pub trace: Trace<'p>,
}

/// The cause of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace<'p> {
    /// The origin of the rule that decided, or of the default.
    pub origin: &'p RuleOrigin,
    /// The parts of the call that the rule matches; empty for the default.
    pub matched: Vec<Matched>,
}

/// A part of a call that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Matched {
    /// The tool, with the glob.
    Tool(String),
    /// A given path, with the glob.
    Path(String, String),
    /// All given paths.
    Paths(Vec<String>),
    /// A value that is unknown until the call runs.
    Unknown(String),
    /// The arguments, with the expression.
    Arguments(String),
    /// The variables that are set.
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
            // The reason of the shell can contain the statement.
            Self::Unknown(what) if what.contains(UNKNOWN) => f.write_str(what),
            Self::Unknown(what) => write!(f, "{what}, {UNKNOWN}"),
            Self::Arguments(expression) => write!(f, "arguments by {expression:?}"),
            Self::Environment(names) => write!(f, "environment {names:?}"),
            Self::Trust(level) => write!(f, "trust {level}"),
        }
    }
}

impl PolicyDecision<'_> {
    /// Describes the matched parts.
    #[must_use]
    pub fn matched(&self) -> String {
        if self.is_default() {
            return "no rule matches the call".to_owned();
        }
        let matched: Vec<String> = self.trace.matched.iter().map(Matched::to_string).collect();
        matched.join(", ")
    }

    /// Whether no rule matches the call.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.trace.origin.key == DEFAULT_EFFECT
    }
}

/// Formats the decision: `deny by tools.policy.rules[1] (FILE:12): tool "read", path "secret/key" by
/// "secret/**"`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_part_is_described_once() {
        let check = |what: &str, expect: &str| {
            assert_eq!(Matched::Unknown(what.to_owned()).to_string(), expect);
        };
        check(
            "the value of `$X`",
            "the value of `$X`, unknown before it runs",
        );
        check(
            "the command `$X` is unknown before it runs",
            "the command `$X` is unknown before it runs",
        );
    }
}
