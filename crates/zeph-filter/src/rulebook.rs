//! All rules in the order in which they are tried.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::builtin_rule::BuiltinRule;
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

/// The built-in rules; what a rule is made of is compiled when it is first used.
static RULES: LazyLock<Vec<BuiltinRule>> = LazyLock::new(|| {
    BUILT_IN
        .iter()
        .map(|(name, text)| BuiltinRule::new(name, text))
        .collect()
});

/// Rules, of which the first that is for a command is used.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// Before the built-in ones.
    pub(super) added: Vec<Arc<Rule>>,
    /// Built-in rules that the configuration changed, by name.
    pub(super) changed: BTreeMap<&'static str, Arc<Rule>>,
}

impl RuleSet {
    /// The built-in rules, and before them `added`: those of the same name as a built-in one take its
    /// place, and of several of the same name the last counts.
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

    /// All of them, in order, those that are switched off among them.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let built_in = self.built_in().filter_map(|rule| self.rule_of(rule));
        self.added.iter().chain(built_in)
    }

    /// The built-in ones that are not replaced.
    pub(super) fn built_in(&self) -> impl Iterator<Item = &'static BuiltinRule> {
        RULES
            .iter()
            .filter(|rule| self.added.iter().all(|added| added.name != rule.name()))
    }

    /// The rule of a built-in one, with the changes of the configuration.
    pub(super) fn rule_of(&self, built_in: &'static BuiltinRule) -> Option<&Arc<Rule>> {
        let changed = self.changed.get(built_in.name());
        changed.or_else(|| built_in.rule())
    }

    /// The rule for `command`: the part of it that counts, normalized.
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

    /// Proves OUT-6: no rule is passed over because of how its commands begin.
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
