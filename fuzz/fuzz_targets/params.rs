//! Arguments of models: accepted arguments match the schema, and repaired ones need no further repair.
#![no_main]

use std::borrow::Cow;
use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use zeph_tools::gate::ToolTarget;
use zeph_tools::params::prepare;
use zeph_tools::{Annotations, Availability, InvocationHint, ToolDef};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    schema: Result<u8, &'a str>,
    aliases: bool,
    params: &'a str,
}

fn schemas() -> Vec<Value> {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    vec![
        object(
            json!({ "path": { "type": "string", "minLength": 1 } }),
            json!(["path"]),
        ),
        object(
            json!({
                "path": { "type": "string" },
                "offset": { "type": ["integer", "null"], "minimum": 1 },
                "all": { "type": "boolean" },
                "mode": { "type": "string", "enum": ["a", "b"] },
            }),
            json!(["path", "mode"]),
        ),
        object(
            json!({
                "tasks": { "type": "array", "minItems": 1, "items": {
                    "type": "object",
                    "properties": { "text": { "type": "string" }, "n": { "type": "number" } },
                    "required": ["text"],
                } },
                "any": {},
            }),
            json!(["tasks"]),
        ),
        json!({ "type": "object" }),
    ]
}

fuzz_target!(|input: Input<'_>| {
    let schema = match input.schema {
        Ok(nth) => {
            let schemas = schemas();
            schemas[usize::from(nth) % schemas.len()].clone()
        }
        Err(text) => match serde_json::from_str(text) {
            Ok(schema) => schema,
            Err(_) => return,
        },
    };
    let Ok(params) = serde_json::from_str(input.params) else {
        return;
    };
    let def = ToolDef {
        id: Cow::Borrowed("tool"),
        description: Cow::Borrowed(""),
        parameters: Arc::new(schema),
        invocation: InvocationHint::ToolCall,
        annotations: Annotations::READ,
        aliases: &[],
        alias_defaults: &[],
        param_aliases: if input.aliases {
            &[("file", "path"), ("file_path", "path")]
        } else {
            &[]
        },
        content_params: &[],
        foreign: None,
        about: ToolTarget::Arguments,
        offered: Availability::AtOnce,
        cache: zeph_tools::def::CachePolicy::default(),
    };
    let Ok(prepared) = prepare(&def, &params) else {
        return;
    };
    let Some(mended) = prepared.params else {
        assert!(prepared.repairs.is_empty());
        return;
    };
    assert!(mended.is_object());
    let again = prepare(&def, &mended).expect("what was mended fits");
    assert_eq!(again.params, None, "mended twice: {mended}");
});
