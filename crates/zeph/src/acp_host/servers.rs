//! The MCP servers of the client: which of them the user approved, and their first tools.
//!
//! An approval is about one definition: the name, the program with its arguments and variables, or the address. The first
//! tools of an approved server are approved with it; a later change needs another approval, as for every server.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use zeph_acp::{ClientServer, ServerAddress};
use zeph_mcp::McpServerConfig;
use zeph_tools::audit::chain::hex_digest;

use super::client_pins::ClientPins;
use crate::assemble::Mcp;
use crate::config::Loaded;

/// Characters of a server's name.
const MAX_NAME_CHARS: usize = 32;

/// The servers of one session.
pub(super) struct ClientServers {
    pins: Arc<ClientPins>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The servers that the user has not decided about.
    waiting: Vec<(ClientServer, McpServerConfig)>,
    approved: Vec<McpServerConfig>,
    /// The number of approved servers that are part of the session.
    added: usize,
}

impl ClientServers {
    /// The servers that can be used, and a message about each of the others.
    pub(super) fn new(servers: Vec<ClientServer>, loaded: &Loaded) -> (Self, Vec<String>) {
        let this = Self {
            pins: Arc::new(ClientPins::new(loaded.paths.data_dir.clone())),
            state: Mutex::default(),
        };
        let mut messages = Vec::new();
        for server in servers {
            match this.config_of(&server, loaded) {
                Err(why) => messages.push(format!(
                    "the MCP server {:?} of the editor is not used: {why}",
                    server.name
                )),
                Ok(config) => {
                    let is_approved = this.pins.recall(&config.name, definition(&config));
                    let mut state = this.state();
                    match is_approved {
                        true => state.approved.push(config),
                        false => state.waiting.push((server, config)),
                    }
                }
            }
        }
        (this, messages)
    }

    fn config_of(&self, server: &ClientServer, loaded: &Loaded) -> Result<McpServerConfig, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = server.name.chars().take(MAX_NAME_CHARS);
        let name: String = name.map(|c| if fits(c) { c } else { '_' }).collect();
        let own = &loaded.config.mcp.servers;
        let state = self.state();
        let waiting = state.waiting.iter().map(|(_, config)| config);
        let mut known = own.iter().chain(&state.approved).chain(waiting);
        if known.any(|known| known.name == name) {
            return Err("another server has this name".to_owned());
        }
        let map = |pairs: &[(String, String)]| -> Result<BTreeMap<String, String>, String> {
            // In the configuration, `${NAME}` is a variable of the user.
            match pairs.iter().any(|(_, value)| value.contains("${")) {
                true => Err("a value contains `${`".to_owned()),
                false => Ok(pairs.iter().cloned().collect()),
            }
        };
        let value = match &server.address {
            ServerAddress::Program { command, args, env } => {
                json!({ "name": name, "command": command, "args": args, "env": map(env)? })
            }
            ServerAddress::Url { url, headers } => {
                json!({ "name": name, "url": url, "headers": map(headers)? })
            }
        };
        let config: McpServerConfig =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        config.validate().map_err(|(_, fault)| fault)?;
        Ok(config)
    }

    /// The servers that the user has not decided about.
    pub(super) fn waiting(&self) -> Vec<ClientServer> {
        let state = self.state();
        state
            .waiting
            .iter()
            .map(|(server, _)| server.clone())
            .collect()
    }

    /// Approves a server, also for later sessions if `is_kept`.
    ///
    /// # Errors
    /// If the approval cannot be stored; then it holds for this session.
    pub(super) fn approve(&self, server: &ClientServer, is_kept: bool) -> io::Result<()> {
        let mut state = self.state();
        let Some(at) = state
            .waiting
            .iter()
            .position(|(waiting, _)| waiting == server)
        else {
            return Ok(());
        };
        let (_, config) = state.waiting.remove(at);
        let stored = self
            .pins
            .approve(&config.name, definition(&config), is_kept);
        state.approved.push(config);
        stored
    }

    /// The approvals of tools in this session.
    pub(super) fn pins(&self) -> Arc<ClientPins> {
        Arc::clone(&self.pins)
    }

    /// All servers, also those that are not approved. Their secrets are redacted from the start.
    pub(super) fn all(&self) -> Vec<McpServerConfig> {
        let state = self.state();
        let waiting = state.waiting.iter().map(|(_, config)| config);
        waiting.chain(&state.approved).cloned().collect()
    }

    /// Adds newly approved servers to the session. Returns whether there were any.
    pub(super) fn add_to(&self, mcp: &Mcp) -> bool {
        let mut state = self.state();
        let new: Vec<McpServerConfig> = state.approved.iter().skip(state.added).cloned().collect();
        state.added += new.len();
        drop(state);
        let is_any = !new.is_empty();
        new.into_iter().for_each(|server| mcp.servers.add(server));
        is_any
    }

    /// Approves the tools of approved servers without an approved tool.
    pub(super) fn approve_first_tools(&self, mcp: &Mcp) {
        for server in &self.state().approved {
            if !self.pins.lacks_tools(&server.name) {
                continue;
            }
            // A server that is not connected yet has no proposal; the next prompt asks again.
            let Ok(proposal) = mcp.servers.proposal(&server.name) else {
                continue;
            };
            if !proposal.tools.is_empty()
                && let Err(error) = mcp.servers.agree(proposal)
            {
                tracing::warn!(server = %server.name, %error, "an approval was not stored");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The digest of the definition of a server.
fn definition(config: &McpServerConfig) -> String {
    let definition = json!([
        config.name,
        config.command,
        config.args,
        config.env,
        config.url,
        config.headers,
    ]);
    hex_digest(definition.to_string().as_bytes())
}
