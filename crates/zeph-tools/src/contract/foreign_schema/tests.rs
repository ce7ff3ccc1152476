//! Tests of server schemas: valid arguments, repairs, refusals.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::*;
use crate::category::ToolErrorCategory as Category;
use crate::def::{Annotations, ToolDef};
use crate::params::prepare;

fn tool(schema: &Value) -> ToolDef {
    #[derive(JsonSchema)]
    struct Nothing {}
    let mut parameters = schema.clone();
    parameters["type"] = json!("object");
    ToolDef {
        parameters: Arc::new(parameters),
        foreign: Some(ForeignSchema::compile(schema).unwrap()),
        ..ToolDef::new::<Nothing>("mcp_s_t", "", Annotations::READ)
    }
}

fn with(property: Value) -> Value {
    json!({ "type": "object", "properties": { "x": property }, "required": ["x"] })
}

/// Proves EXE-8: every keyword counts; the message has pointer, expectation and value.
#[test]
fn arguments_are_checked_by_every_keyword() {
    let check = |property: Value, good: Value, bad: Value, words: &[&str]| {
        let def = tool(&with(property.clone()));
        let fits = prepare(&def, &json!({ "x": good })).unwrap();
        assert_eq!(fits.params, None, "{property}");
        let error = prepare(&def, &json!({ "x": bad })).unwrap_err();
        let text = error.to_string();
        for word in words.iter().chain(&["mcp_s_t", "`/x"]) {
            assert!(text.contains(word), "{property} {bad}: {text}");
        }
    };
    let any = json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] });
    check(
        any.clone(),
        json!(1),
        json!("a"),
        &["integer", "null", "\"a\""],
    );
    check(any, json!(null), json!([]), &["array"]);
    let one = json!({ "oneOf": [{ "multipleOf": 2 }, { "multipleOf": 3 }] });
    check(one.clone(), json!(4), json!(6), &["exactly one"]);
    check(one, json!(9), json!(5), &["multiple of 2", "multiple of 3"]);
    let all = json!({ "allOf": [{ "minimum": 2 }, { "maximum": 4 }] });
    check(all.clone(), json!(3), json!(5), &["at most 4", "5"]);
    check(all, json!(2), json!(1), &["at least 2"]);
    check(
        json!({ "exclusiveMinimum": 2 }),
        json!(3),
        json!(2),
        &["more than 2"],
    );
    check(
        json!({ "exclusiveMaximum": 2 }),
        json!(1),
        json!(2),
        &["less than 2"],
    );
    check(
        json!({ "pattern": "^[a-z]+$" }),
        json!("ab"),
        json!("A1"),
        &["^[a-z]+$", "\"A1\""],
    );
    check(
        json!({ "pattern": "^(?!x)" }),
        json!("ab"),
        json!("xb"),
        &["pattern"],
    );
    check(
        json!({ "maxLength": 3 }),
        json!("abc"),
        json!("abcd"),
        &["at most 3, got 4"],
    );
    check(
        json!({ "minLength": 2 }),
        json!("äö"),
        json!("ä"),
        &["at least 2, got 1"],
    );
    check(
        json!({ "maxItems": 1 }),
        json!([1]),
        json!([1, 2]),
        &["at most 1, got 2"],
    );
    check(
        json!({ "uniqueItems": true }),
        json!([1]),
        json!([1, 1]),
        &["differ"],
    );
    check(
        json!({ "minProperties": 1 }),
        json!({ "a": 1 }),
        json!({}),
        &["at least 1"],
    );
    check(
        json!({ "format": "date" }),
        json!("2026-01-31"),
        json!("2026-02-31"),
        &["format date"],
    );
    check(
        json!({ "format": "email" }),
        json!("a@b.org"),
        json!("a b"),
        &["format email"],
    );
    check(
        json!({ "format": "uri" }),
        json!("https://a.org"),
        json!("a b"),
        &["format uri"],
    );
    // An unknown format says nothing.
    let def = tool(&with(json!({ "format": "made-up" })));
    assert!(prepare(&def, &json!({ "x": "y" })).is_ok());
}

