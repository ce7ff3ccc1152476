//! Values and their limits, with the rule for conflicts between sources.
//!
//! A limit of a stronger source lowers a value: the user's `max_timeout` lowers the default `timeout`, and the
//! `max_timeout` of an environment variable lowers the user's `timeout`. If a value exceeds a limit of the same
//! source, that is an error.

use toml::{Table, Value};

use super::error::ConfigError;
use super::layer::{Layer, get};
use super::old_keys::set_value;
use super::origin::{Origin, Provenance};
use super::values::number;

/// A value, its limit, and whether a larger value is an error. Without one the limit applies at run time.
const LIMITS: &[(&str, &str, bool)] = &[
    ("tools.shell.timeout", "tools.shell.max_timeout", true),
    ("tools.retry.base_ms", "tools.retry.max_ms", true),
    (
        "agent.max_parallel_calls",
        "agent.max_calls_per_iteration",
        false,
    ),
    (
        "tools.dependencies.boost_per_dep",
        "tools.dependencies.max_total_boost",
        false,
    ),
];

/// Lowers each value that exceeds a limit of a stronger source. `defaults` are the values that no source sets.
pub(super) fn yield_to_limits(layer: &mut Layer, defaults: &Table) {
    for (key, limit_key, _) in LIMITS {
        let set = |key: &str| layer.get(key).or_else(|| get(defaults, key)).cloned();
        let (Some(value), Some(limit)) = (set(key), set(limit_key)) else {
            continue;
        };
        let origin = layer.provenance.of(limit_key).clone();
        let is_stronger = strength(&origin) > strength(layer.provenance.of(key));
        if exceeds(&value, &limit) && is_stronger {
            set_value(&mut layer.table, key, limit);
            layer.provenance.set(key, origin);
        }
    }
}

/// The values that exceed their limit, which is an error. `table` has every value.
pub(super) fn contradictions(table: &Table, provenance: &Provenance) -> Vec<ConfigError> {
    let strict = LIMITS.iter().filter(|(.., is_error)| *is_error);
    let found = strict.filter_map(|(key, limit_key, _)| {
        let (value, limit) = (get(table, key)?, get(table, limit_key)?);
        if !exceeds(value, limit) {
            return None;
        }
        let name = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let message = format!("`{key}` ({value}) is more than `{limit_key}` ({limit})");
        let help = format!(
            "set both, `{}` to no more than `{}`",
            name(key),
            name(limit_key)
        );
        Some(ConfigError::new(provenance.of(key).clone(), message).help(help))
    });
    found.collect()
}

fn exceeds(value: &Value, limit: &Value) -> bool {
    matches!((number(value), number(limit)), (Some(value), Some(limit)) if value > limit)
}

/// Which of two sources wins: the larger.
fn strength(origin: &Origin) -> u8 {
    match origin {
        Origin::Default => 0,
        Origin::User(_) => 1,
        Origin::Project(_) => 2,
        Origin::Environment(_) => 3,
        Origin::Flag(_) => 4,
    }
}
