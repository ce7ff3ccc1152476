//! The tools of an agent, and the state of their calls in the session.
//!
//! Calls go one way: the turn passes a [`Batch`] to [`ToolRunner::run_batch`], `dispatch` runs one call, and `confirm` asks the user.

pub(crate) mod attachments;
mod batch;
pub(crate) mod caller;
mod confirm;
pub(crate) mod dispatch;
pub(in crate::agent) mod file_attachments;
mod loaded_skills;
pub(crate) mod mode;
mod permissions;
pub(in crate::agent) mod sampling;
pub(crate) mod undo;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zeph_llm::Message;
use zeph_memory::StoredMessage;
use zeph_tools::cache::ResultCaches;
use zeph_tools::gate::CallLimits;
use zeph_tools::gate::anomaly::Rate;
use zeph_tools::layers::grants::ActiveGrant;
use zeph_tools::{
    Availability, ErasedToolExecutor, Permissions, ResultFormat, ToolCall, ToolDef, ToolRegistry,
    Undo, content_for_llm,
};

use super::CommandOutput;
use super::history::HistoryError;
use super::session::Session;
use super::user_command;
use crate::mcp_port::ToolServers;
use crate::native::skills::SkillCatalog;
pub(super) use batch::Batch;
use dispatch::Dispatcher;
use loaded_skills::loaded_skills;

/// The output of the commands about MCP servers if none is configured.
pub const NO_SERVER: &str = "no MCP server is configured or enabled; [[mcp.servers]] names them";

/// Runs the calls of a session, and holds the state that their gates share.
pub(super) struct ToolRunner {
    pub(super) executor: Arc<dyn ErasedToolExecutor>,
    pub(super) dispatcher: Dispatcher,
    pub(super) limits: CallLimits,
    pub(super) caches: Option<Arc<ResultCaches>>,
    pub(super) permissions: Permissions,
    /// The last output of `/permissions`: the grants by number.
    pub(super) listed: Vec<ActiveGrant>,
    pub(super) skills: SkillCatalog,
    pub(super) servers: Option<Arc<dyn ToolServers>>,
    pub(super) undo: Arc<dyn Undo>,
    pub(super) result_format: ResultFormat,
    /// The window of the conversation that contains the results in the cache.
    pub(super) window: Uuid,
}

/// The id of a call that the user makes, not the model.
pub(in crate::agent) fn user_call_id() -> String {
    format!("user_{}", uuid::Uuid::new_v4().simple())
}

impl ToolRunner {
    /// The current tools.
    pub(super) fn registry(&self) -> ToolRegistry {
        ToolRegistry::new(self.executor.tool_definitions_erased())
    }

    /// The tools of `registry`, and those that became available since. Tools of MCP servers arrive during a turn. No tool is
    /// removed, so that consecutive requests share a prefix.
    pub(super) fn with_later_tools(&self, registry: ToolRegistry) -> ToolRegistry {
        let is_later = |def: &ToolDef| match registry.get(&def.id) {
            None => true,
            Some(known) => {
                known.offered == Availability::NotNow && def.offered != Availability::NotNow
            }
        };
        let mut later = self.executor.tool_definitions_erased();
        later.retain(is_later);
        if later.is_empty() {
            return registry;
        }
        let mut tools = registry.tools().to_vec();
        tools.retain(|def| later.iter().all(|new| new.id != def.id));
        tools.extend(later);
        ToolRegistry::new(tools)
    }

