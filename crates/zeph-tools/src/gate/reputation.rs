//! The reputation of a tool: the outcomes of its calls in a session, with a Beta prior.
//!
//! A call is a success if it returned a result. It is a failure if the output of the model was wrong: invalid
//! arguments, or a tool that does not exist. Failures of the network, of the disk and of gates do not count.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::category::ToolErrorCategory;
use crate::feedback::ToolResult;

/// The prior Beta(1, 1), a uniform distribution: before the first call every rate is equally likely.
const PRIOR: f64 = 1.0;
/// The distance of the lower bound from the mean in standard deviations: 95 % of a normal distribution are above
/// it.
const BELOW: f64 = 1.645;
/// The maximum number of tools per session; the limits exist because a model may call any name.
const MAX_TOOLS: usize = 256;
const MAX_NAME_LEN: usize = 128;
/// The maximum number of tools that a line of `/status` names.
const MAX_REPORTED: usize = 4;

/// The outcomes of the calls of one tool: the distribution Beta(successes + 1, failures + 1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reputation {
    /// The number of calls that returned a result.
    pub successes: u64,
    /// The number of wrong calls.
    pub failures: u64,
}

impl Reputation {
    /// Returns the expected rate of success, between 0 and 1; one half before the first call.
    #[must_use]
    pub fn mean(self) -> f64 {
        let (a, b) = self.parameters();
        a / (a + b)
    }

    /// Returns a lower bound of the true rate: the mean minus 1.645 standard deviations of the distribution, at
    /// least 0. It grows with the number of successes.
    #[must_use]
    pub fn lower_bound(self) -> f64 {
        let (a, b) = self.parameters();
        let sum = a + b;
        let variance = a * b / (sum * sum * (sum + 1.0));
        (self.mean() - BELOW * variance.sqrt()).max(0.0)
    }

    fn parameters(self) -> (f64, f64) {
        (self.successes as f64 + PRIOR, self.failures as f64 + PRIOR)
    }
}

/// Returns whether a call was a success, or `None` for a call that does not count.
#[must_use]
pub fn succeeded(result: &ToolResult) -> Option<bool> {
    match result {
        Ok(_) => Some(true),
        Err(error) => {
            let category = error.category();
            let is_wrong = category.traits().quality || category == ToolErrorCategory::ToolNotFound;
            is_wrong.then_some(false)
        }
    }
}

/// The reputations of all tools, in all sessions of this process.
#[derive(Debug, Default)]
pub struct Reputations {
    sessions: Mutex<HashMap<String, BTreeMap<String, Reputation>>>,
}

impl Reputations {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<String, Reputation>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outcome of a call.
    pub fn record(&self, session: &str, tool: &str, result: &ToolResult) {
        let Some(succeeded) = succeeded(result) else {
            return;
        };
        let mut sessions = self.sessions();
        let tools = sessions.entry(session.to_owned()).or_default();
        if !tools.contains_key(tool) && (tools.len() >= MAX_TOOLS || tool.len() > MAX_NAME_LEN) {
            return;
        }
        let reputation = tools.entry(tool.to_owned()).or_default();
        match succeeded {
            true => reputation.successes += 1,
            false => reputation.failures += 1,
        }
    }

    /// Returns the reputation of a tool in a session.
    #[must_use]
    pub fn of(&self, session: &str, tool: &str) -> Reputation {
        let sessions = self.sessions();
        let tools = sessions.get(session);
        tools
            .and_then(|tools| tools.get(tool))
            .copied()
            .unwrap_or_default()
    }

    /// Returns a one-line summary of a session: the tools with wrong calls, the worst first.
    #[must_use]
    pub fn summary(&self, session: &str) -> String {
        let sessions = self.sessions();
        let empty = BTreeMap::new();
        let tools = sessions.get(session).unwrap_or(&empty);
        let calls: u64 = tools
            .values()
            .map(|tool| tool.successes + tool.failures)
            .sum();
        let calls = match calls {
            1 => "1 call".to_owned(),
            calls => format!("{calls} calls"),
        };
        let wrong = tools.iter().filter(|(_, tool)| tool.failures > 0);
        let mut wrong: Vec<ReputationLine<'_>> = wrong
            .map(|(name, tool)| ReputationLine { name, tool: *tool })
            .collect();
        if wrong.is_empty() {
            return format!("{calls}, all valid");
        }
        wrong.sort_by(|a, b| a.tool.lower_bound().total_cmp(&b.tool.lower_bound()));
        let more = wrong.len().saturating_sub(MAX_REPORTED);
        let named: Vec<String> = wrong
            .iter()
            .take(MAX_REPORTED)
            .map(ToString::to_string)
            .collect();
        let more = match more {
            0 => String::new(),
            more => format!(", {more} more"),
        };
        format!("{calls}; {}{more}", named.join(", "))
    }
}

