//! Counters for each rule: its uses, its confidence and its savings.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::confidence::FilterConfidence;

/// The counters of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RuleMetrics {
    /// Outputs that were understood.
    pub full: u64,
    /// Outputs that were cut.
    pub partial: u64,
    /// Outputs that were not understood.
    pub fallback: u64,
    /// Bytes of the original outputs.
    pub bytes_before: u64,
    /// Bytes of the filtered outputs.
    pub bytes_after: u64,
    /// The number of times that the model immediately ran the same command again.
    pub reruns: u64,
    /// The number of times that the model requested the raw output.
    pub recalls: u64,
}

/// The number of outputs after which the counters are logged.
const LOGGED_EVERY: u64 = 20;

/// The counters of all rules, by name.
#[derive(Debug, Default)]
pub struct FilterMetrics(Mutex<BTreeMap<String, RuleMetrics>>);

impl RuleMetrics {
    fn outputs(&self) -> u64 {
        self.full + self.partial + self.fallback
    }
}

impl FilterMetrics {
    /// Counts one output, and logs all counters at intervals.
    pub fn count(&self, rule: &str, confidence: FilterConfidence, before: u64, after: u64) {
        self.change(rule, |counters| {
            match confidence {
                FilterConfidence::Full => counters.full += 1,
                FilterConfidence::Partial => counters.partial += 1,
                FilterConfidence::Fallback => counters.fallback += 1,
            }
            counters.bytes_before += before;
            counters.bytes_after += after;
        });
        let outputs: u64 = self.lock().values().map(RuleMetrics::outputs).sum();
        if outputs.is_multiple_of(LOGGED_EVERY) {
            self.log();
        }
    }

    /// Logs all counters at debug level, one line per rule.
    pub fn log(&self) {
        for (rule, counters) in self.lock().iter() {
            let RuleMetrics {
                full,
                partial,
                fallback,
                bytes_before,
                bytes_after,
                reruns,
                recalls,
            } = counters;
            tracing::debug!(
                target: "zeph_tools::filter",
                rule,
                levels = %format_args!("{full}/{partial}/{fallback}"),
                bytes_before,
                bytes_after,
                bytes_saved = bytes_before.saturating_sub(*bytes_after),
                reruns,
                recalls,
                "filtered"
            );
        }
    }

    /// Counts a repeated run of a command.
    pub fn count_rerun(&self, rule: &str) {
        self.change(rule, |counters| counters.reruns += 1);
    }

    /// Counts a request for a raw output.
    pub fn count_recall(&self, rule: &str) {
        self.change(rule, |counters| counters.recalls += 1);
    }

    fn change(&self, rule: &str, change: impl FnOnce(&mut RuleMetrics)) {
        change(self.lock().entry(rule.to_owned()).or_default());
    }

    /// Returns a copy of all counters.
    #[must_use]
    pub fn by_rule(&self) -> BTreeMap<String, RuleMetrics> {
        self.lock().clone()
    }

    /// Formats the numbers of outputs that were recognized, truncated and not recognized: `F/P/B`.
    #[must_use]
    pub fn levels(&self) -> [u64; 3] {
        let rules = self.lock();
        let (full, partial, fallback) = rules.values().fold((0, 0, 0), |sum, rule| {
            (
                sum.0 + rule.full,
                sum.1 + rule.partial,
                sum.2 + rule.fallback,
            )
        });
        [full, partial, fallback]
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RuleMetrics>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
