//! The agent for which a sub-agent works: its session pays for the sub-agent.

use std::sync::Arc;

use crate::agent::Agent;
use crate::spending::{AuxiliaryUsage, Spending};

/// The parent of a sub-agent.
#[derive(Clone)]
pub struct ParentAgent {
    /// The name of the sub-agent.
    pub name: String,
    /// The session of the parent. Calls of the sub-agent count to its quota and its undo journal.
    pub session: String,
    /// The batch of the call that started the sub-agent, which one undo reverts.
    pub batch: Option<String>,
    /// The costs of the session before the batch.
    pub spent: Spending,
    /// Receives the costs of the sub-agent.
    pub usage: Arc<AuxiliaryUsage>,
}

impl Agent {
    /// The reason why the budget of the session, or of that of the parent, allows no further request; `None` if it allows
    /// one.
    pub(in crate::agent) fn over_budget(&self) -> Option<String> {
        let (spent, pending) = match &self.parent {
            Some(parent) => (&parent.spent, &parent.usage),
            None => (&self.session.spending, &self.model.side_usage),
        };
        let mut spent = spent.clone();
        spent.merge(pending.pending());
        spent.over_budget(&self.config)
    }
}
