//! The treatment of an output, which the command decides.

use std::sync::Arc;

use super::rule::Rule;

/// The treatment of an output.
#[derive(Debug, Clone)]
pub enum Plan {
    /// Filters are off: the output is only sanitized.
    Plain,
    /// The output is requested in full: it is sanitized, and grouped only if it is too long.
    InFull,
    /// A rule matches the command.
    Rule(Arc<Rule>),
    /// No rule matches: from 100 lines on, lines of equal shape are grouped.
    Unknown,
}
