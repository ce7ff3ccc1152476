//! Validation of one tool in a server's list: its id, the text for the model, and the text for approval. Pure
//! functions.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::foreign_schema::ForeignSchema;
use zeph_tools::gate::ToolTarget;
use zeph_tools::{Annotations, Availability, InvocationHint, Risk, ToolDef, TrustLevel};

use crate::config::McpServerConfig;
use crate::sanitize::{is_hidden, line, plain};
use crate::trust::Pin;

/// The prefix of the id of every MCP tool.
pub const PREFIX: &str = "mcp_";
/// The longest id that providers take.
const MAX_ID_LEN: usize = 64;
/// The characters of the hash in a short id.
const HASH_LEN: usize = 8;
/// The longest name of a tool in a server's list.
const MAX_NAME_LEN: usize = 1024;
/// The most characters that a model reads of a description.
const MAX_DESCRIPTION_CHARS: usize = 2048;
/// The most bytes of a schema.
const MAX_SCHEMA_BYTES: usize = 32 * 1024;
/// Characters of the reason why a schema cannot be used.
const MAX_REASON: usize = 300;
/// How deep a schema may be.
const MAX_SCHEMA_DEPTH: usize = 32;

/// A tool that can be used after approval.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ListedTool {
    /// Its name in the server's list.
    pub name: String,
    /// The definition for the model.
    pub def: ToolDef,
    /// The content that the user approves.
    pub pin: Pin,
}

/// A tool that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedTool {
    /// Its name for display, if it has one.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Converts the description `raw` to a tool, or returns the reason why it is not used.
///
/// # Errors
/// Its name, and the reason.
pub fn listed(server: &McpServerConfig, raw: &Value) -> Result<ListedTool, RefusedTool> {
    let name = raw.get("name").and_then(Value::as_str).unwrap_or_default();
    let refused = |reason: String| RefusedTool {
        name: line(name, MAX_ID_LEN),
        reason,
    };
    if name.is_empty() {
        return Err(refused("it has no name".to_owned()));
    }
    if name.chars().count() > MAX_NAME_LEN {
        return Err(refused(format!(
            "its name has more than {MAX_NAME_LEN} characters"
        )));
    }
    if !server.tool_allowlist.is_empty() && !server.tool_allowlist.iter().any(|one| one == name) {
        return Err(refused("it is not in `tool_allowlist`".to_owned()));
    }
    let id = id_of(&server.name, name).map_err(&refused)?;
    let schema = raw.get("inputSchema").unwrap_or(&Value::Null);
    let parameters = parameters(schema).map_err(&refused)?;
    let foreign = ForeignSchema::compile(schema).map_err(|why| {
        refused(format!(
            "its schema cannot be used: {}",
            line(&why, MAX_REASON)
        ))
    })?;
    let description = raw.get("description").and_then(Value::as_str);
    let description = description.unwrap_or_default();
    let shown = match plain(description.trim(), MAX_DESCRIPTION_CHARS) {
        shown if shown.is_empty() => format!("A tool of the MCP server {}.", server.name),
        shown => shown,
    };
    let said = raw.get("annotations").unwrap_or(&Value::Null);
    Ok(ListedTool {
        name: name.to_owned(),
        def: ToolDef {
            id: Cow::Owned(id),
            description: Cow::Owned(shown),
            parameters: Arc::new(parameters),
            invocation: InvocationHint::ToolCall,
            annotations: annotations(said, server.trust_level),
            aliases: &[],
            alias_defaults: &[],
            param_aliases: &[],
            content_params: &[],
            foreign: Some(foreign),
            about: ToolTarget::Arguments,
            offered: Availability::AtOnce,
            cache: zeph_tools::def::CachePolicy::default(),
        },
        pin: Pin::of(name, description, schema, &hints(said)),
    })
}

/// `mcp_SERVER_TOOL`, with `_` for every character of the tool's name that providers do not take. A long id is shortened.
fn id_of(server: &str, name: &str) -> Result<String, String> {
    let whole = name.to_owned();
    let shown = name.chars().filter(|c| !is_hidden(*c));
    let fitting = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => c,
        _ => '_',
    };
    let name: String = shown.map(fitting).collect();
    if !name.contains(|c: char| c.is_ascii_alphanumeric()) {
        return Err("its name has no ASCII letter or digit".to_owned());
    }
    Ok(short(format!("{PREFIX}{server}_{name}"), &whole))
}

