//! Tools that need the success of other tools in the session (`[tools.dependencies]`).
//!
//! [`ToolDependencyGraph`] holds the rules. This module holds their inputs: the tools that succeeded (in a
//! [`CompletedTools`] store, which outlives the process), and the tools that the user named in this turn.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::dependency_graph::{DependencyExclusion, DependencyMode, ToolDependencyGraph};
use crate::error::ToolError;
use crate::schema_filter::{mentions, telling};

/// An error of the store of succeeded tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompletedError(pub String);

/// A store of the tools that succeeded in conversations.
#[async_trait]
pub trait CompletedTools: Send + Sync {
    /// Returns the tools that succeeded since the conversation began or was cleared.
    ///
    /// # Errors
    /// [`CompletedError`].
    async fn completed(&self, conversation: &str) -> Result<HashSet<String>, CompletedError>;

    /// Records that `tool` succeeded; the record is durable when this returns.
    ///
    /// # Errors
    /// [`CompletedError`].
    async fn complete(&self, conversation: &str, tool: &str) -> Result<(), CompletedError>;
}

/// The dependency gate: the rules and their inputs, for all sessions of a process.
pub struct Dependencies {
    graph: ToolDependencyGraph,
    mode: DependencyMode,
    always_on: Vec<String>,
    store: Arc<dyn CompletedTools>,
    sessions: Mutex<HashMap<String, Session>>,
}

#[derive(Default)]
struct Session {
    /// The succeeded tools; `None` until they are loaded.
    completed: Option<HashSet<String>>,
    /// The message of the user in this turn.
    query: String,
    /// Whether the warning that the rules leave no tool was returned in this turn.
    told: bool,
}

/// The tools of a set that may not be called yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockedTools {
    /// The locked tools and their unmet requirements.
    pub exclusions: Vec<DependencyExclusion>,
    /// A warning that the rules would lock all tools, so that they do not apply in this turn; returned once a
    /// turn.
    pub warning: Option<String>,
}

impl Dependencies {
    /// Creates the gate for the rules of `graph`; tools in `always_on` may always be called.
    #[must_use]
    pub fn new(
        graph: ToolDependencyGraph,
        mode: DependencyMode,
        always_on: Vec<String>,
        store: Arc<dyn CompletedTools>,
    ) -> Self {
        Self {
            graph,
            mode,
            always_on,
            store,
            sessions: Mutex::default(),
        }
    }

    /// Returns the rules.
    #[must_use]
    pub fn graph(&self) -> &ToolDependencyGraph {
        &self.graph
    }

    /// Whether locked tools are not offered to the model.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.mode == DependencyMode::Hide
    }

    /// Begins a turn: the tools that `query` names may be called until the next turn.
    pub fn begin_turn(&self, session: &str, query: &str) {
        let mut sessions = self.sessions();
        let state = sessions.entry(session.to_owned()).or_default();
        telling(query).clone_into(&mut state.query);
        state.told = false;
    }

    /// Resets the session: no tool has succeeded.
    pub fn forget(&self, session: &str) {
        self.sessions().insert(
            session.to_owned(),
            Session {
                completed: Some(HashSet::new()),
                ..Session::default()
            },
        );
    }

    /// Returns the succeeded tools in `session` that other tools depend on.
    ///
    /// # Errors
    /// [`CompletedError`] if the store cannot be read.
    pub async fn completed(&self, session: &str) -> Result<HashSet<String>, CompletedError> {
        let known = {
            let sessions = self.sessions();
            sessions
                .get(session)
                .and_then(|state| state.completed.clone())
        };
        if let Some(completed) = known {
            return Ok(completed);
        }
        let read = self.store.completed(session).await?;
        let mut sessions = self.sessions();
        let state = sessions.entry(session.to_owned()).or_default();
        let completed = state.completed.get_or_insert_default();
        completed.extend(read);
        Ok(completed.clone())
    }

    /// Returns the tools of `tools` that may not be called yet.
    ///
    /// # Errors
    /// [`CompletedError`] if the store cannot be read.
    pub async fn gated(
        &self,
        session: &str,
        tools: impl Iterator<Item = &str>,
    ) -> Result<LockedTools, CompletedError> {
        let completed = self.completed(session).await?;
        let mut sessions = self.sessions();
        let state = sessions.entry(session.to_owned()).or_default();
        let query = &state.query;
        let exempt =
            |tool: &str| self.always_on.iter().any(|id| id == tool) || mentions(query, tool);
        if let Some(exclusions) = self.graph.gated(tools, exempt, &completed) {
            return Ok(LockedTools {
                exclusions,
                warning: None,
            });
        }
        let first = !std::mem::replace(&mut state.told, true);
        Ok(LockedTools {
            exclusions: Vec::new(),
            warning: first.then(|| {
                "[tools.dependencies] would leave no tool, so its requirements are ignored in this \
                 turn; at least one tool needs an empty `requires`"
                    .to_owned()
            }),
        })
    }

    /// Checks that the requirements of `tool` are met. `tools` are all available tools.
    ///
    /// # Errors
    /// A refusal that names the unmet requirements, or the failure of the store.
    pub async fn check(
        &self,
        session: &str,
        tool: &str,
        tools: impl Iterator<Item = &str>,
    ) -> Result<(), ToolError> {
        let gated = self.gated(session, tools).await.map_err(|error| {
            ToolError::blocked(format!(
                "the tools that succeeded in this session, which [tools.dependencies] needs, \
                 cannot be read: {error}"
            ))
        })?;
        match gated.exclusions.into_iter().find(|one| one.tool == tool) {
            None => Ok(()),
            Some(exclusion) => Err(ToolError::blocked(unmet(&exclusion))),
        }
    }

    /// Records that `tool` succeeded.
    ///
    /// # Errors
    /// [`CompletedError`] if the success cannot be stored; then it does not count.
    pub async fn succeeded(&self, session: &str, tool: &str) -> Result<(), CompletedError> {
        if !self.graph.matters(tool) || self.completed(session).await?.contains(tool) {
            return Ok(());
        }
        self.store.complete(session, tool).await?;
        let mut sessions = self.sessions();
        let state = sessions.entry(session.to_owned()).or_default();
        let completed = state.completed.get_or_insert_default();
        completed.insert(tool.to_owned());
        Ok(())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the refusal message for the model and the user about a call before its requirements.
fn unmet(exclusion: &DependencyExclusion) -> String {
    let DependencyExclusion { tool, unmet } = exclusion;
    let list = unmet.join(", ");
    format!(
        "{tool} needs a successful call of {list} first in this session ([tools.dependencies.rules.{tool}])"
    )
}
