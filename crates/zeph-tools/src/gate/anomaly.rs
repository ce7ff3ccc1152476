//! Detection of tools that fail too often: a window of the last outcomes of each tool (`[tools.anomaly]`).
//!
//! An outcome counts as a success if the tool did its work. A command that ran to its end is a success regardless
//! of its exit code: a test suite that fails again and again is not an anomaly of the shell. Calls that a gate
//! refused and calls that were stopped say nothing about the tool and are not counted.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::category::ToolErrorCategory as Category;
use crate::error::ToolError;
use crate::feedback::ToolResult;

pub use super::config::AnomalyConfig;

/// The state of a tool, according to its recent failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The tool works, or there are too few calls to decide.
    Normal,
    /// Too many calls of a full window failed.
    Critical,
}

/// The number of failures among the last calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// The number of calls that failed.
    pub failures: usize,
    /// The number of calls in the window.
    pub calls: usize,
}

impl Rate {
    /// The failed fraction, 0 to 1.
    #[must_use]
    pub fn part(self) -> f64 {
        if self.calls == 0 {
            return 0.0;
        }
        self.failures as f64 / self.calls as f64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failures, calls } = self;
        let percent = 100.0 * self.part();
        write!(
            f,
            "{failures} of its last {calls} calls failed ({percent:.0} %)"
        )
    }
}

/// A report that a tool has begun to fail too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Anomaly {
    /// The state of the window.
    pub severity: Severity,
    /// The failures in the window.
    pub rate: Rate,
    /// Whether the tool is blocked from now on.
    pub blocked: bool,
}

/// Returns whether the tool failed, or `None` for a call that says nothing about the tool.
#[must_use]
pub fn failed(result: &ToolResult) -> Option<bool> {
    let error = match result {
        Ok(_) => return Some(false),
        Err(error) => error,
    };
    match (error.category(), error) {
        (Category::Timeout, _) => Some(true),
        // The command ran to its end.
        (
            _,
            ToolError::Shell {
                exit_code: Some(_), ..
            },
        ) => Some(false),
        (Category::Cancelled, _) => None,
        _ if error.is_refusal() => None,
        _ => Some(true),
    }
}

/// The last outcomes of one tool.
#[derive(Debug, Clone, Default)]
pub struct Window {
    outcomes: VecDeque<bool>,
    failures: usize,
    critical: bool,
    blocked: Option<Rate>,
}

impl Window {
    /// Returns the number of failures among the recorded outcomes.
    #[must_use]
    pub fn rate(&self) -> Rate {
        Rate {
            failures: self.failures,
            calls: self.outcomes.len(),
        }
    }

    /// Returns the state of the window according to `config`.
    #[must_use]
    pub fn severity(&self, config: &AnomalyConfig) -> Severity {
        let is_full = self.outcomes.len() >= config.window_size;
        // A threshold that is not a number blocks the tool: gates fail closed.
        let is_below = self.rate().part() < config.failure_threshold;
        if is_full && !is_below {
            Severity::Critical
        } else {
            Severity::Normal
        }
    }

    /// Records an outcome. Returns the anomaly if the tool begins to fail too often with this outcome.
    pub fn record(&mut self, failed: bool, config: &AnomalyConfig) -> Option<Anomaly> {
        while self.outcomes.len() >= config.window_size.max(1) {
            let oldest = self.outcomes.pop_front();
            self.failures -= usize::from(oldest == Some(true));
        }
        self.outcomes.push_back(failed);
        self.failures += usize::from(failed);
        let severity = self.severity(config);
        let was_critical = std::mem::replace(&mut self.critical, severity == Severity::Critical);
        if severity == Severity::Normal || was_critical {
            return None;
        }
        if config.auto_block {
            self.blocked = Some(self.rate());
        }
        Some(Anomaly {
            severity,
            rate: self.rate(),
            blocked: config.auto_block,
        })
    }

    /// Returns the failure rate at the time of the block, if the tool is blocked.
    #[must_use]
    pub fn blocked(&self) -> Option<Rate> {
        self.blocked
    }
}

/// A detector of tools that fail too often, with one window per tool and session of this process.
#[derive(Debug)]
pub struct AnomalyDetector {
    config: AnomalyConfig,
    sessions: Mutex<HashMap<String, BTreeMap<String, Window>>>,
}