/// `id`, or its beginning with a hash of the complete name if it is too long. The same name has the same id each time.
fn short(id: String, name: &str) -> String {
    if id.len() <= MAX_ID_LEN {
        return id;
    }
    let hash = hex_digest(name.as_bytes());
    let hash = hash.get(..HASH_LEN).unwrap_or_default();
    let start = id.get(..MAX_ID_LEN - HASH_LEN - 1).unwrap_or_default();
    format!("{start}_{hash}")
}

/// The schema as it is sent and checked: of an object, without a choice at its top level, and with
/// nothing that hides in its texts.
fn parameters(schema: &Value) -> Result<Value, String> {
    let Value::Object(object) = schema else {
        return Err("it has no schema for its arguments".to_owned());
    };
    if object.get("type").is_some_and(|kind| kind != "object") {
        return Err("its arguments are not an object".to_owned());
    }
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(format!("its schema has more than {MAX_SCHEMA_BYTES} bytes"));
    }
    let mut clean = cleaned(schema, MAX_SCHEMA_DEPTH)?;
    if let Value::Object(object) = &mut clean {
        flatten_choices(object);
        object.entry("type").or_insert_with(|| json!("object"));
        // Without named properties, the server checks the arguments.
        if !object.contains_key("properties") {
            object.insert("properties".to_owned(), json!({}));
            object
                .entry("additionalProperties")
                .or_insert_with(|| json!(true));
        }
        object.shift_remove("$schema");
    }
    Ok(clean)
}

/// Removes the keywords that providers refuse at the top level of a schema. The root gets the
/// properties of all branches, and the required names of `allOf`. [`ForeignSchema`] still checks
/// the arguments against the original schema.
fn flatten_choices(root: &mut Map<String, Value>) {
    let mut properties: Vec<(String, Vec<Value>)> = Vec::new();
    let mut required = Vec::new();
    let mut is_open = false;
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = root.shift_remove(keyword) else {
            continue;
        };
        for mut branch in branches {
            is_open |= !is_closed(&branch);
            let mut take = |key: &str| branch.as_object_mut()?.shift_remove(key);
            if let Some(Value::Object(branch_properties)) = take("properties") {
                for (name, property) in branch_properties {
                    match properties.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, forms)) if forms.contains(&property) => {}
                        Some((_, forms)) => forms.push(property),
                        None => properties.push((name, vec![property])),
                    }
                }
            }
            if let Some(Value::Array(names)) = take("required").filter(|_| keyword == "allOf") {
                required.extend(names);
            }
        }
    }
    for keyword in ["enum", "not"] {
        root.shift_remove(keyword);
    }
    if is_open {
        root.insert("additionalProperties".to_owned(), json!(true));
    }
    add_properties(root, properties, required);
}

