//! Think-augmented function calling: a tool with a complex schema gets an additional field, in which the model
//! reasons about the arguments before it writes them. The field is removed before the call is created: it reaches
//! no executor, no audit entry, no history.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::def::ToolDef;

/// The name of the added field. Every field with this prefix is removed again.
pub const THINK_FIELD: &str = "_tafc_think";

/// The description of the field for the model.
const DESCRIPTION: &str =
    "Reason step by step about the value of each parameter. Write this first.";

/// The threshold if none, or an invalid one, is configured.
const DEFAULT_THRESHOLD: f64 = 0.6;

/// Think-augmented function calling: a reasoning field in complex parameters (`[tools.tafc]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TafcConfig {
    /// Whether tools with complex parameters ask the model to reason about them first.
    pub enabled: bool,
    /// The minimum complexity of the parameters, from 0 (every tool) to 1. A number outside this range is replaced by the nearest limit.
    #[serde(deserialize_with = "threshold")]
    pub complexity_threshold: f64,
}

impl Default for TafcConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            complexity_threshold: DEFAULT_THRESHOLD,
        }
    }
}

fn threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).map(sound_threshold)
}

/// Limits `threshold` to [0, 1]; a value that is not a finite number becomes 0.6.
#[must_use]
pub fn sound_threshold(threshold: f64) -> f64 {
    if threshold.is_finite() {
        threshold.clamp(0.0, 1.0)
    } else {
        DEFAULT_THRESHOLD
    }
}

/// The number of points of a schema with the maximum complexity.
const MAX_POINTS: usize = 20;
/// The points of a required parameter: two that have to be consistent reach the default threshold.
const REQUIRED_POINTS: usize = 6;
/// The points of an optional parameter: the model decides whether to pass it.
const OPTIONAL_POINTS: usize = 2;
/// The points of a level of objects or lists below the first one.
const LEVEL_POINTS: usize = 4;
/// The maximum number of levels that count.
const MAX_LEVELS: usize = 3;
/// The maximum number of enum values that count, one point each.
const MAX_VARIANTS: usize = 8;

/// Returns how difficult the arguments of a tool are, in [0, 1], from the JSON Schema of its parameters.
///
/// Required parameters (at all depths), optional parameters, levels of nesting and values of enums score
/// points; twenty points are 1. At 0.6, `edit`, `grep`, `scheduler` and `bash` are complex. `read`,
/// `list_directory` and the clock are not.
#[must_use]
pub fn schema_complexity(parameters: &Value) -> f64 {
    let mut found = Counts::default();
    found.add(parameters, 0);
    let points = REQUIRED_POINTS
        .saturating_mul(found.required)
        .saturating_add(OPTIONAL_POINTS.saturating_mul(found.optional))
        .saturating_add(LEVEL_POINTS * found.depth.saturating_sub(1).min(MAX_LEVELS))
        .saturating_add(found.variants.min(MAX_VARIANTS));
    let points = u32::try_from(points.min(MAX_POINTS)).unwrap_or(u32::MAX);
    f64::from(points) / 20.0
}

#[derive(Default)]
struct Counts {
    required: usize,
    optional: usize,
    depth: usize,
    variants: usize,
}

/// The maximum depth of the analysis; the depth counts in full much earlier.
const MAX_SCHEMA_DEPTH: usize = 32;

impl Counts {
    fn add(&mut self, schema: &Value, depth: usize) {
        let Value::Object(object) = schema else {
            return;
        };
        if depth > MAX_SCHEMA_DEPTH {
            return;
        }
        self.depth = self.depth.max(depth);
        let required = match object.get("required") {
            Some(Value::Array(required)) => required.len(),
            _ => 0,
        };
        let properties = match object.get("properties") {
            Some(Value::Object(properties)) => properties.len(),
            _ => 0,
        };
        self.required += required;
        self.optional += properties.saturating_sub(required);
        if let Some(Value::Array(values)) = object.get("enum") {
            self.variants += values.len();
        }
        for keyword in ["properties", "$defs", "definitions"] {
            if let Some(Value::Object(properties)) = object.get(keyword) {
                properties.values().for_each(|one| self.add(one, depth + 1));
            }
        }
        for keyword in ["items", "additionalProperties", "not"] {
            if let Some(inner) = object.get(keyword) {
                self.add(inner, depth + 1);
            }
        }
        for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            if let Some(Value::Array(choices)) = object.get(keyword) {
                choices.iter().for_each(|one| self.add(one, depth));
            }
        }
    }
}

