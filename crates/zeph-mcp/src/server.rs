//! The life cycle of one server: connect, list, follow, and restart after a failure.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use zeph_tools::{McpError, McpErrorCode};

use crate::config::McpServerConfig;
use crate::connection::{
    Address, Connection, Lifecycle, Link, OpenError, ServerPrompt, ServerResource,
};
use crate::failure::About;
use crate::sanitize::line;
use crate::tool::{ListedTool, RefusedTool, listed};
use crate::trust::{Pin, ToolTrust, TrustStore, standing};

/// After the first failure; each that follows doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// A connection of this duration counts as stable: it resets the count of failures.
const SOUND: Duration = Duration::from_secs(30);
/// The number of failures in a row after which no further attempt follows.
const MAX_FAILURES: u32 = 8;
/// The minimum time between two requests for a server's list of tools.
const BETWEEN_LISTS: Duration = Duration::from_millis(200);
/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 300;

/// A port that opens the transport to servers: it starts programs, and resolves URLs and headers.
#[async_trait]
pub trait McpTransport: Send + Sync {
    /// The address of `server`; a program runs by then.
    ///
    /// # Errors
    /// The reason why the server cannot be reached. No further attempt follows.
    async fn dial(&self, server: &McpServerConfig) -> Result<Address, String>;
}

/// The connection state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It is being connected to.
    Connecting,
    /// It is connected.
    Connected,
    /// It died or did not respond; the next attempt is at that moment.
    Waiting {
        /// The time of the next attempt.
        until: Instant,
        /// Why.
        why: String,
    },
    /// It is not tried again.
    Failed {
        /// Why.
        why: String,
    },
}

/// A tool with the user's trust in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    pub(crate) tool: ListedTool,
    pub(crate) standing: ToolTrust,
}

/// The present state of a server.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The tools of its last list; they are available while it is connected. Before the first list, these are the tools that
    /// the user approved earlier: requests offer them, and their calls wait for the connection.
    pub(crate) tools: Vec<Known>,
    /// Those that are not used.
    pub(crate) refused: Vec<RefusedTool>,
    pub(crate) prompts: Vec<ServerPrompt>,
    pub(crate) resources: Vec<ServerResource>,
    pub(crate) link: Option<Arc<Link>>,
    /// The part of the sandbox of its program that is not enforced.
    pub(crate) unconfined: Option<String>,
}

/// One server.
pub(crate) struct Server {
    pub(crate) config: McpServerConfig,
    /// The start of the first attempt to connect.
    pub(crate) began: Instant,
    state: Mutex<State>,
    pins: Arc<dyn TrustStore>,
    lists_changed: Arc<Notify>,
    /// Counts the changes of state.
    news: watch::Sender<u64>,
}