/// Proves EXE-8: references, closed objects and conditions of whole schemas.
#[test]
fn arguments_are_checked_by_the_whole_schema() {
    let check = |schema: &Value, params: Value, expect: Result<(), &[&str]>| {
        let found = prepare(&tool(schema), &params);
        match (found, expect) {
            (Ok(prepared), Ok(())) => assert_eq!(prepared.params, None, "{params}"),
            (Err(error), Err(words)) => {
                for word in words {
                    assert!(error.to_string().contains(word), "{word}: {error}");
                }
            }
            (found, _) => panic!("{schema} {params}: {found:?}"),
        }
    };
    let local = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "at": { "$ref": "#/$defs/point" }, "named": { "$ref": "#name" } },
        "$defs": {
            "point": {
                "type": "object",
                "properties": { "x": { "type": "number" }, "y": { "type": "number" } },
                "required": ["x", "y"],
                "additionalProperties": false
            },
            "name": { "$anchor": "name", "type": "string", "maxLength": 2 }
        }
    });
    check(
        &local,
        json!({ "at": { "x": 1, "y": 2.5 }, "named": "ab" }),
        Ok(()),
    );
    check(
        &local,
        json!({ "at": { "x": 1 } }),
        Err(&["`/at/y`", "missing"]),
    );
    check(
        &local,
        json!({ "at": { "x": 1, "y": 2, "z": 3 } }),
        Err(&["`/at/z`", "not a known field"]),
    );
    check(
        &local,
        json!({ "at": { "x": true, "y": 2 } }),
        Err(&["`/at/x`", "number", "true"]),
    );
    check(
        &local,
        json!({ "named": "abc" }),
        Err(&["`/named`", "at most 2"]),
    );
    let draft7 = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": { "a": { "$ref": "#/definitions/a" } },
        "definitions": { "a": { "enum": ["x", "y"] } }
    });
    check(&draft7, json!({ "a": "x" }), Ok(()));
    check(
        &draft7,
        json!({ "a": "z" }),
        Err(&["`/a`", "\"x\", \"y\"", "\"z\""]),
    );
    let open = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    check(&open, json!({ "any": 1 }), Ok(()));
    check(&open, json!({ "any": "text" }), Err(&["`/any`", "integer"]));
    let closed =
        json!({ "type": "object", "properties": { "path": {} }, "additionalProperties": false });
    check(&closed, json!({ "path": 1 }), Ok(()));
    check(&closed, json!({ "pth": 1 }), Err(&["`/pth`"]));
    // A field that the schema does not name is refused, also where JSON Schema allows it.
    let silent = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    check(
        &silent,
        json!({ "pth": "a" }),
        Err(&["`/pth`", "did you mean \"path\""]),
    );
    let when = json!({
        "type": "object",
        "properties": { "kind": { "enum": ["a", "b"] }, "size": { "type": "integer" } },
        "if": { "properties": { "kind": { "const": "b" } }, "required": ["kind"] },
        "then": { "required": ["size"] }
    });
    check(&when, json!({ "kind": "a" }), Ok(()));
    check(&when, json!({ "kind": "b", "size": 1 }), Ok(()));
    check(&when, json!({ "kind": "b" }), Err(&["`/size`", "missing"]));
    let tree = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "below": { "type": "array", "items": { "$ref": "#" } } },
        "required": ["name"]
    });
    check(
        &tree,
        json!({ "name": "a", "below": [{ "name": "b", "below": [] }] }),
        Ok(()),
    );
    check(
        &tree,
        json!({ "name": "a", "below": [{ "name": 1 }] }),
        Err(&["`/below/0/name`"]),
    );
}

