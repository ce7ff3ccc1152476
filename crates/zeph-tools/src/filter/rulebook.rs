//! All rules in the order in which they are tried.

use std::sync::{Arc, LazyLock};

use super::load::parse_rule;
use super::rule::Rule;

/// The rules that are built in, by the name of their file, in the order in which they are tried.
macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("rules/", $name, ".toml")))),*]
    };
}

/// The texts of the built-in rules. The special stands before the general.
const BUILT_IN: &[(&str, &str)] = built_in![
    "cargo-nextest",
    "cargo-test",
    "cargo-bench",
    "cargo-clippy",
    "cargo-run-quiet",
    "cargo-run",
    "cargo-build",
    "cargo-fmt",
    "cargo-update",
    "pytest",
    "unittest",
    "go-test",
    "go-build",
    "cc",
    "make",
    "cmake",
    "ctest",
    "pip",
    "ruff",
    "mypy",
    "flake8",
    "maven",
    "gradle",
    "rspec",
    "phpunit",
    "prove",
    "dotnet",
    "tox",
    "git-status",
    "git-diff",
    "git-log",
    "git-transfer",
    "listing-tree",
    "listing-paths",
    "listing-ls",
    "search",
    "archive",
    "apt",
    "download",
    "log-dedup",
    "vitest",
    "jest",
    "mocha",
    "node-test",
    "eslint",
    "tsc",
    "terraform",
    "prettier",
    "npm-install",
    "js-build",
    "docker-build",
    "docker-pull",
    "kubectl",
    "ansible",
    "brew",
    "npm-lint",
    "npm-test",
];

/// The built-in rules. None of them fails to compile: a test sees to that.
static RULES: LazyLock<Vec<Arc<Rule>>> = LazyLock::new(|| {
    BUILT_IN
        .iter()
        .filter_map(|(name, text)| match parse_rule(text) {
            Ok(rule) => Some(Arc::new(rule)),
            Err(reason) => {
                tracing::error!(name, reason, "a built-in filter rule is wrong");
                None
            }
        })
        .collect()
});

/// Rules, of which the first that is for a command is used.
#[derive(Debug, Clone, Default)]
pub struct RuleBook {
    /// Before the built-in ones.
    added: Vec<Arc<Rule>>,
}

impl RuleBook {
    /// The built-in rules, and before them `added`: those of the same name as a built-in one take its
    /// place, and of several of the same name the last counts.
    #[must_use]
    pub fn new(added: Vec<Rule>) -> Self {
        let mut rules: Vec<Arc<Rule>> = Vec::new();
        for rule in added {
            rules.retain(|earlier| earlier.name != rule.name);
            rules.push(Arc::new(rule));
        }
        Self { added: rules }
    }

    /// All of them, in order, those that are switched off among them.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let replaced = |rule: &&Arc<Rule>| self.added.iter().all(|added| added.name != rule.name);
        self.added.iter().chain(RULES.iter().filter(replaced))
    }

    /// The rule for `command`: the part of it that counts, normalized.
    #[must_use]
    pub fn find(&self, command: &str) -> Option<&Arc<Rule>> {
        self.rules()
            .find(|rule| rule.enabled && rule.matches.is_for(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-6: every built-in rule can be used, and has a name of its own.
    #[test]
    fn every_built_in_rule_compiles() {
        for (name, text) in BUILT_IN {
            let rule = parse_rule(text).unwrap_or_else(|reason| panic!("{name}: {reason}"));
            assert_eq!(rule.name, *name);
            assert!(rule.enabled);
            assert!(!rule.tests.is_empty(), "{name} has no tests");
        }
        let mut names: Vec<_> = BUILT_IN.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BUILT_IN.len());
    }
}