impl Server {
    pub(crate) fn new(
        config: McpServerConfig,
        pins: Arc<dyn TrustStore>,
        news: watch::Sender<u64>,
    ) -> Self {
        let tools = approved_before(&config, pins.as_ref());
        Self {
            config,
            began: Instant::now(),
            state: Mutex::new(State {
                phase: Phase::Connecting,
                tools,
                refused: Vec::new(),
                prompts: Vec::new(),
                resources: Vec::new(),
                link: None,
                unconfined: None,
            }),
            pins,
            lists_changed: Arc::default(),
            news,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the present state.
    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    /// Reads its state without a copy.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.lock())
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.news.send_modify(|count| *count += 1);
    }

    /// Reports the failure of the last attempt instead of the time of the next one.
    pub(crate) fn give_up(&self) {
        self.set(|state| {
            if let Phase::Waiting { why, .. } = &state.phase {
                state.phase = Phase::Failed { why: why.clone() };
            }
        });
    }

    /// Whether the first attempt to connect has ended.
    pub(crate) fn is_settled(&self) -> bool {
        self.with(|state| state.phase != Phase::Connecting)
    }

    /// Waits while the first attempt to connect runs.
    pub(crate) async fn settle(&self, limit: Duration) {
        let mut news = self.news.subscribe();
        let settled = news.wait_for(|_| self.is_settled());
        let _ = timeout(limit, settled).await;
    }

    /// Reads the approvals of the user again.
    pub(crate) fn look_at_pins(&self) -> std::io::Result<()> {
        let agreed = self.pins.of(&self.config.name)?;
        self.set(|state| {
            for known in &mut state.tools {
                known.standing = standing(&known.tool.pin, &agreed);
            }
        });
        Ok(())
    }

    /// Lives until `stop`.
    pub(crate) async fn live(
        self: Arc<Self>,
        dial: Arc<dyn McpTransport>,
        stop: CancellationToken,
    ) {
        let mut failures = 0;
        let mut lifecycle = Lifecycle::Probe;
        loop {
            let began = Instant::now();
            let ended = tokio::select! {
                ended = self.once(dial.as_ref(), lifecycle) => ended,
                () = stop.cancelled() => return self.end("it was stopped with the program"),
            };
            let name = &self.config.name;
            let (why, for_good) = match ended {
                Ended::Legacy if lifecycle == Lifecycle::Probe => {
                    lifecycle = Lifecycle::Handshake;
                    continue;
                }
                Ended::Legacy => ("it does not name the protocol revision".to_owned(), true),
                Ended::Closed(why) => {
                    failures = match began.elapsed() >= SOUND {
                        true => 1,
                        false => failures + 1,
                    };
                    (why, false)
                }
                Ended::NotReached(why) => (why, true),
                Ended::Failed(error) => {
                    failures += 1;
                    let for_good = error.code() == McpErrorCode::AuthFailure;
                    (reason(&error), for_good)
                }
            };
            // The reason may be the kind of the attempt.
            lifecycle = Lifecycle::Probe;
            let why = line(&why, MAX_REASON_CHARS);
            if for_good || failures >= MAX_FAILURES {
                tracing::warn!(server = %name, "an MCP server failed: {why}");
                return self.end(&why);
            }
            let wait = backoff(failures);
            tracing::info!(server = %name, ?wait, "an MCP server restarts: {why}");
            self.set(|state| {
                state.link = None;
                state.phase = Phase::Waiting {
                    until: Instant::now() + wait,
                    why,
                };
            });
            tokio::select! {
                () = sleep(wait) => {}
                () = stop.cancelled() => return self.end("it was stopped with the program"),
            }
        }
    }

    fn end(&self, why: &str) {
        self.set(|state| {
            if let Some(link) = state.link.take() {
                link.closed.cancel();
            }
            state.phase = Phase::Failed {
                why: why.to_owned(),
            };
        });
    }

    /// Connects and follows the server until the connection ends.
    async fn once(&self, dial: &dyn McpTransport, lifecycle: Lifecycle) -> Ended {
        let limit = self.config.connect_timeout();
        let about = self.about();
        let address = match timeout(limit, dial.dial(&self.config)).await {
            Ok(Ok(address)) => address,
            Ok(Err(why)) => return Ended::NotReached(why),
            Err(_) => return Ended::Failed(about.timeout(limit)),
        };
        let unconfined = match &address {
            Address::Program(program) => program.unconfined.clone(),
            Address::Url(_) => None,
        };
        let connected = async {
            let changed = Arc::clone(&self.lists_changed);
            let opened = Link::open(&self.config, address, lifecycle, changed).await;
            let (link, connection) = opened.map_err(Ended::from)?;
            let link = Arc::new(link);
            self.list(&link).await.map_err(Ended::Failed)?;
            Ok((link, connection))
        };
        let (link, connection) = match timeout(limit, connected).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(ended)) => return ended,
            Err(_) => return Ended::Failed(about.timeout(limit)),
        };
        self.set(|state| {
            state.link = Some(Arc::clone(&link));
            state.unconfined = unconfined;
            state.phase = Phase::Connected;
        });
        let why = self.follow(&link, connection).await;
        link.closed.cancel();
        Ended::Closed(why)
    }

    /// Updates the list of tools until the connection is closed.
    async fn follow(&self, link: &Link, connection: Connection) -> String {
        let closed = connection.closed();
        tokio::pin!(closed);
        loop {
            tokio::select! {
                why = &mut closed => return why,
                () = self.lists_changed.notified() => {}
            }
            let limit = self.config.connect_timeout();
            let listed = tokio::select! {
                why = &mut closed => return why,
                listed = timeout(limit, self.list(link)) => listed,
            };
            match listed {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return reason(&error),
                Err(_) => return reason(&self.about().timeout(limit)),
            }
            // Limits the rate of lists, even if the server reports changes without end.
            tokio::select! {
                why = &mut closed => return why,
                () = sleep(BETWEEN_LISTS) => {}
            }
        }
    }

    fn about(&self) -> About<'_> {
        About {
            server: &self.config.name,
            tool: None,
        }
    }

    /// Requests its lists, and checks the tools.
    async fn list(&self, link: &Link) -> Result<(), McpError> {
        let (tools, prompts, resources) =
            tokio::join!(link.tools(self.about()), link.prompts(), link.resources());
        let (raw, more) = tools?;
        let agreed = self.pins.of(&self.config.name).unwrap_or_else(|error| {
            tracing::warn!(server = %self.config.name, %error, "its approvals cannot be read");
            Vec::new()
        });
        let (tools, mut refused) = checked(&self.config, &raw, &agreed);
        if more {
            refused.push(RefusedTool {
                name: "more".to_owned(),
                reason: format!("only the first {} tools are used", raw.len()),
            });
        }
        self.set(|state| {
            state.tools = tools;
            state.refused = refused;
            state.prompts = prompts;
            state.resources = resources;
        });
        Ok(())
    }
}

