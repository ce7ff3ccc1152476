//! JSON Schemas from servers: compiled once, bounded, and without fetching anything.
//!
//! [`ForeignSchema::compile`] refuses a schema that cannot be checked; `bounds` refuses one that is too costly
//! to check. `fault` describes an argument that does not fit, `repair` changes one that has exactly one reading.

mod bounds;
mod fault;
mod repair;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use self::bounds::Bounds;
pub(crate) use self::fault::Fault;

/// Steps that a pattern with look-around may take back.
const MAX_BACKTRACKS: usize = 100_000;
/// Bytes that a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Faults of one call that are collected.
const MAX_FAULTS: usize = 32;

/// A compiled schema of the arguments of a tool that a server describes.
#[derive(Clone)]
pub struct ForeignSchema(Arc<Compiled>);

struct Compiled {
    source: Value,
    validator: Validator,
    max_depth: usize,
}

impl ForeignSchema {
    /// Compiles `schema`. References outside of it are refused, and never fetched.
    ///
    /// # Errors
    /// The reason why arguments cannot be checked against it.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let bounds = Bounds::of(schema)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKS)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES);
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .with_pattern_options(patterns);
        let validator = options.build(schema).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(Compiled {
            source: schema.clone(),
            validator,
            max_depth: bounds.max_depth,
        })))
    }

    /// Every part of `arguments` that does not fit, the first ones if there are many.
    pub(crate) fn faults(&self, arguments: &Value) -> Vec<Fault> {
        let max_depth = self.0.max_depth;
        if depth(arguments) > max_depth {
            return vec![Fault::too_deep(max_depth)];
        }
        let errors = self.0.validator.iter_errors(arguments);
        errors
            .take(MAX_FAULTS)
            .map(|error| Fault::new(&error))
            .collect()
    }

    /// Arguments that fit, with one sentence for each repair; `None` if there is not exactly one reading.
    pub(crate) fn repair(&self, arguments: &Value) -> Option<(Value, Vec<String>)> {
        repair::repair(self, arguments)
    }
}

impl fmt::Debug for ForeignSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignSchema").finish_non_exhaustive()
    }
}

impl PartialEq for ForeignSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

/// Levels of lists and objects.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
