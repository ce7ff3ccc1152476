//! The decisions of gates that depend on more than rules, to the extent that they are known without the call.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use zeph_tools::dependency_graph::ToolDependencyGraph;
use zeph_tools::gate::CallSubject;
use zeph_tools::gate::utility::UtilityScorer;
use zeph_tools::{Annotations, CallContext, ToolCall};

use super::gates::Gates;
use crate::assemble::{judge, known_refusals, known_sandbox};

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

impl AuxiliaryGate {
    /// The decision and its reason, in one line.
    pub(super) fn summary(&self) -> String {
        let decision = match self.says {
            GateOpinion::Off => return "off".to_owned(),
            GateOpinion::Allow => "allow",
            GateOpinion::Deny => "deny",
            GateOpinion::WhenCalled => "decides at the call",
        };
        format!("{decision}: {}", self.reason)
    }
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
    (GateOpinion::Off, "off".to_owned())
}

fn quota(gates: &Gates) -> (GateOpinion, String) {
    const KEY: &str = "`[tools] max_tool_calls_per_session`";
    match gates.loaded.config.tools.max_tool_calls_per_session {
        None => off(),
        Some(0) => (
            GateOpinion::Deny,
            format!("no call runs, because {KEY} is 0"),
        ),
        Some(max) => (
            GateOpinion::WhenCalled,
            format!("a session has at most {max} calls ({KEY})"),
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
        return (GateOpinion::Allow, format!("{tool} has no requirements"));
    }
    if loaded_always(gates, tool) {
        return (GateOpinion::Allow, format!("`always_on` lists {tool}"));
    }
    let requires = requires.join(", ");
    let words = format!("{tool} requires a successful call of {requires} in the session");
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
        return (GateOpinion::Allow, format!("`exempt_tools` lists {tool}"));
    }
    let lack = match judge(&gates.loaded, &gates.env, None) {
        Ok(_) if config.policies.is_empty() => "`policies` is empty".to_owned(),
        Ok(provider) => {
            let (name, model, count) = (provider.name(), provider.model(), config.policies.len());
            let judged =
                format!("the model {model} of {name} checks the call against {count} policies");
            return (GateOpinion::WhenCalled, judged);
        }
        Err(why) => why,
    };
    match config.fail_open {
        true => (
            GateOpinion::Allow,
            format!("no check (`fail_open`): {lack}"),
        ),
        false => (
            GateOpinion::Deny,
            format!("the call cannot be checked: {lack}"),
        ),
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
            "it reports tools that fail too often, and blocks none (`auto_block` is false)"
                .to_owned(),
        );
    }
    let (window, threshold) = (config.window_size, config.failure_threshold);
    let words = format!(
        "it blocks a tool if {:.0} % of its last {window} calls in the session failed",
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
            "the call makes a change, or its tool is exempt".to_owned(),
        );
    }
    let threshold = config.threshold;
    let words = format!(
        "it skips a call of the model with a score below {threshold:.2}, and allows calls of the user"
    );
    (GateOpinion::WhenCalled, words)
}

/// The refusals that are known before the call. The blocklist reports files that a command may not read.
fn executors(gates: &Gates, subject: &CallSubject<'_>) -> anyhow::Result<(GateOpinion, String)> {
    let sandbox = Arc::new(known_sandbox(&gates.loaded, &gates.env)?);
    let refusals = known_refusals(&gates.loaded, &sandbox)?;
    let cx = CallContext::headless();
    let mut found = refusals.iter();
    let refused = found.find_map(|tools| tools.known_refusal(subject, &cx));
    Ok(match refused {
        Some(error) => (GateOpinion::Deny, error.to_string()),
        None => (
            GateOpinion::Allow,
            "no reason to refuse is known before the call".to_owned(),
        ),
    })
}
