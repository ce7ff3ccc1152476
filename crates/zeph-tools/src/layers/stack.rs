//! The order of the layers, and the one way to build the stack.
//!
//! From the outside in, with the reason for each place:
//!
//! | layer | why here |
//! |---|---|
//! | audit | outermost: it must see what every other layer refused, and write last |
//! | reputation | around `validate`: it counts invalid calls |
//! | validate | before every gate: gates judge the tool's own id and checked arguments, never an alias; arguments that a model put right are judged like any |
//! | quota | once it is a call at all: what is no tool costs nothing; before any gate that costs time or asks |
//! | skill | once it is a call at all: a tool that a skill declares becomes its command here, so that every gate within judges the command; what no skill that runs allows is refused before anything is judged |
//! | blocklist | before every rule and every question: what it refuses runs in no mode, and nobody is asked about it |
//! | policy | before anybody is asked: what it denies runs in no mode, whoever agrees |
//! | dependencies | a tool that is not offered yet does not run either, whoever asks for it; before any model or person is asked |
//! | adversarial | after the gates that cost nothing, so that no model is asked about what they refuse; before any question, so that a person is not asked about what is denied anyway |
//! | anomaly | before the question: nobody is asked about a tool that is blocked; it sees what became of each call that the gates within let through |
//! | permission | the last word on whether a call may run; whatever stands further in has been allowed |
//! | utility | within every gate that asks or refuses: it scores what would run; around the cache, for a hit takes room in the window as well |
//! | watchers | see every allowed call and the result that the model reads, cached or not: `filter_feedback` detects insufficient filtered output |
//! | cache | within every gate, so that a hit is judged and audited like a call; around all that makes the text the model reads |
//! | retry | within every gate and the cache, so that a retry is neither judged, asked about nor counted again; around all that works on one execution's output |
//! | overflow | directly around what yields texts: it takes them whole, and no layer further out ever holds one |
//! | redact | innermost: a secret's value is replaced before anything is stored, so that neither the overflow store nor the history, the audit trail or a display ever holds one |
//! | executors | the work |
//!
//! What is switched off is not in the stack.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::adversarial::AdversarialLayer;
use super::anomaly::AnomalyLayer;
use super::audit::AuditLayer;
use super::cache::CacheLayer;
use super::dependencies::DependencyLayer;
use super::overflow::OverflowLayer;
use super::permission::{PermissionLayer, Permissions};
use super::policy::PolicyLayer;
use super::quota::QuotaLayer;
use super::redact::RedactLayer;
use super::reputation::ReputationLayer;
use super::retry::RetryLayer;
use super::skill::SkillLayer;
use super::trust::EffectiveTrust;
use super::utility::UtilityLayer;
use super::validate::ValidationLayer;
use super::{LayeredExecutor, SharedRegistry, ToolLayer};
use crate::audit::AuditTrail;
use crate::cache::ResultCaches;
use crate::composite::{CompositeExecutor, DuplicateTool};
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

/// What the stack is made of. By default it has no executors, leaves no entries and limits nothing.
#[derive(Default)]
pub struct StackParts {
    /// The executors with their names, in the order in which they are asked.
    pub executors: Vec<(&'static str, Arc<dyn ErasedToolExecutor>)>,
    /// Where audit entries go.
    pub audit: AuditTrail,
    /// What limits the calls of sessions.
    pub limits: CallLimits,
    /// What has a model judge calls; without it none is judged.
    pub adversarial: Option<AdversarialGate>,
    /// Layers that look on and change nothing.
    pub watchers: Vec<Arc<dyn ToolLayer>>,
    /// What answers calls that were made before; without it every call is made.
    pub cache: Option<Arc<ResultCaches>>,
    /// When failed calls are made again; with `max_attempts` 0 never.
    pub retry: ToolRetryConfig,
    /// Where output goes that is too long, and when it is; without it the model reads all of it.
    pub overflow: Option<(Arc<dyn OverflowStore>, OverflowConfig)>,
    /// Summarizes output that is too long; without it the model reads head and tail alone.
    pub summarizer: Option<Arc<dyn OutputSummarizer>>,
    /// What is kept out of results and of the audit trail.
    pub secrets: Arc<SecurityPatterns>,
    /// The skills that can be used; none where there are none.
    pub skills: Option<Arc<SkillRegistry>>,
    /// What refuses commands whatever else allows them; none where there is no shell.
    pub blocklist: Option<Arc<dyn ToolLayer>>,
    /// The rules that hold in every mode, whoever agrees; none where they are switched off.
    pub policy: Option<Arc<PolicyEnforcer>>,
    /// What decides whether a call may run.
    pub permissions: Permissions,
}

/// Builds the stack.
///
/// # Errors
/// [`DuplicateTool`] when two executors claim one id.
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
        Arc::new(ValidationLayer::new(Arc::clone(&registry))),
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
        layers.push(Arc::new(CacheLayer::new(caches, overflow)));
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
