//! The MCP servers of the client: which of them the user approved, and their first tools.
//!
//! An approval is about one definition: the name, the program with its arguments and variables, or the address. It is
//! stored next to the approvals of tools. The first tools of an approved server are approved with it; a later change
//! needs another approval, as for every server.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use zeph_acp::{ClientServer, ServerAddress};
use zeph_mcp::{McpServerConfig, TrustStore as _};
use zeph_tools::audit::chain::hex_digest;

use crate::assemble::{Mcp, McpPins};
use crate::config::Loaded;

/// Characters of a server's name.
const MAX_NAME_CHARS: usize = 32;

/// The servers of one session.
pub(super) struct ClientServers {
    pins: McpPins,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The servers that the user has not decided about.
    waiting: Vec<(ClientServer, McpServerConfig)>,
    approved: Vec<McpServerConfig>,
    /// Whether an approved server is not part of the session yet.
    is_new: bool,
}

impl ClientServers {
    /// The servers that can be used, and a message about each of the others.
    pub(super) fn new(servers: Vec<ClientServer>, loaded: &Loaded) -> (Self, Vec<String>) {
        let this = Self {
            pins: McpPins::in_folder(&loaded.paths.data_dir),
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
                    let is_approved = this.marker(&config).is_file();
                    let mut state = this.state();
                    match is_approved {
                        true => {
                            state.approved.push(config);
                            state.is_new = true;
                        }
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
        let marker = self.marker(&config);
        state.approved.push(config);
        state.is_new = true;
        drop(state);
        if is_kept {
            self.pins.made_folder()?;
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(marker)?;
        }
        Ok(())
    }

    /// All approved servers, if one of them is not part of the session yet.
    pub(super) fn take_new(&self) -> Option<Vec<McpServerConfig>> {
        let mut state = self.state();
        std::mem::take(&mut state.is_new).then(|| state.approved.clone())
    }

    /// Approves the tools of approved servers without an approved tool.
    pub(super) fn approve_first_tools(&self, mcp: &Mcp) {
        for server in &self.state().approved {
            let has_pins = self
                .pins
                .of(&server.name)
                .map_or(true, |pins| !pins.is_empty());
            if has_pins {
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

    /// The file that marks the definition as approved.
    fn marker(&self, config: &McpServerConfig) -> PathBuf {
        let definition = json!([
            config.name,
            config.command,
            config.args,
            config.env,
            config.url,
            config.headers,
        ]);
        let digest = hex_digest(definition.to_string().as_bytes());
        self.pins.folder().join(format!("client-{digest}"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
