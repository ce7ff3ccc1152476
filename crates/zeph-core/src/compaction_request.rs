//! Requests of the model to compact its conversation. The tool `compress_context` makes them, and the agent takes them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The conversations of this process, and whether the model requested the compaction of each.
#[derive(Debug, Default)]
pub struct PendingCompactions(Mutex<HashMap<String, bool>>);

impl PendingCompactions {
    /// Registers a conversation that can be compacted.
    pub(crate) fn begin(&self, session: &str) {
        self.lock().insert(session.to_owned(), false);
    }

    /// Records that the model requests the compaction of its conversation. `false` if the session has no registered
    /// conversation.
    #[must_use]
    pub fn request(&self, session: &str) -> bool {
        let mut requests = self.lock();
        let wanted = requests.get_mut(session);
        wanted.map(|wanted| *wanted = true).is_some()
    }

    /// Returns whether the conversation is to be compacted, and removes the request.
    pub(crate) fn take(&self, session: &str) -> bool {
        let mut requests = self.lock();
        let wanted = requests.get_mut(session);
        wanted.is_some_and(std::mem::take)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
