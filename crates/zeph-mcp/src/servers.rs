//! All servers: concurrent start, bounded wait, status messages and approvals.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use zeph_tools::plural::counted_as;
use zeph_tools::{Availability, McpError, ToolDef};

use crate::config::{McpConfig, McpServerConfig};
use crate::connection::Link;
use crate::server::{Known, McpTransport, Phase, Server};
use crate::trust::{Pin, ToolTrust, TrustStore, agreeing, shown};

/// The extra time until a connection that exceeds its timeout is marked as failed.
const MARGIN: Duration = Duration::from_secs(2);

/// The servers of the configuration, and those that were added later.
pub struct McpServers {
    servers: RwLock<Vec<Arc<Server>>>,
    dial: Arc<dyn McpTransport>,
    pins: Arc<dyn TrustStore>,
    start_wait: Duration,
    news: watch::Sender<u64>,
    /// The notices that were reported.
    reported: Mutex<HashSet<String>>,
    stop: CancellationToken,
}

/// A connected server, its connection, and its tool for the call.
pub(crate) type Found = (Arc<Server>, Arc<Link>, Known);

/// The tools of one server that wait for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The server.
    pub server: String,
    /// Each tool's id with the text to review: the complete text, or the changes.
    pub tools: Vec<(String, String)>,
    pins: Vec<Pin>,
}

/// The state of one server, for a check of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerHealth {
    /// The server.
    pub name: String,
    /// Its state, as text.
    pub state: String,
    /// The negotiated revision of the protocol; `None` if it is not connected.
    pub revision: Option<String>,
    /// The number of approved tools.
    pub approved: usize,
    /// The number of tools that wait for approval.
    pub unapproved: usize,
}

impl McpServers {
    /// Starts connecting to all enabled servers concurrently, in the background.
    #[must_use]
    pub fn start(
        config: &McpConfig,
        dial: Arc<dyn McpTransport>,
        pins: Arc<dyn TrustStore>,
    ) -> Self {
        let servers = Self {
            servers: RwLock::default(),
            dial,
            pins,
            start_wait: Duration::from_millis(config.start_wait_ms),
            news: watch::Sender::new(0),
            reported: Mutex::default(),
            stop: CancellationToken::new(),
        };
        let enabled = config.servers.iter().filter(|server| server.enabled);
        enabled.for_each(|server| servers.add(server.clone()));
        servers
    }

    /// Starts connecting to another server, in the background.
    pub fn add(&self, config: McpServerConfig) {
        let server = Server::new(config, Arc::clone(&self.pins), self.news.clone());
        let server = Arc::new(server);
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        servers.push(Arc::clone(&server));
        drop(servers);
        tokio::spawn(server.live(Arc::clone(&self.dial), self.stop.clone()));
    }

