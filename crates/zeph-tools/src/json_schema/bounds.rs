//! Types, and the bounds of numbers and sizes.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::check::Found;
use super::equal::compare;

/// Characters of a value that are quoted.
const LONGEST_QUOTE: usize = 60;

/// A whole number that is not negative; `2.0` is one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "it is whole, not negative, and small enough"
)]
pub(super) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let whole = number >= 0.0 && number.fract() == 0.0 && number < u64::MAX as f64;
        whole.then_some(number as u64)
    })
}

pub(super) fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

pub(super) fn check_number(
    keywords: &Map<String, Value>,
    number: &Number,
    at: &str,
    found: &mut Found<'_>,
) {
    let exclusive = |name: &str| keywords.get(name) == Some(&Value::Bool(true));
    let rules: [(&str, &str, &[Ordering]); 4] = [
        ("minimum", "at least", &[Ordering::Greater, Ordering::Equal]),
        ("maximum", "at most", &[Ordering::Less, Ordering::Equal]),
        ("exclusiveMinimum", "more than", &[Ordering::Greater]),
        ("exclusiveMaximum", "less than", &[Ordering::Less]),
    ];
    for (index, (name, words, allowed)) in rules.into_iter().enumerate() {
        let Some(Value::Number(bound)) = keywords.get(name) else {
            continue;
        };
        // The form of draft 4: `true` beside the bound.
        let strict = rules
            .get(index + 2)
            .is_some_and(|(name, ..)| exclusive(name));
        let allowed = if strict { &allowed[..1] } else { allowed };
        if !allowed.contains(&compare(number, bound)) {
            let words = if strict { "beyond" } else { words };
            found.add(
                at,
                format!("a number {words} {bound} is expected, got {number}"),
            );
        }
    }
    if let Some(Value::Number(of)) = keywords.get("multipleOf")
        && !is_multiple(number, of)
    {
        found.add(at, format!("a multiple of {of} is expected, got {number}"));
    }
}

fn is_multiple(number: &Number, of: &Number) -> bool {
    if let (Some(number), Some(of)) = (number.as_i128(), of.as_i128()) {
        return of != 0 && number % of == 0;
    }
    let (Some(number), Some(of)) = (number.as_f64(), of.as_f64()) else {
        return false;
    };
    let ratio = number / of;
    // Decimals have no exact form: 0.3 is three times 0.1.
    (ratio - ratio.round()).abs() <= ratio.abs().max(1.0) * 1e-12
}

pub(super) fn is_within(number: usize, least: Option<u64>, most: Option<u64>) -> bool {
    let number = u64::try_from(number).unwrap_or(u64::MAX);
    least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
}

pub(super) fn check_count(
    keywords: &Map<String, Value>,
    [least, most]: [&str; 2],
    number: usize,
    what: &str,
    at: &str,
    found: &mut Found<'_>,
) {
    let bound = |name: &str| keywords.get(name).and_then(count);
    if let Some(least) = bound(least)
        && !is_within(number, Some(least), None)
    {
        found.add(
            at,
            format!("at least {least} {what} are expected, got {number}"),
        );
    }
    if let Some(most) = bound(most)
        && !is_within(number, None, Some(most))
    {
        found.add(
            at,
            format!("at most {most} {what} are expected, got {number}"),
        );
    }
}

/// A value in a message.
pub(super) fn quoted(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
