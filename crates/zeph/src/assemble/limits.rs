//! What limits calls, as the configuration says.

use std::sync::Arc;

use zeph_memory::{SqliteQuota, Store};
use zeph_tools::gate::quota::Quota;

use crate::config::Loaded;

/// What limits the calls of all sessions of this process.
#[derive(Clone)]
pub(crate) struct Limits {
    /// How many calls a session may make; counted in the database, so that it goes on over
    /// processes.
    pub(crate) quota: Option<Quota>,
}

impl Limits {
    /// The limits of `loaded`.
    pub(crate) fn new(loaded: &Loaded, store: &Store) -> Self {
        let quota = |max| Quota {
            max,
            counter: Arc::new(SqliteQuota::new(store.clone())),
        };
        Self {
            quota: loaded.config.tools.max_tool_calls_per_session.map(quota),
        }
    }
}
