//! The ordered list of all filter rules.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::builtin_rule::BuiltinRule;
use super::rule::Rule;

/// The names and the texts of the built-in rules in the order in which they are tried.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// The built-in rules; each is compiled when it is first used.
static RULES: LazyLock<Vec<BuiltinRule>> = LazyLock::new(|| {
    let rules = BUILT_IN.iter();
    rules
        .map(|(name, text)| BuiltinRule::new(name, text))
        .collect()
});

/// The patterns of the commands of [`RULES`], at the same positions. With classes of ASCII they compile in a fraction of
/// the time; the rule itself decides.
static COMMANDS: LazyLock<RegexSet> = LazyLock::new(|| {
    let patterns = RULES.iter().map(BuiltinRule::command_pattern);
    let set = RegexSetBuilder::new(patterns).unicode(false).build();
    set.unwrap_or_else(|error| {
        tracing::error!(%error, "the built-in filter rules have a wrong pattern");
        RegexSet::empty()
    })
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

    /// Returns all rules in order, including disabled ones.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let built_in = self.built_in().filter_map(|rule| self.rule_of(rule));
        self.added.iter().chain(built_in)
    }

    /// The built-in rules that are not replaced.
    pub(super) fn built_in(&self) -> impl Iterator<Item = &'static BuiltinRule> {
        RULES.iter().filter(|rule| !self.replaces(rule))
    }

    fn replaces(&self, built_in: &BuiltinRule) -> bool {
        let mut added = self.added.iter();
        added.any(|added| added.name == built_in.name())
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
            let matches = COMMANDS.matches(command.as_bytes()).into_iter();
            let built_in = matches.filter_map(|index| RULES.get(index));
            built_in
                .filter(|rule| !self.replaces(rule))
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
        assert_eq!(COMMANDS.len(), BUILT_IN.len());
    }

    /// Proves OUT-6: the search finds each rule, also before it is compiled.
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
}
