//! `SKILL.md`: its front matter and its body.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use zeph_tools::skill::template::is_parameter;
use zeph_tools::skill::{SkillTool, Template};
use zeph_tools::{Annotations, InvocationHint, ToolDef};

use super::hides;
use super::package::SKILL_FILE;
use crate::front_matter::{
    MAX_NAMES, MAX_TEXT_BYTES, known_keys, mapping, names, parts, text_of, words,
};

/// Bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 1024;
/// Tools of a skill, and parameters of a tool.
const MAX_TOOLS: usize = 8;
const MAX_PARAMETERS: usize = 16;
/// Bytes of a variable's value.
const MAX_VALUE_BYTES: usize = 4096;

/// The supported keys, and keys of other formats that are ignored.
const KEYS: [&str; 6] = [
    "name",
    "description",
    "allowed-tools",
    "allowed_tools",
    "env",
    "tools",
];
const OTHERS: [&str; 6] = [
    "license",
    "compatibility",
    "metadata",
    "version",
    "author",
    "model",
];

/// Variables that decide which programs run or which libraries they load.
const GRASPING: [&str; 11] = [
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "HOME",
    "IFS",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "TMPDIR",
];
const GRASPING_PREFIXES: [&str; 4] = ["BASH_FUNC", "DYLD_", "LD_", "ZEPH_"];

/// The content of `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct SkillManifest {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) allowed: Option<Vec<String>>,
    /// Variables, with a value or with the value of the program's own environment.
    pub(super) env: BTreeMap<String, Option<String>>,
    pub(super) tools: Vec<SkillTool>,
    pub(super) body: String,
    /// The complete text of the file.
    pub(super) source: String,
}

/// Reads the text of `SKILL.md`.
///
/// # Errors
/// The reason why the skill is refused.
pub(super) fn read(bytes: Vec<u8>) -> Result<SkillManifest, String> {
    let text = text_of(bytes, SKILL_FILE)?;
    let begins = || {
        format!(
            "{SKILL_FILE} does not begin with front matter: a line `---`, `name:`, `description:`, a line `---`"
        )
    };
    let (head, body) = parts(&text, SKILL_FILE)?.ok_or_else(begins)?;
    let mut head = mapping(head, SKILL_FILE)?;
    known_keys(&head, &KEYS, &OTHERS, "the front matter")?;
    let allowed = match (head.remove("allowed-tools"), head.remove("allowed_tools")) {
        (Some(_), Some(_)) => return Err("`allowed-tools` is set twice".to_owned()),
        (one, other) => one.or(other),
    };
    Ok(SkillManifest {
        name: words(head.remove("name"), "name", MAX_TEXT_BYTES)?,
        description: words(
            head.remove("description"),
            "description",
            MAX_DESCRIPTION_BYTES,
        )?,
        allowed: allowed
            .map(|allowed| names(allowed, "allowed-tools"))
            .transpose()?,
        env: head.remove("env").map_or(Ok(BTreeMap::new()), variables)?,
        tools: head.remove("tools").map_or(Ok(Vec::new()), tools)?,
        body: body.trim().to_owned(),
        source: text,
    })
}

fn variables(value: Value) -> Result<BTreeMap<String, Option<String>>, String> {
    let found: Vec<(String, Option<String>)> = match value {
        Value::Object(map) => {
            let values = map.into_iter().map(|(name, value)| {
                let value = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(is) => is.to_string(),
                    _ => return Err(format!("`env`: the value of {name} is not a string")),
                };
                if value.len() > MAX_VALUE_BYTES || value.contains(hides) {
                    return Err(format!("`env`: the value of {name} has more than {MAX_VALUE_BYTES} bytes or a control character"));
                }
                Ok((name, Some(value)))
            });
            values.collect::<Result<_, _>>()?
        }
        list => names(list, "env")?
            .into_iter()
            .map(|name| (name, None))
            .collect(),
    };
    if found.len() > MAX_NAMES {
        return Err(format!("`env` has more than {MAX_NAMES} names"));
    }
    for (name, _) in &found {
        let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !name.bytes().all(part)
            || name.is_empty()
            || name.as_bytes().first().is_some_and(u8::is_ascii_digit)
        {
            return Err(format!("`env`: {name:?} is not the name of a variable"));
        }
        if GRASPING.contains(&name.as_str())
            || GRASPING_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
        {
            return Err(format!(
                "`env`: {name} determines the programs that run or the code that they load, so a \
                 skill cannot set it"
            ));
        }
    }
    Ok(found.into_iter().collect())
}