    /// Runs a command of the user, and adds its output to the conversation.
    pub(super) async fn run_user_command(
        &self,
        session: &mut Session,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<(), HistoryError> {
        let call = ToolCall::new(
            user_call_id(),
            "bash",
            serde_json::json!({ "command": command }),
            session.id(),
        );
        let result = self.dispatcher.run_typed_command(&call, cancel).await;
        // The gate does not see this call.
        if let Some(utility) = &self.limits.utility {
            utility.files_changed();
        }
        let text = user_command::message_text(command, &content_for_llm(&result));
        session.history.push(Message::user(text), None).await?;
        Ok(())
    }

    /// Drops cached results after the window of the conversation has changed, because the window does not contain
    /// their text.
    pub(super) fn follow_window(&mut self, session: &Session) {
        if self.window == session.history.id() {
            return;
        }
        self.window = session.history.id();
        if let Some(caches) = &self.caches {
            caches.clear(session.id());
        }
        if let Some(utility) = &self.limits.utility {
            utility.forget(session.id());
        }
    }

    /// Removes the state of calls that `/clear` ends: cached results, approvals for the session, loaded skills and completed
    /// dependencies.
    pub(super) fn clear(&mut self, session: &Session) {
        self.follow_window(session);
        self.permissions.grants.clear(session.id());
        self.skills.skills.forget(session.id());
        if let Some(dependencies) = &self.limits.dependencies {
            dependencies.forget(session.id());
        }
    }

    /// Removes the state of calls that are no longer part of the conversation: cached results, and
    /// skills that only those calls loaded. `retained` are the messages of the conversation.
    pub(super) fn rewound(&mut self, session: &Session, retained: &[StoredMessage]) {
        self.follow_window(session);
        if let Some(utility) = &self.limits.utility {
            utility.files_changed();
        }
        self.skills.skills.forget(session.id());
        self.record_loaded_skills(session.id(), retained);
    }

    /// Records the skills that calls in `messages` loaded. An unknown skill, such as one that was
    /// removed since, is untrusted.
    pub(super) fn record_loaded_skills(&self, session: &str, messages: &[StoredMessage]) {
        let skills = &self.skills.skills;
        for name in loaded_skills(messages) {
            match name.and_then(|name| skills.get(&name)) {
                Some(skill) => skills.note_read(session, skill),
                None => skills.note_untrusted(session),
            }
        }
    }

    /// The output of `/tools`.
    pub(super) fn listing(&self, session: &str) -> String {
        let registry = self.registry();
        let lines: Vec<_> = registry
            .tools()
            .iter()
            .map(|def| match self.blocked_rate(session, &def.id) {
                Some(rate) => format!(
                    "{:<18} [blocked: {rate}; /tools unblock {} lets it run again] {}",
                    def.id, def.id, def.description
                ),
                None => format!("{:<18} {}", def.id, def.description),
            })
            .collect();
        lines.join("\n")
    }

    /// The failure rate of a blocked tool; `None` if the tool is not blocked.
    fn blocked_rate(&self, session: &str, tool: &str) -> Option<Rate> {
        let anomalies = self.limits.anomalies.as_ref()?;
        anomalies.blocked(session, tool)
    }

    /// Unblocks a tool that failed too often.
    pub(super) fn unblock(&self, session: &str, tool: &str) -> CommandOutput {
        let anomalies = self.limits.anomalies.as_ref();
        if anomalies.is_some_and(|anomalies| anomalies.unblock(session, tool)) {
            return Ok(format!("{tool} runs again."));
        }
        Err(format!(
            "{tool} is not blocked; {}",
            self.blocked_hint(session)
        ))
    }

    /// A sentence that lists the blocked tools.
    pub(super) fn blocked_hint(&self, session: &str) -> String {
        let anomalies = self.limits.anomalies.as_ref();
        let blocked = anomalies.map(|anomalies| anomalies.all_blocked(session));
        let blocked: Vec<String> = blocked
            .into_iter()
            .flatten()
            .map(|(tool, _)| tool)
            .collect();
        match blocked.as_slice() {
            [] => "no tool is blocked".to_owned(),
            blocked => format!("/tools unblock NAME takes one of: {}", blocked.join(", ")),
        }
    }

    /// Waits for the first answer of the MCP servers, before a command shows their state.
    pub(super) async fn wait_for_servers(&self) {
        if let Some(servers) = &self.servers {
            servers.wait().await;
        }
    }

    /// The output of `/mcp`.
    pub(super) fn server_listing(&self) -> String {
        match &self.servers {
            Some(servers) => servers.listing(),
            None => NO_SERVER.to_owned(),
        }
    }

    /// Approves the tools of a server that were shown (`yes`), or shows the tools to approve.
    pub(super) fn approve_server(&self, server: &str, yes: bool) -> CommandOutput {
        let servers = self.servers.as_ref().ok_or(NO_SERVER)?;
        match yes {
            true => servers.agree(server),
            false => servers.propose(server),
        }
    }
}
