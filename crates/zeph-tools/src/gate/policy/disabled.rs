//! The policy without the feature `policy-enforcer`: a configuration that enables it is refused, so that no call
//! runs without its policy.

use super::config::{AuthorizationConfig, PolicyConfig, PolicyEffect, PolicyRule};
use super::decision::PolicyDecision;
use super::{PolicyEnv, PolicyError};
use crate::gate::parsed_call::CallSubject;
use crate::gate::rule::RuleOrigin;
use crate::trust::TrustLevel;

/// An enforcer that cannot exist in this build.
#[derive(Debug, Clone)]
pub enum PolicyEnforcer {}

/// A rule that cannot exist in this build.
#[derive(Debug, Clone)]
pub enum CompiledRule {}

impl PolicyEnforcer {
    /// Returns `None` if no section is enabled.
    ///
    /// # Errors
    /// An error for each enabled section.
    pub fn new(
        policy: &PolicyConfig,
        authorization: &AuthorizationConfig,
        _around: PolicyEnv<'_>,
    ) -> Result<Option<Self>, Vec<PolicyError>> {
        let sections = [
            ("tools.policy.enabled", policy.enabled),
            ("tools.authorization.enabled", authorization.enabled),
        ];
        let faults = sections.iter().filter(|(_, enabled)| *enabled);
        let faults: Vec<PolicyError> = faults
            .map(|(key, _)| PolicyError {
                key: (*key).to_owned(),
                fault: "is true, and this build has no policy enforcer".to_owned(),
                help: "build Zeph with the feature `policy-enforcer`, or set the key to \
                    false"
                    .to_owned(),
            })
            .collect();
        if faults.is_empty() {
            Ok(None)
        } else {
            Err(faults)
        }
    }

    /// Never called.
    #[must_use]
    pub fn decide(&self, _subject: &CallSubject<'_>, _trust: TrustLevel) -> PolicyDecision<'_> {
        match *self {}
    }

    /// Never called.
    #[must_use]
    pub fn rules(&self) -> &[CompiledRule] {
        match *self {}
    }

    /// Never called.
    #[must_use]
    pub fn names_not_in(&self, _known: &[&str]) -> Vec<PolicyError> {
        match *self {}
    }
}

impl CompiledRule {
    /// Never called.
    #[must_use]
    pub fn written(&self) -> &PolicyRule {
        match *self {}
    }

    /// Never called.
    #[must_use]
    pub fn effect(&self) -> PolicyEffect {
        match *self {}
    }

    /// Never called.
    #[must_use]
    pub fn origin(&self) -> &RuleOrigin {
        match *self {}
    }

    /// Never called.
    #[must_use]
    pub fn is_about(&self, _subject: &CallSubject<'_>) -> bool {
        match *self {}
    }
}
