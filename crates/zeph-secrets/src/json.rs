//! Secrets in JSON values: in strings, and in the names of fields.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::kind::Kinds;
use crate::SecurityPatterns;

impl SecurityPatterns {
    /// Replaces the values in every string and field name of a JSON value. If a field's name announces a secret, its
    /// whole string is replaced. Returns the kinds that were found.
    pub fn redact_json(self: &Arc<Self>, value: &mut Value) -> Kinds {
        let mut kinds = Kinds::default();
        self.walk(value, None, &mut kinds);
        kinds
    }

    /// Replaces known values in every string and field name of a JSON value.
    pub fn redact_known_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redact_known(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.redact_known_json(item);
                }
            }
            Value::Object(fields) => {
                rename(fields, |name| match self.redact_known(name) {
                    Cow::Owned(redacted) => Some(redacted),
                    Cow::Borrowed(_) => None,
                });
                for field in fields.values_mut() {
                    self.redact_known_json(field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn walk(self: &Arc<Self>, value: &mut Value, key: Option<&str>, kinds: &mut Kinds) {
        match value {
            Value::String(text) => self.string(text, key, kinds),
            Value::Array(items) => {
                for item in items {
                    self.walk(item, key, kinds);
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields.iter_mut() {
                    self.walk(field, Some(key), kinds);
                }
                rename(fields, |name| {
                    let found = self.redact(name);
                    kinds.extend(found.kinds);
                    match found.text {
                        Cow::Owned(redacted) => Some(redacted),
                        Cow::Borrowed(_) => None,
                    }
                });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn string(self: &Arc<Self>, text: &mut String, key: Option<&str>, kinds: &mut Kinds) {
        let found = self.redact(text);
        kinds.extend(found.kinds);
        let redacted = match found.text {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        };
        if let Some(redacted) = redacted {
            *text = redacted;
        }
        let Some(key) = key else { return };
        let Ok(quoted) = serde_json::to_string(text.as_str()) else {
            return;
        };
        // The form of the field in a file.
        let line = format!("\"{key}\": {quoted}");
        let found = self.redact(&line);
        if found.kinds.values().is_empty() || self.redact(key).kinds == found.kinds {
            return;
        }
        kinds.extend(found.kinds);
        if let Some(kind) = found.kinds.values().iter().next() {
            *text = format!("[redacted:{}]", self.name(kind));
        }
    }
}

/// Renames fields with `change`. Two fields never get the same name, and the order of the fields stays.
fn rename(fields: &mut Map<String, Value>, mut change: impl FnMut(&str) -> Option<String>) {
    let changed: Vec<_> = fields.keys().map(|name| change(name)).collect();
    if changed.iter().all(Option::is_none) {
        return;
    }
    let old = std::mem::take(fields);
    let taken: std::collections::HashSet<String> = old
        .keys()
        .zip(&changed)
        .filter(|(_, changed)| changed.is_none())
        .map(|(name, _)| name.clone())
        .collect();
    for ((name, value), changed) in old.into_iter().zip(changed) {
        let name = match changed {
            None => name,
            Some(wanted) => {
                let numbered = (2_usize..).map(|number| format!("{wanted}#{number}"));
                std::iter::once(wanted.clone())
                    .chain(numbered)
                    .find(|name| !fields.contains_key(name) && !taken.contains(name))
                    .unwrap_or(wanted)
            }
        };
        fields.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{KnownSecrets, SecurityConfig};

    const KEY: &str = "sk-known-0123456789abcdef";

    fn secrets() -> Arc<SecurityPatterns> {
        let known = KnownSecrets {
            keys: vec![KEY.to_owned()],
            likely: Vec::new(),
        };
        Arc::new(SecurityPatterns::new(&SecurityConfig::default(), &known).0)
    }

    /// Proves OUT-21: names of fields hold no value either, and no field is lost.
    #[test]
    fn names_of_fields_are_redacted() {
        let token = format!("gh{}{}", "p_", "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6");
        let mark = "[redacted:known_secret]";
        let both = |value: Value, known: &Value, all: &Value| {
            let mut got = value.clone();
            secrets().redact_known_json(&mut got);
            assert_eq!(&got, known, "known values of {value}");
            let mut got = value.clone();
            secrets().redact_json(&mut got);
            assert_eq!(&got, all, "all of {value}");
        };
        let same = |value: Value, expect: &Value| both(value, expect, expect);
        same(json!({ KEY: 1 }), &json!({ mark: 1 }));
        same(
            json!({ format!("a {KEY}"): "b" }),
            &json!({ format!("a {mark}"): "b" }),
        );
        same(
            json!({ "a": [{ KEY: { KEY: [] } }] }),
            &json!({ "a": [{ mark: { mark: [] } }] }),
        );
        same(json!({ KEY: KEY }), &json!({ mark: mark }));
        same(
            json!({ "x": 0, KEY: 1, format!("{KEY} "): 2, "y": 3 }),
            &json!({ "x": 0, mark: 1, format!("{mark} "): 2, "y": 3 }),
        );
        let mut twice = json!({});
        twice[KEY] = json!(1);
        twice[mark] = json!(2);
        twice["sk-known-0123456789\nabcdef"] = json!(3);
        let mut expect = json!({});
        expect[format!("{mark}#2")] = json!(1);
        expect[mark] = json!(2);
        expect[format!("{mark}#3")] = json!(3);
        same(twice, &expect);
        same(
            json!(["plain", 1, null, { "a": "b" }]),
            &json!(["plain", 1, null, { "a": "b" }]),
        );
        both(
            json!({ &token: "v" }),
            &json!({ &token: "v" }),
            &json!({ "[redacted:github_token]": "v" }),
        );
    }
}