fn tools(value: Value) -> Result<Vec<SkillTool>, String> {
    let Value::Array(items) = value else {
        return Err("`tools` is not a list".to_owned());
    };
    if items.len() > MAX_TOOLS {
        return Err(format!("it declares more than {MAX_TOOLS} tools"));
    }
    let mut tools: Vec<SkillTool> = Vec::new();
    for item in items {
        let Value::Object(item) = item else {
            return Err("a tool in `tools` is not a mapping".to_owned());
        };
        let name = words(item.get("name").cloned(), "tools: name", MAX_NAMES)?;
        if !is_parameter(&name) {
            return Err(format!(
                "the name of the tool {name:?} may only have lowercase letters, digits and `_`"
            ));
        }
        if tools.iter().any(|tool| tool.def.id == name) {
            return Err(format!("it declares the tool {name} twice"));
        }
        let tool = tool(name.clone(), item).map_err(|why| format!("the tool {name}: {why}"))?;
        tools.push(tool);
    }
    Ok(tools)
}

fn tool(name: String, mut item: Map<String, Value>) -> Result<SkillTool, String> {
    known_keys(
        &item,
        &["name", "description", "command", "parameters"],
        &[],
        "a tool",
    )?;
    let description = words(item.remove("description"), "description", MAX_TEXT_BYTES)?;
    let command = match item.remove("command") {
        Some(Value::String(command)) => command,
        _ => return Err("`command` is missing or is not a string".to_owned()),
    };
    let template = Template::parse(&command).map_err(|error| error.to_string())?;
    let parameters = match item.remove("parameters") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(parameters)) => parameters,
        Some(_) => return Err("`parameters` is not a mapping".to_owned()),
    };
    if parameters.len() > MAX_PARAMETERS {
        return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
    }
    let (mut properties, mut required, mut defaults) = (Map::new(), Vec::new(), Map::new());
    for (name, said) in parameters {
        if !is_parameter(&name) {
            return Err(format!(
                "the name of the parameter {name:?} may only have lowercase letters, digits and `_`"
            ));
        }
        let (schema, default) =
            parameter(said).map_err(|why| format!("the parameter {name}: {why}"))?;
        match default {
            Some(default) => drop(defaults.insert(name.clone(), default)),
            None => required.push(Value::String(name.clone())),
        }
        properties.insert(name, schema);
    }
    if let Some(place) = template
        .names()
        .find(|place| !properties.contains_key(*place))
    {
        return Err(format!("{{{{{place}}}}} in its command is not a parameter"));
    }
    if let Some(unused) = properties
        .keys()
        .find(|name| template.names().all(|place| place != name.as_str()))
    {
        return Err(format!("its command does not use the parameter {unused}"));
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    Ok(SkillTool {
        def: ToolDef {
            id: name.into(),
            description: description.into(),
            parameters: Arc::new(schema),
            invocation: InvocationHint::ToolCall,
            annotations: Annotations::ANYTHING,
            aliases: &[],
            alias_defaults: &[],
            param_aliases: &[],
            content_params: &[],
            foreign: None,
            about: zeph_tools::gate::ToolTarget::Arguments,
            offered: zeph_tools::def::Availability::AtOnce,
            cache: zeph_tools::def::CachePolicy::default(),
        },
        template,
        defaults,
    })
}

/// The schema of a parameter, and its default. A plain text is the description.
fn parameter(said: Value) -> Result<(Value, Option<Value>), String> {
    let mut said = match said {
        Value::Null => Map::new(),
        Value::String(text) => [("description".to_owned(), Value::String(text))]
            .into_iter()
            .collect(),
        Value::Object(said) => said,
        _ => return Err("it is not a mapping".to_owned()),
    };
    known_keys(
        &said,
        &["type", "description", "default", "enum"],
        &[],
        "a parameter",
    )?;
    let kind = match said.remove("type") {
        None => "string".to_owned(),
        Some(Value::String(kind))
            if ["string", "integer", "number", "boolean"].contains(&kind.as_str()) =>
        {
            kind
        }
        Some(_) => return Err("`type` must be string, integer, number or boolean".to_owned()),
    };
    let fits = |value: &Value| match kind.as_str() {
        "string" => value
            .as_str()
            .is_some_and(|text| text.len() <= MAX_TEXT_BYTES && !text.contains(hides)),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => value.is_boolean(),
    };
    let mut schema = Map::new();
    if let Some(description) = said.remove("description") {
        let description = words(Some(description), "description", MAX_TEXT_BYTES)?;
        schema.insert("description".to_owned(), Value::String(description));
    }
    let default = said.remove("default");
    if default.as_ref().is_some_and(|default| !fits(default)) {
        return Err(format!("`default` is not of the type {kind}"));
    }
    match said.remove("enum") {
        None => {}
        Some(Value::Array(values))
            if !values.is_empty() && values.len() <= MAX_NAMES && values.iter().all(fits) =>
        {
            if default
                .as_ref()
                .is_some_and(|default| !values.contains(default))
            {
                return Err("`default` is not a value of `enum`".to_owned());
            }
            schema.insert("enum".to_owned(), Value::Array(values));
        }
        Some(_) => return Err(format!("`enum` is not a list of {kind} values")),
    }
    schema.insert("type".to_owned(), Value::String(kind));
    Ok((Value::Object(schema), default))
}
