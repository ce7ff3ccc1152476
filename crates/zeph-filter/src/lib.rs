#![doc = include_str!("../README.md")]
//! # Structure
//!
//! An output passes these modules in order: [`sanitize`] removes terminal control; `rulebook` finds the `rule`
//! by the subject of the command (`command`); the rule's strategies (`strategy/`) omit lines; the fact guard
//! (`facts/`) restores missing facts; `notice` states the omitted lines.
//!
//! `pipeline` selects the plan, `run` executes it, and `filtered` is its result. `fit` groups lines if they are
//! too many, `binary` recognizes binary data, `metrics` counts, and `rule_feedback` records insufficient
//! outputs. The built-in rules are data in `rules/`.

#![deny(missing_docs)]

mod binary;
mod builtin_rule;
mod command;
mod confidence;
pub mod config;
mod duration_tokens;
mod facts;
mod filtered;
mod fit;
mod head_tail;
mod line;
mod line_template;
mod metrics;
mod notice;
mod overrides;
mod parse_rules;
mod pipeline;
mod plan;
mod removed;
mod rule;
mod rule_feedback;
mod rule_tests;
mod rulebook;
mod run;
pub mod sanitize;
mod strategy;
#[cfg(test)]
mod tests;

pub use command::Subject;
pub use confidence::FilterConfidence;
pub use config::RuleOverride;
pub use filtered::FilteredOutput;
pub use filtered::no_longer_than;
pub use line::{ExitInfo, Line};
pub use metrics::{FilterMetrics, RuleMetrics};
pub use notice::OmissionStats;
pub use parse_rules::{FilterWarning, MAX_FILE, parse_rules};
pub use pipeline::FilterPipeline;
pub use plan::Plan;
pub use rule::{CommandMatcher, CustomMatch, Rule, RuleTest};
pub use rule_tests::{RuleReport, TestFailure, verify};
pub use rulebook::RuleSet;
pub use run::FilterStream;
pub use sanitize::{Sanitizer, sanitize_output};
