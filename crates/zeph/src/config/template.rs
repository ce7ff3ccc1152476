//! Files made from the structs: `config/default.toml`, and the output of `zeph config show`.

use std::fmt::Write as _;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::Config;
use super::layer::get;
use super::origin::{Origin, Provenance};
use super::schema_shape::{self, Field, Shape};

const HEADER: &str = "\
# The configuration of Zeph: every key with its default. A key in a comment has no default, or another
# meaning if it is set.
#
# Stronger than the user's file, ~/.config/zeph/config.toml, are in this order the project's file,
# .zeph/config.toml, environment variables (ZEPH_TOOLS_SHELL_TIMEOUT=60) and flags.
# `zeph config show --origin` shows the source of each value.
";

/// Values to show for keys without default.
const EXAMPLES: &[(&str, &str)] = &[
    ("agent.context_budget_tokens", "100000"),
    ("agent.max_cost_usd", "5.0"),
    ("agent.max_tokens_per_session", "2000000"),
    ("hooks.event", "\"before_call\""),
    ("hooks.tools", "[\"bash\"]"),
    ("hooks.command", "\"~/bin/check-command\""),
    ("hooks.timeout_secs", "10"),
    ("llm.default", "\"local\""),
    ("llm.providers.name", "\"local\""),
    ("llm.providers.type", "\"openai\""),
    ("llm.providers.api", "\"responses\""),
    ("llm.providers.model", "\"qwen3-coder\""),
    ("llm.providers.embedding_model", "\"nomic-embed-text\""),
    ("llm.providers.base_url", "\"http://127.0.0.1:8080\""),
    ("llm.providers.api_key_env", "\"LOCAL_API_KEY\""),
    ("llm.providers.context_window", "32768"),
    ("llm.providers.max_output_tokens", "8192"),
    ("llm.providers.effort", "\"medium\""),
    ("llm.providers.images", "true"),
    ("llm.providers.tool_use", "false"),
    ("llm.providers.all_cores", "true"),
    ("llm.providers.prices", "{ input = 3.0, output = 15.0 }"),
    ("llm.providers.scenario", "\"demo.toml\""),
    ("llm.retry.max_attempts", "4"),
    ("mcp.servers.name", "\"files\""),
    ("mcp.servers.command", "\"npx\""),
    (
        "mcp.servers.args",
        "[\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]",
    ),
    ("mcp.servers.env", "{ LOG_LEVEL = \"warn\" }"),
    ("mcp.servers.sandbox", "\"on\""),
    ("mcp.servers.writable", "[\"~/notes\"]"),
    ("mcp.servers.network", "true"),
    ("mcp.servers.url", "\"https://example.org/mcp\""),
    (
        "mcp.servers.headers",
        "{ Authorization = \"Bearer ${EXAMPLE_TOKEN}\" }",
    ),
    (
        "mcp.servers.oauth",
        "{ client_id = \"zeph\", scopes = [\"read\"] }",
    ),
    ("mcp.servers.trust_level", "\"provisional\""),
    ("mcp.servers.tool_allowlist", "[\"read_file\"]"),
    ("mcp.servers.sampling", "false"),
    ("mcp.servers.connect_timeout_secs", "30"),
    ("mcp.servers.call_timeout_secs", "120"),
    ("mcp.servers.enabled", "true"),
    ("memory.path", "\"~/zeph.db\""),
    ("memory.url", "\"postgres://ann@db.example.org/zeph\""),
    ("tools.max_tool_calls_per_session", "200"),
    ("tools.permissions.TOOL.pattern", "\"cargo *\""),
    ("tools.permissions.TOOL.action", "\"allow\""),
    ("tools.permissions.TOOL.match", "[\"cargo test\"]"),
    ("tools.permissions.TOOL.not_match", "[\"cargo test; rm x\"]"),
    ("tools.policy.rules.effect", "\"deny\""),
    ("tools.policy.rules.action", "\"deny\""),
    ("tools.policy.rules.tools", "[\"bash\", \"mcp_*\"]"),
    ("tools.policy.rules.tool", "\"bash\""),
    ("tools.policy.rules.paths", "[\"~/.ssh/**\"]"),
    ("tools.policy.rules.args_match", "'(?i)drop\\s+table'"),
    ("tools.policy.rules.env", "[\"CI\"]"),
    ("tools.policy.rules.trust_level", "\"provisional\""),
    ("tools.policy.rules.capabilities", "[]"),
    ("tools.policy.rules.match", "[\"bash cat ~/.ssh/id\"]"),
    ("tools.policy.rules.not_match", "[\"read README.md\"]"),
    ("tools.authorization.rules.effect", "\"deny\""),
    ("tools.authorization.rules.action", "\"deny\""),
    ("tools.authorization.rules.tools", "[\"bash\", \"mcp_*\"]"),
    ("tools.authorization.rules.tool", "\"bash\""),
    ("tools.authorization.rules.paths", "[\"~/.ssh/**\"]"),
    (
        "tools.authorization.rules.args_match",
        "'(?i)drop\\s+table'",
    ),
    ("tools.authorization.rules.env", "[\"CI\"]"),
    ("tools.authorization.rules.trust_level", "\"provisional\""),
    ("tools.authorization.rules.capabilities", "[]"),
    (
        "tools.authorization.rules.match",
        "[\"bash cat ~/.ssh/id\"]",
    ),
    (
        "tools.authorization.rules.not_match",
        "[\"read README.md\"]",
    ),
    ("tools.filters.filters_path", "\"~/filters.toml\""),
    ("tools.filters.security.extra_patterns.name", "\"acme_key\""),
    (
        "tools.filters.security.extra_patterns.pattern",
        "'ACME-[0-9A-F]{16}'",
    ),
    ("tools.audit.path", "\"~/zeph-audit.jsonl\""),
];

