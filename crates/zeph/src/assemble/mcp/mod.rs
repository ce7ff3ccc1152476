//! MCP servers: how their programs start, where approvals are stored, and how a conversation lists and approves their
//! tools.

mod dialer;
mod pins;
mod tokens;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use zeph_core::{NO_SERVER, ToolServers};
use zeph_mcp::{McpServers, Proposal, RESOURCE_TOOL, TrustStore};
use zeph_tools::EventSink;
use zeph_tools::question::QuestionPort;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::shell::{ServedPrograms, SupervisorCommand};

use self::dialer::Dialer;
pub(crate) use self::pins::McpPins;
pub(crate) use self::tokens::McpTokens;
use super::own_program;
use super::read_rules::{own_data, read_rules, user_reads};
use crate::config::{Environment, Loaded};
use crate::output::redact;

/// The variable by which processes are known as a call's.
const CALL_TAG: &str = "ZEPH_CALL_ID";

/// The servers of this process.
pub(crate) struct Mcp {
    /// All of them.
    pub(crate) servers: Arc<McpServers>,
    programs: Arc<ServedPrograms>,
    /// The proposal that was shown last; no other can be approved.
    shown: Mutex<Option<Proposal>>,
}

impl Mcp {
    /// Starts connecting to the servers of the configuration; `None` if there are none.
    ///
    /// # Errors
    /// If the running program is not found, or a rule of reading is invalid.
    pub(crate) fn start(loaded: &Loaded, env: &Environment) -> anyhow::Result<Option<Self>> {
        if !loaded
            .config
            .mcp
            .servers
            .iter()
            .any(|server| server.enabled)
        {
            return Ok(None);
        }
        let pins = Arc::new(McpPins::in_folder(&loaded.paths.data_dir));
        Self::start_with(pins, redact::secrets(), loaded, env).map(Some)
    }

    /// Starts connecting to the servers of the configuration, whose approvals `pins` stores. More servers can be added. They
    /// end with the returned value. Tokens that are refreshed are added to `secrets`.
    ///
    /// # Errors
    /// If the running program is not found, or a rule of reading is invalid.
    pub(crate) fn start_with(
        pins: Arc<dyn TrustStore>,
        secrets: Arc<SecurityPatterns>,
        loaded: &Loaded,
        env: &Environment,
    ) -> anyhow::Result<Self> {
        let tag = env.var(CALL_TAG).map(OsString::from);
        let supervisor = SupervisorCommand::new(own_program()?);
        let denied = user_reads(loaded, env, read_rules(loaded, env)?);
        let programs = ServedPrograms::new(supervisor, tag).with_denied_files(Arc::new(denied));
        let programs = Arc::new(programs);
        let dialer = Arc::new(Dialer {
            programs: Arc::clone(&programs),
            env: env.clone(),
            shell: loaded.config.tools.shell.env.clone(),
            sandbox: loaded.config.tools.shell.sandbox.clone(),
            tokens: Arc::new(McpTokens::in_folder(&loaded.paths.data_dir).with_redaction(secrets)),
            private: own_data(loaded).collect(),
            folders: server_folders(&loaded.paths.data_dir),
        });
        let servers = McpServers::start(&loaded.config.mcp, dialer, pins);
        Ok(Self {
            servers: Arc::new(servers),
            programs,
            shown: Mutex::default(),
        })
    }

    /// Ends all connections and programs.
    pub(crate) async fn close(&self) {
        self.servers.stop();
        self.programs.shutdown().await;
    }
}

#[async_trait]
impl ToolServers for Mcp {
    fn listing(&self) -> String {
        match self.servers.is_empty() {
            true => NO_SERVER.to_owned(),
            false => self.servers.listing(),
        }
    }

    async fn wait(&self) {
        self.servers.wait().await;
    }

    fn new_notices(&self) -> Vec<String> {
        self.servers.new_notices()
    }

    fn propose(&self, server: &str) -> Result<String, String> {
        let proposal = self.servers.proposal(server);
        let proposal = proposal.map_err(|error| error.to_string())?;
        if proposal.tools.is_empty() {
            return Ok(format!(
                "All tools of the MCP server {server} are approved."
            ));
        }
        let mut text = proposed(&proposal);
        text.push_str(&format!("/mcp approve {server} yes approves these tools."));
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(proposal);
        Ok(text)
    }

    fn agree(&self, server: &str) -> Result<String, String> {
        let shown = self
            .shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(proposal) = shown.filter(|proposal| proposal.server == server) else {
            return Err(format!(
                "/mcp approve {server} shows the tools to approve first"
            ));
        };
        let count = proposal.tools.len();
        self.servers
            .agree(proposal)
            .map_err(|error| format!("the approval cannot be stored: {error}"))?;
        Ok(agreed(server, count))
    }

    fn has_server(&self, name: &str) -> bool {
        self.servers.has_server(name)
    }

    fn resource_tool(&self) -> &str {
        RESOURCE_TOOL
    }

    fn prompts(&self) -> Vec<(String, String)> {
        self.servers.prompts()
    }

    async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: &str,
        user: (Arc<dyn EventSink>, Option<Arc<dyn QuestionPort>>),
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let text = self.servers.prompt(server, prompt, arguments, user, cancel);
        text.await
    }
}

/// The text that the user reads before the approval. It hides nothing.
pub(crate) fn proposed(proposal: &Proposal) -> String {
    let mut text = String::new();
    for (id, said) in &proposal.tools {
        text.push_str(id);
        text.push('\n');
        for line in said.lines() {
            text.push_str("    ");
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// The message about approved tools.
pub(crate) fn agreed(server: &str, count: usize) -> String {
    let tools = match count {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    format!(
        "{tools} of the MCP server {server} can be called until the server changes the \
        definitions."
    )
}

/// The directory of the servers' own folders.
pub(crate) fn server_folders(data_dir: &Path) -> PathBuf {
    data_dir.join("mcp-servers")
}
