//! The policy: rules about whole calls (`[tools.policy]`, and behind them `[tools.authorization]`)
//! that hold in every mode, whoever asks, whatever was agreed to.
//!
//! [`config`] is what is written, [`decision`] what is decided and by what. With the feature
//! `policy-enforcer`, `enabled` compiles rules and decides by them, and `paths` finds what paths a call
//! is about; without it, `disabled` refuses a configuration that has a policy switched on.
//!
//! The rules are looked at in their order, the first that is about the call decides; where none is,
//! `default_effect` does. What cannot be known counts against the call: a rule that denies paths is
//! about a command whose words show only when it runs, and one that allows paths is not.

pub mod config;
pub mod decision;
#[cfg(not(feature = "policy-enforcer"))]
mod disabled;
#[cfg(feature = "policy-enforcer")]
mod enabled;
#[cfg(feature = "policy-enforcer")]
mod paths;

use super::path_resolver::PathResolver;
use super::rule::RuleOrigin;

pub use config::{AuthorizationConfig, OneOrMore, PolicyConfig, PolicyEffect, PolicyRule};
pub use decision::{Matched, PolicyDecision, Trace};
#[cfg(not(feature = "policy-enforcer"))]
pub use disabled::{CompiledRule, PolicyEnforcer};
#[cfg(feature = "policy-enforcer")]
pub use enabled::{CompiledRule, PolicyEnforcer};

#[cfg(all(feature = "policy-enforcer", feature = "shell"))]
pub(crate) use paths::{ReferencedPath, ReferencedPaths};

/// The key of the policy's rules.
pub const POLICY_RULES: &str = "tools.policy.rules";
/// The key of the rules behind them.
pub const AUTHORIZATION_RULES: &str = "tools.authorization.rules";
/// The key of what holds where no rule is about a call.
pub const DEFAULT_EFFECT: &str = "tools.policy.default_effect";

/// What a policy is made of beside what is configured.
#[derive(Clone, Copy)]
pub struct PolicyEnv<'a> {
    /// Where a key was written: `tools.policy.rules[1]`, `tools.policy.rules[1].args_match`.
    pub origin: &'a dyn Fn(&str) -> RuleOrigin,
    /// Where paths begin.
    pub places: &'a PathResolver,
    /// Whether a variable of the environment is set.
    pub is_set: &'a dyn Fn(&str) -> bool,
}

/// A rule that cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {fault}")]
pub struct PolicyError {
    /// The key that is wrong.
    pub key: String,
    /// What is wrong.
    pub fault: String,
    /// How to mend it.
    pub help: String,
}

/// A text as an expression that it alone matches.
#[must_use]
pub fn literal(text: &str) -> String {
    regex::escape(text)
}