/// Keys with a default that mean more if they are set. The template has them in comments.
const COMMENTED: &[&str] = &["agent.max_tool_iterations", "tools.mode"];

/// Providers to begin with.
const PROVIDERS: &str = "\
# A server on this machine that speaks the Chat Completions of OpenAI:
# [[llm.providers]]
# name = \"local\"
# type = \"openai\"
# model = \"qwen3-coder\"
# base_url = \"http://127.0.0.1:8080\"

# Anthropic; the key is in the environment, never in this file:
# [[llm.providers]]
# name = \"claude\"
# type = \"claude\"
# model = \"claude-sonnet-4-5\"
# api_key_env = \"ANTHROPIC_API_KEY\"

# Ollama on this machine:
# [[llm.providers]]
# name = \"ollama\"
# type = \"ollama\"
# model = \"qwen3:8b\"
# context_window = 32768

# OpenAI itself:
# [[llm.providers]]
# name = \"openai\"
# type = \"openai\"
# model = \"gpt-5\"
# api_key_env = \"OPENAI_API_KEY\"

# A recorded scenario instead of a model:
# [[llm.providers]]
# name = \"demo\"
# type = \"scripted\"
# scenario = \"demo.toml\"
";

/// The text of `config/default.toml`.
pub(crate) fn template() -> String {
    let defaults = defaults();
    let mut text = HEADER.to_owned();
    for section in schema_shape::root().sections() {
        let comment = if section.is_list { "# " } else { "" };
        let _ = write!(
            text,
            "\n# {}\n{comment}{}\n",
            section.table.doc,
            header(&section.path, section.is_list)
        );
        for field in &section.keys {
            let key = schema_shape::join(&section.path, &field.name);
            let _ = writeln!(text, "# {}", explained(field));
            let _ = match get(&defaults, &key).filter(|_| !section.is_list) {
                // An empty table of free keys would conflict with a later header of the same name.
                Some(Value::Table(map)) if map.is_empty() => {
                    writeln!(text, "# {} = {{}}", field.name)
                }
                Some(value) if COMMENTED.contains(&key.as_str()) => {
                    writeln!(text, "# {} = {value}", field.name)
                }
                Some(value) => writeln!(text, "{} = {value}", field.name),
                None => writeln!(text, "# {} = {}", field.name, example(&key)),
            };
        }
        if section.path == "llm.providers" {
            text.push('\n');
            text.push_str(PROVIDERS);
        }
    }
    text
}

