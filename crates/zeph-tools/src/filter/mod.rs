//! Filters: of what a command prints, what is worth reading.
//!
//! In the order in which an output passes: [`sanitize`] makes lines of bytes that were meant for a
//! terminal; `rulebook` finds the `rule` by the part of the command that counts (`command`); the rule's strategies
//! (`strategy/`) leave lines out; the fact guard (`facts/`) puts back what must not be lost; `notice`
//! says what is missing. `engine` ties these together, `metrics` counts, `habits` sees where an output did not suffice. Rules are data: those that are
//! built in stand in `rules/`, with fixtures of real output beside them.

mod binary;
mod built_in;
mod command;
mod confidence;
pub mod config;
mod engine;
mod facts;
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
pub use line::{End, Line};
pub use load::{FilterWarning, MAX_FILE, parse_rules};
pub use metrics::{FilterMetrics, RuleMetrics};
pub use notice::LeftOut;
pub use rule::{CommandMatcher, CustomMatch, Rule, RuleTest};
pub use rulebook::RuleBook;
pub(crate) use run::no_longer_than;
pub use run::{FilterRun, Filtered};
pub use sanitize::{Sanitizer, sanitize_output};
pub use verify::{RuleReport, TestFailure, verify};
