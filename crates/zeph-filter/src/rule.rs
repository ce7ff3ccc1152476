//! A rule: for which commands it is, and what is done with their output.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::strategy::{self, MAX_COMPILED, NamedRecipe, checked_pattern, in_a_line};

/// A rule as it is written.
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

/// A test of a rule: what an output becomes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTest {
    /// The command; the rule has to be the one that is found for it.
    pub command: String,
    /// Its exit code.
    #[serde(default)]
    pub exit_code: i32,
    /// What it printed.
    pub input: String,
    /// What has to be read of it.
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

/// Decides about a command by a function; for rules that are made in code.
pub type CustomMatch = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// For which commands a rule is.
#[derive(Clone)]
pub enum CommandMatcher {
    /// For this command, with these arguments.
    Exact(String),
    /// For all commands that begin so.
    Prefix(String),
    /// For all commands in which this is found.
    Regex(Regex),
    /// For those of which the function says so.
    Custom(CustomMatch),
    /// For no command: the rule only disables another one of its name.
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
    /// Whether it is for `command`.
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

/// A rule, compiled.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name; a later rule of the same name takes its place.
    pub name: String,
    /// For which commands it is.
    pub matches: CommandMatcher,
    /// Whether it is used.
    pub enabled: bool,
    /// Its tests.
    pub tests: Vec<RuleTest>,
    pub(super) strategies: Vec<NamedRecipe>,
    pub(super) on_failure: Option<Vec<NamedRecipe>>,
}

impl Rule {
    /// The names of its strategies, in order.
    #[must_use]
    pub fn strategies(&self) -> Vec<&str> {
        names(&self.strategies)
    }

    /// The names of those that are used when the command failed, where they are others.
    #[must_use]
    pub fn on_failure(&self) -> Option<Vec<&str>> {
        self.on_failure.as_deref().map(names)
    }

    /// The rule in code: with the strategies of a rule file, for the commands of which `decide` says so.
    ///
    /// # Errors
    /// What is wrong with `strategies`, each a table as in a rule file.
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
        // A name is enough to disable a rule.
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
    /// A regular expression that is found in every command that it is for, if it says so.
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