    /// All servers, in the order in which they were added.
    pub(crate) fn all(&self) -> Vec<Arc<Server>> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.clone()
    }

    /// Whether no server is configured or was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Waits until every server is connected or has failed, at most for `start_wait_ms` of the configuration.
    pub async fn wait(&self) {
        self.wait_for(self.start_wait).await;
    }

    /// Waits until the tools of every server are known or it has failed, at most for `start_wait_ms` of the
    /// configuration and for `limit`.
    pub async fn wait_for_tools(&self, limit: Duration) {
        let has_tools = |server: &Arc<Server>| {
            server.is_settled() || server.with(|state| !state.tools.is_empty())
        };
        let are_known = || self.all().iter().all(has_tools);
        self.wait_until(self.start_wait.min(limit), are_known).await;
    }

    /// Waits until every server is connected or has failed, at most for the longest connection timeout.
    pub async fn wait_long(&self) {
        self.wait_for(self.longest_wait()).await;
    }

    /// Waits like [`Self::wait_long`], for a command that then exits: a server that waits for another attempt has
    /// failed.
    pub async fn wait_for_result(&self) {
        self.wait_long().await;
        for server in self.all() {
            server.give_up();
        }
    }

    /// Waits until the server of the tool `id` is connected or has failed. The server of an unknown tool may be any
    /// server.
    pub async fn wait_for_tool(&self, id: &str) {
        let is_settled = || {
            self.owner(id)
                .is_some_and(|(server, _)| server.is_settled())
        };
        self.wait_until(self.longest_wait(), is_settled).await;
    }

    /// Waits while the first attempt to connect to the server of the tool `id` runs.
    pub(crate) async fn settle_tool(&self, id: &str) {
        if let Some((server, _)) = self.owner(id) {
            server.settle(longest_wait(&server)).await;
        }
    }

    /// Waits while the first attempt to connect to the server `name` runs.
    pub(crate) async fn settle(&self, name: &str) {
        if let Ok(server) = self.server(name) {
            server.settle(longest_wait(&server)).await;
        }
    }

    /// The longest connection timeout. The failure itself arrives after it.
    fn longest_wait(&self) -> Duration {
        let servers = self.all();
        let waits = servers.iter().map(|server| longest_wait(server));
        waits.max().unwrap_or_default()
    }

    async fn wait_for(&self, limit: Duration) {
        self.wait_until(limit, || false).await;
    }

    /// Waits until `is_done` is true, or every server is connected or has failed.
    async fn wait_until(&self, limit: Duration, is_done: impl Fn() -> bool) {
        let mut news = self.news.subscribe();
        let are_settled = || self.all().iter().all(|server| server.is_settled());
        let settled = news.wait_for(|_| is_done() || are_settled());
        let _ = tokio::time::timeout(limit, settled).await;
    }

    /// Ends all connections. Programs end with the process that started them.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Whether the server `name` is connected.
    #[must_use]
    pub fn is_connected(&self, name: &str) -> bool {
        let server = self.server(name);
        server.is_ok_and(|server| server.with(|state| state.link.is_some()))
    }

    /// Returns the approved tools, without those with an id that a tool of an earlier server has,
    /// approved or not. Tools of a server that failed or is restarted are not offered.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDef> {
        let mut definitions = Vec::new();
        let mut ids = HashSet::new();
        for server in self.all() {
            server.with(|state| {
                let offered = match state.phase {
                    // A call waits for the connection.
                    Phase::Connected | Phase::Connecting => Availability::AtOnce,
                    Phase::Waiting { .. } | Phase::Failed { .. } => Availability::NotNow,
                };
                for known in &state.tools {
                    // A call of the id is a call of the first tool that has it.
                    let is_first = ids.insert(known.tool.def.id.clone());
                    if is_first && known.standing == ToolTrust::Approved {
                        definitions.push(known.tool.def.clone().offered(offered));
                    }
                }
            });
        }
        definitions
    }

    /// Whether a connected server has resources, or a server is connected to for the first time.
    pub(crate) fn may_have_resources(&self) -> bool {
        let has_resources = |server: &Arc<Server>| {
            server.with(|state| match &state.link {
                Some(link) => link.has_resources(),
                None => state.phase == Phase::Connecting,
            })
        };
        self.all().iter().any(has_resources)
    }

    /// The server that has the tool `id`, in any state, and the tool.
    pub(crate) fn owner(&self, id: &str) -> Option<(Arc<Server>, Known)> {
        self.all().into_iter().find_map(|server| {
            let known = server.with(|state| {
                let mut tools = state.tools.iter();
                tools.find(|known| known.tool.def.id == id).cloned()
            })?;
            Some((server, known))
        })
    }

    /// The connection and the tool for a call of `id`; `None` if no server has it.
    ///
    /// # Errors
    /// The reason why it cannot be called now.
    pub(crate) fn find(&self, id: &str) -> Result<Option<Found>, McpError> {
        let Some((server, known)) = self.owner(id) else {
            return Ok(None);
        };
        let server_name = server.config.name.clone();
        if known.standing != ToolTrust::Approved {
            return Err(McpError::PolicyBlocked {
                reason: format!(
                    "{id} is not approved; `/mcp approve {server_name}` shows and approves it"
                ),
            });
        }
        let (link, phase) = server.with(|state| (state.link.clone(), state.phase.clone()));
        match link {
            Some(link) => Ok(Some((server, link, known))),
            None => Err(McpError::Connection {
                server: server_name,
                message: told(&phase),
            }),
        }
    }

    /// The server of this name and its connection.
    ///
    /// # Errors
    /// [`McpError::ServerNotFound`], or the reason why it is not connected.
    pub(crate) fn link(&self, name: &str) -> Result<(Arc<Server>, Arc<Link>), McpError> {
        let server = self.server(name)?;
        let (link, phase) = server.with(|state| (state.link.clone(), state.phase.clone()));
        match link {
            Some(link) => Ok((server, link)),
            None => Err(McpError::Connection {
                server: name.to_owned(),
                message: told(&phase),
            }),
        }
    }

    /// The server of this name.
    ///
    /// # Errors
    /// [`McpError::ServerNotFound`].
    fn server(&self, name: &str) -> Result<Arc<Server>, McpError> {
        let mut servers = self.all().into_iter();
        let found = servers.find(|server| server.config.name == name);
        found.ok_or_else(|| McpError::ServerNotFound {
            server: name.to_owned(),
        })
    }

    /// The tools of a server that wait for approval.
    ///
    /// # Errors
    /// The server does not exist, or has not listed its tools yet.
    pub fn proposal(&self, name: &str) -> Result<Proposal, McpError> {
        let server = self.server(name)?;
        let state = server.state();
        if state.link.is_none() {
            return Err(McpError::Connection {
                server: name.to_owned(),
                message: told(&state.phase),
            });
        }
        let open = state.tools.iter();
        let open = open.filter(|known| known.standing != ToolTrust::Approved);
        let open: Vec<&Known> = open.collect();
        let text = |known: &&Known| {
            let text = shown(&known.tool.pin, &known.standing);
            (known.tool.def.id.to_string(), text)
        };
        Ok(Proposal {
            server: name.to_owned(),
            tools: open.iter().map(text).collect(),
            pins: open.iter().map(|known| known.tool.pin.clone()).collect(),
        })
    }

    /// Stores the user's approval of a proposal.
    ///
    /// # Errors
    /// An error of the system; then nothing is approved.
    pub fn agree(&self, proposal: Proposal) -> io::Result<()> {
        let agreed = self.pins.of(&proposal.server)?;
        let pins = agreeing(agreed, proposal.pins);
        self.pins.put(&proposal.server, &pins)?;
        match self.server(&proposal.server) {
            Ok(server) => server.look_at_pins(),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    /// The state of each server.
    #[must_use]
    pub fn health(&self) -> Vec<ServerHealth> {
        let health = |server: &Arc<Server>| {
            server.with(|state| {
                let is_approved = |known: &&Known| known.standing == ToolTrust::Approved;
                let approved = state.tools.iter().filter(is_approved).count();
                ServerHealth {
                    name: server.config.name.clone(),
                    state: told(&state.phase),
                    revision: state.link.as_ref().map(|link| link.revision.clone()),
                    approved,
                    unapproved: state.tools.len() - approved,
                }
            })
        };
        self.all().iter().map(health).collect()
    }

    /// Messages for the user: unavailable servers, and tools that wait for approval.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let servers = self.all();
        let of_servers = servers.iter().filter_map(|server| notice(server));
        of_servers
            .map(|(_, text)| text)
            .chain(self.unconfined())
            .collect()
    }

    /// Returns the notices of [`Self::notices`] that were not returned before. A server with its first connection
    /// attempt is reported after `start_wait_ms`.
    #[must_use]
    pub fn new_notices(&self) -> Vec<String> {
        let is_slow = |server: &&Arc<Server>| {
            server.is_settled() || server.began.elapsed() >= self.start_wait
        };
        let servers = self.all();
        let of_servers = servers.iter().filter(is_slow);
        let of_servers = of_servers.filter_map(|server| notice(server));
        let unconfined = self.unconfined().map(|text| (text.clone(), text));
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let new = of_servers.chain(unconfined);
        let new = new.filter(|(key, _)| reported.insert(key.clone()));
        new.map(|(_, text)| text).collect()
    }

    /// A warning about servers whose programs run without a part of their sandbox.
    fn unconfined(&self) -> Option<String> {
        let lack = |server: &Arc<Server>| {
            let lack = server.with(|state| state.unconfined.clone())?;
            Some((server.config.name.clone(), lack))
        };
        let lacking: Vec<(String, String)> = self.all().iter().filter_map(lack).collect();
        let (_, lack) = lacking.first()?;
        let names: Vec<&str> = lacking.iter().map(|(name, _)| name.as_str()).collect();
        Some(format!(
            "The programs of these MCP servers run without the complete OS sandbox: {}. The reason: {lack}. \
             `[tools.shell.sandbox] mode = \"required\"` refuses to start them",
            names.join(", ")
        ))
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The longest time until the first attempt to connect has ended. A failure arrives after the connection timeout.
fn longest_wait(server: &Server) -> Duration {
    server.config.connect_timeout() + MARGIN
}

/// The notice about the state of a server, after a key that is the same for the same reason; `None` if there is nothing to
/// report.
fn notice(server: &Server) -> Option<(String, String)> {
    let name = &server.config.name;
    let (phase, open) = server.with(|state| {
        let open = state.tools.iter();
        let open = open.filter(|known| known.standing != ToolTrust::Approved);
        (state.phase.clone(), open.count())
    });
    let text = match &phase {
        Phase::Connected if open == 0 => return None,
        Phase::Connected => format!(
            "MCP server {name}: {} not approved, and not available; `zeph mcp approve {name}` \
             shows {}",
            counted_as(open, "tool is", "tools are"),
            if open == 1 { "it" } else { "them" },
        ),
        phase => format!("MCP server {name}: {}", told(phase)),
    };
    let key = match phase {
        Phase::Waiting { why, .. } => format!("{name}: {why}"),
        _ => text.clone(),
    };
    Some((key, text))
}

/// The state of a server as text.
pub(crate) fn told(phase: &Phase) -> String {
    match phase {
        Phase::Connecting => "connecting".to_owned(),
        Phase::Connected => "connected".to_owned(),
        Phase::Waiting { until, why } => {
            let left = until.saturating_duration_since(Instant::now());
            format!("restarting in {} s: {why}", left.as_millis().div_ceil(1000))
        }
        Phase::Failed { why } => format!("failed: {why}"),
    }
}
