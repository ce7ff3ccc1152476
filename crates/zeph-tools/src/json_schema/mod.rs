//! JSON Schemas of others: whether a value follows one.
//!
//! The vocabulary of draft 2020-12, with the older forms of `items`, `dependencies` and the
//! exclusive bounds. What would have to be checked and is not known here is refused when the schema
//! is read, never passed over: references out of the document, `$dynamicRef`, patterns that look
//! around. `format` and the `content…` keywords say nothing about validity, as in the draft.

use std::collections::{HashMap, HashSet};

use regex::Regex;
use serde_json::{Map, Value};

mod bounds;
mod check;
mod equal;
#[cfg(test)]
mod tests;

/// Keywords whose value is a schema.
const ONE: [&str; 10] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const MAPS: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose value is a number of things.
const COUNTS: [&str; 8] = [
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
];
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// A schema that can be checked against.
#[derive(Debug, Clone)]
pub struct JsonSchema {
    root: Value,
    /// By their text in the schema.
    patterns: HashMap<String, Regex>,
    /// JSON pointers of the schemas, by their `$anchor`.
    anchors: HashMap<String, String>,
}

/// Why something is no schema, or none that can be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at `{pointer}`: {reason}")]
pub struct SchemaError {
    /// Where, as a JSON pointer that begins with `#`.
    pub pointer: String,
    /// What is wrong there.
    pub reason: String,
}

/// A place where a value does not follow its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where in the value, as a JSON pointer; empty for the value itself.
    pub pointer: String,
    /// What was expected, and what is there.
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.pointer.is_empty() {
            "the value"
        } else {
            &self.pointer
        };
        write!(f, "{place}: {}", self.message)
    }
}

impl JsonSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`SchemaError`] for what is no schema, or says what cannot be checked here.
    pub fn new(schema: Value) -> Result<Self, SchemaError> {
        let mut reading = Reading::default();
        reading.schema(&schema, "#")?;
        let mut read = HashSet::new();
        // What a reference leads to may lie where no schema would be looked for.
        while let Some((from, target)) = reading.references.pop() {
            let pointer = match target.strip_prefix('#') {
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => pointer,
                Some(anchor) => match reading.anchors.get(anchor) {
                    Some(pointer) => pointer,
                    None => return Err(no_target(&from, &target)),
                },
                None => return Err(no_target(&from, &target)),
            };
            let found = schema
                .pointer(pointer)
                .ok_or_else(|| no_target(&from, &target))?;
            if read.insert(target.clone()) {
                let at = format!("#{pointer}");
                reading.schema(found, &at)?;
            }
        }
        Ok(Self {
            root: schema,
            patterns: reading.patterns,
            anchors: reading.anchors,
        })
    }

    /// The schema as it was given.
    #[must_use]
    pub fn as_value(&self) -> &Value {
        &self.root
    }

    /// The schema that a reference leads to.
    fn target(&self, reference: &str) -> Option<&Value> {
        let fragment = reference.strip_prefix('#')?;
        let pointer = self.anchors.get(fragment).map_or(fragment, String::as_str);
        self.root.pointer(pointer)
    }
}

fn no_target(pointer: &str, target: &str) -> SchemaError {
    wrong(
        pointer,
        format!("`{target}` is not found; references lead to places of the same document (`#/…`)"),
    )
}

fn wrong(pointer: &str, reason: impl Into<String>) -> SchemaError {
    SchemaError {
        pointer: pointer.to_owned(),
        reason: reason.into(),
    }
}

/// What is gathered while a schema is read.
#[derive(Default)]
struct Reading {
    patterns: HashMap<String, Regex>,
    anchors: HashMap<String, String>,
    /// Where they stand, and where they lead.
    references: Vec<(String, String)>,
}

