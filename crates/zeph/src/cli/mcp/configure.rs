//! `zeph mcp add|get|remove|enable|disable`: the servers in the user's configuration file.

use std::path::PathBuf;
use std::{fs, io};

use anyhow::{Context as _, bail};
use clap::Args;
use zeph_mcp::{McpServerConfig, TokenStore as _, TrustStore as _, Way};

use super::configured;
use super::edit::{EditError, Edited, with_enabled, with_server, without_server};
use crate::assemble::{McpPins, McpTokens, server_folders};
use crate::cli::args::GlobalArgs;
use crate::cli::user_file::UserFile;
use crate::cli::{Exit, print};
use crate::config::{Environment, Loaded};
use crate::output::sanitize::visible;
use crate::output::stderr_line;

/// The options of `zeph mcp add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the server; its tools are called mcp_NAME_TOOL
    name: String,
    /// Address of a server that uses HTTP
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// Header of every request to the address; ${NAME} in the value is a variable of your environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    header: Vec<(String, String)>,
    /// Variable of the program's environment; ${NAME} in the value is a variable of your environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// Program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Reads `NAME=VALUE`. The value is not repeated in errors: it may be a secret.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("the form is NAME=VALUE".to_owned()),
    }
}

/// Adds a server.
///
/// # Errors
/// The server is not valid, its name is taken, or the file cannot be written.
pub(super) fn add(global: &GlobalArgs, env: &Environment, args: AddArgs) -> anyhow::Result<Exit> {
    let mut command = args.command.into_iter();
    let server = serde_json::json!({
        "name": args.name,
        "command": command.next(),
        "args": command.collect::<Vec<_>>(),
        "env": args.env.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "url": args.url,
        "headers": args.header.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
    });
    let server: McpServerConfig =
        serde_json::from_value(server).context("the server cannot be added")?;
    if let Err((_, fault)) = server.validate() {
        bail!("the MCP server cannot be added: {}", visible(&fault));
    }
    let name = server.name.clone();
    let written = server.env.iter().chain(&server.headers);
    let literal = written.filter(|(_, value)| !value.contains("${"));
    let literal: Vec<&str> = literal.map(|(name, _)| name.as_str()).collect();
    let file = edit(global, env, |text| with_server(text, &server))?;
    print(&format!(
        "added the MCP server {name} to {}\n`zeph mcp approve {name}` shows and approves its tools",
        visible(&file.display().to_string())
    ))?;
    if !literal.is_empty() && !global.quiet {
        stderr_line(&format!(
            "the file contains the value of {} in plain text; `${{NAME}}` reads it from your \
             environment instead",
            visible(&literal.join(", "))
        ));
    }
    Ok(Exit::Done)
}

/// Removes a server, the approvals of its tools, its login and its folder.
///
/// # Errors
/// The file has no such server, it cannot be written, or a part cannot be removed.
pub(super) fn remove(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
    name: &str,
) -> anyhow::Result<Exit> {
    let file = edit(global, env, |text| without_server(text, name))?;
    let forgotten = McpPins::in_folder(&loaded.paths.data_dir).take_back(name);
    forgotten.context("the approvals of its tools cannot be removed")?;
    if let Ok(server) = configured(loaded, name) {
        remove_data(loaded, server)?;
    }
    print(&format!(
        "removed the MCP server {} from {}, with the approvals of its tools, its login and its folder",
        visible(name),
        visible(&file.display().to_string())
    ))?;
    Ok(Exit::Done)
}

