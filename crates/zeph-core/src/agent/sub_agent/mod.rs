//! Sub-agents: a call of `task` runs a prompt in a session of its own, with the stack of the parent.
//!
//! `tools` limits the stack, `channel` shows the steps and passes questions on, and `parent` counts the costs.

mod channel;
mod parent;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use zeph_llm::LlmProvider;
use zeph_llm::traced::SpanContent;
use zeph_memory::{Store, new_session_id};
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::cache::ResultCaches;
use zeph_tools::gate::CallLimits;
use zeph_tools::permission_mode::SessionMode;
use zeph_tools::tafc::TafcConfig;
use zeph_tools::{
    CallContext, ErasedToolExecutor, Mode, Permissions, Phase, ResultFormat, ToolCall, ToolError,
    ToolOutput, ToolRegistry, ToolResult, Undo,
};

pub use parent::ParentAgent;

use self::channel::SubAgentChannel;
use self::tools::SubAgentTools;
use super::builder::AgentBuilder;
use super::compact::Compressor;
use super::limits::IterationPolicy;
use super::outcome::{TurnEnd, TurnOutcome};
use crate::channel::Channel;
use crate::config::AgentConfig;
use crate::embedding::Embedder;
use crate::native::skills::SkillCatalog;
use crate::native::task::TASK;
use crate::reload::ConfigReload;
use crate::spending::{AuxiliaryUsage, Spending};
use crate::sub_agent_port::{SubAgentRequest, SubAgentStarter};
use crate::sub_agents::{SubAgent, SubAgents};

/// The maximum rounds of calls of a sub-agent without a value of its own.
const MAX_ITERATIONS: usize = 30;
/// The key of this maximum.
const MAX_KEY: &str = "max_iterations";

/// Starts the sub-agents of one conversation.
pub(super) struct SubAgentHost {
    pub(super) agents: SubAgents,
    pub(super) config: AgentConfig,
    pub(super) iterations: IterationPolicy,
    pub(super) tafc: TafcConfig,
    pub(super) provider: Arc<dyn LlmProvider>,
    pub(super) result_format: ResultFormat,
    pub(super) reformatter: Option<Arc<dyn ArgumentRepairer>>,
    pub(super) compressor: Compressor,
    pub(super) embedder: Option<Embedder>,
    pub(super) stack: Arc<dyn ErasedToolExecutor>,
    /// The channel of the parent, which withholds secrets.
    pub(super) channel: Arc<dyn Channel>,
    pub(super) undo: Arc<dyn Undo>,
    pub(super) caches: Option<Arc<ResultCaches>>,
    pub(super) limits: CallLimits,
    pub(super) side_usage: Arc<AuxiliaryUsage>,
    pub(super) permissions: Permissions,
    pub(super) instructions: String,
    pub(super) store: Store,
    /// The session of the parent.
    pub(super) session: String,
    pub(super) project: PathBuf,
    pub(super) reload: Option<Arc<dyn ConfigReload>>,
    pub(super) span_content: SpanContent,
    /// Only one question of the parent and its sub-agents is open at a time.
    pub(super) asking: Arc<Mutex<()>>,
}

impl SubAgentHost {
    /// Whether a call is one of `task` whose sub-agent only reads, so that it can run concurrently with others.
    pub(super) fn is_read_only(&self, tool: &str, params: &Value) -> bool {
        let name = params.get("agent").and_then(Value::as_str);
        tool == TASK
            && self
                .agents
                .find(name)
                .is_ok_and(|agent| self.mode_of(agent) == Mode::Plan)
    }

    /// The mode of a sub-agent, which is never less restrictive than that of the parent.
    fn mode_of(&self, agent: &SubAgent) -> Mode {
        let current = self.permissions.mode.get();
        agent.mode.map_or(current, |mode| mode.min(current))
    }

    /// The rounds of calls, which have no check-in.
    fn iterations_of(&self, agent: &SubAgent) -> IterationPolicy {
        let most = agent.max_iterations.unwrap_or(MAX_ITERATIONS);
        let most = most.min(self.iterations.max_unattended);
        IterationPolicy {
            check_in: most.saturating_add(1),
            max_unattended: most,
            max_key: MAX_KEY,
        }
    }

    fn provider_of(&self, agent: &SubAgent) -> Result<Arc<dyn LlmProvider>, ToolError> {
        match &agent.model {
            None => Ok(Arc::clone(&self.provider)),
            Some(name) => self.agents.models.provider(name).map_err(|reason| {
                let agent = &agent.name;
                ToolError::permanent(format!("the model of the agent {agent}: {reason}"))
            }),
        }
    }