/// Proves EXE-8: a wrong JSON type is distinguished from a wrong value.
#[test]
fn wrong_types_have_their_category() {
    let check = |property: Value, bad: Value, expect: Category| {
        let def = tool(&with(property.clone()));
        let error = prepare(&def, &json!({ "x": bad })).unwrap_err();
        assert_eq!(error.category(), expect, "{property}: {error}");
    };
    use Category::{InvalidParameters, TypeMismatch};
    check(json!({ "type": "integer" }), json!("a"), TypeMismatch);
    check(
        json!({ "type": ["integer", "null"] }),
        json!([]),
        TypeMismatch,
    );
    check(
        json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }] }),
        json!("a"),
        TypeMismatch,
    );
    check(
        json!({ "anyOf": [{ "type": "integer" }, { "maxLength": 1 }] }),
        json!("abc"),
        InvalidParameters,
    );
    check(
        json!({ "type": "integer", "minimum": 3 }),
        json!(2),
        InvalidParameters,
    );
    check(json!({ "enum": [1, 2] }), json!("a"), InvalidParameters);
}

/// Proves EXE-8a: a repair is accepted only if the result fits; nothing is guessed.
#[test]
fn invalid_repairs_are_rejected() {
    let check = |schema: &Value, came: Value, expect: Option<Value>| {
        let found = prepare(&tool(schema), &came);
        let found = found.ok().map(|prepared| {
            assert_eq!(prepared.params.is_some(), !prepared.repairs.is_empty());
            prepared.params.unwrap_or(came.clone())
        });
        assert_eq!(found, expect, "{schema} {came}");
    };
    let integer = with(json!({ "type": "integer", "minimum": 1 }));
    check(&integer, json!({ "x": "5" }), Some(json!({ "x": 5 })));
    check(&integer, json!("{\"x\": 5}"), Some(json!({ "x": 5 })));
    check(&integer, json!("{\"x\": \"5\"}"), Some(json!({ "x": 5 })));
    check(&integer, json!({ "x": "0" }), None);
    check(&integer, json!({ "x": "five" }), None);
    check(&integer, json!({ "x": null }), None);
    check(&integer, json!({ "x": 5.0 }), Some(json!({ "x": 5.0 })));
    let list = with(json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 2 }));
    check(
        &list,
        json!({ "x": "[1, 2]" }),
        Some(json!({ "x": [1, 2] })),
    );
    check(
        &list,
        json!({ "x": ["1", "2"] }),
        Some(json!({ "x": [1, 2] })),
    );
    check(&list, json!({ "x": "[1, 2, 3]" }), None);
    check(&list, json!({ "x": "1" }), None);
    // The value is under `anyOf`, `$ref`, or in a list.
    let maybe = with(json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }));
    check(&maybe, json!({ "x": "5" }), Some(json!({ "x": 5 })));
    check(&maybe, json!({ "x": null }), Some(json!({ "x": null })));
    check(&maybe, json!({ "x": "five" }), None);
    let either =
        with(json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": "^a" }] }));
    check(&either, json!({ "x": "5" }), Some(json!({ "x": 5 })));
    check(&either, json!({ "x": "ab" }), Some(json!({ "x": "ab" })));
    check(&either, json!({ "x": "bb" }), None);
    let referred = json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/n" } },
        "$defs": { "n": { "type": "integer" } }
    });
    check(&referred, json!({ "x": "5" }), Some(json!({ "x": 5 })));
    // `null` for an absent optional; a value that may be null stays.
    let optional = json!({
        "type": "object",
        "properties": {
            "x": { "type": "integer" },
            "y": { "type": "string" },
            "z": { "anyOf": [{ "type": "string" }, { "type": "null" }] }
        },
        "required": ["x"]
    });
    check(
        &optional,
        json!({ "x": 1, "y": null, "z": null }),
        Some(json!({ "x": 1, "z": null })),
    );
    check(
        &optional,
        json!({ "x": "1", "z": null }),
        Some(json!({ "x": 1, "z": null })),
    );
    check(&optional, json!({ "x": null }), None);
    // A string stays a string where one is expected.
    let text = with(json!({ "type": "string" }));
    check(&text, json!({ "x": "5" }), Some(json!({ "x": "5" })));
    check(&text, json!({ "x": 5 }), None);
    // Two changes make it fit, each alone: which one is meant is not known.
    let two = json!({
        "type": "object",
        "properties": { "x": {}, "y": {} },
        "anyOf": [
            { "properties": { "x": { "type": "integer" } } },
            { "properties": { "y": { "type": "integer" } } }
        ]
    });
    check(&two, json!({ "x": "1", "y": "2" }), None);
    check(
        &two,
        json!({ "x": "1", "y": 2 }),
        Some(json!({ "x": "1", "y": 2 })),
    );
}

