//! Limits of calls, from the configuration.

use std::sync::Arc;

use zeph_memory::{SqliteCompleted, SqliteQuota, Store};
use zeph_tools::ToolRegistry;
use zeph_tools::dependency_graph::ToolDependencyGraph;
use zeph_tools::gate::CallLimits;
use zeph_tools::gate::anomaly::AnomalyDetector;
use zeph_tools::gate::dependencies::Dependencies;
use zeph_tools::gate::quota::Quota;
use zeph_tools::gate::utility::UtilityScorer;

use crate::config::Loaded;
use crate::output::sanitize::clean;
use crate::output::stderr_line_unless;

/// The limits of `loaded`, for all sessions of this process. The database stores the quota counter, so that it
/// continues across processes.
pub(super) fn limits(loaded: &Loaded, store: &Store, quiet: bool) -> CallLimits {
    let tools = &loaded.config.tools;
    let quota = |max| Quota {
        max,
        counter: Arc::new(SqliteQuota::new(store.clone())),
    };
    let anomalies = || Arc::new(AnomalyDetector::new(tools.anomaly.clone()));
    let utility = || Arc::new(UtilityScorer::new(tools.utility.clone()));
    CallLimits {
        quota: tools.max_tool_calls_per_session.map(quota),
        anomalies: tools.anomaly.enabled.then(anomalies),
        utility: tools.utility.enabled.then(utility),
        dependencies: dependencies(loaded, store, quiet),
        ..CallLimits::default()
    }
}

/// The requirements of tools. The requirements in a cycle are removed and reported.
fn dependencies(loaded: &Loaded, store: &Store, quiet: bool) -> Option<Arc<Dependencies>> {
    let dependencies = &loaded.config.tools.dependencies;
    if !dependencies.enabled {
        return None;
    }
    let (graph, cycles) = ToolDependencyGraph::new(dependencies);
    for cycle in cycles {
        let members = cycle.join(", ");
        warn(
            &format!(
                "[tools.dependencies]: {members} require each other, so their `requires` are \
                 ignored"
            ),
            quiet,
        );
    }
    Some(Arc::new(Dependencies::new(
        graph,
        dependencies.mode,
        loaded.config.agent.tool_filter.always_on.clone(),
        Arc::new(SqliteCompleted::new(store.clone())),
    )))
}

/// Reports tools that are named in requirements and do not exist.
pub(super) fn warn_of_unknown(limits: &CallLimits, registry: &ToolRegistry, quiet: bool) {
    let Some(dependencies) = &limits.dependencies else {
        return;
    };
    let unknown = dependencies
        .graph()
        .unknown(|id| registry.tools().iter().any(|def| def.id == id));
    for tool in unknown {
        let near = registry.suggestions(&tool);
        let near = near.first().map(|near| format!("; did you mean {near}?"));
        let near = near.unwrap_or_default();
        warn(
            &format!("[tools.dependencies.rules]: there is no tool {tool:?}{near}"),
            quiet,
        );
    }
}

fn warn(text: &str, quiet: bool) {
    stderr_line_unless(quiet, &clean(&format!("warning: {text}")));
}