/// The entry of a tool in the summary: `edit 0.60 (at least 0.27; 1 of 3 invalid)`.
struct ReputationLine<'a> {
    name: &'a str,
    tool: Reputation,
}

impl fmt::Display for ReputationLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reputation {
            successes,
            failures,
        } = self.tool;
        write!(
            f,
            "{} {:.2} (at least {:.2}; {failures} of {} invalid)",
            self.name,
            self.tool.mean(),
            self.tool.lower_bound(),
            successes + failures,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ToolError;
    use crate::output::ToolOutput;

    fn of(successes: u64, failures: u64) -> Reputation {
        Reputation {
            successes,
            failures,
        }
    }

    /// Proves ERR-23.
    #[test]
    fn reputation_mean_combines_prior_and_calls() {
        let check = |successes, failures, mean: f64, lower: f64| {
            let reputation = of(successes, failures);
            assert!((reputation.mean() - mean).abs() < 0.005, "{reputation:?}");
            let found = reputation.lower_bound();
            assert!((found - lower).abs() < 0.005, "{reputation:?} {found}");
        };
        check(0, 0, 0.5, 0.025);
        check(1, 0, 0.667, 0.279);
        check(0, 1, 0.333, 0.0);
        check(8, 2, 0.75, 0.552);
        check(98, 0, 0.99, 0.974);
    }

    /// Proves ERR-23, D-5.
    #[test]
    fn only_quality_failures_and_unknown_tools_count() {
        for category in ToolErrorCategory::ALL {
            let error = ToolError::Failed {
                category,
                message: String::new(),
            };
            let expect = match category {
                ToolErrorCategory::ToolNotFound
                | ToolErrorCategory::InvalidParameters
                | ToolErrorCategory::TypeMismatch => Some(false),
                _ => None,
            };
            assert_eq!(succeeded(&Err(error)), expect, "{category:?}");
        }
        assert_eq!(succeeded(&Ok(ToolOutput::text(""))), Some(true));
    }

    /// Proves ERR-23.
    #[test]
    fn sessions_have_separate_reputations_and_summaries() {
        let reputations = Reputations::default();
        assert_eq!(reputations.summary("s"), "0 calls, all valid");
        reputations.record("s", "read", &Ok(ToolOutput::text("")));
        reputations.record("s", "edit", &Ok(ToolOutput::text("")));
        assert_eq!(reputations.summary("s"), "2 calls, all valid");
        reputations.record("s", "edit", &Err(ToolError::invalid("no match")));
        reputations.record("s", "edit", &Err(ToolError::blocked("no")));
        assert_eq!(reputations.of("s", "edit"), of(1, 1));
        assert_eq!(reputations.of("t", "edit"), of(0, 0));
        assert_eq!(
            reputations.summary("s"),
            "3 calls; edit 0.50 (at least 0.13; 1 of 2 invalid)"
        );
        for n in 0..1000 {
            let unknown = ToolError::ToolNotFound {
                id: n.to_string(),
                near: Vec::new(),
            };
            reputations.record("s", &n.to_string(), &Err(unknown));
        }
        assert_eq!(reputations.sessions()["s"].len(), MAX_TOOLS);
        assert!(reputations.summary("s").ends_with("more"));
    }

    proptest! {
        /// Proves ERR-23.
        #[test]
        fn reputation_is_bounded_and_monotonic(successes in 0u64..5000, failures in 0u64..5000) {
            let here = of(successes, failures);
            prop_assert!(0.0 <= here.lower_bound() && here.lower_bound() < here.mean());
            prop_assert!(0.0 < here.mean() && here.mean() < 1.0);
            let (better, worse) = (of(successes + 1, failures), of(successes, failures + 1));
            prop_assert!(better.mean() > here.mean() && here.mean() > worse.mean());
            prop_assert!(better.lower_bound() >= here.lower_bound());
            prop_assert!(here.lower_bound() >= worse.lower_bound());
        }
    }
}
