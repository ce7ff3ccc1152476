//! The decisions of gates that depend on more than rules, to the extent that they are known without the call.

use std::collections::HashSet;

use serde::Serialize;
use zeph_tools::dependency_graph::ToolDependencyGraph;
use zeph_tools::gate::CallSubject;
use zeph_tools::gate::utility::UtilityScorer;
use zeph_tools::{Annotations, ToolCall, web};

use super::gates::Gates;
use crate::assemble::{judge, known_sandbox};

/// The decision of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GateOpinion {
    /// It is switched off.
    Off,
    /// It lets the call through.
    Allow,
    /// It refuses the call.
    Deny,
    /// It decides when the call is made, by data that is not available here.
    WhenCalled,
}

/// A gate and its decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AuxiliaryGate {
    /// Its name.
    pub(super) gate: &'static str,
    /// The decision.
    #[serde(rename = "decision")]
    pub(super) says: GateOpinion,
    /// The reason, or the source of the decision.
    pub(super) reason: String,
}

/// The decisions of the additional gates about a call. They use no model, database or network. If no provider is
/// configured, a local judge is detected.
///
/// # Errors
/// A directory cannot be reached.
pub(super) fn of(
    gates: &Gates,
    call: &ToolCall,
    subject: &CallSubject<'_>,
) -> anyhow::Result<Vec<AuxiliaryGate>> {
    let beside = |gate, (says, reason)| AuxiliaryGate { gate, says, reason };
    Ok(vec![
        beside("quota", quota(gates)),
        beside("dependencies", dependencies(gates, &call.tool)),
        beside("adversarial", adversarial(gates, &call.tool)),
        beside("anomaly", anomaly(gates)),
        beside("utility", utility(gates, &call.tool, &subject.nature)),
        beside("executors", executors(gates, subject)?),
    ])
}

fn off() -> (GateOpinion, String) {
    (GateOpinion::Off, "is off".to_owned())
}

fn quota(gates: &Gates) -> (GateOpinion, String) {
    const KEY: &str = "`[tools] max_tool_calls_per_session`";
    match gates.loaded.config.tools.max_tool_calls_per_session {
        None => off(),
        Some(0) => (GateOpinion::Deny, format!("{KEY} is 0: no call runs")),
        Some(max) => (
            GateOpinion::WhenCalled,
            format!(
                "at most {max} calls of a session run ({KEY}); how many were made shows when it is called"
            ),
        ),
    }
}

fn dependencies(gates: &Gates, tool: &str) -> (GateOpinion, String) {
    let config = &gates.loaded.config.tools.dependencies;
    if !config.enabled {
        return off();
    }
    let (graph, _) = ToolDependencyGraph::new(config);
    let requires = graph.unmet(tool, &HashSet::new());
    if requires.is_empty() {
        return (GateOpinion::Allow, format!("{tool} requires nothing"));
    }
    if loaded_always(gates, tool) {
        return (GateOpinion::Allow, format!("{tool} is among `always_on`"));
    }
    let requires = requires.join(", ");
    let words = format!(
        "{tool} requires a successful call of {requires} in the session; what succeeded shows when it is called"
    );
    (GateOpinion::WhenCalled, words)
}

fn loaded_always(gates: &Gates, tool: &str) -> bool {
    let always = &gates.loaded.config.agent.tool_filter.always_on;
    always.iter().any(|id| id == tool)
}

fn adversarial(gates: &Gates, tool: &str) -> (GateOpinion, String) {
    let config = &gates.loaded.config.tools.adversarial_policy;
    if !config.enabled {
        return off();
    }
    if config.exempt_tools.iter().any(|exempt| exempt == tool) {
        return (
            GateOpinion::Allow,
            format!("{tool} is among `exempt_tools`"),
        );
    }
    let lack = match judge(&gates.loaded, &gates.env, None) {
        Ok(_) if config.policies.is_empty() => "there are no policies".to_owned(),
        Ok(provider) => {
            let (name, model, count) = (provider.name(), provider.model(), config.policies.len());
            let judged = format!(
                "{name} ({model}) is asked, by {count} policies; what it says shows when it is called"
            );
            return (GateOpinion::WhenCalled, judged);
        }
        Err(why) => why,
    };
    match config.fail_open {
        true => (
            GateOpinion::Allow,
            format!("it cannot be judged: {lack}; it runs unjudged (`fail_open`)"),
        ),
        false => (GateOpinion::Deny, format!("it cannot be judged: {lack}")),
    }
}

fn anomaly(gates: &Gates) -> (GateOpinion, String) {
    let config = &gates.loaded.config.tools.anomaly;
    if !config.enabled {
        return off();
    }
    if !config.auto_block {
        return (
            GateOpinion::Allow,
            "tells of tools that fail too often, and blocks none".to_owned(),
        );
    }
    let (window, threshold) = (config.window_size, config.failure_threshold);
    let words = format!(
        "blocks a tool of whose last {window} calls in the session {:.0} % failed; how many did shows when it is called",
        threshold * 100.0
    );
    (GateOpinion::WhenCalled, words)
}

fn utility(gates: &Gates, tool: &str, nature: &Annotations) -> (GateOpinion, String) {
    let config = &gates.loaded.config.tools.utility;
    if !config.enabled {
        return off();
    }
    if UtilityScorer::new(config.clone()).spares(tool, nature) {
        return (
            GateOpinion::Allow,
            "it changes something, or its tool is exempt".to_owned(),
        );
    }
    let threshold = config.threshold;
    let words = format!(
        "a call of the model is left out that scores below {threshold:.2}, which shows when it is called; a person's own runs"
    );
    (GateOpinion::WhenCalled, words)
}

/// The refusals of the tool itself. The blocklist reports files that a command may not read.
fn executors(gates: &Gates, subject: &CallSubject<'_>) -> anyhow::Result<(GateOpinion, String)> {
    let refused = match &subject.url {
        Some(url) => web::refusal(&gates.loaded.config.tools.scrape, &url.given)?,
        None if subject.paths.is_empty() => None,
        None => {
            let sandbox = known_sandbox(&gates.loaded, &gates.env)?;
            let mut paths = subject.paths.iter();
            let refused =
                paths.find_map(|path| sandbox.refusal(&path.given, path.role, path.is_entry()));
            refused.map(|error| error.to_string())
        }
    };
    Ok(match refused {
        Some(why) => (GateOpinion::Deny, why),
        None => (
            GateOpinion::Allow,
            "nothing that shows before it is called".to_owned(),
        ),
    })
}