/// Proves EXE-8: a schema that cannot be checked, or only at any cost, is refused with the reason.
#[test]
fn unusable_schemas_are_refused() {
    let check = |schema: Value, reason: &str| {
        let start = Instant::now();
        let error = ForeignSchema::compile(&schema).unwrap_err();
        assert!(error.contains(reason), "{schema}: {error}");
        assert!(start.elapsed() < Duration::from_secs(2), "{schema}");
    };
    check(json!({ "type": "nonsense" }), "nonsense");
    check(json!({ "properties": { "a": { "type": 5 } } }), "5");
    check(json!({ "properties": { "a": { "minimum": "x" } } }), "x");
    check(json!({ "properties": { "a": { "pattern": "(" } } }), "(");
    check(
        json!({ "$ref": "https://example.org/schema.json" }),
        "does not fetch",
    );
    check(json!({ "$ref": "file:///etc/passwd" }), "does not fetch");
    check(
        json!({ "properties": { "a": { "$ref": "other.json#/x" } } }),
        "does not fetch",
    );
    check(
        json!({ "$schema": "https://example.org/dialect" }),
        "example.org",
    );
    check(json!({ "$ref": "#/$defs/none" }), "does not contain");
    check(json!({ "$ref": "#none" }), "does not contain");
    check(json!({ "$ref": "#" }), "in an infinite loop");
    check(
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "allOf": [{ "$ref": "#/$defs/a" }] } } }),
        "in an infinite loop",
    );
    check(
        json!({ "properties": { "a": { "anyOf": [{ "not": { "$ref": "#/properties/a" } }] } } }),
        "in an infinite loop",
    );
    check(
        json!({ "properties": { "a": { "$id": "https://a.org/b", "type": "string" } } }),
        "`$id`",
    );
    check(
        json!({ "properties": { "a": { "$dynamicRef": "#x" } } }),
        "`$dynamicRef`",
    );
    // Each definition doubles the work of the one before.
    let mut defs = json!({ "d0": { "type": "string" } });
    for at in 1..40 {
        let before = json!({ "$ref": format!("#/$defs/d{}", at - 1) });
        defs[format!("d{at}")] = json!({ "anyOf": [before.clone(), before] });
    }
    check(
        json!({ "$ref": "#/$defs/d39", "$defs": defs }),
        "apply to one value",
    );
    let mut deep = json!({ "type": "string" });
    for _ in 0..80 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    check(deep, "levels");
}

/// Proves EXE-8: the work on arguments is bounded for any schema and arguments.
#[test]
fn costly_arguments_are_refused_in_time() {
    let check = |schema: Value, params: Value| {
        let def = tool(&schema);
        let start = Instant::now();
        let found = prepare(&def, &params);
        assert!(found.is_err(), "{schema}");
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{schema} took {:?}",
            start.elapsed()
        );
    };
    // Both alternatives descend into the same field, with the fault at the end.
    let branch = json!({ "properties": { "c": { "$ref": "#/$defs/n" } }, "required": ["c"] });
    let schema = json!({
        "type": "object",
        "$ref": "#/$defs/n",
        "$defs": { "n": { "anyOf": [{ "const": 1 }, branch.clone(), branch] } }
    });
    let mut params = json!(2);
    for _ in 0..40 {
        params = json!({ "c": params });
    }
    check(schema, params);
    // A pattern that backtracks.
    let schema = with(json!({ "pattern": "^(?=(a+)+$)(a|aa)+b$" }));
    check(schema, json!({ "x": "a".repeat(60) }));
    let schema = with(json!({ "type": "array", "items": { "type": "integer" } }));
    check(schema, json!({ "x": vec!["y"; 100_000] }));
}
