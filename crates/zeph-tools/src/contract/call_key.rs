//! The identity of calls, for the cache.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A tool and its arguments. Two keys are equal if the arguments differ only in the order of object keys, at any
/// depth. Create it from repaired arguments, so that an alias makes no difference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    tool: String,
    /// SHA-256 of the arguments.
    arguments: [u8; 32],
}

impl CacheKey {
    /// Creates the key of a call of `tool` with `params`.
    #[must_use]
    pub fn new(tool: &str, params: &Value) -> Self {
        let mut hash = Sha256::new();
        update(&mut hash, params);
        Self {
            tool: tool.to_owned(),
            arguments: hash.finalize().into(),
        }
    }

    /// Returns the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tool.len() + self.arguments.len()
    }
}

/// Hashes the JSON text of `value` with sorted keys.
fn update(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(name, _)| name.as_str());
            hash.update(b"{");
            for (name, value) in entries {
                hash.update(Value::from(name.as_str()).to_string());
                hash.update(b":");
                update(hash, value);
                hash.update(b",");
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                update(hash, item);
                hash.update(b",");
            }
            hash.update(b"]");
        }
        plain => hash.update(plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Proves OUT-40 in part.
    #[test]
    fn cache_key_ignores_only_the_order_of_keys() {
        let key = |params: Value| CacheKey::new("grep", &params);
        let a = key(json!({"path": "a", "deep": {"x": 1, "y": [{"b": 1, "a": 2}]}}));
        let b = key(json!({"deep": {"y": [{"a": 2, "b": 1}], "x": 1}, "path": "a"}));
        assert_eq!(a, b);
        let others = [
            json!({"path": "b", "deep": {"x": 1, "y": [{"b": 1, "a": 2}]}}),
            json!({"path": "a", "deep": {"x": 1, "y": [{"b": 2, "a": 1}]}}),
            json!({"path": "a", "deep": {"x": "1", "y": [{"b": 1, "a": 2}]}}),
            json!({"path": "a", "deep": {"x": 1, "y": []}}),
            json!({}),
            json!(null),
        ];
        for other in others {
            assert_ne!(a, key(other));
        }
        assert_ne!(key(json!([[1], 2])), key(json!([[1, 2]])));
        assert_ne!(key(json!({"a": "b\":\"c"})), key(json!({"a\":\"b": "c"})));
        assert_ne!(
            CacheKey::new("read", &json!({})),
            CacheKey::new("grep", &json!({}))
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0i64..3).prop_map(Value::from),
            "[a-c,{}\\[\\]\"]{0,3}".prop_map(Value::from),
        ];
        plain.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[ab\",:]{0,2}", inner, 0..3)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        /// Proves OUT-40 in part: keys are equal exactly when the arguments are.
        #[test]
        fn equal_keys_mean_equal_arguments(a in values(), b in values()) {
            prop_assert_eq!(a == b, CacheKey::new("t", &a) == CacheKey::new("t", &b));
        }
    }
}
