//! The order of the layers, and the only way to build the stack.
//!
//! From the outside in, with the reason for each position:
//!
//! | layer | reason |
//! |---|---|
//! | audit | outermost: it records the refusals of all other layers, and writes last |
//! | reputation | around `validate`: it counts invalid calls |
//! | validate | before every gate: gates judge tool ids and checked arguments, never an alias; repaired arguments and expanded paths are judged like others |
//! | quota | after validation: an unknown tool is not counted; before any gate that takes time or asks |
//! | skill | after validation: a tool that a skill declares becomes its command here, so that every inner gate judges the command; a tool that the active skills do not allow is refused before any judgment |
//! | blocklist | before every rule and every question: a blocked command runs in no mode, and no question is asked about it |
//! | policy | before any question: a denied call runs in no mode, regardless of approvals |
//! | dependencies | a tool that is not offered yet does not run for any caller; before any model or user is asked |
//! | adversarial | after the cheap gates, so that the model is not asked about calls that they refuse; before any question, so that the user is not asked about a denied call |
//! | anomaly | before the question: the user is not asked about a blocked tool; it records the outcome of each call that the inner gates allow |
//! | permission | the last gate that asks: all inner layers handle allowed calls only |
//! | hooks | inside every gate, so that a program of the user sees only calls that would run, after the question; outside the cache, so that a hit can be refused, and outside all layers that create the text for the model |
//! | utility | inside every gate that asks or refuses: it scores only calls that would run; outside the cache, because a hit also takes space in the context |
//! | watchers | see every allowed call and the result for the model, cached or not: `filter_feedback` detects insufficient filtered output |
//! | cache | inside every gate, so that a hit is judged and audited like a call; outside all layers that create the text for the model |
//! | retry | inside every gate and the cache, so that a retry is not judged, asked about or counted again; outside all layers that process the output of one execution |
//! | overflow | directly outside the sources of texts: it takes complete texts, and no outer layer receives one |
//! | redact | innermost: the value of a secret is replaced before any text is stored, so that it is not in the overflow store, the history, the audit trail or a display |
//! | executors | run the calls |
//!
//! Disabled parts are not in the stack.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::adversarial::AdversarialLayer;
use super::anomaly::AnomalyLayer;
use super::audit::AuditLayer;
use super::cache::CacheLayer;
use super::dependencies::DependencyLayer;
use super::hooks::HookLayer;
use super::overflow::OverflowLayer;
use super::permission::{PermissionLayer, Permissions};
use super::policy::PolicyLayer;
use super::quota::QuotaLayer;
use super::redact::RedactLayer;
use super::reputation::ReputationLayer;
use super::retry::RetryLayer;
use super::skill::SkillLayer;
use super::utility::UtilityLayer;
use super::validate::ValidationLayer;
use super::{LayeredExecutor, SharedRegistry, ToolLayer};
use crate::audit::{AuditSink, AuditTrail};
use crate::cache::ResultCaches;
use crate::composite::{CompositeExecutor, DuplicateTool};
use crate::contract::call_hooks::CallHooks;
use crate::contract::effective_trust::EffectiveTrust;
use crate::executor::{ErasedToolExecutor, ToolExecutor};
use crate::gate::CallLimits;
use crate::gate::llm_judge::AdversarialGate;
use crate::gate::policy::PolicyEnforcer;
use crate::overflow::summary::OutputSummarizer;
use crate::overflow::{OverflowConfig, OverflowStore};
use crate::registry::ToolRegistry;
use crate::retry::ToolRetryConfig;
use crate::secrets::SecurityPatterns;
use crate::skill::SkillRegistry;
use crate::tool_set::{Tool, ToolSet};

/// The parts of the stack. By default it has no executors, writes no audit entries and limits nothing.
#[derive(Default)]
pub struct StackParts {
    /// The executors with their names, in the order of lookup.
    pub executors: Vec<(&'static str, Arc<dyn ErasedToolExecutor>)>,
    /// The audit trail.
    pub audit: AuditTrail,
    /// The limits on the calls of sessions.
    pub limits: CallLimits,
    /// The adversarial gate; without it no model judges calls.
    pub adversarial: Option<AdversarialGate>,
    /// Layers that observe calls and change nothing.
    pub watchers: Vec<Arc<dyn ToolLayer>>,
    /// The result cache; without it every call runs.
    pub cache: Option<Arc<ResultCaches>>,
    /// The retry settings; with `max_attempts` 0 no call is repeated.
    pub retry: ToolRetryConfig,
    /// The store and the limits for long output; without them the model receives all output.
    pub overflow: Option<(Arc<dyn OverflowStore>, OverflowConfig)>,
    /// The summarizer of long output; without it the model receives only start and end.
    pub summarizer: Option<Arc<dyn OutputSummarizer>>,
    /// The secrets that are removed from results and from the audit trail.
    pub secrets: Arc<SecurityPatterns>,
    /// The available skills; `None` if there are none.
    pub skills: Option<Arc<SkillRegistry>>,
    /// The layer that refuses commands regardless of all rules; `None` without a shell.
    pub blocklist: Option<Arc<dyn ToolLayer>>,
    /// The rules for every mode, regardless of approvals; `None` if they are disabled.
    pub policy: Option<Arc<PolicyEnforcer>>,
    /// The settings that decide whether a call may run.
    pub permissions: Permissions,
    /// The programs of the user that see calls; `None` if there are none.
    pub hooks: Option<Arc<dyn CallHooks>>,
}

impl StackParts {
    /// Creates parts that only check calls.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an executor. Executors are asked in the order in which they were added.
    #[must_use]
    pub fn with_executor(
        mut self,
        name: &'static str,
        executor: impl ToolExecutor + 'static,
    ) -> Self {
        self.executors.push((name, Arc::new(executor)));
        self
    }