/// The effective values as TOML, with the origin of each if `origins` are given.
pub(crate) fn effective(config: &Config, origins: Option<&Provenance>) -> String {
    let table = Table::try_from(config).unwrap_or_default();
    let mut text = String::new();
    for section in schema_shape::root().sections() {
        let mut part = |title: &str, values: Option<&Table>, path: &str| {
            let newline = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{newline}{}", header(title, section.is_list));
            for field in &section.keys {
                let key = schema_shape::join(path, &field.name);
                let line = match values.and_then(|values| values.get(&field.name)) {
                    Some(value) => format!("{} = {value}", field.name),
                    None => format!("# {} is not set", field.name),
                };
                text.push_str(&line);
                if let Some(origins) = origins {
                    let _ = write!(text, "  # from {}", origin(origins, &key, field, values));
                }
                text.push('\n');
            }
        };
        if let Some(map) = section.path.strip_suffix(schema_shape::ANY) {
            let map = map.trim_end_matches('.');
            for (tool, list) in get(&table, map)
                .and_then(Value::as_table)
                .into_iter()
                .flatten()
            {
                let path = schema_shape::join(map, tool);
                for (number, item) in list.as_array().into_iter().flatten().enumerate() {
                    part(&path, item.as_table(), &format!("{path}[{number}]"));
                }
            }
            continue;
        }
        match get(&table, &section.path) {
            Some(Value::Array(items)) => {
                for (number, item) in items.iter().enumerate() {
                    let path = format!("{}[{number}]", section.path);
                    part(&section.path, item.as_table(), &path);
                }
            }
            found => {
                let values = found.and_then(Value::as_table);
                part(&section.path, values, &section.path);
            }
        }
    }
    text
}

/// The origin of a value; each key of a table of free keys may have another origin.
fn origin(origins: &Provenance, key: &str, field: &Field, values: Option<&Table>) -> String {
    let of_key = || {
        // A path may hold a line break; a comment may not.
        origins
            .of(key)
            .to_string()
            .replace(|c: char| c.is_control(), "\u{fffd}")
    };
    let (Shape::Map(_), Some(Value::Table(map))) = (
        &field.shape,
        values.and_then(|values| values.get(&field.name)),
    ) else {
        return of_key();
    };
    let mut all: Vec<String> = map
        .keys()
        .map(|name| origins.of(&schema_shape::join(key, name)).to_string())
        .map(|origin| origin.replace(|c: char| c.is_control(), "\u{fffd}"))
        .collect();
    all.dedup();
    if all.is_empty() {
        Origin::Default.to_string()
    } else {
        all.join(", ")
    }
}

/// The defaults as a table.
pub(crate) fn defaults() -> Table {
    // A test holds that they can be written.
    Table::try_from(Config::default()).unwrap_or_default()
}

fn header(path: &str, is_list: bool) -> String {
    match (path, is_list) {
        ("", _) => String::new(),
        (path, true) => format!("[[{path}]]"),
        (path, false) => format!("[{path}]"),
    }
}

/// The description of a key, with its values if it is a choice.
fn explained(field: &Field) -> String {
    match &field.shape {
        Shape::Choice(_) => {
            format!("{} It is {}.", field.doc, field.shape.expectation())
        }
        _ => field.doc.clone(),
    }
}

/// A value that shows how a key without default is written, as TOML.
fn example(key: &str) -> &'static str {
    EXAMPLES
        .iter()
        .find(|(name, _)| *name == key)
        .map_or("\"\"", |(_, value)| value)
}

