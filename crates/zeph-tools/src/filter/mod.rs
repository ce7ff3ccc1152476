//! Filters that shorten command output for the model.
//!
//! An output passes these modules in order: [`sanitize`] removes terminal control; `rulebook` finds the `rule` by the part
//! of the command that counts (`command`); the rule's strategies (`strategy/`) omit lines; the fact guard (`facts/`)
//! restores missing facts; `notice` states the omitted lines. `engine` selects the plan, `run` executes it, and
//! `filtered` is its result. `fit` groups lines if they are too many, `binary` recognizes binary data, `metrics` counts,
//! and `habits` notes outputs that did not suffice. The built-in rules are data in `rules/`, next to fixtures of real
//! output.

mod binary;
mod built_in;
mod command;
mod confidence;
pub mod config;
mod engine;
mod facts;
mod filtered;
mod find;
mod fit;
mod habits;
mod kept;
mod line;
mod load;
mod metrics;
mod notice;
mod overrides;
mod removed;
mod rule;
mod rulebook;
mod run;
pub mod sanitize;
mod strategy;
#[cfg(test)]
mod tests;
mod timing;
mod verify;

pub use command::Subject;
pub use confidence::FilterConfidence;
pub use config::{FiltersConfig, RuleOverride};
pub use engine::{FilterPipeline, Plan};
pub use filtered::FilteredOutput;
pub(crate) use filtered::no_longer_than;
pub use line::{ExitInfo, Line};
pub use load::{FilterWarning, MAX_FILE, parse_rules};
pub use metrics::{FilterMetrics, RuleMetrics};
pub use notice::OmissionStats;
pub use rule::{CommandMatcher, CustomMatch, Rule, RuleTest};
pub use rulebook::RuleSet;
pub use run::FilterStream;
pub use sanitize::{Sanitizer, sanitize_output};
pub use verify::{RuleReport, TestFailure, verify};
