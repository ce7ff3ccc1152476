//! Validation of arguments against the schema of a tool, with repair of unambiguous faults.
//!
//! [`prepare`] has two passes without I/O: it first searches for violations. If there are any, it repairs a copy
//! and checks again. The checked keywords are those that [`crate::schema`] produces: `type`, `enum`, `minimum`,
//! `maximum`, `minLength`, `minItems`, `required`, `properties`, `items`.

use serde_json::{Map, Value};

use crate::contract::json_pointer::{at, below};
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::foreign_schema::{Fault, ForeignSchema};
use crate::registry::nearest;

/// Arguments that fit the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The repaired arguments; `None` if they fit unchanged.
    pub params: Option<Value>,
    /// The repairs, one sentence each.
    pub repairs: Vec<String>,
}

/// Prepares the arguments of a call with the tool name `id`, which may be an alias of `def`: parameters that the
/// alias does not require first get their default values.
///
/// # Errors
/// The errors of [`prepare`].
pub fn prepare_as(def: &ToolDef, id: &str, params: &Value) -> Result<Prepared, ToolError> {
    let defaults = def.alias_defaults.iter();
    let mut defaults = defaults.filter(|(alias, ..)| *alias == id).peekable();
    if defaults.peek().is_none() {
        return prepare(def, params);
    }
    let mut repairs = Vec::new();
    let mut object = into_object(params, &mut repairs)?;
    rename_aliases(def, &mut object, &mut repairs)?;
    for (_, parameter, value) in defaults {
        let field = object.entry(*parameter).or_insert(Value::Null);
        if field.is_null() {
            *field = Value::from(*value);
        }
    }
    let completed = Value::Object(object);
    let prepared = prepare(def, &completed)?;
    repairs.extend(prepared.repairs);
    Ok(Prepared {
        params: Some(prepared.params.unwrap_or(completed)),
        repairs,
    })
}

/// Checks `params` against the schema of `def`, and repairs unambiguous faults: a number, boolean, array or
/// object sent as a JSON string, `null` for an absent optional, a known alias of a field.
///
/// # Errors
/// [`ToolError::TypeMismatch`] for a value of the wrong JSON type, else [`ToolError::InvalidParameters`]; the
/// message has the JSON pointer, the expected value and the received one.
pub fn prepare(def: &ToolDef, params: &Value) -> Result<Prepared, ToolError> {
    if let Some(schema) = &def.foreign {
        return prepare_foreign(def, schema, params);
    }
    if params.is_object() && violations(&def.parameters, params).is_empty() {
        return Ok(Prepared {
            params: None,
            repairs: Vec::new(),
        });
    }
    let mut repairs = Vec::new();
    let mut mended = into_object(params, &mut repairs)?;
    rename_aliases(def, &mut mended, &mut repairs)?;
    let mut mended = Value::Object(mended);
    mend(&def.parameters, &mut mended, "", &mut repairs);
    match violations(&def.parameters, &mended).as_slice() {
        [] => Ok(Prepared {
            params: Some(mended),
            repairs,
        }),
        found => Err(to_error(def, found)),
    }
}

/// Checks `params` against a schema that a server wrote, and repairs them only if the result fits it.
fn prepare_foreign(
    def: &ToolDef,
    schema: &ForeignSchema,
    params: &Value,
) -> Result<Prepared, ToolError> {
    let mut repairs = Vec::new();
    let object = Value::Object(into_object(params, &mut repairs)?);
    let faults = schema.faults(&object);
    let fitting = match faults.is_empty() {
        true => object,
        false => match schema.repair(&object) {
            Some((repaired, more)) => {
                repairs.extend(more);
                repaired
            }
            None => return Err(foreign_error(def, &faults)),
        },
    };
    // JSON Schema allows unknown fields by default. They are refused, as for built-in tools.
    let mut unknown = violations(&def.parameters, &fitting);
    unknown.retain(|violation| violation.unknown);
    if !unknown.is_empty() {
        return Err(to_error(def, &unknown));
    }
    let params = (fitting != *params).then_some(fitting);
    Ok(Prepared { params, repairs })
}

fn foreign_error(def: &ToolDef, faults: &[Fault]) -> ToolError {
    let faults = faults.iter().map(|fault| Violation {
        wrong_type: fault.wrong_type,
        unknown: false,
        message: fault.message.clone(),
    });
    to_error(def, &faults.collect::<Vec<_>>())
}

/// A violation of the schema.
#[derive(Debug, Clone, PartialEq)]
struct Violation {
    /// Whether the JSON type is wrong.
    wrong_type: bool,
    /// Whether it is a field that the schema does not list.
    unknown: bool,
    /// The message: pointer, expected value, received value.
    message: String,
}