/// Adds properties, each in one or more forms, and required names. Properties of the root win.
fn add_properties(
    root: &mut Map<String, Value>,
    properties: Vec<(String, Vec<Value>)>,
    required: Vec<Value>,
) {
    if !properties.is_empty()
        && let Value::Object(own) = root.entry("properties").or_insert_with(|| json!({}))
    {
        for (name, forms) in properties {
            let property = match forms.as_slice() {
                [only] => only.clone(),
                _ => json!({ "anyOf": forms }),
            };
            own.entry(name).or_insert(property);
        }
    }
    if !required.is_empty()
        && let Value::Array(names) = root.entry("required").or_insert_with(|| json!([]))
    {
        for name in required {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
}

/// Whether a branch is an object without a keyword that may allow more properties.
fn is_closed(branch: &Value) -> bool {
    const LISTED: [&str; 5] = ["type", "properties", "required", "title", "description"];
    branch.as_object().is_some_and(|branch| {
        branch.iter().all(|(key, value)| {
            LISTED.contains(&key.as_str()) || (key == "additionalProperties" && value == false)
        })
    })
}

fn cleaned(value: &Value, depth: usize) -> Result<Value, String> {
    if depth == 0 {
        return Err(format!(
            "its schema has more than {MAX_SCHEMA_DEPTH} levels"
        ));
    }
    Ok(match value {
        Value::String(text) => Value::String(plain(text, MAX_DESCRIPTION_CHARS)),
        Value::Array(items) => {
            let items = items.iter().map(|item| cleaned(item, depth - 1));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let mut clean = Map::new();
            for (key, value) in object {
                if key.chars().any(|c| is_hidden(c) || c.is_control()) {
                    return Err("a name in its schema contains hidden characters".to_owned());
                }
                clean.insert(key.clone(), cleaned(value, depth - 1)?);
            }
            Value::Object(clean)
        }
        other => other.clone(),
    })
}

/// The hints of a server about its tool, with the protocol's defaults.
fn hints(said: &Value) -> Value {
    let hint = |name: &str, default: bool| {
        let given = said.get(name).and_then(Value::as_bool);
        (name.to_owned(), Value::Bool(given.unwrap_or(default)))
    };
    let hints = [
        hint("destructiveHint", true),
        hint("idempotentHint", false),
        hint("openWorldHint", true),
        hint("readOnlyHint", false),
    ];
    Value::Object(hints.into_iter().collect())
}

/// The nature of a tool, to the extent that its server is trusted. Only a trusted server can declare that a tool runs
/// without a question.
fn annotations(said: &Value, trust: TrustLevel) -> Annotations {
    let hints = hints(said);
    let hint = |name: &str| hints.get(name).and_then(Value::as_bool).unwrap_or(false);
    let read_only = hint("readOnlyHint");
    match trust {
        TrustLevel::Untrusted => Annotations::ANYTHING,
        TrustLevel::Provisional | TrustLevel::Trusted => Annotations {
            read_only,
            // The protocol defines these two only for tools that change data.
            destructive: !read_only && hint("destructiveHint"),
            idempotent: read_only || hint("idempotentHint"),
            open_world: hint("openWorldHint"),
            risk: match trust {
                TrustLevel::Trusted if read_only => Risk::Safe,
                _ => Risk::High,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(more: &str) -> McpServerConfig {
        serde_json::from_str(&format!(r#"{{"name": "s", "command": "x"{more}}}"#)).unwrap()
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "Does it.", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}})
    }

    /// Proves MCP-1.
    #[test]
    fn names_become_ids() {
        let check = |name: &str, expect: Result<&str, &str>| {
            let found = listed(&server(""), &tool(name)).map(|tool| tool.def.id.to_string());
            match (&found, expect) {
                (Ok(id), Ok(expect)) => assert_eq!(id, expect),
                (Err(refused), Err(expect)) => {
                    assert!(refused.reason.contains(expect), "{refused:?}");
                }
                _ => panic!("{name:?}: {found:?}"),
            }
        };
        check("add", Ok("mcp_s_add"));
        check("files.read/now-2", Ok("mcp_s_files_read_now-2"));
        check("a\u{200b}b", Ok("mcp_s_ab"));
        check("Ünï c", Ok("mcp_s__n__c"));
        check("", Err("no name"));
        check("日本", Err("no ASCII letter"));
        check(&"x".repeat(58), Ok(&format!("mcp_s_{}", "x".repeat(58))));
        let short = |end: &str| Ok::<_, RefusedTool>(format!("mcp_s_{}_{end}", "x".repeat(49)));
        let check_short = |name: &str, end: &str| {
            let found = listed(&server(""), &tool(name)).map(|tool| tool.def.id.to_string());
            assert_eq!(found, short(end), "{name}");
        };
        check_short(&"x".repeat(59), "6e20a119");
        check_short(&"x".repeat(60), "42f2d973");
        check(&"x".repeat(1025), Err("more than 1024 characters"));
    }

    /// Proves MCP-1a.
    #[test]
    fn tool_description_and_schema_are_clean_and_capped() {
        let mut raw = tool("t");
        raw["description"] = json!(format!("a\u{202e}b{}", "x".repeat(3000)));
        raw["inputSchema"]["properties"]["a"]["description"] = json!("c\u{200b}d");
        let found = listed(&server(""), &raw).unwrap();
        assert_eq!(found.def.description.chars().count(), 2048);
        assert!(found.def.description.starts_with("abx") && found.def.description.ends_with('…'));
        assert_eq!(found.def.parameters["properties"]["a"]["description"], "cd");
        // The pin holds the original text of the server.
        assert!(found.pin.text.contains("a\\u{202e}b"), "{}", found.pin.text);
        let reason = |schema: Value| {
            let mut raw = tool("t");
            raw["inputSchema"] = schema;
            listed(&server(""), &raw).unwrap_err().reason
        };
        let deep = (0..40).fold(json!({}), |inner, _| json!({"items": inner}));
        for (schema, expect) in [
            (json!(null), "no schema"),
            (json!({"type": "array"}), "not an object"),
            (json!({"type": ["object"]}), "not an object"),
            (
                json!({"properties": {"a\u{200b}": {}}}),
                "hidden characters",
            ),
            (json!({"x": "y".repeat(40_000)}), "more than 32768 bytes"),
            (json!({"properties": {"a": deep}}), "more than 32 levels"),
        ] {
            let found = reason(schema);
            assert!(found.contains(expect), "{found}");
        }
    }

    /// Proves MCP-1.
    #[test]
    fn any_argument_is_accepted_without_declared_names() {
        let raw = json!({"name": "t", "inputSchema": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}});
        let found = listed(&server(""), &raw).unwrap();
        let expect = json!({"type": "object", "properties": {}, "additionalProperties": true});
        assert_eq!(*found.def.parameters, expect);
        assert_eq!(found.def.description, "A tool of the MCP server s.");
        let fits = zeph_tools::params::prepare(&found.def, &json!({"x": 1}));
        assert!(fits.is_ok());
    }

    /// Proves MCP-1: providers refuse a choice at the top level of a schema. The root lists its
    /// properties instead, and the original schema still checks the arguments.
    #[test]
    fn choice_at_the_top_level_is_flattened() {
        let check = |schema: Value, expect: Value| {
            let raw = json!({"name": "t", "inputSchema": schema});
            let found = listed(&server(""), &raw).unwrap();
            assert_eq!(*found.def.parameters, expect, "{schema}");
            found.def
        };
        check(
            json!({"type": "object", "anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}}),
        );
        // A property of the root wins; only `allOf` requires.
        check(
            json!({
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "allOf": [{"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}],
                "oneOf": [{"required": ["c"], "properties": {"c": {}}, "additionalProperties": false}],
                "not": {"required": ["d"]},
            }),
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {}, "c": {}},
                "required": ["a", "b"],
            }),
        );
        // Two forms of one property.
        let kind = |name: &str| json!({"properties": {"kind": {"const": name}}});
        check(
            json!({"type": "object", "oneOf": [kind("x"), kind("y"), kind("x")]}),
            json!({"type": "object", "properties": {"kind": {"anyOf": [{"const": "x"}, {"const": "y"}]}}}),
        );
        // A branch with unlisted properties.
        let defs = json!({"x": {"properties": {"a": {}}, "required": ["a"]}});
        let open = check(
            json!({"type": "object", "$defs": defs, "properties": {"b": {}}, "anyOf": [{"$ref": "#/$defs/x"}]}),
            json!({"type": "object", "$defs": defs, "properties": {"b": {}}, "additionalProperties": true}),
        );
        let either = check(
            json!({"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}}),
        );
        for (def, arguments, is_accepted) in [
            (&open, json!({"a": 1, "b": 2}), true),
            (&open, json!({"b": 2}), false),
            (&either, json!({"a": 1}), true),
            (&either, json!({"b": 1}), true),
            (&either, json!({}), false),
            (&either, json!({"a": 1, "c": 2}), false),
        ] {
            let found = zeph_tools::params::prepare(def, &arguments);
            assert_eq!(found.is_ok(), is_accepted, "{arguments}");
        }
    }

    /// Proves MCP-1: a server's hints about its tools count to the extent that it is trusted.
    #[test]
    fn annotations_map_to_ours() {
        let check = |trust: &str, said: Value, expect: Annotations| {
            let mut raw = tool("t");
            raw["annotations"] = said.clone();
            let server = server(&format!(r#", "trust_level": "{trust}""#));
            let found = listed(&server, &raw).unwrap().def.annotations;
            assert_eq!(found, expect, "{trust} {said}");
        };
        let reads = json!({"readOnlyHint": true, "openWorldHint": false});
        let anything = Annotations::ANYTHING;
        let high = |annotations: Annotations| Annotations {
            risk: Risk::High,
            ..annotations
        };
        check("untrusted", reads.clone(), anything);
        check("provisional", reads.clone(), high(Annotations::READ));
        check("trusted", reads, Annotations::READ);
        check("provisional", json!(null), anything);
        check("provisional", json!({"readOnlyHint": "yes"}), anything);
        let adds = json!({"destructiveHint": false, "idempotentHint": true});
        let expect = Annotations {
            destructive: false,
            idempotent: true,
            ..anything
        };
        check("provisional", adds.clone(), expect);
        check("trusted", adds, expect);
    }

    /// Proves MCP-1.
    #[test]
    fn allowlist_names_the_used_tools() {
        let server = server(r#", "tool_allowlist": ["a", "b.c"]"#);
        assert!(listed(&server, &tool("a")).is_ok());
        assert!(listed(&server, &tool("b.c")).is_ok());
        for name in ["b_c", "A", "ab"] {
            let refused = listed(&server, &tool(name)).unwrap_err();
            assert_eq!(refused.reason, "it is not in `tool_allowlist`");
        }
    }

    proptest! {
        /// Proves MCP-1: providers accept the id of any tool name.
        #[test]
        fn tool_ids_are_accepted_by_providers(name in ".{0,70}") {
            if let Ok(found) = listed(&server(""), &tool(&name)) {
                let id = found.def.id;
                prop_assert!(id.len() <= 64 && id.starts_with("mcp_s_"));
                prop_assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            }
        }
    }
}
