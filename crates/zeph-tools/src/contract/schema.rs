//! The JSON Schemas of parameter structs, in a short form for models.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Returns the schema of `P`: draft 7, inlined, without keywords that cost tokens and have no effect: `$schema`,
/// `title`, `format`, `default`, and `null` among the types (an optional parameter is one that is not
/// `required`). The `known` layer refuses unknown fields for every tool, so `additionalProperties` is omitted,
/// too.
#[must_use]
pub fn of<P: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<P>()
        .to_value();
    slim(&mut schema, true);
    if let Value::Object(object) = &mut schema {
        object
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Returns the schema for a provider: without the lower bounds 0 and 1 of parameters, which are obvious. They are
/// still checked.
#[must_use]
pub fn sent(schema: &Arc<Value>) -> Arc<Value> {
    let says_nothing =
        |property: &Value| matches!(property.get("minimum").and_then(Value::as_u64), Some(0 | 1));
    let properties = schema.get("properties").and_then(Value::as_object);
    if !properties.is_some_and(|properties| properties.values().any(says_nothing)) {
        return Arc::clone(schema);
    }
    let mut shorter = schema.as_ref().clone();
    if let Some(properties) = shorter.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut().filter(|one| says_nothing(one)) {
            if let Some(property) = property.as_object_mut() {
                property.shift_remove("minimum");
            }
        }
    }
    Arc::new(shorter)
}

/// Removes the superfluous keywords from `schema` and its subschemas.
fn slim(schema: &mut Value, root: bool) {
    let Value::Object(object) = schema else {
        return;
    };
    for keyword in [
        "$schema",
        "title",
        "format",
        "default",
        "additionalProperties",
    ] {
        object.shift_remove(keyword);
    }
    if root {
        // The doc comment of the struct is for programmers; the description of the tool is for models.
        object.shift_remove("description");
    }
    drop_null(object);
    name_variants(object);
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for property in properties.values_mut() {
            slim(property, false);
        }
    }
    if let Some(items) = object.get_mut("items") {
        slim(items, false);
    }
}

/// Removes `null`: `["T", "null"]` becomes `"T"`, `anyOf [T, null]` becomes `T`, and `null` is removed from an
/// enum.
fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type") != Some(&Value::String("null".to_owned())));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            object.shift_remove("anyOf");
            for (keyword, value) in only {
                object.entry(keyword).or_insert(value);
            }
            for keyword in ["title", "format", "default"] {
                object.shift_remove(keyword);
            }
        }
    }
}

/// Converts a choice among constants, the form of an enum with documented variants, to `enum`: the names are
/// sufficient, and `enum` is a checked keyword.
fn name_variants(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("oneOf") else {
        return;
    };
    let mut names = Vec::new();
    for choice in choices {
        match (choice.get("const"), choice.get("enum")) {
            (Some(name @ Value::String(_)), _) => names.push(name.clone()),
            (None, Some(Value::Array(several))) => names.extend(several.iter().cloned()),
            _ => return,
        }
    }
    if names.iter().all(Value::is_string) {
        object.shift_remove("oneOf");
        object.insert("type".to_owned(), Value::String("string".to_owned()));
        object.insert("enum".to_owned(), Value::Array(names));
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Inner {
        a: Option<bool>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[allow(dead_code)]
    enum Kind {
        One,
        Two,
    }

    /// For programmers.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Params {
        /// The first line.
        #[schemars(range(min = 1))]
        line: Option<u32>,
        path: String,
        kind: Option<Kind>,
        inner: Vec<Inner>,
    }

    /// Proves EXE-1.
    #[test]
    fn generated_schema_is_small() {
        assert_eq!(
            of::<Params>(),
            json!({
                "type": "object",
                "properties": {
                    "line": {"description": "The first line.", "type": "integer", "minimum": 1},
                    "path": {"type": "string"},
                    "kind": {"type": "string", "enum": ["one", "two"]},
                    "inner": {"type": "array", "items": {
                        "type": "object", "properties": {"a": {"type": "boolean"}}
                    }}
                },
                "required": ["path", "inner"]
            })
        );
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[allow(dead_code)]
    enum Documented {
        Bare,
        /// Words for programmers.
        First,
        /// More of them.
        Second,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Chosen {
        /// Which one.
        one: Documented,
        maybe: Option<Documented>,
    }

    #[test]
    fn variants_with_descriptions_are_an_enum() {
        let names = json!(["bare", "first", "second"]);
        assert_eq!(
            of::<Chosen>()["properties"],
            json!({
                "one": {"description": "Which one.", "type": "string", "enum": names},
                "maybe": {"type": "string", "enum": names},
            })
        );
    }

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    #[test]
    fn no_parameters_is_an_object_without_properties() {
        assert_eq!(of::<Nothing>(), json!({"type": "object", "properties": {}}));
    }
}
