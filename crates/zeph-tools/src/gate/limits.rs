//! The limits on the calls of sessions, combined for the stack, which enforces them, and for reports.

use std::sync::Arc;

use super::anomaly::AnomalyDetector;
use super::dependencies::Dependencies;
use super::reputation::Reputations;
use super::utility::UtilityScorer;
use crate::contract::quota::Quota;

/// The active limits of calls; `None` means disabled.
#[derive(Clone, Default)]
pub struct CallLimits {
    /// The maximum number of calls of a session.
    pub quota: Option<Quota>,
    /// The detector that blocks tools that fail too often.
    pub anomalies: Option<Arc<AnomalyDetector>>,
    /// The reputations of the tools.
    pub reputations: Arc<Reputations>,
    /// The scorer that skips useless calls.
    pub utility: Option<Arc<UtilityScorer>>,
    /// The tools that need others to succeed first.
    pub dependencies: Option<Arc<Dependencies>>,
}