fn to_error(def: &ToolDef, found: &[Violation]) -> ToolError {
    const MAX_REPORTED: usize = 8;
    let mut message = found
        .iter()
        .take(MAX_REPORTED)
        .map(|violation| violation.message.as_str())
        .collect::<Vec<_>>()
        .join("; ");
    if found.len() > MAX_REPORTED {
        message.push_str(&format!("; and {} more", found.len() - MAX_REPORTED));
    }
    let message = format!("arguments of {}: {message}", def.id);
    if found.first().is_some_and(|first| first.wrong_type) {
        ToolError::TypeMismatch { message }
    } else {
        ToolError::invalid(message)
    }
}

/// Returns the arguments as an object; a string is parsed as JSON text.
fn into_object(params: &Value, repairs: &mut Vec<String>) -> Result<Map<String, Value>, ToolError> {
    match params {
        Value::Object(object) => Ok(object.clone()),
        Value::Null => Ok(Map::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => {
                repairs.push("the arguments were sent as a JSON string".to_owned());
                Ok(object)
            }
            Ok(other) => Err(not_an_object(&other)),
            Err(error) => Err(ToolError::InvalidParameters {
                message: format!("the arguments are not valid JSON: {error}"),
                unparsable: true,
            }),
        },
        other => Err(not_an_object(other)),
    }
}

fn not_an_object(value: &Value) -> ToolError {
    ToolError::TypeMismatch {
        message: format!(
            "the arguments must be a JSON object, got {}",
            describe(value)
        ),
    }
}

fn rename_aliases(
    def: &ToolDef,
    params: &mut Map<String, Value>,
    repairs: &mut Vec<String>,
) -> Result<(), ToolError> {
    for (alias, field) in def.param_aliases {
        let Some(value) = params.shift_remove(*alias) else {
            continue;
        };
        match params.get(*field) {
            None => repairs.push(format!("`{alias}` was read as `{field}`")),
            // A repeated value is accepted if both are equal.
            Some(same) if *same == value => {
                repairs.push(format!("`{alias}` had the same value as `{field}`"));
            }
            Some(_) => {
                return Err(ToolError::invalid(format!(
                    "arguments of {}: `/{alias}` is another name of `/{field}`, and their values \
                     differ; send only `/{field}`",
                    def.id
                )));
            }
        }
        params.entry(*field).or_insert(value);
    }
    Ok(())
}

/// Returns the declared types of a schema.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Repairs `value` in place if it has exactly one reading.
fn mend(schema: &Value, value: &mut Value, pointer: &str, repairs: &mut Vec<String>) {
    let kinds = types(schema);
    if !kinds.is_empty()
        && !kinds.iter().any(|kind| has_type(value, kind))
        && let Some(better) = reread(value, &kinds)
    {
        repairs.push(format!(
            "`{pointer}` was sent as {} and converted to {}",
            describe(value),
            describe(&better)
        ));
        *value = better;
    }
    match value {
        Value::Object(object) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            let required = required(schema);
            let absent: Vec<String> = object
                .iter()
                .filter(|(name, field)| {
                    field.is_null()
                        && !required.contains(&name.as_str())
                        && properties
                            .get(*name)
                            .is_some_and(|schema| !types(schema).contains(&"null"))
                })
                .map(|(name, _)| name.clone())
                .collect();
            for name in absent {
                object.shift_remove(&name);
                repairs.push(format!(
                    "`{pointer}/{name}` was null and was treated as absent"
                ));
            }
            for (name, field) in object.iter_mut() {
                if let Some(schema) = properties.get(name) {
                    mend(schema, field, &format!("{pointer}/{name}"), repairs);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    mend(schema, item, &format!("{pointer}/{index}"), repairs);
                }
            }
        }
        _ => {}
    }
}

/// Converts `value` to one of `kinds`: JSON text in a string, or a number with a zero fraction as an integer.
fn reread(value: &Value, kinds: &[&str]) -> Option<Value> {
    let whole = |value: &Value| {
        let number = value.as_f64()?;
        let fits = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        #[allow(clippy::cast_possible_truncation)]
        fits.then(|| Value::from(number as i64))
    };
    let read = match value {
        Value::String(text) => serde_json::from_str(text.trim()).ok()?,
        Value::Number(_) => value.clone(),
        _ => return None,
    };
    if read.is_string() || read.is_null() {
        return None;
    }
    if kinds.iter().any(|kind| has_type(&read, kind)) {
        return Some(read);
    }
    if kinds.contains(&"integer") && read.is_f64() {
        return whole(&read);
    }
    None
}

fn required(schema: &Value) -> Vec<&str> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Returns all violations of `schema` in `value`.
fn violations(schema: &Value, value: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    collect(schema, value, "", &mut found);
    found
}