/// How a try ended.
enum Ended {
    /// The connection was open and ended.
    Closed(String),
    /// The transport could not be opened.
    NotReached(String),
    /// It did not become a connection.
    Failed(McpError),
    /// The server needs the handshake of earlier revisions.
    Legacy,
}

impl From<OpenError> for Ended {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Failed(error) => Self::Failed(error),
            OpenError::Refused(why) => Self::NotReached(why),
            OpenError::Legacy => Self::Legacy,
        }
    }
}

/// The text of a failure without the server's name, which the caller adds.
fn reason(error: &McpError) -> String {
    match error {
        McpError::Connection { message, .. }
        | McpError::Auth { message, .. }
        | McpError::Protocol { message, .. }
        | McpError::ToolCall { message, .. } => message.clone(),
        McpError::Timeout { limit, .. } => format!("it did not respond within {limit:?}"),
        other => other.to_string(),
    }
}

/// The wait after this number of failures in a row.
fn backoff(failures: u32) -> Duration {
    let factor = 2u32.saturating_pow(failures.saturating_sub(1));
    FIRST_WAIT.saturating_mul(factor).min(MAX_WAIT)
}

/// The tools that the user approved earlier, by their stored definitions.
fn approved_before(config: &McpServerConfig, pins: &dyn TrustStore) -> Vec<Known> {
    // Pins that cannot be read are reported with the first list.
    let agreed = pins.of(&config.name).unwrap_or_default();
    let definitions = agreed.iter().filter_map(|pin| pin.definition.clone());
    let (mut tools, _) = checked(config, &definitions.collect::<Vec<_>>(), &agreed);
    tools.retain(|known| known.standing == ToolTrust::Approved);
    tools
}

/// The tools of a list, checked: which can be used, and which not.
fn checked(
    config: &McpServerConfig,
    raw: &[serde_json::Value],
    agreed: &[Pin],
) -> (Vec<Known>, Vec<RefusedTool>) {
    let mut tools: Vec<Known> = Vec::new();
    let mut refused = Vec::new();
    for raw in raw {
        match listed(config, raw) {
            Err(tool) => refused.push(tool),
            Ok(tool) => match tools.iter().find(|known| known.tool.def.id == tool.def.id) {
                Some(first) => refused.push(RefusedTool {
                    reason: format!(
                        "it would have the name {}, which {} has",
                        tool.def.id,
                        line(&first.tool.name, 64)
                    ),
                    name: line(&tool.name, 64),
                }),
                None => {
                    let standing = standing(&tool.pin, agreed);
                    tools.push(Known { tool, standing });
                }
            },
        }
    }
    (tools, refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves MCP-1.
    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = (1..=8)
            .map(|n| u64::try_from(backoff(n).as_millis()).unwrap())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000]);
        assert_eq!(backoff(u32::MAX), MAX_WAIT);
    }

    /// Proves MCP-1, MCP-1a: before the connection, a server has the approved tools whose stored definition has the approved
    /// hash.
    #[test]
    fn approved_tools_are_known_before_the_connection() {
        struct Pins(Vec<Pin>);
        impl TrustStore for Pins {
            fn of(&self, _server: &str) -> std::io::Result<Vec<Pin>> {
                Ok(self.0.clone())
            }

            fn put(&self, _server: &str, _pins: &[Pin]) -> std::io::Result<()> {
                Ok(())
            }
        }
        let config: McpServerConfig =
            serde_json::from_str(r#"{"name": "s", "command": "x"}"#).unwrap();
        let raw = |name: &str| json!({"name": name, "description": "Does it.", "inputSchema": {"type": "object"}});
        let tool = |name: &str| listed(&config, &raw(name)).unwrap();
        let mut forged = tool("forged").pin;
        forged.definition = tool("other").pin.definition;
        let old = Pin {
            definition: None,
            ..tool("old").pin
        };
        let pins = Pins(vec![tool("kept").pin, forged, old]);
        let known = approved_before(&config, &pins);
        let tools: Vec<&ListedTool> = known.iter().map(|known| &known.tool).collect();
        assert_eq!(tools, [&tool("kept")]);
    }

    /// Proves MCP-1: the second of two tools with the same id is refused with a reason.
    #[test]
    fn names_that_collide_are_refused() {
        let config = serde_json::from_str(r#"{"name": "s", "command": "x"}"#).unwrap();
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let raw = [tool("a.b"), tool("a_b"), tool("a.b"), json!(7), tool("c")];
        let (tools, refused) = checked(&config, &raw, &[]);
        let ids: Vec<&str> = tools.iter().map(|known| &*known.tool.def.id).collect();
        assert_eq!(ids, ["mcp_s_a_b", "mcp_s_c"]);
        let reasons: Vec<&str> = refused.iter().map(|tool| &*tool.reason).collect();
        let taken = "it would have the name mcp_s_a_b, which a.b has";
        assert_eq!(reasons, [taken, taken, "it has no name"]);
    }
}
