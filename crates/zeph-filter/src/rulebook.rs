//! The ordered list of all filter rules.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::builtin_rule::BuiltinRule;
use super::rule::Rule;

/// Includes the built-in rules by file name, in the order of precedence.
macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("rules/", $name, ".toml")))),*]
    };
}

/// The texts of the built-in rules. Specific rules precede general ones.
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
    "listing-usage",
    "search",
    "archive",
    "apt",
    "download",
    "log-dedup",
    "vitest",
    "jest",
    "mocha",
    "node-test",
    "playwright",
    "ava",
    "eslint",
    "tsc",
    "biome",
    "deno-test",
    "deno-lint",
    "bun-test",
    "bandit",
    "valgrind",
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

/// The built-in rules. The parts of a rule are compiled at its first use.
static RULES: LazyLock<Vec<BuiltinRule>> = LazyLock::new(|| {
    BUILT_IN
        .iter()
        .map(|(name, text)| BuiltinRule::new(name, text))
        .collect()
});

/// An ordered list of rules. The first rule that matches a command is used.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// Rules that precede the built-in ones.
    pub(super) added: Vec<Arc<Rule>>,
    /// Built-in rules that the configuration changed, by name.
    pub(super) changed: BTreeMap<&'static str, Arc<Rule>>,
}

impl RuleSet {
    /// Creates a list of `added` and built-in rules. An added rule replaces a built-in one with the same name.
    /// Of several added rules with the same name, the last one is used.
    #[must_use]
    pub fn new(added: Vec<Rule>) -> Self {
        let mut rules: Vec<Arc<Rule>> = Vec::new();
        for rule in added {
            rules.retain(|earlier| earlier.name != rule.name);
            rules.push(Arc::new(rule));
        }
        Self {
            added: rules,
            changed: BTreeMap::new(),
        }
    }

    /// All rules in order, including disabled ones.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let built_in = self.built_in().filter_map(|rule| self.rule_of(rule));
        self.added.iter().chain(built_in)
    }

    /// The built-in rules that are not replaced.
    pub(super) fn built_in(&self) -> impl Iterator<Item = &'static BuiltinRule> {
        RULES
            .iter()
            .filter(|rule| self.added.iter().all(|added| added.name != rule.name()))
    }

    /// The compiled rule of a built-in one, with the overrides of the configuration.
    pub(super) fn rule_of(&self, built_in: &'static BuiltinRule) -> Option<&Arc<Rule>> {
        let changed = self.changed.get(built_in.name());
        changed.or_else(|| built_in.rule())
    }

    /// Finds the rule for `command`, which is the normalized text of a [`Subject`](crate::Subject).
    #[must_use]
    pub fn find(&self, command: &str) -> Option<&Arc<Rule>> {
        let is_for = |rule: &&Arc<Rule>| rule.enabled && rule.matches.is_for(command);
        let added = self.added.iter().find(is_for);
        added.or_else(|| {
            self.built_in()
                .filter(|rule| rule.may_be_for(command))
                .filter_map(|rule| self.rule_of(rule))
                .find(is_for)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_rules::parse_rule;
    use super::*;

    /// Proves OUT-6: every built-in rule is valid and has a unique name.
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

    /// Proves OUT-6: no rule is skipped because of the prefix of its commands.
    #[test]
    fn rules_that_are_not_compiled_yet_are_found() {
        let book = RuleSet::default();
        let mut commands: Vec<&str> = Vec::new();
        for rule in book.rules() {
            commands.extend(rule.tests.iter().map(|test| test.command.as_str()));
        }
        commands.extend([
            "",
            "git",
            "docker-compose up",
            "./gradlew",
            "x86_64-linux-gnu-gcc a.c",
        ]);
        for command in commands {
            let expect = book.rules().find(|rule| rule.matches.is_for(command));
            let found = book.find(command);
            assert_eq!(
                found.map(|rule| &rule.name),
                expect.map(|rule| &rule.name),
                "{command}"
            );
        }
    }

    #[test]
    fn most_rules_are_told_apart_by_how_their_commands_begin() {
        let candidates =
            |command: &str| RULES.iter().filter(|rule| rule.may_be_for(command)).count();
        for command in ["cargo test", "git log", "ls -la", "pytest -q", "npm test"] {
            assert!(
                candidates(command) <= 16,
                "{command}: {}",
                candidates(command)
            );
        }
    }
}
