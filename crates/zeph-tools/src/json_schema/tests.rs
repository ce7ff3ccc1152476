//! Verdicts and words, and those of another implementation.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn faults(schema: Value, value: &Value) -> Vec<String> {
    let schema = JsonSchema::new(schema).expect("a schema");
    schema
        .faults(value, 5)
        .iter()
        .map(Fault::to_string)
        .collect()
}

#[test]
fn faults_say_where_and_what() {
    let check = |schema: Value, value: Value, expect: &[&str]| {
        assert_eq!(faults(schema.clone(), &value), expect, "{schema} {value}");
    };
    check(json!(true), json!(1), &[]);
    check(
        json!(false),
        json!(1),
        &["the value: nothing is allowed here, got 1"],
    );
    check(
        json!({"properties": {"a/b": {"type": ["integer", "null"]}}, "required": ["a/b", "c"]}),
        json!({"a/b": "3"}),
        &[
            "the value: `c` is missing",
            "/a~1b: integer or null is expected, got \"3\"",
        ],
    );
    check(
        json!({"additionalProperties": false, "patternProperties": {"^x": {"enum": [1, "b"]}}}),
        json!({"xa": 2, "y": 1}),
        &[
            "/xa: one of 1, \"b\" is expected, got 2",
            "/y: the schema knows no such property",
        ],
    );
    check(
        json!({"items": {"multipleOf": 0.1, "maximum": 1, "exclusiveMinimum": 0}, "uniqueItems": true}),
        json!([0.3, 1.1, 0, 0.3, 0.25]),
        &[
            "/3: the same item stood before",
            "/1: a number at most 1 is expected, got 1.1",
            "/2: a number more than 0 is expected, got 0",
            "/4: a multiple of 0.1 is expected, got 0.25",
        ],
    );
    check(
        json!({"pattern": "^\\d+$", "maxLength": 2, "minLength": 2}),
        json!("٣"),
        &[
            "the value: at least 2 characters are expected, got 1",
            "the value: \"٣\" does not match \"^\\\\d+$\"",
        ],
    );
    check(
        json!({"minimum": 1, "exclusiveMinimum": true}),
        json!(1),
        &["the value: a number beyond 1 is expected, got 1"],
    );
    check(
        json!({"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "additionalProperties": false}}, "$ref": "#/$defs/n"}),
        json!({"next": {"next": {"other": 1}}}),
        &["/next/next/other: the schema knows no such property"],
    );
    check(
        json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}),
        json!({"a": 1, "b": 2}),
        &["/b: nothing is allowed here, got 2"],
    );
    check(
        json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}),
        json!({"a": 1}),
        &["the value: `b` is missing"],
    );
    check(
        json!({"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}}),
        json!({"a": 1, "c": 2}),
        &[
            "the value: `b` is missing",
            "the value: at most 1 properties are expected, got 2",
        ],
    );
}

#[test]
fn what_is_no_schema_or_cannot_be_checked_is_refused() {
    let check = |schema: Value, at: &str| {
        let error = JsonSchema::new(schema.clone()).expect_err("no schema");
        assert_eq!(error.pointer, at, "{schema}: {error}");
    };
    check(json!(1), "#");
    check(json!({"type": "strnig"}), "#/type");
    check(
        json!({"properties": {"a": {"type": []}}}),
        "#/properties/a/type",
    );
    check(json!({"properties": []}), "#/properties");
    check(json!({"items": [1]}), "#/items/0");
    check(json!({"required": "a"}), "#/required");
    check(json!({"minLength": -1}), "#/minLength");
    check(json!({"pattern": "("}), "#/pattern");
    check(json!({"pattern": "(?=a)"}), "#/pattern");
    check(json!({"$ref": "https://example.org/s"}), "#/$ref");
    check(json!({"$ref": "#/$defs/none"}), "#/$ref");
    check(json!({"$ref": "#/x", "x": {"anyOf": []}}), "#/x/anyOf");
    check(json!({"$dynamicRef": "#a"}), "#/$dynamicRef");
    check(json!({"multipleOf": 0}), "#/multipleOf");
}

#[test]
fn a_reference_to_itself_ends() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"$ref": "#", "unevaluatedProperties": false}),
    ] {
        let read = JsonSchema::new(schema).expect("a schema");
        let _ = read.faults(&json!({"a": 1}), 5);
    }
    let said = faults(json!({"$ref": "#"}), &json!(1));
    assert!(said[0].contains("nested too deeply"), "{said:?}");
}

