//! Secrets in JSON values.

use std::sync::Arc;

use serde_json::Value;

use super::SecurityPatterns;
use super::kind::Kinds;

impl SecurityPatterns {
    /// Replaces the values in every string of a JSON value; a string whose key gives it away is
    /// replaced as a whole. Returns what was found.
    pub fn redact_json(self: &Arc<Self>, value: &mut Value) -> Kinds {
        let mut kinds = Kinds::default();
        self.walk(value, None, &mut kinds);
        kinds
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
                for (key, field) in fields {
                    self.walk(field, Some(key), kinds);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn string(self: &Arc<Self>, text: &mut String, key: Option<&str>, kinds: &mut Kinds) {
        let found = self.redact(text);
        kinds.extend(found.kinds);
        let redacted = match found.text {
            std::borrow::Cow::Owned(redacted) => Some(redacted),
            std::borrow::Cow::Borrowed(_) => None,
        };
        if let Some(redacted) = redacted {
            *text = redacted;
        }
        let Some(key) = key else { return };
        let Ok(quoted) = serde_json::to_string(text.as_str()) else {
            return;
        };
        // As it would stand in a file.
        let line = format!("\"{key}\": {quoted}");
        let found = self.redact(&line);
        if found.kinds.values().is_empty() {
            return;
        }
        kinds.extend(found.kinds);
        if let Some(kind) = found.kinds.values().iter().next() {
            *text = format!("[redacted:{}]", self.name(kind));
        }
    }
}
