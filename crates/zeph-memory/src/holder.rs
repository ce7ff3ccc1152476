//! This process as a holder of leases of sessions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// This process as a holder of leases.
#[derive(Debug)]
pub(crate) struct Holder {
    /// A random name.
    name: String,
    /// Grants that ended and are still on the server.
    ended: Mutex<Vec<String>>,
}

impl Default for Holder {
    fn default() -> Self {
        Self {
            name: Uuid::new_v4().to_string(),
            ended: Mutex::default(),
        }
    }
}

impl Holder {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Notes the end of a grant.
    pub(crate) fn end(&self, grant: String) {
        self.ended().push(grant);
    }

    /// The grants that ended since the last call.
    pub(crate) fn take_ended(&self) -> Vec<String> {
        std::mem::take(&mut *self.ended())
    }

    fn ended(&self) -> MutexGuard<'_, Vec<String>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