#[test]
fn a_long_list_is_compared_in_linear_time() {
    let items: Vec<Value> = (0..200_000).map(|item| json!([item])).collect();
    assert_eq!(
        faults(json!({"uniqueItems": true}), &Value::from(items)),
        [""; 0]
    );
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        (-3_i64..4).prop_map(|half| json!(half as f64 / 2.0)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[abc]", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A schema of one or two keywords and those within; `$defs` are those of [`rooted`].
fn schema() -> impl Strategy<Value = Value> {
    let kind = proptest::sample::select(&TYPES[..]);
    let count = 0_u64..4;
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        kind.clone().prop_map(|kind| json!({"type": kind})),
        (kind.clone(), kind)
            .prop_filter("two", |(a, b)| a != b)
            .prop_map(|(a, b)| json!({"type": [a, b]})),
        value().prop_map(|value| json!({"const": value})),
        (value(), value()).prop_map(|(a, b)| json!({"enum": [a, b]})),
        ("[abc]", "[abc]")
            .prop_filter("two", |(a, b)| a != b)
            .prop_map(|(a, b)| json!({"required": [a, b]})),
        ("[abc]", "[abc]").prop_map(|(a, b)| json!({"dependentRequired": {a: [b]}})),
        (proptest::sample::select(&COUNTS[..]), count)
            .prop_map(|(name, count)| json!({name: count, "contains": {"type": "integer"}})),
        (
            proptest::sample::select(vec![
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum"
            ]),
            -2_i64..3
        )
            .prop_map(|(name, bound)| json!({name: bound})),
        (1_u32..4).prop_map(|of| json!({"multipleOf": f64::from(of) / 2.0})),
        proptest::sample::select(vec!["^a", "b$", "a.b", "[ab]{2}", "\\w\\W"])
            .prop_map(|pattern| json!({"pattern": pattern})),
        any::<bool>().prop_map(|unique| json!({"uniqueItems": unique})),
        proptest::sample::select(vec!["#/$defs/x", "#/$defs/y"])
            .prop_map(|target| json!({"$ref": target})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let list = proptest::collection::vec(inner.clone(), 1..3);
        let names = proptest::sample::select(&LISTS[..]);
        let map = (inner.clone(), inner.clone());
        let maps = proptest::sample::select(vec!["properties", "dependentSchemas"]);
        prop_oneof![
            (names, list.clone()).prop_map(|(name, list)| json!({name: list})),
            (list, inner.clone())
                .prop_map(|(list, rest)| json!({"prefixItems": list, "items": rest})),
            (maps, map.clone()).prop_map(|(name, (a, b))| json!({name: {"a": a, "b": b}})),
            map.clone().prop_map(
                |(a, b)| json!({"patternProperties": {"^a": a}, "additionalProperties": b})
            ),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"allOf": [a], "unevaluatedProperties": b})),
            (inner.clone(), inner.clone()).prop_map(
                |(a, b)| json!({"anyOf": [a, {"prefixItems": [true]}], "unevaluatedItems": b})
            ),
            inner.clone().prop_map(|a| json!({"not": a})),
            inner
                .clone()
                .prop_map(|a| json!({"contains": a, "maxContains": 2})),
            inner.prop_map(|a| json!({"propertyNames": a})),
        ]
    })
}

/// `schema` with what references lead to.
fn rooted(schema: Value) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "x": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}},
            "y": {"anyOf": [{"type": "integer"}, {"items": {"$ref": "#/$defs/y"}}]},
        },
        "allOf": [schema],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Proves CLI-2b in part: another implementation of the drafts comes to the same verdicts.
    #[test]
    fn verdicts_are_those_of_another_implementation(schema in schema(), value in value()) {
        let schema = rooted(schema);
        let other = jsonschema::validator_for(&schema).expect("a schema");
        let own = JsonSchema::new(schema.clone()).expect("a schema");
        prop_assert_eq!(own.faults(&value, 1).is_empty(), other.is_valid(&value), "{} {}", schema, value);
    }

    #[test]
    fn no_schema_makes_it_panic(schema in value(), other in schema(), value in value()) {
        for schema in [schema, json!({"$ref": "#/a", "a": other})] {
            if let Ok(schema) = JsonSchema::new(schema) {
                let _ = schema.faults(&value, 3);
            }
        }
    }
}
