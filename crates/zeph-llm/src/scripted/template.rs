//! Expansion of `{{name}}` in a scenario's texts. Other text in braces is unchanged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Fills in the variables of a text.
pub(super) fn fill(text: &str, vars: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, after)) = next_variable(rest) {
        out.push_str(before);
        out.push_str(vars.get(name).ok_or_else(|| unknown(name))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Fills in the variables of all strings in a value; keys are left alone.
pub(super) fn fill_value(value: &Value, vars: &BTreeMap<String, String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(fill(text, vars)?),
        Value::Array(items) => {
            let items: Result<_, _> = items.iter().map(|item| fill_value(item, vars)).collect();
            Value::Array(items?)
        }
        Value::Object(fields) => {
            let filled = |(key, value): (&String, &Value)| {
                Ok::<_, String>((key.clone(), fill_value(value, vars)?))
            };
            Value::Object(fields.iter().map(filled).collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    })
}

/// Checks that all variables of a text are known.
pub(super) fn check(text: &str, known: &BTreeSet<&str>) -> Result<(), String> {
    let mut rest = text;
    while let Some((_, name, after)) = next_variable(rest) {
        if !known.contains(name) {
            return Err(unknown(name));
        }
        rest = after;
    }
    Ok(())
}

/// [`check`] for all strings in a value.
pub(super) fn check_value(value: &Value, known: &BTreeSet<&str>) -> Result<(), String> {
    match value {
        Value::String(text) => check(text, known),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, known)),
        Value::Object(fields) => fields
            .values()
            .try_for_each(|item| check_value(item, known)),
        _ => Ok(()),
    }
}

fn unknown(name: &str) -> String {
    format!("`{{{{{name}}}}}` is neither in `[vars]` nor captured before")
}

/// The text before the first variable, its name, and the text after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text[from..].find("{{") {
        let open = from + at;
        let inner = &text[open + 2..];
        let end = inner
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(inner.len());
        if end > 0 && inner[end..].starts_with("}}") {
            return Some((&text[..open], &inner[..end], &inner[end + 2..]));
        }
        from = open + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_substituted_and_other_braces_unchanged() {
        let vars = BTreeMap::from([
            ("dir".to_owned(), "/tmp".to_owned()),
            ("x_1".to_owned(), "{{dir}}".to_owned()),
        ]);
        for (text, expect) in [
            ("", Ok("")),
            ("{{dir}}/a {{dir}}", Ok("/tmp/a /tmp")),
            ("{{x_1}}", Ok("{{dir}}")),
            ("{{{dir}}}", Ok("{/tmp}")),
            (
                "{{ dir }} {{}} {{dir} {dir}} {{",
                Ok("{{ dir }} {{}} {{dir} {dir}} {{"),
            ),
            (
                "{{nope}}",
                Err("`{{nope}}` is neither in `[vars]` nor captured before"),
            ),
        ] {
            let expect = expect.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(fill(text, &vars), expect, "{text}");
            let known: BTreeSet<&str> = vars.keys().map(String::as_str).collect();
            assert_eq!(check(text, &known).is_ok(), expect.is_ok(), "{text}");
        }
    }
}
