//! `zeph mcp …`: configures MCP servers, lists them and their tools, manages their approvals, and serves the tools of Zeph.

mod configure;
mod edit;
mod login;

use anyhow::{Context as _, anyhow, bail};
use clap::Subcommand;
use zeph_mcp::{McpServerConfig, disabled_as_json};
use zeph_tools::registry::nearest;

use self::configure::AddArgs;
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
    /// Connect to all servers, and list the servers and their tools
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your configuration: `add NAME -- COMMAND ARGS…` or `add NAME --url URL`
    Add(AddArgs),
    /// Print the settings of a server, without values that may be secrets
    Get {
        /// Name of the server
        server: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a server from your configuration, and the approvals of its tools
    Remove {
        /// Name of the server
        server: String,
    },
    /// Enable a server
    Enable {
        /// Name of the server
        server: String,
    },
    /// Disable a server without removing its settings
    Disable {
        /// Name of the server
        server: String,
    },
    /// Connect to a server, and print its state and tools; exit code 1 if it cannot be reached
    Test {
        /// Name of the server
        server: String,
    },
    /// Log in to a server with the browser
    Login {
        /// Name of the server
        server: String,
        /// Print the address without opening the browser
        #[arg(long)]
        no_browser: bool,
    },
    /// Remove the login of a server
    Logout {
        /// Name of the server
        server: String,
    },
    /// Show new or changed tools of a server, and allow them after your approval (or with --yes)
    Approve {
        /// Name of the server
        server: String,
    },
    /// Remove the approval of a server
    Forget {
        /// Name of the server
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
        McpCommand::Add(args) => configure::add(global, &env, args),
        McpCommand::Get { server, json } => configure::get(&loaded, &server, json),
        McpCommand::Remove { server } => configure::remove(global, &loaded, &env, &server),
        McpCommand::Enable { server } => configure::enable(global, &env, &server, true),
        McpCommand::Disable { server } => configure::enable(global, &env, &server, false),
        McpCommand::Login { server, no_browser } => {
            login::login(&loaded, &env, &server, no_browser).await
        }
        McpCommand::Logout { server } => login::logout(&loaded, &server),
        McpCommand::Test { server } => test(loaded, &env, &server).await,
        McpCommand::Serve(args) => super::mcp_serve::run(global, loaded, env, args).await,
        McpCommand::List { json } => list(&loaded, &env, json).await,
        McpCommand::Approve { server } => approve(loaded, &env, &server, global.yes).await,
        McpCommand::Forget { server } => {
            let pins = McpPins::in_folder(&loaded.paths.data_dir);
            let was = pins.take_back(&server);
            let was = was.context("the approvals cannot be revoked")?;
            let server = visible(&server);
            print(&match was {
                true => format!("no tool of the MCP server {server} is approved any longer"),
                false => format!("no tool of an MCP server {server} was approved"),
            })?;
            Ok(Exit::Done)
        }
    }
}

async fn list(loaded: &Loaded, env: &Environment, json: bool) -> anyhow::Result<Exit> {
    redaction_values(loaded, env);
    let servers = &loaded.config.mcp.servers;
    if servers.is_empty() {
        print(if json { "[]" } else { NONE })?;
        return Ok(Exit::Done);
    }
    let (mut texts, mut objects) = (Vec::new(), Vec::new());
    if let Some(mcp) = Mcp::start(loaded, env)? {
        mcp.servers.wait_for_result().await;
        texts.push(mcp.servers.listing());
        objects.extend(mcp.servers.as_json());
        mcp.close().await;
    }
    for server in servers.iter().filter(|server| !server.enabled) {
        let name = &server.name;
        texts.push(format!("{name}: off; `zeph mcp enable {name}` turns it on"));
        objects.push(disabled_as_json(name));
    }
    match json {
        true => print_as_is(&json_lines(&objects)?)?,
        false => print(&visible(&texts.join("\n")))?,
    }
    Ok(Exit::Done)
}

/// The message if no server is configured.
const NONE: &str = "no MCP server is configured; [[mcp.servers]] in the configuration names them";

/// The server `name` of the configuration.
///
/// # Errors
/// It is not configured.
fn configured<'l>(loaded: &'l Loaded, name: &str) -> anyhow::Result<&'l McpServerConfig> {
    let servers = &loaded.config.mcp.servers;
    let found = servers.iter().find(|server| server.name == name);
    found.ok_or_else(|| {
        let names = servers.iter().map(|server| server.name.as_str());
        match nearest(name, names, 1).pop() {
            Some(near) => anyhow!("no MCP server is called {name:?}; did you mean {near}?"),
            None => anyhow!("no MCP server is called {name:?}; `zeph mcp list` names them"),
        }
    })
}

/// Connects to the server `name` alone.
///
/// # Errors
/// The server is not configured, or it is off.
async fn connect(loaded: &mut Loaded, env: &Environment, name: &str) -> anyhow::Result<Mcp> {
    redaction_values(loaded, env);
    configured(loaded, name)?;
    let servers = &mut loaded.config.mcp.servers;
    servers.retain(|server| server.name == name);
    let Some(mcp) = Mcp::start(loaded, env)? else {
        bail!("the MCP server {name} is off; `zeph mcp enable {name}` turns it on");
    };
    mcp.servers.wait_for_result().await;
    Ok(mcp)
}

async fn test(mut loaded: Loaded, env: &Environment, name: &str) -> anyhow::Result<Exit> {
    let mcp = connect(&mut loaded, env, name).await?;
    let listing = mcp.servers.listing();
    let is_connected = mcp.servers.is_connected(name);
    mcp.close().await;
    print(&visible(&listing))?;
    Ok(if is_connected {
        Exit::Done
    } else {
        Exit::Failed
    })
}

async fn approve(
    mut loaded: Loaded,
    env: &Environment,
    name: &str,
    yes: bool,
) -> anyhow::Result<Exit> {
    let mcp = connect(&mut loaded, env, name).await?;
    let done = asked(&mcp, name, yes).await;
    mcp.close().await;
    done
}

async fn asked(mcp: &Mcp, name: &str, yes: bool) -> anyhow::Result<Exit> {
    let proposal = mcp.servers.proposal(name)?;
    let count = proposal.tools.len();
    if count == 0 {
        print(&visible(&mcp.servers.listing()))?;
        stderr_line(&format!("the MCP server {name} has no unapproved tools"));
        return Ok(Exit::Done);
    }
    print(visible(&proposed(&proposal)).trim_end())?;
    let question = match count {
        1 => "Approve this tool? y/N",
        _ => "Approve these tools? y/N",
    };
    if !yes && !agrees(question)? {
        stderr_line(&format!("no tool of the MCP server {name} was approved"));
        return Ok(Exit::Refused);
    }
    let kept = mcp.servers.agree(proposal);
    kept.context("the approval cannot be stored")?;
    print(&agreed(name, count))?;
    Ok(Exit::Done)
}