fn collect(schema: &Value, value: &Value, pointer: &str, found: &mut Vec<Violation>) {
    let mut report = |wrong_type: bool, message: String| {
        found.push(Violation {
            wrong_type,
            unknown: false,
            message,
        });
    };
    let kinds = types(schema);
    if !kinds.is_empty() && !kinds.iter().any(|kind| has_type(value, kind)) {
        let message = format!(
            "{} expects {}, got {}",
            at(pointer),
            kinds.join(" or "),
            describe(value)
        );
        report(true, message);
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let message = format!(
            "{} expects one of {}, got {}",
            at(pointer),
            allowed
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            describe(value)
        );
        report(false, message);
    }
    if let Some(text) = bound_violation(schema, value) {
        report(false, format!("{} {text}", at(pointer)));
    }
    match value {
        Value::Object(object) => collect_object(schema, object, pointer, found),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    collect(schema, item, &format!("{pointer}/{index}"), found);
                }
            }
        }
        _ => {}
    }
}

fn collect_object(
    schema: &Value,
    object: &Map<String, Value>,
    pointer: &str,
    found: &mut Vec<Violation>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for name in required(schema) {
        if !object.contains_key(name) {
            let kind = properties
                .get(name)
                .map(|schema| types(schema).join(" or "))
                .unwrap_or_default();
            found.push(Violation {
                wrong_type: false,
                unknown: false,
                message: format!("{} is missing: expects {kind}", at(&below(pointer, name))),
            });
        }
    }
    for (name, field) in object {
        match (properties.get(name), schema.get("additionalProperties")) {
            (Some(schema), _) => collect(schema, field, &below(pointer, name), found),
            (None, Some(more @ Value::Object(_))) => {
                collect(more, field, &below(pointer, name), found);
            }
            (None, Some(Value::Bool(true))) => {}
            (None, None) if takes_others(schema) => {}
            (None, _) => found.push(Violation {
                wrong_type: false,
                unknown: true,
                message: unknown_field(properties, &below(pointer, name), name),
            }),
        }
    }
}

/// Whether a schema of a server may list more properties in another keyword.
fn takes_others(schema: &Value) -> bool {
    const ELSEWHERE: [&str; 11] = [
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependencies",
        "patternProperties",
        "unevaluatedProperties",
    ];
    ELSEWHERE
        .iter()
        .any(|keyword| schema.get(keyword).is_some())
}

fn unknown_field(properties: &Map<String, Value>, pointer: &str, name: &str) -> String {
    let near = nearest(name, properties.keys().map(String::as_str), 1);
    let known = properties
        .keys()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let help = match (near.first(), known.is_empty()) {
        (Some(near), _) => format!("did you mean {near:?}? Known: {known}"),
        (None, false) => format!("known: {known}"),
        (None, true) => "it takes none".to_owned(),
    };
    format!("{} is not a known field; {help}", at(pointer))
}

/// Returns the violation of a limit by `value`, if any.
fn bound_violation(schema: &Value, value: &Value) -> Option<String> {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        if let Some(least) = bound("minimum")
            && number < least
        {
            return Some(format!("expects at least {least}, got {value}"));
        }
        if let Some(most) = bound("maximum")
            && number > most
        {
            return Some(format!("expects at most {most}, got {value}"));
        }
    }
    #[allow(clippy::cast_precision_loss)]
    let too_short = |keyword: &str, length: usize| {
        bound(keyword)
            .filter(|least| (length as f64) < *least)
            .map(|least| format!("expects a length of at least {least}, got {length}"))
    };
    match value {
        Value::String(text) => too_short("minLength", text.chars().count()),
        Value::Array(items) => too_short("minItems", items.len()),
        _ => None,
    }
}

