//! The policy: rules about whole calls (`[tools.policy]`, then `[tools.authorization]`) that apply in every mode,
//! to every caller, regardless of approvals.
//!
//! [`config`] holds the configuration, and [`decision`] the result and its cause. With the feature
//! `policy-enforcer`, `enabled` compiles and evaluates rules, and `paths` finds the paths of a call. Without it,
//! `disabled` refuses a configuration that enables the policy.
//!
//! The first matching rule decides. If no rule matches, `default_effect` decides. An unknown value counts against
//! the call: a rule that denies paths matches a command with arguments that are unknown until it runs, and a rule
//! that allows paths does not.

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

/// The key of the rules of the policy.
pub const POLICY_RULES: &str = "tools.policy.rules";
/// The key of the rules after them.
pub const AUTHORIZATION_RULES: &str = "tools.authorization.rules";
/// The key of the effect if no rule matches a call.
pub const DEFAULT_EFFECT: &str = "tools.policy.default_effect";

/// The environment of a policy, in addition to its configuration.
#[derive(Clone, Copy)]
pub struct PolicyEnv<'a> {
    /// Returns the origin of a key: `tools.policy.rules[1]`, `tools.policy.rules[1].args_match`.
    pub origin: &'a dyn Fn(&str) -> RuleOrigin,
    /// The resolver of paths.
    pub places: &'a PathResolver,
    /// Whether a variable of the environment is set.
    pub is_set: &'a dyn Fn(&str) -> bool,
}

/// An error of an invalid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {fault}")]
pub struct PolicyError {
    /// The invalid key.
    pub key: String,
    /// The fault.
    pub fault: String,
    /// The correction.
    pub help: String,
}

/// Escapes a text to an expression that matches only this text.
#[must_use]
pub fn literal(text: &str) -> String {
    regex::escape(text)
}
