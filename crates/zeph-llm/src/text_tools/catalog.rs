//! The `<tools>` catalog of tools that a model calls by text: how a call is written, and each tool with its
//! parameters. It is short, as small models have small windows, and the same bytes for the same tools.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{BASH, RESULT, SCRAPE};
use crate::tool::ToolDefinition;

/// The system prompt with the tools at its end; as it is without tools.
pub(super) fn with_tools(system: &str, tools: &[ToolDefinition]) -> String {
    if tools.is_empty() {
        return system.to_owned();
    }
    let mut out = system.trim_end().to_owned();
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str(&render(tools));
    out.push('\n');
    out
}

/// Formats the `<tools>` catalog, for the system prompt and for display.
#[must_use]
pub fn render(tools: &[ToolDefinition]) -> String {
    let mut out = String::from("<tools>\n");
    out.push_str(
        "# Calling tools\n\
         A call is a fenced block in your response. Each fence starts its line. When your response ends, its calls run in order, and you get their results. Never write results yourself.\n",
    );
    let offers = |name: &str| tools.iter().any(|tool| tool.name == name);
    if offers(BASH) {
        out.push_str("\nA shell command:\n```bash\ngit status --short\n```\n");
    }
    if offers(SCRAPE) {
        out.push_str(
            "\nParts of a web page, by web_scrape:\n```scrape\n{\"url\": \"https://example.org\", \"select\": \"h1\"}\n```\n",
        );
    }
    if let Some(tool) = example(tools) {
        let params = sample(&tool.parameters);
        let _ = write!(
            out,
            "\nAny tool:\n```json\n{{\"tool_id\": \"{}\", \"params\": {params}}}\n```\n",
            tool.name
        );
    }
    out.push_str(
        "\nTo show code without running it, use quotes (> ) or a block with another tag, such as \
         sh. A block that contains ``` needs longer fences (````). A response without a call ends your work.\n",
    );
    if offers(BASH) {
        let _ = write!(
            out,
            "\nExample:\n\
             User: How long is notes.txt?\n\
             You: I count its lines.\n```bash\nwc -l notes.txt\n```\n\
             User: {RESULT}{BASH}]\n12 notes.txt\n\
             You: It has 12 lines.\n"
        );
    }
    out.push_str("\n# Tools (? marks optional parameters)\n");
    for tool in tools {
        let _ = write!(out, "- {}(", tool.name);
        parameters(&mut out, &tool.parameters);
        let _ = writeln!(out, "): {}", tool.description.trim());
    }
    out.push_str("</tools>");
    out
}

/// The tool in the JSON example: one without a separate block, and with a required argument.
fn example(tools: &[ToolDefinition]) -> Option<&ToolDefinition> {
    let wants = |tool: &&ToolDefinition| !required(&tool.parameters).is_empty();
    let mut other = tools
        .iter()
        .filter(|tool| ![BASH, SCRAPE].contains(&&*tool.name));
    let read = other.clone().find(|tool| tool.name == "read");
    read.or_else(|| other.clone().find(wants))
        .or_else(|| other.next())
        .or(tools.first())
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Arguments for the example.
fn sample(schema: &Value) -> String {
    let required = required(schema);
    let value = |name: &str| {
        let property = &schema["properties"][name];
        if let Some(first) = property["enum"].get(0) {
            return first.clone();
        }
        match property["type"].as_str() {
            Some("integer" | "number") => Value::from(1),
            Some("boolean") => Value::from(true),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(Map::new()),
            _ if name == "path" => Value::from("src/main.rs"),
            _ => Value::from("..."),
        }
    };
    let fields = required
        .iter()
        .map(|name| ((*name).to_owned(), value(name)));
    spaced(&Value::Object(fields.collect()))
}

/// One line of JSON, with a space after each colon and comma between fields.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), spaced(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// The properties of an object schema: `path: string, limit?: integer`.
fn parameters(out: &mut String, schema: &Value) {
    let required = required(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (at, (name, property)) in properties.into_iter().flatten().enumerate() {
        let between = if at > 0 { ", " } else { "" };
        let mark = if required.contains(&&**name) { "" } else { "?" };
        let _ = write!(out, "{between}{name}{mark}: ");
        kind(out, property);
        if let Some(words) = property.get("description").and_then(Value::as_str) {
            let _ = write!(out, " ({})", words.trim());
        }
    }
}

/// Writes the type of a value; a schema without a short form is written unchanged.
fn kind(out: &mut String, schema: &Value) {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
        out.push_str(&choices.join("|"));
        return;
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            match schema.get("items") {
                Some(items) => kind(out, items),
                None => out.push_str("any"),
            }
            out.push_str("[]");
        }
        Some("object") if schema.get("properties").is_some() => {
            out.push('{');
            parameters(out, schema);
            out.push('}');
        }
        Some(name) => out.push_str(name),
        None => {
            let _ = write!(out, "{schema}");
        }
    }
}