/// `null` does not exist in TOML.
pub(crate) fn to_toml(value: &Json) -> Option<Value> {
    Value::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::path::Path;

    use crate::config::layer::{FileLayer, Layer};

    fn read(text: &str) -> Layer {
        let mut errors = Vec::new();
        let layer = Layer::from_toml(text, Path::new("c.toml"), FileLayer::User, &mut errors);
        assert!(errors.is_empty(), "{errors:?}\n{text}");
        layer
    }

    /// Proves CFG-3: the file in the repository matches the structs.
    #[test]
    fn template_file_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/config/default.toml");
        let found = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            found == template(),
            "config/default.toml is out of date; write it again with\n\
             zeph config init --print > config/default.toml"
        );
    }

    /// Proves CFG-3: numbers are printed as they are written in the source: 0.15, not 0.15000000596.
    #[test]
    fn numbers_have_few_digits() {
        let shown = [template(), effective(&Config::default(), None)];
        for line in shown.iter().flat_map(|text| text.lines()) {
            let numbers = line.split(|c: char| !c.is_ascii_digit() && c != '.');
            for number in numbers.filter(|number| number.contains('.')) {
                let decimals = number.rsplit('.').next().map_or(0, str::len);
                assert!(decimals <= 6, "{line}");
            }
        }
    }

    /// Proves CFG-3: the template has every key, with its default value.
    #[test]
    fn template_has_every_key_with_its_default() {
        let text = template();
        let layer = read(&text);
        assert_eq!(
            layer.table.clone().try_into::<Config>().unwrap(),
            Config::default()
        );
        for key in COMMENTED {
            assert_eq!(get(&layer.table, key), None, "{key}");
        }
        for section in schema_shape::root().sections() {
            let (_, from) = text
                .split_once(&format!("{}\n", header(&section.path, section.is_list)))
                .unwrap();
            for field in section.keys {
                let begin = format!("{} = ", field.name);
                let has = |line: &str| line.trim_start_matches("# ").starts_with(&begin);
                let until_next = from
                    .lines()
                    .take_while(|line| !line.trim_start_matches("# ").starts_with('['));
                assert!(until_next.clone().any(has), "[{}] {begin}", section.path);
            }
        }
    }

    #[test]
    fn every_key_without_default_has_an_example() {
        let defaults = defaults();
        let mut needed = Vec::new();
        for section in schema_shape::root().sections() {
            let keys = section
                .keys
                .iter()
                .map(|field| schema_shape::join(&section.path, &field.name));
            needed.extend(keys.filter(|key| section.is_list || get(&defaults, key).is_none()));
        }
        let given: Vec<&str> = EXAMPLES.iter().map(|(key, _)| *key).collect();
        assert_eq!(given, needed);
    }

    /// The examples in comments are valid when they are uncommented.
    #[test]
    fn comments_hold_valid_examples() {
        let uncommented: String = template()
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(code)
                    if code.starts_with("[[")
                        || code
                            .split_once(" = ")
                            .is_some_and(|(key, _)| !key.contains(' ')) =>
                {
                    code
                }
                _ => line,
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let config: Config = read(&uncommented).table.try_into().unwrap();
        let names: Vec<&str> = config
            .llm
            .providers
            .iter()
            .map(|provider| provider.name.as_str())
            .collect();
        assert_eq!(
            names,
            ["local", "local", "claude", "ollama", "openai", "demo"]
        );
        assert!(config.agent.context_budget_tokens.is_some() && config.memory.path.is_some());
        let examples: String = PROVIDERS
            .lines()
            .filter(|line| !line.ends_with(':'))
            .fold(String::new(), |text, line| {
                text + line.trim_start_matches("# ") + "\n"
            });
        let layer = read(&examples);
        let config: Config = layer.table.try_into().unwrap();
        assert_eq!(super::super::check::check(&config, &layer.provenance), []);
    }

    /// Proves CFG-2: the output is TOML, has the same values when it is read again, and shows the origins.
    #[test]
    fn effective_values_can_be_parsed() {
        let text = "[[llm.providers]]\nname = \"a\"\ntype = \"openai\"\nmodel = \"m\"\n[tools]\nmode = \"plan\"\n\
            [tools.shell.env]\nset = { A = \"1\\n2\", \"b.c\" = \"\" }\n";
        let layer = read(text);
        let config: Config = layer.table.clone().try_into().unwrap();
        for origins in [None, Some(&layer.provenance)] {
            let shown = effective(&config, origins);
            assert_eq!(
                read(&shown).table.try_into::<Config>().unwrap(),
                config,
                "{shown}"
            );
        }
        let shown = effective(&config, Some(&layer.provenance));
        for line in [
            "max_tool_iterations = 10  # from default",
            "# context_budget_tokens is not set  # from default",
            "mode = \"plan\"  # from user file c.toml:6",
            "name = \"a\"  # from user file c.toml:2",
            "# base_url is not set  # from default",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
        }
        assert!(shown.contains("}  # from user file c.toml:8\n"), "{shown}");
    }
}
