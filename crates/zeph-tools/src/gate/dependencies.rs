//! Tools that need others to have succeeded first in the session (`[tools.dependencies]`).
//!
//! The rules are [`ToolDependencyGraph`]'s; here is what they are asked with: what succeeded (behind
//! the port [`CompletedTools`], so that it holds over processes), and which tools the user named in
//! this turn.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::dependency_graph::{DependencyExclusion, DependencyMode, ToolDependencyGraph};
use crate::error::ToolError;
use crate::schema_filter::{mentions, telling};

/// What succeeded in a session cannot be read or kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompletedError(pub String);

/// Keeps which tools succeeded in conversations.
#[async_trait]
pub trait CompletedTools: Send + Sync {
    /// The tools that succeeded since the conversation began or was cleared.
    ///
    /// # Errors
    /// [`CompletedError`].
    async fn completed(&self, conversation: &str) -> Result<HashSet<String>, CompletedError>;

    /// Keeps that `tool` did; durable when it returns.
    ///
    /// # Errors
    /// [`CompletedError`].
    async fn complete(&self, conversation: &str, tool: &str) -> Result<(), CompletedError>;
}

/// The rules and what they are asked with, for all sessions of a process.
pub struct Dependencies {
    graph: ToolDependencyGraph,
    mode: DependencyMode,
    always_on: Vec<String>,
    store: Arc<dyn CompletedTools>,
    sessions: Mutex<HashMap<String, Session>>,
}

#[derive(Default)]
struct Session {
    /// `None` until it was read.
    completed: Option<HashSet<String>>,
    /// What the user said in this turn.
    query: String,
    /// It was told that the rules leave nothing.
    told: bool,
}

/// Which tools of a set may not be called yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockedTools {
    /// These, and what they need.
    pub exclusions: Vec<DependencyExclusion>,
    /// All others would have been left out as well, so that the rules do not hold in this turn; said
    /// once a turn.
    pub warning: Option<String>,
}

impl Dependencies {
    /// Holds the rules of `graph`; the tools that are `always_on` may always be called.
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

    /// The rules.
    #[must_use]
    pub fn graph(&self) -> &ToolDependencyGraph {
        &self.graph
    }

    /// Whether tools are left out of what a model is offered.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.mode == DependencyMode::Hide
    }

    /// The user said `query`: the tools that it names may be called until the next turn.
    pub fn begin_turn(&self, session: &str, query: &str) {
        let mut sessions = self.sessions();
        let state = sessions.entry(session.to_owned()).or_default();
        telling(query).clone_into(&mut state.query);
        state.told = false;
    }

    /// The session starts over: nothing has succeeded.
    pub fn forget(&self, session: &str) {
        self.sessions().insert(
            session.to_owned(),
            Session {
                completed: Some(HashSet::new()),
                ..Session::default()
            },
        );
    }

    /// What succeeded in `session`, of that on which something depends.
    ///
    /// # Errors
    /// [`CompletedError`] when it cannot be read.
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

    /// Which of `tools` may not be called yet.
    ///
    /// # Errors
    /// [`CompletedError`] when it cannot be known what succeeded.
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
                "[tools.dependencies] would leave no tool, so that its requirements do not hold in this turn: \
                 at least one tool has to require nothing"
                    .to_owned()
            }),
        })
    }

    /// Lets a call of `tool` go on, if its requirements are met. `tools` are all there are.
    ///
    /// # Errors
    /// A refusal that names what is unmet, or that it cannot be known.
    pub async fn check(
        &self,
        session: &str,
        tool: &str,
        tools: impl Iterator<Item = &str>,
    ) -> Result<(), ToolError> {
        let gated = self.gated(session, tools).await.map_err(|error| {
            ToolError::blocked(format!(
                "it cannot be known which tools succeeded in this session, as [tools.dependencies] asks: {error}"
            ))
        })?;
        match gated.exclusions.into_iter().find(|one| one.tool == tool) {
            None => Ok(()),
            Some(exclusion) => Err(ToolError::blocked(unmet(&exclusion))),
        }
    }

    /// `tool` succeeded.
    ///
    /// # Errors
    /// [`CompletedError`] when that cannot be kept; then it does not count.
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

/// What a model and a person read of a call that came too early.
fn unmet(exclusion: &DependencyExclusion) -> String {
    let DependencyExclusion { tool, unmet } = exclusion;
    let list = unmet.join(", ");
    format!(
        "{tool} needs a successful call of {list} first in this session ([tools.dependencies.rules.{tool}])"
    )
}