impl AnomalyDetector {
    /// Creates a detector without outcomes.
    #[must_use]
    pub fn new(config: AnomalyConfig) -> Self {
        Self {
            config,
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<String, Window>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the failure rate at the time of the block, if the tool is blocked in the session.
    #[must_use]
    pub fn blocked(&self, session: &str, tool: &str) -> Option<Rate> {
        self.sessions().get(session)?.get(tool)?.blocked()
    }

    /// Records the outcome of a call. Returns the anomaly if the tool begins to fail too often with this call.
    pub fn record(&self, session: &str, tool: &str, result: &ToolResult) -> Option<Anomaly> {
        let failed = failed(result)?;
        let mut sessions = self.sessions();
        let tools = sessions.entry(session.to_owned()).or_default();
        let window = tools.entry(tool.to_owned()).or_default();
        window.record(failed, &self.config)
    }

    /// Returns the tools that are blocked in the session.
    #[must_use]
    pub fn all_blocked(&self, session: &str) -> Vec<(String, Rate)> {
        let sessions = self.sessions();
        let tools = sessions.get(session).into_iter().flatten();
        tools
            .filter_map(|(tool, window)| Some((tool.clone(), window.blocked()?)))
            .collect()
    }

    /// Unblocks a tool and empties its window. Returns `false` if the tool is not blocked.
    pub fn unblock(&self, session: &str, tool: &str) -> bool {
        let mut sessions = self.sessions();
        let Some(window) = sessions
            .get_mut(session)
            .and_then(|tools| tools.get_mut(tool))
        else {
            return false;
        };
        let was_blocked = window.blocked.is_some();
        if was_blocked {
            *window = Window::default();
        }
        was_blocked
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::output::ToolOutput;

    fn config(window_size: usize, failure_threshold: f64) -> AnomalyConfig {
        AnomalyConfig {
            window_size,
            failure_threshold,
            ..AnomalyConfig::default()
        }
    }

    /// Records outcomes (`x` failed, `.` did not) and returns the positions at which the window became critical.
    fn alarms(config: &AnomalyConfig, outcomes: &str) -> Vec<usize> {
        let mut window = Window::default();
        let outcomes = outcomes.chars().enumerate();
        outcomes
            .filter_map(|(at, c)| window.record(c == 'x', config).map(|_| at))
            .collect()
    }

    /// Proves PERM-41.
    #[test]
    fn full_window_at_the_threshold_is_critical() {
        let check = |size, threshold, outcomes: &str, expect: &[usize]| {
            assert_eq!(
                alarms(&config(size, threshold), outcomes),
                expect,
                "{outcomes}"
            );
        };
        check(4, 0.75, "xxx", &[]);
        check(4, 0.75, "xxx.", &[3]);
        check(4, 0.75, ".xxx", &[3]);
        check(4, 0.75, "xx..", &[]);
        check(4, 0.75, "xx..xxx", &[6]);
        // Reported once while the state lasts, and again when the state returns.
        check(4, 0.75, "xxxxxx", &[3]);
        check(4, 0.75, "xxxx..xxx", &[3, 8]);
        check(1, 1.0, ".x.x", &[1, 3]);
        check(
            20,
            0.7,
            &format!("{}{}", ".".repeat(6), "x".repeat(14)),
            &[19],
        );
        check(
            20,
            0.7,
            &format!("{}{}", ".".repeat(7), "x".repeat(13)),
            &[],
        );
        check(20, 0.7, &"x".repeat(19), &[]);
    }

    /// Proves PERM-41.
    #[test]
    fn failures_are_classified() {
        let shell = |exit_code, category| ToolError::Shell {
            exit_code,
            category,
            message: String::new(),
            output: Box::new(ToolOutput::text("")),
        };
        let check = |error: ToolError, expect| {
            let text = error.to_string();
            assert_eq!(failed(&Err(error)), expect, "{text}");
        };
        assert_eq!(failed(&Ok(ToolOutput::text("x"))), Some(false));
        check(ToolError::permanent("gone"), Some(true));
        check(ToolError::invalid("no match"), Some(true));
        // A server that responds with 401 or 403 repeatedly is a failing tool as well.
        let category = Category::PolicyBlocked;
        let message = "https://example.org/ answers 403 Forbidden".to_owned();
        let forbidden = || ToolError::Failed {
            category,
            message: message.clone(),
        };
        check(forbidden(), Some(true));
        check(forbidden().noted("tried once"), Some(true));
        check(ToolError::blocked("no"), None);
        check(ToolError::cancelled(), None);
        let (used, max, asked) = (1, 1, 1);
        check(ToolError::QuotaBlocked { used, max, asked }, None);
        check(shell(Some(127), Category::PermanentFailure), Some(false));
        check(shell(Some(126), Category::PolicyBlocked), Some(false));
        check(shell(None, Category::Timeout), Some(true));
        check(shell(None, Category::PermanentFailure), Some(true));
        check(shell(None, Category::PolicyBlocked), None);
    }

    /// Proves PERM-41.
    #[test]
    fn blocked_tool_stays_blocked_until_unblocked() {
        let anomalies = AnomalyDetector::new(config(2, 0.5));
        let fails = || Err(ToolError::permanent("gone"));
        let works = || Ok(ToolOutput::text(""));
        assert_eq!(anomalies.record("s", "read", &fails()), None);
        let told = anomalies.record("s", "read", &fails()).unwrap();
        assert_eq!((told.severity, told.blocked), (Severity::Critical, true));
        assert_eq!(
            told.rate.to_string(),
            "2 of its last 2 calls failed (100 %)"
        );
        assert!(anomalies.blocked("s", "read").is_some());
        assert!(anomalies.blocked("s", "grep").is_none());
        assert!(anomalies.blocked("other", "read").is_none());
        // Results of calls that started before the block change nothing.
        for _ in 0..3 {
            anomalies.record("s", "read", &works());
        }
        assert_eq!(anomalies.all_blocked("s").len(), 1);
        assert!(!anomalies.unblock("s", "grep") && !anomalies.unblock("t", "read"));
        assert!(anomalies.unblock("s", "read") && !anomalies.unblock("s", "read"));
        assert!(anomalies.blocked("s", "read").is_none());
        assert_eq!(
            anomalies.record("s", "read", &fails()),
            None,
            "a new window"
        );

        let telling = AnomalyDetector::new(AnomalyConfig {
            auto_block: false,
            ..config(1, 1.0)
        });
        assert!(!telling.record("s", "read", &fails()).unwrap().blocked);
        assert!(telling.all_blocked("s").is_empty());
    }

    proptest! {
        /// Proves PERM-41: the window holds the last outcomes and counts its failures.
        #[test]
        fn failure_rate_covers_the_last_calls(
            outcomes in proptest::collection::vec(any::<bool>(), 0..60),
            size in 1usize..20,
        ) {
            let config = config(size, 0.5);
            let mut window = Window::default();
            for failed in &outcomes {
                window.record(*failed, &config);
            }
            let last = &outcomes[outcomes.len().saturating_sub(size)..];
            let failures = last.iter().filter(|failed| **failed).count();
            prop_assert_eq!(window.rate(), Rate { failures, calls: last.len() });
        }
    }
}