    /// The parts of a sub-agent in the session `id`.
    fn builder(
        &self,
        agent: &SubAgent,
        provider: Arc<dyn LlmProvider>,
        spent: Spending,
        id: &str,
        call: &ToolCall,
        cx: &CallContext,
    ) -> AgentBuilder {
        let mode = self.mode_of(agent);
        let tools = SubAgentTools {
            stack: Arc::clone(&self.stack),
            registry: ToolRegistry::new(self.stack.tool_definitions_erased()),
            agent: agent.clone(),
            mode,
            trust: cx.trace().trust,
        };
        let channel = SubAgentChannel {
            parent: Arc::clone(&self.channel),
            call: call.id.clone(),
            name: agent.name.clone(),
            asking: Arc::clone(&self.asking),
        };
        AgentBuilder {
            config: self.config.clone(),
            iterations: self.iterations_of(agent),
            tafc: self.tafc.clone(),
            provider,
            result_format: self.result_format,
            reformatter: self.reformatter.clone(),
            compressor: self.compressor.clone(),
            embedder: self.embedder.clone(),
            executor: Arc::new(tools),
            channel: Arc::new(channel),
            undo: Arc::clone(&self.undo),
            caches: self.caches.clone(),
            limits: self.limits.clone(),
            side_usage: Arc::default(),
            permissions: Permissions {
                mode: SessionMode::new(mode),
                ..self.permissions.clone()
            },
            more_status: Vec::new(),
            instructions: self.instructions.clone() + &own_instructions(agent),
            skills: SkillCatalog::default(),
            hooks: None,
            servers: None,
            sub_agents: None,
            parent: Some(ParentAgent {
                name: agent.name.clone(),
                session: self.session.clone(),
                batch: call.batch.clone(),
                spent,
                usage: Arc::clone(&self.side_usage),
            }),
            store: self.store.clone(),
            session: id.to_owned(),
            project: self.project.clone(),
            caller_id: Some(caller_id(call.caller_id.as_deref(), &agent.name)),
            phase: match call.phase {
                Phase::Autonomous => Phase::Autonomous,
                // The mode of the sub-agent decides about `Planner`.
                Phase::Planner | Phase::Executor | Phase::Verifier => Phase::Executor,
            },
            reload: self.reload.clone(),
            response_schema: None,
            span_content: self.span_content,
        }
    }
}

#[async_trait]
impl SubAgentStarter for SubAgentHost {
    async fn run(&self, request: SubAgentRequest, call: &ToolCall, cx: &CallContext) -> ToolResult {
        let agent = self.agents.find(request.agent.as_deref());
        let agent = agent.map_err(|reason| ToolError::invalid(format!("/agent: {reason}")))?;
        let provider = self.provider_of(agent)?;
        let stored = |error: &dyn std::fmt::Display| {
            ToolError::permanent(format!("the session of the sub-agent: {error}"))
        };
        let id = new_session_id();
        let made = self
            .store
            .create_sub_session(&id, &self.session, &self.project);
        made.await.map_err(|error| stored(&error))?;
        let spent = self.store.spending(&self.session).await;
        let spent = Spending::of_stored(spent.map_err(|error| stored(&error))?);
        let built = self.builder(agent, provider, spent, &id, call, cx).build();
        let mut sub_agent = built.await.map_err(|error| stored(&error))?;
        let outcome = sub_agent.run_turn(&request.prompt, &cx.cancel).await;
        sub_agent.forget_calls();
        // A concurrent sub-agent sets the same trust.
        self.stack.set_effective_trust_erased(cx.trace().trust);
        result_of(&agent.name, &id, outcome)
    }
}

/// The system instructions of a sub-agent, after those of the project.
fn own_instructions(agent: &SubAgent) -> String {
    format!(
        "\n# Your task\n\n\
         You are the sub-agent `{}`: another agent gave you the prompt. It receives only your last text, so this text must contain every result. You cannot ask questions.\n{}\n",
        agent.name, agent.instructions
    )
}

/// The caller of the calls of a sub-agent.
fn caller_id(parent: Option<&str>, agent: &str) -> String {
    match parent {
        Some(parent) => format!("{parent}/{TASK}:{agent}"),
        None => format!("{TASK}:{agent}"),
    }
}

/// The result of the call whose sub-agent had this turn.
fn result_of(agent: &str, session: &str, outcome: TurnOutcome) -> ToolResult {
    let TurnOutcome {
        end,
        text,
        iterations,
        message,
        ..
    } = outcome;
    let raw =
        json!({ "agent": agent, "session": session, "stop_reason": end, "iterations": iterations });
    let text = match text.trim().is_empty() {
        true => "the sub-agent returned no text".to_owned(),
        false => text,
    };
    let message = message.unwrap_or_default();
    match end {
        TurnEnd::Done => Ok(ToolOutput::text(text).with_raw(raw)),
        TurnEnd::IterationCap => {
            let note = format!(
                "{text}\n\n[the sub-agent stopped after {iterations} rounds of calls, its limit ({MAX_KEY})]"
            );
            Ok(ToolOutput::text(note).with_raw(raw))
        }
        TurnEnd::Cancelled => Err(ToolError::cancelled()),
        TurnEnd::DoomLoop
        | TurnEnd::ContextBudget
        | TurnEnd::Quota
        | TurnEnd::Budget
        | TurnEnd::Refused
        | TurnEnd::Error => Err(ToolError::permanent(format!(
            "the sub-agent {agent}: {message}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-12: the end of the sub-agent is the outcome of the call.
    #[test]
    fn outcome_of_a_sub_agent_is_the_result_of_its_call() {
        let result = |end, text: &str| {
            let outcome = TurnOutcome {
                end,
                text: text.to_owned(),
                message: Some("why".to_owned()),
                iterations: 3,
                ..TurnOutcome::new()
            };
            result_of("explore", "s", outcome)
        };
        assert_eq!(result(TurnEnd::Done, "found").unwrap().summary, "found");
        let capped = result(TurnEnd::IterationCap, "so far").unwrap().summary;
        assert!(capped.starts_with("so far\n") && capped.contains("after 3 rounds"));
        assert!(matches!(
            result(TurnEnd::Cancelled, ""),
            Err(ToolError::Cancelled { .. })
        ));
        for end in [TurnEnd::Budget, TurnEnd::Error, TurnEnd::Refused] {
            let error = result(end, "partial").unwrap_err().to_string();
            assert!(error.contains("explore: why"), "{error}");
        }
        assert_eq!(caller_id(None, "explore"), "task:explore");
        assert_eq!(
            caller_id(Some("scheduler:1"), "explore"),
            "scheduler:1/task:explore"
        );
    }
}
