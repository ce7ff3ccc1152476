//! Access to values of TOML, for limits and for the rules about a project's file.

use toml::{Table, Value};

/// The value at a dotted key.
pub(super) fn get_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    let mut parts = key.split('.');
    let mut value = table.get_mut(parts.next()?)?;
    for part in parts {
        value = value.as_table_mut()?.get_mut(part)?;
    }
    Some(value)
}

/// An integer or a float as a number.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// The text of an error: `value` is above its bound.
pub(super) fn exceeds(value: &Value, base: Option<&Value>) -> String {
    format!(
        "{value} is more than {}",
        base.map_or_else(|| "nothing".to_owned(), Value::to_string)
    )
}

/// The text of a string or a boolean.
pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The items of an array; empty for anything else.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The strings among the items of an array.
pub(super) fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    items(value).iter().filter_map(Value::as_str)
}
