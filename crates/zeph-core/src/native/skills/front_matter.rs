//! `SKILL.md`: its front matter and its body.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use zeph_tools::registry::nearest;
use zeph_tools::skill::template::is_parameter;
use zeph_tools::skill::{SkillTool, Template};
use zeph_tools::{Annotations, InvocationHint, ToolDef};

use super::package::SKILL_FILE;
use super::{hides, yaml};

/// Bytes of the front matter.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 1024;
/// Bytes of the description of a tool or a parameter.
const MAX_TEXT_BYTES: usize = 256;
/// Names in a list, tools of a skill, and parameters of a tool.
const MAX_NAMES: usize = 64;
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
}

/// Reads the text of `SKILL.md`.
///
/// # Errors
/// The reason why the skill is refused.
pub(super) fn read(bytes: Vec<u8>) -> Result<SkillManifest, String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{SKILL_FILE} is not UTF-8 in line {line}")
    })?;
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(&text)
        .replace("\r\n", "\n");
    for (at, line) in text.lines().enumerate() {
        if let Some(hidden) = line.chars().find(|char| hides(*char) && *char != '\t') {
            let code = u32::from(hidden);
            return Err(format!(
                "{SKILL_FILE} holds the control character U+{code:04X} in line {}",
                at + 1
            ));
        }
    }
    let (head, body) = parts(&text)?;
    // The first line is the marker.
    let head = yaml::parse(head)
        .map_err(|error| format!("{SKILL_FILE}, line {}: {}", error.line + 1, error.what))?;
    let Value::Object(mut head) = head else {
        return Err(format!("the front matter of {SKILL_FILE} is no mapping"));
    };
    known_keys(&head, &KEYS, &OTHERS, "the front matter")?;
    let allowed = match (head.remove("allowed-tools"), head.remove("allowed_tools")) {
        (Some(_), Some(_)) => return Err("`allowed-tools` stands twice".to_owned()),
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
    })
}

/// The front matter and the body.
fn parts(text: &str) -> Result<(&str, &str), String> {
    let begins = || {
        format!(
            "{SKILL_FILE} does not begin with front matter: a line `---`, `name:`, `description:`, a line `---`"
        )
    };
    let (first, rest) = text.split_once('\n').ok_or_else(begins)?;
    if first.trim_end() != "---" {
        return Err(begins());
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let head = rest.get(..at).unwrap_or_default();
            let body = rest.get(at + line.len()..).unwrap_or_default();
            return Ok((head, body));
        }
        at += line.len();
        if at > MAX_HEAD_BYTES {
            return Err(format!(
                "the front matter of {SKILL_FILE} has more than {} KiB",
                MAX_HEAD_BYTES / 1024
            ));
        }
    }
    Err(format!(
        "the front matter of {SKILL_FILE} does not end: a line `---` is missing"
    ))
}

fn known_keys(
    map: &Map<String, Value>,
    keys: &[&str],
    others: &[&str],
    place: &str,
) -> Result<(), String> {
    let unknown = map
        .keys()
        .find(|key| !keys.contains(&key.as_str()) && !others.contains(&key.as_str()));
    match unknown {
        None => Ok(()),
        Some(unknown) => {
            let near = nearest(unknown, keys.iter().copied(), 1).pop();
            let near = near.map_or_else(
                || format!("there are {}", keys.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            Err(format!("`{unknown}` is no key of {place}: {near}"))
        }
    }
}

/// A text of one line.
fn words(value: Option<Value>, key: &str, most: usize) -> Result<String, String> {
    let text = match value {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => return Err(format!("`{key}` is missing")),
        Some(_) => return Err(format!("`{key}` is no text: quote it")),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.len() {
        0 => Err(format!("`{key}` is empty")),
        length if length > most => Err(format!("`{key}` has more than {most} bytes")),
        // A quoted text may contain escapes.
        _ if text.contains(hides) => Err(format!("`{key}` holds a control character")),
        _ => Ok(text),
    }
}

/// A list of names. In a single text, commas or spaces separate them.
fn names(value: Value, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` is no list of names");
    let names: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::String(text) => {
            let parts = text.split(|char: char| char == ',' || char.is_whitespace());
            parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        }
        Value::Array(items) => {
            let items = items.into_iter().map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(wrong()),
            });
            items.collect::<Result<_, _>>()?
        }
        _ => return Err(wrong()),
    };
    if names.len() > MAX_NAMES {
        return Err(format!("`{key}` has more than {MAX_NAMES} names"));
    }
    match names
        .iter()
        .find(|name| name.is_empty() || name.len() > MAX_TEXT_BYTES || name.contains(hides))
    {
        Some(_) => Err(wrong()),
        None => Ok(names),
    }
}

fn variables(value: Value) -> Result<BTreeMap<String, Option<String>>, String> {
    let found: Vec<(String, Option<String>)> = match value {
        Value::Object(map) => {
            let values = map.into_iter().map(|(name, value)| {
                let value = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(is) => is.to_string(),
                    _ => return Err(format!("`env`: the value of {name} is no text")),
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
            return Err(format!("`env`: {name:?} is no name of a variable"));
        }
        if GRASPING.contains(&name.as_str())
            || GRASPING_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
        {
            return Err(format!(
                "`env`: {name} decides what programs run or load; no skill may set it"
            ));
        }
    }
    Ok(found.into_iter().collect())
}

fn tools(value: Value) -> Result<Vec<SkillTool>, String> {
    let Value::Array(items) = value else {
        return Err("`tools` is no list".to_owned());
    };
    if items.len() > MAX_TOOLS {
        return Err(format!("it declares more than {MAX_TOOLS} tools"));
    }
    let mut tools: Vec<SkillTool> = Vec::new();
    for item in items {
        let Value::Object(item) = item else {
            return Err("a tool in `tools` is no mapping".to_owned());
        };
        let name = words(item.get("name").cloned(), "tools: name", MAX_NAMES)?;
        if !is_parameter(&name) {
            return Err(format!(
                "the tool {name:?} is not named by small letters, digits and `_`"
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
        _ => return Err("`command` is missing, or no text".to_owned()),
    };
    let template = Template::parse(&command).map_err(|error| error.to_string())?;
    let parameters = match item.remove("parameters") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(parameters)) => parameters,
        Some(_) => return Err("`parameters` is no mapping".to_owned()),
    };
    if parameters.len() > MAX_PARAMETERS {
        return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
    }
    let (mut properties, mut required, mut defaults) = (Map::new(), Vec::new(), Map::new());
    for (name, said) in parameters {
        if !is_parameter(&name) {
            return Err(format!(
                "the parameter {name:?} is not named by small letters, digits and `_`"
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
        return Err(format!("{{{{{place}}}}} in its command is no parameter"));
    }
    if let Some(unused) = properties
        .keys()
        .find(|name| template.names().all(|place| place != name.as_str()))
    {
        return Err(format!(
            "its command has no place for the parameter {unused}"
        ));
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
        _ => return Err("it is no mapping".to_owned()),
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
        Some(_) => return Err("`type` is string, integer, number or boolean".to_owned()),
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
        return Err(format!("`default` is no {kind}"));
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
                return Err("`default` is not among `enum`".to_owned());
            }
            schema.insert("enum".to_owned(), Value::Array(values));
        }
        Some(_) => return Err(format!("`enum` is no list of {kind} values")),
    }
    schema.insert("type".to_owned(), Value::String(kind));
    Ok((Value::Object(schema), default))
}
