//! A built-in rule, compiled when it is first used: a process uses one or two of them.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::parse_rules::parse_rule;
use super::rule::{MatchSpec, Rule};

/// A built-in rule, compiled when it is first used.
pub(super) struct BuiltinRule {
    name: &'static str,
    text: &'static str,
    rule: OnceLock<Option<Arc<Rule>>>,
}

/// The `match` line of a rule.
#[derive(Deserialize)]
struct MatchLine {
    #[serde(rename = "match")]
    matches: MatchSpec,
}

impl BuiltinRule {
    /// The rule `name` in `text`.
    pub(super) fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            rule: OnceLock::new(),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The text of its file.
    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    /// The pattern of its commands. Without one it is searched for every command.
    pub(super) fn command_pattern(&self) -> String {
        let line = self.text.lines().find(|line| line.starts_with("match ="));
        let parsed = line.and_then(|line| toml::from_str::<MatchLine>(line).ok());
        let pattern = parsed.and_then(|line| line.matches.pattern());
        pattern.unwrap_or_default()
    }

    /// The rule. None of them fails to compile: a test sees to that.
    pub(super) fn rule(&self) -> Option<&Arc<Rule>> {
        let compiled = self.rule.get_or_init(|| match parse_rule(self.text) {
            Ok(rule) => Some(Arc::new(rule)),
            Err(reason) => {
                tracing::error!(target: "zeph_tools::filter", name = self.name, reason, "a built-in filter rule is wrong");
                None
            }
        });
        compiled.as_ref()
    }
}
