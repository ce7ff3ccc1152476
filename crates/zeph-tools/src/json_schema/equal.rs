//! When two JSON values are the same.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Number, Value};

/// How two numbers compare; whole ones exactly.
pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64(), b.as_f64());
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
    }
}

/// Whether two values are the same: numbers by what they are worth, objects in any order.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let known = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(known)
        }
        _ => a == b,
    }
}

/// The index of the first item that stood before; in linear time.
pub(super) fn repeated(items: &[Value]) -> Option<usize> {
    let mut known = HashSet::with_capacity(items.len());
    items.iter().position(|item| {
        let mut text = String::new();
        write(item, &mut text);
        !known.insert(text)
    })
}

/// Writes what is the same for values that are [`same`].
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => text.push_str(&whole.to_string()),
            // The values of one array are compared with each other: `1.0` is `1` there.
            (None, Some(float)) => text.push_str(&float.to_string()),
            (None, None) => text.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.push_str(&format!("{name:?}:"));
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}