    /// Adds an executor with one tool.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool + 'static) -> Self {
        self.with_executor("tool", ToolSet::new(vec![Arc::new(tool)]))
    }

    /// Writes the entry of each call to `sinks`. With `required`, a call runs only if each sink can store its entry.
    #[must_use]
    pub fn with_audit(mut self, sinks: Vec<Arc<dyn AuditSink>>, required: bool) -> Self {
        self.audit = AuditTrail::new(sinks, required);
        self
    }

    /// Decides by `permissions` whether a call may run.
    #[must_use]
    pub fn with_permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Stores long output in `store`.
    #[must_use]
    pub fn with_overflow(mut self, store: Arc<dyn OverflowStore>, config: OverflowConfig) -> Self {
        self.overflow = Some((store, config));
        self
    }

    /// Builds the stack.
    ///
    /// # Errors
    /// [`DuplicateTool`] if two executors claim the same id.
    pub fn build(self) -> Result<LayeredExecutor, DuplicateTool> {
        build(self)
    }
}

/// Builds the stack.
///
/// # Errors
/// [`DuplicateTool`] if two executors claim the same id.
pub fn build(parts: StackParts) -> Result<LayeredExecutor, DuplicateTool> {
    let executors = CompositeExecutor::new(parts.executors)?;
    let trust = EffectiveTrust::default();
    let rules = Arc::clone(&parts.permissions.rules);
    let registry = ToolRegistry::new(executors.tool_definitions());
    let registry = registry.without_hidden(|def| rules.hides(&def.id));
    let registry: SharedRegistry = Arc::new(ArcSwap::from_pointee(registry));
    let limits = parts.limits;
    let mut layers: Vec<Arc<dyn ToolLayer>> = vec![
        Arc::new(AuditLayer::new(parts.audit, Arc::clone(&parts.secrets))),
        Arc::new(ReputationLayer::new(Arc::clone(&limits.reputations))),
        Arc::new(ValidationLayer::new(
            Arc::clone(&registry),
            Arc::clone(&parts.permissions.places),
        )),
    ];
    if let Some(quota) = limits.quota {
        layers.push(Arc::new(QuotaLayer::new(quota)));
    }
    if let Some(skills) = parts.skills {
        layers.push(Arc::new(SkillLayer::new(skills, Arc::clone(&registry))));
    }
    layers.extend(parts.blocklist);
    if let Some(policy) = parts.policy {
        let places = Arc::clone(&parts.permissions.places);
        let layer = PolicyLayer::new(policy, places, Arc::clone(&registry));
        layers.push(Arc::new(layer));
    }
    if let Some(dependencies) = limits.dependencies {
        let registry = Arc::clone(&registry);
        layers.push(Arc::new(DependencyLayer::new(dependencies, registry)));
    }
    if let Some(gate) = parts.adversarial {
        let (registry, secrets) = (Arc::clone(&registry), Arc::clone(&parts.secrets));
        layers.push(Arc::new(AdversarialLayer::new(gate, registry, secrets)));
    }
    if let Some(anomalies) = limits.anomalies {
        layers.push(Arc::new(AnomalyLayer::new(anomalies)));
    }
    let permission = PermissionLayer::new(parts.permissions, Arc::clone(&registry), trust.clone());
    layers.push(Arc::new(permission));
    if let Some(hooks) = parts.hooks {
        layers.push(Arc::new(HookLayer::new(hooks, Arc::clone(&parts.secrets))));
    }
    if let Some(utility) = limits.utility {
        layers.push(Arc::new(UtilityLayer::new(
            utility,
            limits.reputations,
            Arc::clone(&registry),
        )));
    }
    layers.extend(parts.watchers);
    if let Some(caches) = parts.cache {
        let overflow = parts.overflow.as_ref().map(|(store, _)| Arc::clone(store));
        layers.push(Arc::new(CacheLayer::new(
            caches,
            overflow,
            Arc::clone(&registry),
        )));
    }
    if parts.retry.max_attempts > 0 {
        layers.push(Arc::new(RetryLayer::new(parts.retry)));
    }
    if let Some((store, config)) = parts.overflow {
        layers.push(Arc::new(
            OverflowLayer::new(store, config).with_summarizer(parts.summarizer),
        ));
    }
    layers.push(Arc::new(RedactLayer::new(parts.secrets)));
    Ok(LayeredExecutor {
        layers,
        executors: Arc::new(executors),
        registry,
        rules,
        trust,
    })
}
