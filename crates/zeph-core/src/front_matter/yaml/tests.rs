//! Tests of the accepted and the refused YAML.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn accepted_yaml_is_parsed() {
    let check = |text: &str, expect: Value| assert_eq!(parse(text), Ok(expect), "{text}");
    check("", json!({}));
    check("# a comment\n\n", json!({}));
    check("a: b", json!({"a": "b"}));
    check("a: b # c\nd: 'e # f'\n", json!({"a": "b", "d": "e # f"}));
    check(
        "a: 1\nb: -2.5\nc: true\nd: ~\ne:\nf: \"1\"",
        json!({"a": 1, "b": -2.5, "c": true, "d": null, "e": null, "f": "1"}),
    );
    check(
        "a: +1\nb: 1.2.3\nc: 0x1f\nd: no\ne: inf\nf: 0755",
        json!({"a": "+1", "b": "1.2.3", "c": "0x1f", "d": "no", "e": "inf", "f": "0755"}),
    );
    check("url: http://a/b#c", json!({"url": "http://a/b#c"}));
    check(
        "a: one\n  two\n  three\nb: c",
        json!({"a": "one two three", "b": "c"}),
    );
    check(
        "a: 'it''s'\nb: \"q\\\" \\n \\u00e9 \\\\\"",
        json!({"a": "it's", "b": "q\" \n é \\"}),
    );
    check("\"k k\": v\n'l': w", json!({"k k": "v", "l": "w"}));
    check(
        "a: [b, 'c, d', 3, [e], {f: g}]",
        json!({"a": ["b", "c, d", 3, ["e"], {"f": "g"}]}),
    );
    check(
        "a: [b,\n  c, # d\n  e]\nf: {}",
        json!({"a": ["b", "c", "e"], "f": {}}),
    );
    check("a: {b: c, \"d\": [1]}", json!({"a": {"b": "c", "d": [1]}}));
    check(
        "a:\n  - b\n  - c: 1\n    d: 2\n  -\n    e: 3\n  - [f]\n",
        json!({"a": ["b", {"c": 1, "d": 2}, {"e": 3}, ["f"]]}),
    );
    check("a:\n- b\n- c\nd: e", json!({"a": ["b", "c"], "d": "e"}));
    check("- - a\n  - b\n- c", json!([["a", "b"], "c"]));
    check(
        "a:\n  b:\n    c: d\n  e: f",
        json!({"a": {"b": {"c": "d"}, "e": "f"}}),
    );
    check(
        "a: |\n  x\n   y\n\n  z # w\nb: 1",
        json!({"a": "x\n y\n\nz # w\n", "b": 1}),
    );
    check("a: |-\n  x: [\n  y\n", json!({"a": "x: [\ny"}));
    check(
        "a: >\n  x\n  y\n\n  z\nb: >-\n  q",
        json!({"a": "x y\nz\n", "b": "q"}),
    );
    check("a: -b\nc: 5 apples", json!({"a": "-b", "c": "5 apples"}));
    check(
        "tools:\n  - name: t\n    command: |\n      ls {{a}}\n    parameters:\n      a: {type: string}",
        json!({"tools": [{"name": "t", "command": "ls {{a}}\n", "parameters": {"a": {"type": "string"}}}]}),
    );
}

#[test]
fn unsupported_yaml_is_refused() {
    let check = |text: &str, line: usize, words: &str| {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.what.contains(words), "{text}: {error}");
    };
    check("a: &x b", 1, "anchors");
    check("&x a: b", 1, "anchors");
    check("a: &x [b]", 1, "anchors");
    check("a: b\nc: *x", 2, "unknown anchor");
    check("a: [*x, *x]", 1, "unknown anchor");
    check("a: !!str b", 1, "tags");
    check("a: !t {b: c}", 1, "tags");
    check("<<: {a: b}", 1, "merge");
    check("? [a]\n: b", 1, "a key is not a text");
    check("a: b\na: c", 2, "duplicate key `a`");
    check("a: {b: 1, b: 2}", 1, "duplicate key `b`");
    check("a: b\n---\nc: d", 2, "markers");
    check("a: b\n...\nc: d", 3, "markers");
    check("%YAML 1.2", 2, "document start");
    check("a:\n\tb: c", 2, "tab");
    check("a: \"b", 1, "quoted scalar");
    check("a: \"b\" c", 1, "trailing content");
    check("a: [b, c", 2, "expected");
    check("a: [b}", 1, "expected");
    check("a: [b] c", 1, "expected");
    check("a: \"\\q\"", 1, "escape");
    check("a: \"\\ud800\"", 1, "invalid Unicode");
    check("a:\n  b: c: d", 2, "quote a text that contains `: `");
    check("a: - b: c", 1, "not allowed");
    check("a: b\n  c: d", 2, "not allowed");
    check("a:\n    b: c\n  d: e", 3, "expected");
    check("  a: b\nc: d", 2, "expected");
    check("a: b\nc", 3, "expected");
    check("a: @b", 1, "`@'");
    let deep: String = (0..20)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    check(&deep, 9, "levels");
    check(&"- ".repeat(3000), 1, "levels");
    check(&format!("a: {}", "{b: ".repeat(5000)), 1, "levels");
    check(&format!("a: {}", "[".repeat(5000)), 1, "recursion limit");
}

#[test]
fn top_level_value_with_a_colon_is_text() {
    let check = |text: &str, expect: Value| assert_eq!(parse(text), Ok(expect), "{text}");
    check(
        "description: Use when: the user's text ends\nname: t",
        json!({"description": "Use when: the user's text ends", "name": "t"}),
    );
    check("a: b: c", json!({"a": "b: c"}));
    check("a: b: c # d", json!({"a": "b: c"}));
    check("a: steps:\nb: 1", json!({"a": "steps:", "b": 1}));
    check(
        "a: 'b: c'\nd: {e: f}",
        json!({"a": "b: c", "d": {"e": "f"}}),
    );
    check("a: |\n  b: c: d\n", json!({"a": "b: c: d\n"}));
}

proptest! {
    /// Every text is parsed or refused, without a panic.
    #[test]
    fn any_text_is_parsed_or_refused(text in "[-a:\\[\\]{},'\"|># \n\t&*!\\\\u0-9é]{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn json_is_parsed_as_yaml(map in proptest::collection::btree_map("[a-z]{1,5}", "[ -~]{0,20}", 0..5)) {
        let text: String = map.iter().map(|(key, value)| format!("{key}: {}\n", json!(value))).collect();
        prop_assert_eq!(parse(&text), Ok(json!(map)));
        let flow = format!("a: {}", json!(map));
        prop_assert_eq!(parse(&flow), Ok(json!({ "a": map })));
    }
}
