//! Filter rules: the commands that a rule matches, and the strategies for their output.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::strategy::{self, MAX_COMPILED, NamedRecipe, checked_pattern, in_a_line};

/// A rule as in a rule file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleSpec {
    pub(super) name: String,
    #[serde(rename = "match")]
    matches: Option<MatchSpec>,
    strategy: Option<OneOrMany>,
    on_failure: Option<OneOrMany>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    tests: Vec<RuleTest>,
}

fn yes() -> bool {
    true
}

/// A test of a rule, with an output and the expected result.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTest {
    /// The command. The rule must be the one that is selected for it.
    pub command: String,
    /// The exit code of the command.
    #[serde(default)]
    pub exit_code: i32,
    /// The output of the command.
    pub input: String,
    /// The expected filtered output.
    pub expected: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MatchSpec {
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(toml::Table),
    Many(Vec<toml::Table>),
}

/// A function that matches commands, for rules that are created in code.
pub type CustomMatch = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The commands that a rule matches.
#[derive(Clone)]
#[non_exhaustive]
pub enum CommandMatcher {
    /// Exactly this command with these arguments.
    Exact(String),
    /// All commands with this prefix.
    Prefix(String),
    /// All commands in which the expression has a match.
    Regex(Regex),
    /// All commands for which the function returns true.
    Custom(CustomMatch),
    /// No command: the rule only disables another one with the same name.
    Never,
}

impl std::fmt::Debug for CommandMatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(text) => write!(f, "exact {text:?}"),
            Self::Prefix(text) => write!(f, "prefix {text:?}"),
            Self::Regex(regex) => write!(f, "regex {:?}", regex.as_str()),
            Self::Custom(_) => f.write_str("custom"),
            Self::Never => f.write_str("never"),
        }
    }
}

impl CommandMatcher {
    /// Returns true if `command` matches.
    #[must_use]
    pub fn is_for(&self, command: &str) -> bool {
        match self {
            Self::Exact(text) => command == text,
            Self::Prefix(text) => command.starts_with(text.as_str()),
            Self::Regex(regex) => regex.is_match(command),
            Self::Custom(decide) => decide(command),
            Self::Never => false,
        }
    }
}

/// A compiled rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The name. A later rule with the same name replaces this one.
    pub name: String,
    /// The commands that the rule matches.
    pub matches: CommandMatcher,
    /// True if the rule is used.
    pub enabled: bool,
    /// The tests of the rule.
    pub tests: Vec<RuleTest>,
    pub(super) strategies: Vec<NamedRecipe>,
    pub(super) on_failure: Option<Vec<NamedRecipe>>,
}

impl Rule {
    /// The types of the strategies, in order.
    #[must_use]
    pub fn strategies(&self) -> Vec<&str> {
        names(&self.strategies)
    }

    /// The types of the strategies for failed commands, if they differ.
    #[must_use]
    pub fn on_failure(&self) -> Option<Vec<&str>> {
        self.on_failure.as_deref().map(names)
    }

    /// Creates a rule in code, with the strategies of a rule file, for the commands for which `decide` returns
    /// true.
    ///
    /// # Errors
    /// A description of the fault in `strategies`. Each of them is a table as in a rule file.
    pub fn custom(
        name: impl Into<String>,
        decide: CustomMatch,
        strategies: Vec<toml::Table>,
    ) -> Result<Self, String> {
        Ok(Self {
            name: name.into(),
            matches: CommandMatcher::Custom(decide),
            enabled: true,
            tests: Vec::new(),
            strategies: recipes(OneOrMany::Many(strategies))?,
            on_failure: None,
        })
    }
}

impl TryFrom<RuleSpec> for Rule {
    type Error = String;

    fn try_from(spec: RuleSpec) -> Result<Self, String> {
        if spec.name.trim().is_empty() {
            return Err("`name` is empty".to_owned());
        }
        // A name suffices to disable a rule.
        let missing = |key: &str| format!("`{key}` is missing");
        let matches = match spec.matches {
            Some(matches) => matches.compile()?,
            None if !spec.enabled => CommandMatcher::Never,
            None => return Err(missing("match")),
        };
        let strategies = match spec.strategy {
            Some(strategies) => recipes(strategies)?,
            None if !spec.enabled => Vec::new(),
            None => return Err(missing("strategy")),
        };
        Ok(Self {
            matches,
            strategies,
            on_failure: spec
                .on_failure
                .map(recipes)
                .transpose()
                .map_err(|reason| format!("on_failure: {reason}"))?,
            name: spec.name,
            enabled: spec.enabled,
            tests: spec.tests,
        })
    }
}

impl MatchSpec {
    /// A regular expression that matches all commands of the rule, if it has one.
    pub(super) fn pattern(self) -> Option<String> {
        let text = self.exact.or(self.prefix);
        text.map(|text| format!("^{}", regex::escape(&text)))
            .or(self.regex)
    }

    fn compile(self) -> Result<CommandMatcher, String> {
        match (self.exact, self.prefix, self.regex) {
            (Some(text), None, None) => filled(text, "exact").map(CommandMatcher::Exact),
            (None, Some(text), None) => filled(text, "prefix").map(CommandMatcher::Prefix),
            (None, None, Some(pattern)) => RegexBuilder::new(checked_pattern(&pattern)?)
                .size_limit(MAX_COMPILED)
                .build()
                .map(CommandMatcher::Regex)
                .map_err(|error| in_a_line(&error)),
            _ => Err("`match` needs exactly one of `exact`, `prefix` and `regex`".to_owned()),
        }
    }
}

fn filled(text: String, key: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("`match.{key}` is empty"));
    }
    checked_pattern(&text)?;
    Ok(text)
}

fn names(strategies: &[NamedRecipe]) -> Vec<&str> {
    strategies.iter().map(|strategy| strategy.name).collect()
}

fn recipes(spec: OneOrMany) -> Result<Vec<NamedRecipe>, String> {
    let tables = match spec {
        OneOrMany::One(table) => vec![table],
        OneOrMany::Many(tables) => tables,
    };
    if tables.is_empty() {
        return Err("a rule needs at least one strategy".to_owned());
    }
    tables.into_iter().map(strategy::recipe).collect()
}
