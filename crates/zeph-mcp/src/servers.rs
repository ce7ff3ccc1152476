//! All servers: concurrent start, bounded wait, status messages and approvals.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use zeph_tools::{Availability, McpError, ToolDef};

use crate::config::McpConfig;
use crate::connection::Link;
use crate::resource_tool;
use crate::sanitize::line;
use crate::server::{Known, McpTransport, Phase, Server};
use crate::trust::{Pin, ToolTrust, TrustStore, agreeing, shown};

/// The extra time until a connection that exceeds its timeout is marked as failed.
const MARGIN: Duration = Duration::from_secs(2);

/// The servers of the configuration.
pub struct McpServers {
    pub(crate) servers: Vec<Arc<Server>>,
    pins: Arc<dyn TrustStore>,
    start_wait: Duration,
    news: watch::Receiver<u64>,
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
    /// Starts connecting to all enabled servers concurrently, in the background. `None` if there are none: then
    /// nothing runs.
    #[must_use]
    pub fn start(
        config: &McpConfig,
        dial: Arc<dyn McpTransport>,
        pins: Arc<dyn TrustStore>,
    ) -> Option<Self> {
        let (sender, news) = watch::channel(0);
        let stop = CancellationToken::new();
        let enabled = config.servers.iter().filter(|server| server.enabled);
        let servers: Vec<_> = enabled
            .map(|config| {
                let pins = Arc::clone(&pins);
                Arc::new(Server::new(config.clone(), pins, sender.clone()))
            })
            .collect();
        if servers.is_empty() {
            return None;
        }
        for server in &servers {
            let server = Arc::clone(server);
            tokio::spawn(server.live(Arc::clone(&dial), stop.clone()));
        }
        Some(Self {
            servers,
            pins,
            start_wait: Duration::from_millis(config.start_wait_ms),
            news,
            stop,
        })
    }

    /// Waits until every server is connected or has failed, at most as long as the configuration says.
    pub async fn wait(&self) {
        self.wait_for(self.start_wait).await;
    }

    /// Waits until every server is connected or has failed, at most as long as the longest connection timeout.
    pub async fn wait_long(&self) {
        let longest = self
            .servers
            .iter()
            .map(|server| server.config.connect_timeout());
        let longest = longest.max().unwrap_or_default();
        // The failure itself arrives after the timeout.
        self.wait_for(longest + MARGIN).await;
    }

    async fn wait_for(&self, limit: Duration) {
        let mut news = self.news.clone();
        let settled = news.wait_for(|_| self.servers.iter().all(|server| server.is_settled()));
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

    /// The approved tools, without those of an id that an earlier server uses. Tools of servers that are not
    /// connected are left out.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDef> {
        let mut definitions = Vec::new();
        let mut ids = HashSet::new();
        let has_resources = |server: &Arc<Server>| {
            server.with(|state| state.link.as_ref().is_some_and(|link| link.has_resources()))
        };
        if self.servers.iter().any(has_resources) {
            definitions.push(resource_tool::definition());
        }
        for server in &self.servers {
            server.with(|state| {
                let offered = match state.link {
                    Some(_) => Availability::AtOnce,
                    None => Availability::NotNow,
                };
                let approved = state.tools.iter();
                let approved = approved.filter(|known| known.standing == ToolTrust::Approved);
                for known in approved {
                    if ids.insert(known.tool.def.id.clone()) {
                        definitions.push(known.tool.def.clone().offered(offered));
                    }
                }
            });
        }
        definitions
    }

    /// The connection and the tool for a call of `id`; `None` if no server has it.
    ///
    /// # Errors
    /// The reason why it cannot be called now.
    pub(crate) fn find(&self, id: &str) -> Result<Option<Found>, McpError> {
        for server in &self.servers {
            let found = server.with(|state| {
                let known = state.tools.iter().find(|known| known.tool.def.id == id)?;
                Some((known.clone(), state.link.clone(), state.phase.clone()))
            });
            let Some((known, link, phase)) = found else {
                continue;
            };
            let server_name = server.config.name.clone();
            if known.standing != ToolTrust::Approved {
                return Err(McpError::PolicyBlocked {
                    reason: format!(
                        "{id} is not agreed to; `/mcp approve {server_name}` shows it and lets it be called"
                    ),
                });
            }
            return match link {
                Some(link) => Ok(Some((Arc::clone(server), link, known))),
                None => Err(McpError::Connection {
                    server: server_name,
                    message: told(&phase),
                }),
            };
        }
        Ok(None)
    }

    /// The server of this name and its connection.
    ///
    /// # Errors
    /// [`McpError::ServerNotFound`], or the reason why it is not connected.
    pub(crate) fn link(&self, name: &str) -> Result<(Arc<Server>, Arc<Link>), McpError> {
        let server = self.server(name)?;
        let (link, phase) = server.with(|state| (state.link.clone(), state.phase.clone()));
        match link {
            Some(link) => Ok((Arc::clone(server), link)),
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
    fn server(&self, name: &str) -> Result<&Arc<Server>, McpError> {
        let mut servers = self.servers.iter();
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
        self.servers.iter().map(health).collect()
    }

    /// Messages for the user: unavailable servers, and tools that wait for approval.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for server in &self.servers {
            let name = &server.config.name;
            let (phase, open) = server.with(|state| {
                let open = state.tools.iter();
                let open = open.filter(|known| known.standing != ToolTrust::Approved);
                (state.phase.clone(), open.count())
            });
            match phase {
                Phase::Connected if open == 0 => {}
                Phase::Connected => notices.push(format!(
                    "MCP server {name}: {} not agreed to, and not offered; `zeph mcp approve {name}` shows {}",
                    count(open, "tool is", "tools are"),
                    if open == 1 { "it" } else { "them" },
                )),
                phase => notices.push(format!("MCP server {name}: {}", told(&phase))),
            }
        }
        notices
    }

