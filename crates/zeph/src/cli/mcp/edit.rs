//! Changes of `[[mcp.servers]]` in the text of a configuration file. Comments and the order of keys stay. Pure functions.

use toml_edit::{Array, DocumentMut, InlineTable, Item, TableLike, TomlError, Value, value};
use zeph_mcp::McpServerConfig;

use crate::config::add_to_list;

/// The result of an edit: the new text.
pub(super) type Edited = Result<String, EditError>;

/// An edit that was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum EditError {
    /// The file is not TOML.
    #[error("it is not valid TOML: {0}")]
    Invalid(#[from] TomlError),
    /// `mcp.servers` has another type.
    #[error("`mcp.servers` is not a list of tables")]
    NotAList,
    /// The name is taken.
    #[error("an MCP server called {0:?} is configured already; `zeph mcp remove {0}` removes it")]
    Taken(String),
    /// The file has no such server.
    #[error("it has no MCP server called {0:?}")]
    Missing(String),
}

/// The text with `server` added. Keys with their default are left out.
///
/// # Errors
/// [`EditError`] if the name is taken or the list cannot be edited.
pub(super) fn with_server(text: &str, server: &McpServerConfig) -> Edited {
    let mut document = text.parse::<DocumentMut>()?;
    if position(&document, &server.name)?.is_some() {
        return Err(EditError::Taken(server.name.clone()));
    }
    match add_to_list(&mut document, "mcp", "servers", keys(server)) {
        true => Ok(document.to_string()),
        false => Err(EditError::NotAList),
    }
}

/// The text without the server `name`.
///
/// # Errors
/// [`EditError`] if the server is missing, or the list cannot be edited.
pub(super) fn without_server(text: &str, name: &str) -> Edited {
    let mut document = text.parse::<DocumentMut>()?;
    let at = position(&document, name)?.ok_or_else(|| EditError::Missing(name.to_owned()))?;
    match servers(&mut document) {
        Some(Item::ArrayOfTables(list)) => {
            list.remove(at);
        }
        Some(Item::Value(Value::Array(list))) => {
            list.remove(at);
        }
        _ => return Err(EditError::NotAList),
    }
    Ok(document.to_string())
}

/// The text with the server `name` on or off.
///
/// # Errors
/// [`EditError`] if the server is missing, or the list cannot be edited.
pub(super) fn with_enabled(text: &str, name: &str, enabled: bool) -> Edited {
    let mut document = text.parse::<DocumentMut>()?;
    let at = position(&document, name)?.ok_or_else(|| EditError::Missing(name.to_owned()))?;
    let server: Option<&mut dyn TableLike> = match servers(&mut document) {
        Some(Item::ArrayOfTables(list)) => list.get_mut(at).map(|table| table as _),
        Some(Item::Value(Value::Array(list))) => list
            .get_mut(at)
            .and_then(Value::as_inline_table_mut)
            .map(|table| table as _),
        _ => None,
    };
    let server = server.ok_or(EditError::NotAList)?;
    match server.get_mut("enabled") {
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = Value::from(enabled);
            *old.decor_mut() = decor;
        }
        _ if enabled => {}
        _ => {
            server.insert("enabled", value(enabled));
        }
    }
    Ok(document.to_string())
}

fn servers(document: &mut DocumentMut) -> Option<&mut Item> {
    document.get_mut("mcp")?.get_mut("servers")
}

/// The position of the server `name` in the list.
fn position(document: &DocumentMut, name: &str) -> Result<Option<usize>, EditError> {
    let list = document.get("mcp").and_then(|mcp| mcp.get("servers"));
    let is_named = |table: &dyn TableLike| {
        let found = table.get("name").and_then(Item::as_str);
        found == Some(name)
    };
    match list {
        None => Ok(None),
        Some(Item::ArrayOfTables(list)) => Ok(list.iter().position(|table| is_named(table))),
        Some(Item::Value(Value::Array(list))) => Ok(list.iter().position(|item| {
            let table = item.as_inline_table();
            table.is_some_and(|table| is_named(table))
        })),
        Some(_) => Err(EditError::NotAList),
    }
}