/// Removes the login and the folder of a server.
fn remove_data(loaded: &Loaded, server: &McpServerConfig) -> anyhow::Result<()> {
    let data_dir = &loaded.paths.data_dir;
    if let Ok(Way::Url(url)) = server.way() {
        let removed = McpTokens::in_folder(data_dir).remove(&server.name, url);
        removed.context("its login cannot be removed")?;
    }
    let folder = server_folders(data_dir).join(&server.name);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Turns a server on or off.
///
/// # Errors
/// The file has no such server, or cannot be written.
pub(super) fn enable(
    global: &GlobalArgs,
    env: &Environment,
    name: &str,
    enabled: bool,
) -> anyhow::Result<Exit> {
    edit(global, env, |text| with_enabled(text, name, enabled))?;
    let state = if enabled { "on" } else { "off" };
    print(&format!("the MCP server {} is {state}", visible(name)))?;
    Ok(Exit::Done)
}

/// Prints the settings of a server. Values that may be secrets are not shown.
///
/// # Errors
/// No such server is configured.
pub(super) fn get(loaded: &Loaded, name: &str, json: bool) -> anyhow::Result<Exit> {
    let server = configured(loaded, name)?;
    let pins = McpPins::in_folder(&loaded.paths.data_dir).of(name);
    let approved = pins.map(|pins| pins.len());
    let mut shown = server.clone();
    for value in shown.env.values_mut().chain(shown.headers.values_mut()) {
        if !is_reference(value) {
            "(not shown)".clone_into(value);
        }
    }
    if let Some(secret) = shown
        .oauth
        .as_mut()
        .and_then(|oauth| oauth.client_secret.as_mut())
        && !is_reference(secret)
    {
        "(not shown)".clone_into(secret);
    }
    if let Ok(Way::Url(url)) = server.way() {
        shown.url = Some(without_secrets(url));
    }
    if json {
        let mut form = serde_json::to_value(&shown)?;
        form["approved_tools"] = approved.as_ref().ok().copied().into();
        print(&format!("{form:#}"))?;
        return Ok(Exit::Done);
    }
    let settings = toml::to_string(&shown)?;
    let approved = match approved {
        Ok(count) => format!(
            "{} approved",
            zeph_tools::plural::counted_as(count, "tool", "tools")
        ),
        Err(error) => format!(
            "the approvals of its tools cannot be read: {error}; `zeph mcp forget {name}` removes them"
        ),
    };
    print(&format!(
        "{}\n# {}",
        visible(settings.trim_end()),
        visible(&approved)
    ))?;
    Ok(Exit::Done)
}

/// Whether a value consists of words and variables of the environment, such as `Bearer ${TOKEN}`.
fn is_reference(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let last = words.next_back().unwrap_or_default();
    // The scheme of a header, such as `Bearer`.
    let is_scheme = |word: &str| word.len() <= 10 && word.chars().all(|c| c.is_ascii_alphabetic());
    last.starts_with("${")
        && last.ends_with('}')
        && last.matches("${").count() == 1
        && words.all(is_scheme)
}

/// An address without the parts that may hold a key: user name, password, query and fragment.
fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (shown, query) = url.split_at(end);
    let query = if query.is_empty() { "" } else { "?(not shown)" };
    let (scheme, rest) = shown.split_once(':').unwrap_or(("", shown));
    // The parser accepts any number of slashes and backslashes before the authority.
    let rest = rest.trim_start_matches(['/', '\\']);
    let end = rest.find(['/', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://(not shown)@{host}{path}{query}"),
        None => format!("{shown}{query}"),
    }
}

/// Edits the user's file, and checks the result before it replaces the file.
fn edit(
    global: &GlobalArgs,
    env: &Environment,
    change: impl FnOnce(&str) -> Edited,
) -> anyhow::Result<PathBuf> {
    let flags = global.overrides();
    let file = UserFile::read(env, &flags)?;
    let name = file.name();
    let new = match change(&file.text) {
        Ok(new) => new,
        Err(EditError::Missing(server)) => {
            bail!("{name} has no MCP server called {server:?}; `zeph mcp list` names the servers")
        }
        Err(error) => bail!("{name}: {error}"),
    };
    if env.var("ZEPH_MCP_SERVERS").is_some() {
        stderr_line("warning: ZEPH_MCP_SERVERS replaces the servers of the file");
    }
    file.replace(env, &flags, &new)?;
    Ok(file.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves MCP-1d: no output contains a secret.
    #[test]
    fn values_that_may_be_secrets_are_not_shown() {
        for shown in ["${TOKEN}", "Bearer ${TOKEN}"] {
            assert!(is_reference(shown), "{shown}");
        }
        for hidden in [
            "key123 ${T}",
            "",
            "abc",
            "${TOKEN}abc",
            "${A}x${B}",
            "Bearer abc",
            "x${A}",
        ] {
            assert!(!is_reference(hidden), "{hidden}");
        }
        let check = |url, expect| assert_eq!(without_secrets(url), expect, "{url}");
        check("https://e.org/mcp", "https://e.org/mcp");
        check("https://e.org/mcp?key=k", "https://e.org/mcp?(not shown)");
        check("https://e.org/@a/mcp", "https://e.org/@a/mcp");
        for address in ["https://u:p@e.org/mcp", "https://u:p@ss@e.org/mcp"] {
            check(address, "https://(not shown)@e.org/mcp");
        }
        check("https:u:p@e.org/@a", "https://(not shown)@e.org/@a");
        check("https:///u:p@e.org/@a", "https://(not shown)@e.org/@a");
        check(
            "https://u:p@e.org/mcp?key=k",
            "https://(not shown)@e.org/mcp?(not shown)",
        );
    }
}