/// Describes a value by its type and its text, which is cut if it is long.
pub(crate) fn describe(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let text = value.to_string();
    if text.chars().count() > 60 {
        let head: String = text.chars().take(60).collect();
        format!("{kind} {head}…")
    } else {
        format!("{kind} {text}")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use proptest::prelude::*;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::category::ToolErrorCategory as Category;
    use crate::def::Annotations;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[allow(dead_code)]
    enum Kind {
        Check,
        Clippy,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Params {
        path: String,
        #[schemars(range(min = 1))]
        limit: Option<u32>,
        all: Option<bool>,
        kind: Option<Kind>,
        tags: Option<Vec<String>>,
    }

    fn def() -> ToolDef {
        ToolDef::new::<Params>("t", "", Annotations::READ)
            .with_param_aliases(&[("file_path", "path")])
    }

    /// Proves EXE-8a.
    #[test]
    fn unambiguous_arguments_are_repaired() {
        let check = |came: Value, expect: Value| {
            let prepared = prepare(&def(), &came).unwrap();
            assert_eq!(prepared.params.unwrap(), expect, "{came}");
            assert!(!prepared.repairs.is_empty());
        };
        check(json!({"file_path": "a"}), json!({"path": "a"}));
        check(json!({"path": "a", "file_path": "a"}), json!({"path": "a"}));
        check(
            json!({"path": "a", "limit": "5"}),
            json!({"path": "a", "limit": 5}),
        );
        check(
            json!({"path": "a", "limit": " 5 "}),
            json!({"path": "a", "limit": 5}),
        );
        check(
            json!({"path": "a", "limit": 5.0}),
            json!({"path": "a", "limit": 5}),
        );
        check(
            json!({"path": "a", "all": "true"}),
            json!({"path": "a", "all": true}),
        );
        check(json!({"path": "a", "limit": null}), json!({"path": "a"}));
        check(
            json!({"path": "a", "tags": "[\"x\"]"}),
            json!({"path": "a", "tags": ["x"]}),
        );
        check(json!("{\"path\": \"a\"}"), json!({"path": "a"}));
    }

    /// Proves D-1: an alias may require less than the tool that it refers to.
    #[test]
    fn alias_supplies_its_defaults() {
        let def = def()
            .with_aliases(&["short"])
            .with_alias_defaults(&[("short", "path", ".")]);
        let check = |id: &str, came: Value, expect: Option<Value>| {
            let prepared = prepare_as(&def, id, &came);
            let found = prepared
                .ok()
                .map(|found| found.params.unwrap_or(came.clone()));
            assert_eq!(found, expect, "{id} {came}");
        };
        check("short", json!({}), Some(json!({"path": "."})));
        check("short", json!({"path": null}), Some(json!({"path": "."})));
        check("short", json!(null), Some(json!({"path": "."})));
        check("short", json!("{}"), Some(json!({"path": "."})));
        check("short", json!({"path": "a"}), Some(json!({"path": "a"})));
        check(
            "short",
            json!({"file_path": "a"}),
            Some(json!({"path": "a"})),
        );
        check(
            "short",
            json!({"limit": "3"}),
            Some(json!({"limit": 3, "path": "."})),
        );
        check("short", json!({"path": 5}), None);
        check("short", json!({"limit": 0}), None);
        check("t", json!({}), None);
        check("other", json!({}), None);
    }

    #[test]
    fn valid_arguments_are_unchanged() {
        let prepared = prepare(&def(), &json!({"path": "5", "limit": 1, "kind": "check"})).unwrap();
        assert_eq!(prepared.params, None);
        assert!(prepared.repairs.is_empty());
    }

    /// Proves EXE-8, D-30.
    #[test]
    fn invalid_arguments_are_refused_with_pointer_expectation_and_value() {
        let check = |came: Value, category: Category, words: &[&str]| {
            let error = prepare(&def(), &came).unwrap_err();
            assert_eq!(error.category(), category, "{came}: {error}");
            for word in words {
                assert!(error.to_string().contains(word), "{came}: {error}");
            }
        };
        use Category::{InvalidParameters as Invalid, TypeMismatch as Type};
        check(json!({}), Invalid, &["`/path`", "missing", "string"]);
        check(
            json!({"path": 5}),
            Type,
            &["`/path`", "string", "integer 5"],
        );
        check(json!({"path": null}), Type, &["`/path`", "null"]);
        check(
            json!({"path": "a", "limit": "x"}),
            Type,
            &["`/limit`", "integer", "\"x\""],
        );
        check(
            json!({"path": "a", "limit": 1.5}),
            Type,
            &["`/limit`", "number 1.5"],
        );
        check(
            json!({"path": "a", "limit": 0}),
            Invalid,
            &["`/limit`", "at least 1", "0"],
        );
        check(
            json!({"path": "a", "limit": "0"}),
            Invalid,
            &["`/limit`", "at least 1"],
        );
        check(
            json!({"path": "a", "kind": "chekc"}),
            Invalid,
            &["`/kind`", "\"check\""],
        );
        check(
            json!({"path": "a", "limt": 1}),
            Invalid,
            &["`/limt`", "did you mean \"limit\""],
        );
        check(json!({"path": "a", "tags": ["x", 1]}), Type, &["`/tags/1`"]);
        check(
            json!({"path": "a", "file_path": "b"}),
            Invalid,
            &["`/file_path`", "differ", "`/path`"],
        );
        check(json!({"path": "a", "a/b~c": 1}), Invalid, &["`/a~1b~0c`"]);
        check(json!([1]), Type, &["object", "array"]);
        check(json!("nonsense"), Invalid, &["not valid JSON"]);
    }

    proptest! {
        #[test]
        fn accepted_arbitrary_arguments_are_valid(text in "\\PC{0,60}") {
            for came in [json!({"path": text.clone()}), json!(text.clone()), json!({text.clone(): 1})] {
                if let Ok(prepared) = prepare(&def(), &came) {
                    let params = prepared.params.unwrap_or(came);
                    prop_assert!(Params::deserialize(&params).is_ok());
                }
            }
        }
    }
}
