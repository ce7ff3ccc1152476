//! The wish of a model to have its conversation summed up: left by the tool, taken by the loop.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The conversations that are under way in this process, and whether the model wants each summed up.
#[derive(Debug, Default)]
pub struct PendingCompactions(Mutex<HashMap<String, bool>>);

impl PendingCompactions {
    /// A conversation begins that can be summed up.
    pub(crate) fn begin(&self, session: &str) {
        self.lock().insert(session.to_owned(), false);
    }

    /// The model of a conversation wants it summed up. `false` where none is under way in this session.
    #[must_use]
    pub fn leave(&self, session: &str) -> bool {
        let mut requests = self.lock();
        let wanted = requests.get_mut(session);
        wanted.map(|wanted| *wanted = true).is_some()
    }

    /// Whether the conversation is to be summed up; asked once.
    pub(crate) fn take(&self, session: &str) -> bool {
        let mut requests = self.lock();
        let wanted = requests.get_mut(session);
        wanted.is_some_and(std::mem::take)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
