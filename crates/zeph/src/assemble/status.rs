//! Lines of `/status` that the agent itself does not know.

use std::sync::Arc;

use zeph_core::agent::StatusLine;
use zeph_tools::plural::counted_as;
#[cfg(feature = "tui")]
use zeph_tui::Resources;

use super::App;
use super::filters::filter_status;
use crate::config::Config;
use crate::output::sanitize::clean;

impl App {
    /// Reads the resources of a session that no event reports.
    #[cfg(feature = "tui")]
    pub(crate) fn resources(&self) -> Arc<dyn Fn(&str) -> Resources + Send + Sync> {
        let (caches, shell) = (self.caches.clone(), Arc::clone(&self.shell));
        Arc::new(move |session| {
            let status = caches.as_ref().map(|caches| caches.status(session));
            Resources {
                cache: status.map(|status| (status.hits, status.misses)),
                jobs: shell.running_jobs(),
            }
        })
    }

    /// The additional lines of `/status`.
    pub(crate) fn more_status(&self) -> Vec<StatusLine> {
        let filters = Arc::clone(self.shell.filters());
        let reputations = Arc::clone(&self.limits.reputations);
        let instructions = self.instructions.summary();
        let gates = gates(&self.loaded.config);
        let shell = Arc::clone(&self.shell);
        vec![
            ("Instructions", Arc::new(move |_| clean(&instructions))),
            ("Output filters", Arc::new(move |_| filter_status(&filters))),
            ("Permissions", Arc::new(move |_| gates.clone())),
            (
                "Tool calls",
                Arc::new(move |session| reputations.summary(session)),
            ),
            (
                "Jobs",
                Arc::new(move |_| match shell.running_jobs().as_slice() {
                    [] => "none running".to_owned(),
                    jobs => clean(&jobs.join(", ")),
                }),
            ),
        ]
    }
}

/// The judge of calls: its provider, the number of policies, and the result if it cannot decide.
fn judged_by(config: &Config) -> String {
    let policy = &config.tools.adversarial_policy;
    let provider = match policy.provider.as_str() {
        "" => "provider of the conversation",
        name => name,
    };
    let policies = counted_as(policy.policies.len(), "policy", "policies");
    format!("{provider}, {policies}, fail_open = {}", policy.fail_open)
}

/// The mode, the rules, and which of the gates that can be switched are on.
fn gates(config: &Config) -> String {
    let tools = &config.tools;
    let rules: usize = tools.permissions.values().map(Vec::len).sum();
    let switched = [
        ("policy", tools.policy.enabled),
        ("authorization", tools.authorization.enabled),
        ("adversarial", tools.adversarial_policy.enabled),
        ("anomaly", tools.anomaly.enabled),
        ("utility", tools.utility.enabled),
    ];
    let on: Vec<String> = switched
        .iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| match *name {
            "adversarial" => format!("adversarial ({})", judged_by(config)),
            name => name.to_owned(),
        })
        .collect();
    let on = match on.as_slice() {
        [] => String::new(),
        on => format!(", {}", on.join(", ")),
    };
    let rules = match rules {
        1 => "1 permission rule".to_owned(),
        rules => format!("{rules} permission rules"),
    };
    format!("mode {}, {rules}{on}", tools.mode.as_str())
}
