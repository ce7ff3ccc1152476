//! Strategies: state machines that process the lines of an output in sequence.
//!
//! A strategy never buffers the whole output. It decides by the structure of the text, and adds no information.
//! [`STRATEGIES`] lists all strategies by the `type` that a rule gives.

mod ansible;
mod cargo_lines;
mod chain;
mod dedup;
mod docker_build;
mod excerpt;
mod generated;
mod git_diff;
mod git_log;
mod git_status;
mod group_by_rule;
mod group_paths;
mod group_similar;
mod keep_matching;
mod kind;
mod line_buffer;
mod listing;
mod package_notes;
mod patterns;
mod search_hits;
mod strip_annotated;
mod strip_noise;
mod terraform;
mod test_summary;
#[cfg(test)]
mod testing;
mod top_k_counter;
mod truncate;
mod unit;

use std::fmt::Debug;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::confidence::FilterConfidence;
use super::line::{ExitInfo, Line, Sink};

pub(super) use chain::Chain;
pub(super) use group_similar::Template;

/// A filter for the lines of one output.
pub trait Strategy: Send {
    /// Processes the next line. Retained lines are emitted now or later.
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink);

    /// The output has ended: hands on the rest, and says how well it was understood.
    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence;
}

/// A strategy with its parameters, which starts a state machine for each output.
pub trait StrategyFactory: Debug + Send + Sync {
    /// Starts the strategy for one output.
    fn start(&self) -> Box<dyn Strategy>;

    /// Returns true if the strategy decides about each line separately.
    ///
    /// Its fallback does not affect the other strategies. If any other strategy falls back, the whole output is
    /// used.
    fn judges_lines_alone(&self) -> bool {
        false
    }
}

/// A strategy of a rule.
#[derive(Debug, Clone)]
pub(super) struct NamedRecipe {
    /// The `type` of the strategy.
    pub(super) name: &'static str,
    /// The factory of the strategy.
    pub(super) recipe: Arc<dyn StrategyFactory>,
}

/// Creates a strategy from the parameters in a rule. The error describes an invalid parameter.
type StrategyConstructor = fn(toml::Table) -> Result<Arc<dyn StrategyFactory>, String>;

/// All strategies by `type`.
const STRATEGIES: &[(&str, StrategyConstructor)] = &[
    ("ansible", ansible::make),
    ("dedup", dedup::make),
    ("docker_build", docker_build::make),
    ("git_diff", git_diff::make),
    ("git_log", git_log::make),
    ("git_status", git_status::make),
    ("group_by_rule", group_by_rule::make),
    ("keep_matching", keep_matching::make),
    ("listing", listing::make),
    ("package_notes", package_notes::make),
    ("search_hits", search_hits::make),
    ("strip_annotated", strip_annotated::make),
    ("strip_noise", strip_noise::make),
    ("template", group_similar::make),
    ("terraform", terraform::make),
    ("test_summary", test_summary::make),
    ("truncate", truncate::make),
];

/// Creates the strategy that `table` describes: its `type`, and the parameters of that type.
///
/// # Errors
/// A description of the invalid `type` or parameter.
pub(super) fn recipe(mut table: toml::Table) -> Result<NamedRecipe, String> {
    let Some(toml::Value::String(kind)) = table.remove("type") else {
        return Err("a strategy needs a `type`".to_owned());
    };
    let found = STRATEGIES.iter().find(|(name, _)| *name == kind);
    let Some((name, make)) = found else {
        let names: Vec<&str> = STRATEGIES.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "there is no strategy `{kind}`; there are: {}",
            names.join(", ")
        ));
    };
    let recipe = make(table).map_err(|reason| format!("strategy `{kind}`: {reason}"))?;
    Ok(NamedRecipe { name, recipe })
}

/// Deserializes the parameters of a strategy.
fn params<P: DeserializeOwned>(table: toml::Table) -> Result<P, String> {
    P::deserialize(table).map_err(|error| error.message().to_owned())
}

/// Refuses all parameters of a strategy that has none.
fn no_params(table: &toml::Table) -> Result<(), String> {
    match table.keys().next() {
        Some(key) => Err(format!("unknown field `{key}`")),
        None => Ok(()),
    }
}

/// The maximum length of a pattern in characters.
pub(super) const MAX_PATTERN: usize = 512;
/// The maximum size of a compiled pattern or pattern set in bytes.
pub(super) const MAX_COMPILED: usize = 4 * 1024 * 1024;

/// Formats a pattern error in one line, without the excerpt of the pattern.
pub(super) fn in_a_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().next_back().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// Returns the pattern, if it is not too long.
pub(super) fn checked_pattern(pattern: &str) -> Result<&str, String> {
    let length = pattern.chars().count();
    if length > MAX_PATTERN {
        return Err(format!(
            "a pattern has {length} characters; at most {MAX_PATTERN} are allowed"
        ));
    }
    Ok(pattern)
}