/// The keys of a server that are written.
fn keys(server: &McpServerConfig) -> Vec<(&'static str, Value)> {
    let mut keys = vec![("name", Value::from(server.name.as_str()))];
    if let Some(command) = &server.command {
        keys.push(("command", Value::from(command.as_str())));
    }
    if !server.args.is_empty() {
        let args: Array = server.args.iter().map(String::as_str).collect();
        keys.push(("args", Value::Array(args)));
    }
    if let Some(url) = &server.url {
        keys.push(("url", Value::from(url.as_str())));
    }
    for (key, map) in [("env", &server.env), ("headers", &server.headers)] {
        if !map.is_empty() {
            let table: InlineTable = map
                .iter()
                .map(|(name, text)| (name.as_str(), Value::from(text.as_str())))
                .collect();
            keys.push((key, Value::InlineTable(table)));
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(more: &str) -> McpServerConfig {
        toml::from_str(&format!("name = 'new'\n{more}")).unwrap()
    }

    /// Proves MCP-1d: an edit changes one server and no other byte.
    #[test]
    fn edits_keep_comments_and_order() {
        let text = "# mine\n[agent]\nmax_reflections = 2 # few\n\n# first\n[[mcp.servers]]\nname = \"a\" # A\ncommand = \"x\"\n\n# second\n[[mcp.servers]]\nname = \"b\"\nenabled = true # on\nurl = \"http://b\"\n\n[tools]\n";
        let new = server("command = 'npx'\nargs = ['-y', 'a \"b\"']\nenv = { K = 'v' }");
        let added = with_server(text, &new).unwrap();
        let entry = "\n[[mcp.servers]]\nname = \"new\"\ncommand = \"npx\"\nargs = [\"-y\", 'a \"b\"']\nenv = { K = \"v\" }\n";
        assert!(added.contains(entry), "{added}");
        assert_eq!(without_server(&added, "new").unwrap(), text);
        assert!(matches!(
            with_server(&added, &new),
            Err(EditError::Taken(_))
        ));
        let off = with_enabled(text, "b", false).unwrap();
        assert_eq!(off, text.replace("true # on", "false # on"));
        let off = with_enabled(text, "a", false).unwrap();
        assert_eq!(off, text.replace("\"x\"\n", "\"x\"\nenabled = false\n"));
        assert_eq!(with_enabled(text, "a", true).unwrap(), text);
        let left = without_server(text, "a").unwrap();
        assert_eq!(
            left,
            text.replace(
                "# first\n[[mcp.servers]]\nname = \"a\" # A\ncommand = \"x\"\n\n",
                ""
            )
        );
        assert!(matches!(
            without_server(text, "c"),
            Err(EditError::Missing(_))
        ));
    }

    /// Proves MCP-1d.
    #[test]
    fn other_forms_of_the_list_are_edited() {
        let new = server("url = 'https://e.org'\nheaders = { A = '${T}' }");
        let added = with_server("", &new).unwrap();
        let expect = "[[mcp.servers]]\nname = \"new\"\nurl = \"https://e.org\"\nheaders = { A = \"${T}\" }\n";
        assert_eq!(added.trim_start(), expect);
        let added = with_server(
            "mcp = { servers = [{ name = \"a\", command = \"x\" }] }\n",
            &new,
        );
        let added = added.unwrap();
        assert!(
            added.contains("{ name = \"new\", url = \"https://e.org\""),
            "{added}"
        );
        assert!(
            with_enabled(&added, "a", false)
                .unwrap()
                .contains("enabled = false")
        );
        assert!(!without_server(&added, "a").unwrap().contains("\"a\""));
        for wrong in ["[mcp]\nservers = 3\n", "mcp = 3\n"] {
            let found = with_server(wrong, &new);
            assert!(matches!(found, Err(EditError::NotAList)), "{found:?}");
        }
        assert!(matches!(with_server("[", &new), Err(EditError::Invalid(_))));
    }
}
