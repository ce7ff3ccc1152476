//! Changes of rules by configuration (`[tools.filters.rules]`): a rule is disabled, or has other limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::{Table, Value};

use super::builtin_rule::BuiltinRule;
use super::config::RuleOverride;
use super::parse_rules::{FilterWarning, rule};
use super::rule::Rule;
use super::rulebook::RuleSet;

/// Reads an option of an override.
type ReadOption = fn(&RuleOverride) -> Option<usize>;

/// The options of a rule, with the type of the strategy that has them.
const OPTIONS: &[(&str, &str, ReadOption)] = &[
    ("max_failures", "test_summary", |it| it.max_failures),
    ("truncate_stack_trace", "test_summary", |it| {
        it.truncate_stack_trace
    }),
    ("max_diff_lines", "git_diff", |it| it.max_diff_lines),
    ("max_commits", "git_log", |it| it.max_commits),
];

impl RuleSet {
    /// Applies `overrides` to the rules that their keys name. A key is the name of a rule, a glob of names,
    /// or the type of a strategy; the name of a rule is stronger than the others. A warning reports each
    /// override without effect.
    #[must_use]
    pub fn with_overrides(
        mut self,
        overrides: &BTreeMap<String, RuleOverride>,
    ) -> (Self, Vec<FilterWarning>) {
        let mut keys: Vec<Key<'_>> = overrides
            .iter()
            .map(|(name, change)| Key::new(name, change))
            .collect();
        for added in &mut self.added {
            let change = merged(&mut keys, added);
            if let Some(enabled) = change.enabled.filter(|enabled| *enabled != added.enabled) {
                Arc::make_mut(added).enabled = enabled;
            }
        }
        let mut changed = Vec::new();
        // Without overrides no rule is compiled.
        let built_in = self.built_in().filter(|_| !overrides.is_empty());
        for (built_in, rule) in built_in.filter_map(|it| Some((it, it.rule()?))) {
            let change = merged(&mut keys, rule);
            if change == RuleOverride::default() {
                continue;
            }
            let mut new = Rule::clone(rule);
            match built_in.with_options(&change) {
                Ok(limited) => {
                    new.strategies = limited.strategies;
                    new.on_failure = limited.on_failure;
                }
                Err(reason) => {
                    for key in keys.iter_mut().filter(|key| is_named(key.name, rule)) {
                        key.fault.get_or_insert_with(|| reason.clone());
                    }
                }
            }
            new.enabled = change.enabled.unwrap_or(new.enabled);
            changed.push((built_in.name(), Arc::new(new)));
        }
        self.changed.extend(changed);
        let warnings = keys.into_iter().filter_map(Key::warning).collect();
        (self, warnings)
    }
}

/// A key of the overrides, and its effect so far.
struct Key<'a> {
    name: &'a str,
    change: &'a RuleOverride,
    /// Whether a rule has this name, or matches it.
    is_known: bool,
    /// The options that no rule had so far.
    unused: Vec<&'static str>,
    fault: Option<String>,
}

impl<'a> Key<'a> {
    fn new(name: &'a str, change: &'a RuleOverride) -> Self {
        let set = OPTIONS.iter().filter(|(.., value)| value(change).is_some());
        Self {
            name,
            change,
            is_known: false,
            unused: set.map(|(option, ..)| *option).collect(),
            fault: None,
        }
    }

    fn warning(self) -> Option<FilterWarning> {
        let reason = if !self.is_known {
            "no rule has this name, and no rule uses a strategy of this type".to_owned()
        } else if let Some(fault) = self.fault {
            fault
        } else if self.unused.is_empty() {
            return None;
        } else {
            let options = self.unused.join(", ");
            format!("no built-in rule that it names has the option {options}")
        };
        Some(FilterWarning::Override {
            key: self.name.to_owned(),
            reason,
        })
    }
}

