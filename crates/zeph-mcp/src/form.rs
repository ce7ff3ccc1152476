//! The form of an elicitation request: a server's schema as fields for the user. Pure functions.

use serde_json::Value;
use zeph_tools::question::{FieldKind, FieldOption, FormField, TextFormat};

/// The most fields of a form.
const MAX_FIELDS: usize = 64;
/// The most options of a field.
const MAX_OPTIONS: usize = 1000;

/// The fields of a form with this schema, in its order.
///
/// # Errors
/// The part of the schema that is not understood. Such a form is not shown: its values could not be checked.
pub fn fields(schema: &Value) -> Result<Vec<FormField>, String> {
    let none = serde_json::Map::new();
    let properties = match schema.get("properties") {
        Some(Value::Object(properties)) => properties,
        None => &none,
        Some(_) => return Err("`properties` is not an object".to_owned()),
    };
    if properties.len() > MAX_FIELDS {
        return Err(format!("it has more than {MAX_FIELDS} fields"));
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        let mut names = required.into_iter().flatten();
        names.any(|required| required == name)
    };
    let field = |(name, property): (&String, &Value)| {
        let field = field(name, property, is_required(name));
        field.map_err(|why| format!("the field {name:?}: {why}"))
    };
    properties.iter().map(field).collect()
}

fn field(name: &str, property: &Value, is_required: bool) -> Result<FormField, String> {
    let text = |key: &str| property.get(key).and_then(Value::as_str);
    let kind = kind(property)?;
    let field = FormField {
        name: name.to_owned(),
        title: text("title").map(str::to_owned),
        description: text("description").unwrap_or_default().to_owned(),
        is_required,
        default: property.get("default").cloned(),
        kind,
    };
    // A default that does not fit is not proposed.
    let fits = field
        .default
        .as_ref()
        .is_some_and(|value| field.check(value).is_ok());
    Ok(FormField {
        default: field.default.clone().filter(|_| fits),
        ..field
    })
}

fn kind(property: &Value) -> Result<FieldKind, String> {
    let number = |key: &str| property.get(key).and_then(Value::as_f64);
    let count = |key: &str| property.get(key).and_then(Value::as_u64);
    let chars = |key: &str| count(key).and_then(|count| u32::try_from(count).ok());
    if let Some(options) = options(property)? {
        return Ok(FieldKind::Choice(options));
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string") => Ok(FieldKind::Text {
            min_chars: chars("minLength"),
            max_chars: chars("maxLength"),
            format: match property.get("format").and_then(Value::as_str) {
                Some("email") => Some(TextFormat::Email),
                Some("uri") => Some(TextFormat::Uri),
                Some("date") => Some(TextFormat::Date),
                Some("date-time") => Some(TextFormat::DateTime),
                _ => None,
            },
        }),
        Some("number") => Ok(FieldKind::Number {
            min: number("minimum"),
            max: number("maximum"),
        }),
        Some("integer") => {
            let whole = |key: &str| property.get(key).and_then(whole);
            Ok(FieldKind::Integer {
                min: whole("minimum"),
                max: whole("maximum"),
            })
        }
        Some("boolean") => Ok(FieldKind::Boolean),
        Some("array") => {
            let items = property.get("items").unwrap_or(&Value::Null);
            match options(items)? {
                Some(options) => Ok(FieldKind::Choices {
                    options,
                    min_items: count("minItems"),
                    max_items: count("maxItems"),
                }),
                None => Err("a list without options is not supported".to_owned()),
            }
        }
        Some(other) => Err(format!("the type {other:?} is not supported")),
        None => Err("it has no type".to_owned()),
    }
}

/// A limit of a whole number; servers also write `3.0`.
fn whole(value: &Value) -> Option<i64> {
    let rounded = || {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        format!("{number:.0}").parse().ok()
    };
    value.as_i64().or_else(rounded)
}

/// The options of a choice: `enum` with optional `enumNames`, or `oneOf` and `anyOf` of constants with titles.
fn options(schema: &Value) -> Result<Option<Vec<FieldOption>>, String> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let found: Option<Vec<FieldOption>> = if let Some(values) = list("enum") {
        let names = list("enumNames");
        let option = |(at, value): (usize, &Value)| {
            let title = names.and_then(|names| names.get(at)?.as_str());
            Some(FieldOption {
                value: value.as_str()?.to_owned(),
                title: title.map(str::to_owned),
            })
        };
        values.iter().enumerate().map(option).collect()
    } else if let Some(values) = list("oneOf").or_else(|| list("anyOf")) {
        let option = |value: &Value| {
            let title = value.get("title").and_then(Value::as_str);
            Some(FieldOption {
                value: value.get("const")?.as_str()?.to_owned(),
                title: title.map(str::to_owned),
            })
        };
        values.iter().map(option).collect()
    } else {
        return Ok(None);
    };
    match found {
        Some(options) if options.is_empty() => Err("it has no options".to_owned()),
        Some(options) if options.len() > MAX_OPTIONS => {
            Err(format!("it has more than {MAX_OPTIONS} options"))
        }
        Some(options) => Ok(Some(options)),
        None => Err("an option is not a string".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves MCP-1b.
    #[test]
    fn schema_becomes_fields_in_its_order() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2, "default": "x"},
            "mail": {"type": "string", "format": "email", "description": "To answer."},
            "age": {"type": "integer", "minimum": 0, "maximum": 150.0, "default": 7},
            "size": {"type": "number", "maximum": 1.5},
            "news": {"type": "boolean", "default": true},
            "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
            "one": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
            "many": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"const": "r", "title": "Red"}]}},
        }});
        let fields = fields(&schema).unwrap();
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(
            names,
            ["name", "mail", "age", "size", "news", "old", "one", "many"]
        );
        assert!(fields[0].is_required && !fields[1].is_required);
        // The default is shorter than `minLength`.
        assert_eq!(fields[0].default, None);
        assert_eq!(fields[2].default, Some(json!(7)));
        assert_eq!(fields[1].description, "To answer.");
        let red = FieldOption {
            value: "r".to_owned(),
            title: Some("Red".to_owned()),
        };
        assert_eq!(
            fields[2].kind,
            FieldKind::Integer {
                min: Some(0),
                max: Some(150)
            }
        );
        assert_eq!(fields[6].kind, FieldKind::Choice(vec![red.clone()]));
        let many = FieldKind::Choices {
            options: vec![red],
            min_items: None,
            max_items: Some(2),
        };
        assert_eq!(fields[7].kind, many);
    }

    /// Proves MCP-1b.
    #[test]
    fn form_that_is_not_understood_is_refused() {
        let check = |property: Value, expect: &str| {
            let found = fields(&json!({"properties": {"f": property}})).unwrap_err();
            assert!(found.contains(expect), "{found}");
        };
        check(json!({}), "no type");
        check(json!({"type": "object"}), "\"object\" is not supported");
        check(
            json!({"type": "array", "items": {"type": "string"}}),
            "without options",
        );
        check(json!({"type": "string", "enum": []}), "no options");
        check(json!({"type": "string", "enum": [1]}), "not a string");
        assert_eq!(fields(&json!({})).unwrap(), []);
    }
}
