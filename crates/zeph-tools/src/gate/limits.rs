//! What limits the calls of sessions, all together: the stack enforces it, and who holds a
//! conversation tells of it.

use std::sync::Arc;

use super::anomaly::AnomalyDetector;
use super::dependencies::Dependencies;
use super::quota::Quota;
use super::reputation::Reputations;
use super::utility::UtilityScorer;

/// The limits that hold; what is `None` is switched off.
#[derive(Clone, Default)]
pub struct CallLimits {
    /// How many calls a session may make.
    pub quota: Option<Quota>,
    /// What blocks tools that fail too often.
    pub anomalies: Option<Arc<AnomalyDetector>>,
    /// How well tools are called.
    pub reputations: Arc<Reputations>,
    /// What skips calls that are of no use.
    pub utility: Option<Arc<UtilityScorer>>,
    /// Which tools need others to succeed first.
    pub dependencies: Option<Arc<Dependencies>>,
}