/// All changes of one rule. The key with its exact name has the highest precedence.
fn merged(keys: &mut [Key<'_>], rule: &Rule) -> RuleOverride {
    let mut all = RuleOverride::default();
    for exact in [false, true] {
        let named = keys
            .iter_mut()
            .filter(|key| (key.name == rule.name) == exact && is_named(key.name, rule));
        for key in named {
            key.is_known = true;
            key.unused.retain(|option| !has_option(rule, option));
            let RuleOverride {
                enabled,
                max_failures,
                truncate_stack_trace,
                max_diff_lines,
                max_commits,
            } = *key.change;
            all.enabled = enabled.or(all.enabled);
            all.max_failures = max_failures.or(all.max_failures);
            all.truncate_stack_trace = truncate_stack_trace.or(all.truncate_stack_trace);
            all.max_diff_lines = max_diff_lines.or(all.max_diff_lines);
            all.max_commits = max_commits.or(all.max_commits);
        }
    }
    all
}

/// Whether a strategy of the rule has the option. The limits of added rules are in their own file.
fn has_option(rule: &Rule, option: &str) -> bool {
    let on_failure = rule.on_failure().unwrap_or_default();
    let mut options = OPTIONS.iter().filter(|(name, ..)| *name == option);
    options.any(|(_, kind, _)| rule.strategies().contains(kind) || on_failure.contains(kind))
}

impl BuiltinRule {
    /// The rule with other values for those options that its strategies have.
    fn with_options(&self, change: &RuleOverride) -> Result<Rule, String> {
        let mut table: Table =
            toml::from_str(self.text()).map_err(|error| error.message().to_owned())?;
        table.remove("order");
        for place in ["strategy", "on_failure"] {
            let strategies: Vec<&mut Table> = match table.get_mut(place) {
                Some(Value::Table(one)) => vec![one],
                Some(Value::Array(many)) => {
                    many.iter_mut().filter_map(Value::as_table_mut).collect()
                }
                _ => Vec::new(),
            };
            for strategy in strategies {
                let kind = strategy.get("type").and_then(Value::as_str);
                let kind = kind.unwrap_or_default().to_owned();
                for (option, of, value) in OPTIONS {
                    if let Some(value) = value(change).filter(|_| *of == kind) {
                        let value = i64::try_from(value).unwrap_or(i64::MAX);
                        strategy.insert((*option).to_owned(), Value::Integer(value));
                    }
                }
            }
        }
        rule(table)
    }
}

/// Whether `key` names the rule: by its name, by a glob of names, or by the type of a strategy.
fn is_named(key: &str, rule: &Rule) -> bool {
    let strategies = rule.strategies();
    let on_failure = rule.on_failure().unwrap_or_default();
    matches_name(key, &rule.name) || strategies.contains(&key) || on_failure.contains(&key)
}

/// Whether `name` matches `glob`, in which `*` matches any text.
fn matches_name(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::parse_rules::parse_rules;
    use super::*;

    fn book(own: &str, overrides: &str) -> (RuleSet, Vec<String>) {
        let (rules, warnings) = parse_rules("f", own);
        assert_eq!(warnings, []);
        let overrides: BTreeMap<String, RuleOverride> = toml::from_str(overrides).unwrap();
        let (book, warnings) = RuleSet::new(rules).with_overrides(&overrides);
        (book, warnings.iter().map(ToString::to_string).collect())
    }

    /// Proves OUT-3, D-9: an override disables the rules that it names, and no other.
    #[test]
    fn override_disables_the_rules_that_its_key_names() {
        let check = |overrides: &str, command: &str, expect: Option<&str>| {
            let (book, warnings) = book("", overrides);
            assert_eq!(warnings, <[String; 0]>::default(), "{overrides}");
            let found = book.find(command).map(|rule| rule.name.as_str());
            assert_eq!(found, expect, "{overrides} {command}");
        };
        check("cargo-test.enabled = false", "cargo test", None);
        check(
            "cargo-test.enabled = false",
            "cargo nextest run",
            Some("cargo-nextest"),
        );
        check("test_summary.enabled = false", "cargo test", None);
        check("test_summary.enabled = false", "pytest -q", None);
        check("test_summary.enabled = false", "go test ./...", None);
        check(
            "test_summary.enabled = false",
            "git status",
            Some("git-status"),
        );
        check("\"git-*\".enabled = false", "git status", None);
        check("\"git-*\".enabled = false", "git diff", None);
        check("\"git-*\".enabled = false", "git log", None);
        check(
            "\"git-*\".enabled = false",
            "cargo build",
            Some("cargo-build"),
        );
        check("cargo-clippy.enabled = false", "cargo clippy", None);
        check("\"listing-*\".enabled = false", "ls -la", None);
        check("\"listing-*\".enabled = false", "tree", None);
        check("\"*\".enabled = false", "cargo test", None);
        check("\"git-*\".enabled = true", "git diff", Some("git-diff"));
        // The name of a rule is stronger than a glob and than a type of strategy.
        check(
            "pytest.enabled = true\ntest_summary.enabled = false",
            "pytest -q",
            Some("pytest"),
        );
        check(
            "\"*\".enabled = false\ncargo-test.enabled = true",
            "cargo test",
            Some("cargo-test"),
        );
    }

    /// Proves OUT-3: a rule of the user is disabled by its name as well.
    #[test]
    fn override_disables_a_rule_of_the_user() {
        let own =
            "[[rules]]\nname = 'mine'\nmatch = { prefix = 'mine' }\nstrategy = { type = 'dedup' }";
        let (with, _) = book(own, "");
        assert!(with.find("mine -x").is_some());
        let (without, warnings) = book(own, "mine.enabled = false");
        assert!(without.find("mine -x").is_none() && warnings.is_empty());
    }

    /// Proves D-9: limits reach the strategies that have them.
    #[test]
    fn override_changes_the_limits_of_strategies() {
        let options = |overrides: &str, command: &str| {
            let (book, warnings) = book("", overrides);
            assert_eq!(warnings, <[String; 0]>::default(), "{overrides}");
            format!("{:?}", book.find(command).unwrap().strategies)
        };
        let check = |overrides: &str, command: &str, expect: &str| {
            let found = options(overrides, command);
            assert!(found.contains(expect), "{overrides}: {found}");
            assert!(!options("", command).contains(expect), "{expect}");
        };
        check(
            "test_summary.max_failures = 3",
            "cargo test",
            "max_failures: 3",
        );
        check("pytest.max_failures = 4", "pytest", "max_failures: 4");
        check(
            "pytest.truncate_stack_trace = 7",
            "pytest",
            "truncate_stack_trace: 7",
        );
        check("\"git-*\".max_diff_lines = 77", "git diff", "77");
        check("\"git-*\".max_commits = 21", "git log", "max_commits: 21");
        // Two keys change different options of one rule.
        check(
            "test_summary.max_failures = 3\npytest.truncate_stack_trace = 7",
            "pytest",
            "max_failures: 3, truncate_stack_trace: 7",
        );
        check(
            "\"*\".max_commits = 21\ngit-log.max_commits = 22",
            "git log",
            "max_commits: 22",
        );
    }

    #[test]
    fn override_without_effect_is_reported() {
        let check = |overrides: &str, expect: &str| {
            let (_, warnings) = book("", overrides);
            assert_eq!(warnings.len(), 1, "{overrides}: {warnings:?}");
            assert!(warnings[0].contains(expect), "{warnings:?}");
        };
        check("cargotest.enabled = false", "`cargotest`");
        check("\"x-*\".enabled = true", "no rule has this name");
        check("cargo-clippy.max_failures = 3", "max_failures");
        check("git-log.max_commits = 2", "max_commits");
    }

    #[test]
    fn glob_of_names_matches_whole_names() {
        let check = |glob: &str, name: &str, expect: bool| {
            assert_eq!(matches_name(glob, name), expect, "{glob} {name}");
        };
        check("a", "a", true);
        check("a", "ab", false);
        check("a", "ba", false);
        check("a*", "ab", true);
        check("*a", "ba", true);
        check("*a", "ab", false);
        check("a*c", "abc", true);
        check("a*a", "a", false);
        check("*b*", "abc", true);
        check("a*b*c", "a-b-c", true);
        check("a*b*c", "a-c", false);
        check("*", "", true);
        check("", "a", false);
    }
}