    /// The text of `/mcp`: each server, its state, and its unavailable tools.
    #[must_use]
    pub fn listing(&self) -> String {
        let mut text = String::new();
        let mut ids: HashSet<String> = HashSet::new();
        for server in &self.servers {
            let state = server.state();
            let name = &server.config.name;
            let connected = state.link.is_some();
            let mut out = Vec::new();
            let mut usable = 0;
            for known in &state.tools {
                let id = known.tool.def.id.to_string();
                let shown = line(&known.tool.name, 64);
                match known.standing {
                    ToolTrust::Approved if !ids.insert(id) => {
                        out.push((shown, "another server has a tool of this id".to_owned()));
                    }
                    ToolTrust::Approved => usable += 1,
                    ToolTrust::New => out.push((shown, "not agreed to yet".to_owned())),
                    ToolTrust::Changed(_) => {
                        out.push((shown, "it changed since it was agreed to".to_owned()));
                    }
                }
            }
            let open = out.iter().filter(|(_, why)| why.contains("agreed")).count();
            out.extend(
                state
                    .refused
                    .into_iter()
                    .map(|tool| (tool.name, tool.reason)),
            );
            let mut tools = String::new();
            if connected {
                tools = format!(", {}", count(usable, "tool", "tools"));
                for (n, one, more) in [
                    (state.prompts.len(), "prompt", "prompts"),
                    (state.resources.len(), "resource", "resources"),
                ] {
                    if n > 0 {
                        tools.push_str(&format!(", {}", count(n, one, more)));
                    }
                }
            }
            wrapped(
                &mut text,
                &format!("{name}: {}{tools}", told(&state.phase)),
                2,
            );
            for (tool, why) in out {
                let tool = if tool.is_empty() { "a tool" } else { &tool };
                wrapped(&mut text, &format!("  {tool} is out: {why}"), 6);
            }
            if open > 0 {
                wrapped(
                    &mut text,
                    &format!("  /mcp approve {name} shows what is not agreed to."),
                    6,
                );
            }
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The data of [`Self::listing`] as JSON.
    #[must_use]
    pub fn as_json(&self) -> serde_json::Value {
        let servers = self.servers.iter().map(|server| {
            let state = server.state();
            let tools = state.tools.iter().map(|known| {
                serde_json::json!({
                    "name": known.tool.name,
                    "id": known.tool.def.id,
                    "description": known.tool.def.description,
                    "standing": match known.standing {
                        ToolTrust::Approved => "approved",
                        ToolTrust::New => "new",
                        ToolTrust::Changed(_) => "changed",
                    },
                    "sha256": known.tool.pin.sha256,
                    "annotations": known.tool.def.annotations,
                })
            });
            let refused = state
                .refused
                .iter()
                .map(|tool| serde_json::json!({ "name": tool.name, "reason": tool.reason }));
            serde_json::json!({
                "name": server.config.name,
                "state": told(&state.phase),
                "connected": state.link.is_some(),
                "revision": state.link.as_ref().map(|link| link.revision.clone()),
                "tools": tools.collect::<Vec<_>>(),
                "prompts": state.prompts.iter().map(|prompt| &prompt.name).collect::<Vec<_>>(),
                "resources": state.resources.iter().map(|resource| serde_json::json!({
                    "uri": resource.uri,
                    "name": resource.name,
                })).collect::<Vec<_>>(),
                "refused": refused.collect::<Vec<_>>(),
            })
        });
        servers.collect()
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The state of a server as text.
fn told(phase: &Phase) -> String {
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

fn count(n: usize, one: &str, more: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {more}"),
    }
}

/// Adds `said` in lines of at most 80 characters; all lines except the first are indented.
fn wrapped(text: &mut String, said: &str, indent: usize) {
    const WIDTH: usize = 80;
    let start = said.len() - said.trim_start().len();
    let mut width = start;
    text.push_str(&said[..start]);
    let mut is_first = true;
    for word in said.split_whitespace() {
        let long = word.chars().count();
        if !is_first && width + 1 + long > WIDTH {
            let _ = write!(text, "\n{:indent$}", "");
            width = indent;
        } else if !is_first {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += long;
        is_first = false;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken() {
        let mut text = String::new();
        wrapped(&mut text, &format!("  {}", ["word"; 20].join(" ")), 6);
        let expect = format!(
            "  {}\n      {}\n",
            ["word"; 15].join(" "),
            ["word"; 5].join(" ")
        );
        assert_eq!(text, expect);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    /// Proves CMD-1.
    #[test]
    fn states_are_told_in_words() {
        let waiting = |secs: u64| Phase::Waiting {
            until: Instant::now() + Duration::from_millis(secs * 1000 - 300),
            why: "it died".to_owned(),
        };
        assert_eq!(told(&Phase::Connected), "connected");
        assert_eq!(told(&waiting(2)), "restarting in 2 s: it died");
        assert_eq!(count(1, "tool", "tools"), "1 tool");
        assert_eq!(count(0, "tool", "tools"), "0 tools");
    }
}
