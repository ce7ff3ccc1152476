//! What limits calls, as the configuration says.

use std::sync::Arc;

use zeph_memory::{SqliteQuota, Store};
use zeph_tools::gate::CallLimits;
use zeph_tools::gate::anomaly::Anomalies;
use zeph_tools::gate::quota::Quota;
use zeph_tools::gate::utility::Utility;

use crate::config::Loaded;

/// The limits of `loaded`, for all sessions of this process. The quota is counted in the database, so
/// that it goes on over processes.
pub(super) fn limits(loaded: &Loaded, store: &Store) -> CallLimits {
    let tools = &loaded.config.tools;
    let quota = |max| Quota {
        max,
        counter: Arc::new(SqliteQuota::new(store.clone())),
    };
    let anomalies = || Arc::new(Anomalies::new(tools.anomaly.clone()));
    let utility = || Arc::new(Utility::new(tools.utility.clone()));
    CallLimits {
        quota: tools.max_tool_calls_per_session.map(quota),
        anomalies: tools.anomaly.enabled.then(anomalies),
        utility: tools.utility.enabled.then(utility),
        ..CallLimits::default()
    }
}
