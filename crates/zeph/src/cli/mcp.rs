//! `zeph mcp …`: lists MCP servers and their tools, manages their approvals, and serves the tools of Zeph.

use anyhow::{Context as _, bail};
use clap::Subcommand;
use zeph_tools::registry::nearest;

use super::args::GlobalArgs;
use super::filter::trust::agrees;
use super::{Exit, load_config, print, print_as_is};
use crate::assemble::{Mcp, McpPins, agreed, proposed, redaction_values};
use crate::config::{Environment, Loaded};
use crate::output::sanitize::visible;
use crate::output::{json_lines, stderr_line};

/// `zeph mcp …`
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Connect to all servers, and list them with their tools and those that are out
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show new or changed tools of a server, and allow them once you agree (or --yes does)
    Approve {
        /// The server
        server: String,
    },
    /// Remove the approval of a server
    Forget {
        /// The server
        server: String,
    },
    /// Serve the tools of Zeph to an MCP client on standard input and output
    Serve(super::mcp_serve::ServeArgs),
}

/// Runs one of the commands.
///
/// # Errors
/// A server does not exist or cannot be reached; errors of reading and writing.
pub(crate) async fn run(global: &GlobalArgs, command: McpCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    match command {
        McpCommand::Serve(args) => super::mcp_serve::run(global, loaded, env, args).await,
        McpCommand::List { json } => list(&loaded, &env, json).await,
        McpCommand::Approve { server } => approve(loaded, &env, &server, global.yes).await,
        McpCommand::Forget { server } => {
            let pins = McpPins::in_folder(&loaded.paths.data_dir);
            let was = pins.take_back(&server);
            let was = was.context("what was agreed to cannot be taken back")?;
            let server = visible(&server);
            print(&match was {
                true => format!("no tool of the MCP server {server} is agreed to any more"),
                false => format!("no tool of an MCP server {server} was agreed to"),
            })?;
            Ok(Exit::Done)
        }
    }
}

async fn list(loaded: &Loaded, env: &Environment, json: bool) -> anyhow::Result<Exit> {
    redaction_values(loaded, env);
    let Some(mcp) = Mcp::start(loaded, env)? else {
        print(if json { "[]" } else { NONE })?;
        return Ok(Exit::Done);
    };
    mcp.servers.wait_long().await;
    let listed = match json {
        true => json_lines(&mcp.servers.as_json()),
        false => Ok(visible(&mcp.servers.listing())),
    };
    mcp.close().await;
    match json {
        true => print_as_is(&listed?)?,
        false => print(&listed?)?,
    }
    Ok(Exit::Done)
}

/// The message if no server is configured.
const NONE: &str = "no MCP server is configured; [[mcp.servers]] in the configuration names them";

async fn approve(
    mut loaded: Loaded,
    env: &Environment,
    name: &str,
    yes: bool,
) -> anyhow::Result<Exit> {
    redaction_values(&loaded, env);
    let servers = &mut loaded.config.mcp.servers;
    if !servers.iter().any(|server| server.name == name) {
        let names = servers.iter().map(|server| server.name.as_str());
        match nearest(name, names, 1).pop() {
            Some(near) => bail!("no MCP server is called {name:?}; did you mean {near}?"),
            None => bail!("no MCP server is called {name:?}; `zeph mcp list` names them"),
        }
    }
    // The others need not run for this.
    servers.retain(|server| server.name == name);
    let Some(mcp) = Mcp::start(&loaded, env)? else {
        bail!("the MCP server {name} is switched off; `enabled` in its table says so");
    };
    let done = asked(&mcp, name, yes).await;
    mcp.close().await;
    done
}

async fn asked(mcp: &Mcp, name: &str, yes: bool) -> anyhow::Result<Exit> {
    mcp.servers.wait_long().await;
    let proposal = mcp.servers.proposal(name)?;
    let count = proposal.tools.len();
    if count == 0 {
        print(&visible(&mcp.servers.listing()))?;
        stderr_line(&format!(
            "nothing of the MCP server {name} is to be agreed to"
        ));
        return Ok(Exit::Done);
    }
    print(visible(&proposed(&proposal)).trim_end())?;
    let question = match count {
        1 => "Let this tool be called? y/N",
        _ => "Let these tools be called? y/N",
    };
    if !yes && !agrees(question)? {
        stderr_line(&format!("no tool of the MCP server {name} was agreed to"));
        return Ok(Exit::Refused);
    }
    let kept = mcp.servers.agree(proposal);
    kept.context("what was agreed to cannot be kept")?;
    print(&agreed(name, count))?;
    Ok(Exit::Done)
}