/// Returns the schema with the reasoning field as its first one; `None` if it is not an object.
#[must_use]
pub fn augment(parameters: &Value) -> Option<Value> {
    let mut schema = parameters.as_object()?.clone();
    let mut properties = Map::new();
    properties.insert(
        THINK_FIELD.to_owned(),
        json!({ "type": "string", "description": DESCRIPTION }),
    );
    if let Some(Value::Object(known)) = schema.get("properties") {
        properties.extend(known.clone());
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    Some(Value::Object(schema))
}

/// Adds the field to `def` if `config` asks for it and the parameters are complex enough.
pub fn apply(config: &TafcConfig, def: &mut ToolDef) {
    let threshold = sound_threshold(config.complexity_threshold);
    if config.enabled
        && schema_complexity(&def.parameters) >= threshold
        && let Some(schema) = augment(&def.parameters)
    {
        def.parameters = Arc::new(schema);
    }
}

/// The arguments without reasoning.
#[derive(Debug, Clone, PartialEq)]
pub enum Stripped {
    /// The arguments, without the fields with reasoning.
    Arguments(Value),
    /// No arguments: there was only reasoning.
    OnlyReasoning,
}

/// The replacement for arguments that are not JSON and contain the field: the end of the field is unknown.
const UNREADABLE: &str = "(arguments that were not a JSON object)";

/// Removes every field with the prefix [`THINK_FIELD`], at any depth.
///
/// Arguments that are a text (not JSON) and contain the field are replaced as a whole.
#[must_use]
pub fn strip_tafc_fields(mut arguments: Value) -> Stripped {
    match &mut arguments {
        Value::Object(object) => {
            let before = object.len();
            strip(object);
            if before > 0 && object.is_empty() {
                return Stripped::OnlyReasoning;
            }
        }
        Value::String(text) if text.contains(THINK_FIELD) => {
            UNREADABLE.clone_into(text);
        }
        other => strip_below(other),
    }
    Stripped::Arguments(arguments)
}

fn strip(object: &mut Map<String, Value>) {
    object.retain(|name, _| !name.starts_with(THINK_FIELD));
    object.values_mut().for_each(strip_below);
}

fn strip_below(value: &mut Value) {
    match value {
        Value::Object(object) => strip(object),
        Value::Array(values) => values.iter_mut().for_each(strip_below),
        _ => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::float_cmp)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Proves TAFC-1.
    #[test]
    fn threshold_is_limited_to_its_bounds() {
        let check = |given: &str, expect: f64| {
            let config: TafcConfig =
                toml::from_str(&format!("complexity_threshold = {given}")).unwrap();
            assert_eq!(config.complexity_threshold, expect, "{given}");
        };
        check("0.25", 0.25);
        check("-3.0", 0.0);
        check("1.5", 1.0);
        check("nan", 0.6);
        check("-nan", 0.6);
        check("inf", 0.6);
        check("-inf", 0.6);
        assert_eq!(TafcConfig::default().complexity_threshold, 0.6);
        assert!(!TafcConfig::default().enabled);
    }

    fn object(properties: &Value, required: &[&str]) -> Value {
        json!({ "type": "object", "properties": properties, "required": required })
    }

    /// Proves TAFC-2.
    #[test]
    fn complexity_grows_with_the_schema() {
        let string = json!({ "type": "string" });
        let none = object(&json!({}), &[]);
        let one = object(&json!({ "a": string }), &["a"]);
        let optional = object(&json!({ "a": string }), &[]);
        let three = object(
            &json!({ "a": string, "b": string, "c": string }),
            &["a", "b", "c"],
        );
        let two = object(&json!({ "a": string, "b": string }), &["a", "b"]);
        let deep = object(&json!({ "a": { "type": "array", "items": one } }), &["a"]);
        let chosen = object(&json!({ "a": { "enum": ["x", "y", "z", "w"] } }), &["a"]);
        let values: Vec<Value> = (0..40).map(Value::from).collect();
        let names: Vec<String> = (0..12).map(|at| format!("p{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let level = |inner: Value| object(&json!({ "a": inner }), &["a"]);
        let worst = object(
            &json!({ "a": level(level(level(string.clone()))), "b": { "enum": values } }),
            &names,
        );
        let of = schema_complexity;
        assert_eq!(of(&none), 0.0);
        assert_eq!(of(&json!(true)), 0.0);
        assert!(of(&none) < of(&optional) && of(&optional) < of(&one));
        assert!(of(&none) < of(&one) && of(&one) < of(&two) && of(&two) < of(&three));
        // Exactly the default threshold, without a rounding error.
        assert_eq!(of(&two), DEFAULT_THRESHOLD);
        assert!(of(&one) < of(&deep) && of(&one) < of(&chosen));
        assert!((of(&worst) - 1.0).abs() < 1e-9, "{}", of(&worst));
    }

    /// Proves TAFC-2.
    #[test]
    fn think_field_is_first_and_the_rest_is_unchanged() {
        let schema = object(
            &json!({ "b": { "type": "string" }, "a": { "type": "integer" } }),
            &["b"],
        );
        let augmented = augment(&schema).unwrap();
        let properties = augmented["properties"].as_object().unwrap();
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(names, [THINK_FIELD, "b", "a"]);
        assert_eq!(augmented["required"], json!(["b"]));
        assert_eq!(properties[THINK_FIELD]["type"], "string");
        let mut back = augmented.clone();
        back["properties"]
            .as_object_mut()
            .unwrap()
            .shift_remove(THINK_FIELD);
        assert_eq!(back, schema);
        assert_eq!(augment(&json!(true)), None);
    }

    /// Proves TAFC-3.
    #[test]
    fn reasoning_is_removed() {
        let check = |given: Value, expect: Stripped| {
            assert_eq!(strip_tafc_fields(given.clone()), expect, "{given}");
        };
        let kept = Stripped::Arguments;
        check(json!({}), kept(json!({})));
        check(json!({ "a": 1 }), kept(json!({ "a": 1 })));
        check(
            json!({ "_tafc_think": "x", "a": 1 }),
            kept(json!({ "a": 1 })),
        );
        check(
            json!({ "_tafc_thinking_2": "x", "a": 1 }),
            kept(json!({ "a": 1 })),
        );
        check(json!({ "_tafc_think": "x" }), Stripped::OnlyReasoning);
        check(
            json!({ "_tafc_think": "x", "_tafc_think_more": {} }),
            Stripped::OnlyReasoning,
        );
        check(
            json!({ "a": [{ "_tafc_think": "x", "b": "_tafc_think" }] }),
            kept(json!({ "a": [{ "b": "_tafc_think" }] })),
        );
        check(json!("no object"), kept(json!("no object")));
        check(
            json!("{\"_tafc_think\": \"secret reasons"),
            kept(json!(UNREADABLE)),
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z_]{0,12}".prop_map(Value::from),
        ];
        let key = prop_oneof![
            Just("_tafc_think".to_owned()),
            "_tafc_think[a-z_0-9]{0,4}",
            "[a-z_]{0,14}",
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(key.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Proves TAFC-3.
        #[test]
        fn no_reasoning_field_remains(value in any_json()) {
            if let Stripped::Arguments(left) = strip_tafc_fields(value.clone()) {
                prop_assert!(!left.to_string().contains("\"_tafc_think\":"));
                // Only the reasoning fields are missing.
                prop_assert_eq!(strip_tafc_fields(left.clone()), Stripped::Arguments(left));
            } else {
                let fields = value.as_object().map(|object| object.keys());
                let all = fields.is_some_and(|mut names| names.all(|name| name.starts_with(THINK_FIELD)));
                prop_assert!(all);
            }
            prop_assert!((0.0..=1.0).contains(&schema_complexity(&value)));
        }
    }
}