impl Reading {
    fn schema(&mut self, schema: &Value, pointer: &str) -> Result<(), SchemaError> {
        let keywords = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(keywords) => keywords,
            _ => return Err(wrong(pointer, "a schema is an object, `true` or `false`")),
        };
        for (keyword, value) in keywords {
            let at = below(pointer, keyword);
            self.keyword(keyword, value, &at)?;
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &Value, at: &str) -> Result<(), SchemaError> {
        let expected = |what: &str| Err(wrong(at, format!("{what} is expected")));
        if ONE.contains(&keyword) {
            return self.schema(value, at);
        }
        if LISTS.contains(&keyword) || (keyword == "items" && value.is_array()) {
            return match value.as_array().filter(|list| !list.is_empty()) {
                Some(list) => (0..).zip(list).try_for_each(|(index, schema)| {
                    let index: usize = index;
                    self.schema(schema, &format!("{at}/{index}"))
                }),
                None => expected("a list of schemas that is not empty"),
            };
        }
        if MAPS.contains(&keyword) {
            let Some(schemas) = value.as_object() else {
                return expected("an object of schemas");
            };
            for (name, schema) in schemas {
                if keyword == "patternProperties" {
                    self.pattern(name, at)?;
                }
                self.schema(schema, &below(at, name))?;
            }
            return Ok(());
        }
        if COUNTS.contains(&keyword) {
            return match bounds::count(value) {
                Some(_) => Ok(()),
                None => expected("a whole number, not negative,"),
            };
        }
        match (keyword, value) {
            ("items", schema) => self.schema(schema, at),
            ("$ref", Value::String(target)) => {
                self.references.push((at.to_owned(), target.clone()));
                Ok(())
            }
            ("$anchor", Value::String(name)) => {
                let schema = at.strip_suffix("/$anchor").unwrap_or(at);
                let schema = schema.strip_prefix('#').unwrap_or(schema).to_owned();
                self.anchors.insert(name.clone(), schema);
                Ok(())
            }
            ("$ref" | "$anchor", _) => expected("a string"),
            ("$dynamicRef" | "$recursiveRef", _) => {
                Err(wrong(at, "this keyword cannot be checked here"))
            }
            ("type", kinds) => {
                let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
                match kinds {
                    Value::Array(kinds) if !kinds.is_empty() && kinds.iter().all(known) => Ok(()),
                    kind if known(kind) => Ok(()),
                    _ => expected(&format!("one of {}, or a list of them,", TYPES.join(", "))),
                }
            }
            ("enum", Value::Array(_)) => Ok(()),
            ("enum", _) => expected("a list"),
            ("required", names) => match strings(names) {
                Some(_) => Ok(()),
                // Of the first drafts, where it belonged to the property.
                None => expected("a list of names"),
            },
            ("dependentRequired", Value::Object(fields)) => {
                if fields.values().all(|names| strings(names).is_some()) {
                    Ok(())
                } else {
                    expected("an object of lists of names")
                }
            }
            ("dependentRequired", _) => expected("an object of lists of names"),
            ("dependencies", Value::Object(fields)) => {
                fields.iter().try_for_each(|(name, needs)| {
                    if strings(needs).is_some() {
                        return Ok(());
                    }
                    self.schema(needs, &below(at, name))
                })
            }
            ("dependencies", _) => expected("an object"),
            ("multipleOf", Value::Number(number)) if number.as_f64().is_some_and(|n| n > 0.0) => {
                Ok(())
            }
            ("multipleOf", _) => expected("a number above 0"),
            ("minimum" | "maximum", Value::Number(_)) => Ok(()),
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(_) | Value::Bool(_)) => Ok(()),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", _) => {
                expected("a number")
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern, at),
            ("pattern", _) => expected("a regular expression"),
            ("uniqueItems", Value::Bool(_)) => Ok(()),
            ("uniqueItems", _) => expected("`true` or `false`"),
            // The rest tells of a value without judging it.
            _ => Ok(()),
        }
    }

    fn pattern(&mut self, pattern: &str, at: &str) -> Result<(), SchemaError> {
        if self.patterns.contains_key(pattern) {
            return Ok(());
        }
        let regex = Regex::new(&in_ascii(pattern))
            .map_err(|error| wrong(at, format!("{pattern:?} cannot be used: {error}")))?;
        self.patterns.insert(pattern.to_owned(), regex);
        Ok(())
    }
}

/// The pattern with `\d`, `\w` and their opposites as ECMA-262 has them: ASCII alone.
fn in_ascii(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match rest.next() {
            Some('d') => text.push_str("[0-9]"),
            Some('D') => text.push_str("[^0-9]"),
            Some('w') => text.push_str("[0-9A-Za-z_]"),
            Some('W') => text.push_str("[^0-9A-Za-z_]"),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

/// The names of a list of names.
fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// The pointer of what is called `name` below `pointer`.
fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The keywords of a schema that is an object.
fn keywords(schema: &Value) -> Option<&Map<String, Value>> {
    schema.as_object()
}
