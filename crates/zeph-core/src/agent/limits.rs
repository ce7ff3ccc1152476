//! The limits of a turn. Pure: no I/O, no clock.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use zeph_tools::cache::split_note;

use super::volatile_text::without_times;
use crate::config::AgentConfig;

/// Equal iterations in a row that count as a doom loop.
const DOOM_LOOP: usize = 3;

/// The reason why a turn must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The model requested calls too often.
    Iterations,
    /// The same calls gave the same results three times in a row.
    DoomLoop,
    /// The conversation takes over 80 % of its budget, or is too long after compaction.
    Context,
    /// The calls of the session are used up, or fewer remain than a response requested.
    Quota {
        /// Calls made.
        used: u64,
        /// Calls allowed.
        max: u64,
    },
}

/// One iteration: a call and the content of its result.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The arguments.
    pub input: &'a Value,
    /// The content of the result.
    pub content: &'a str,
}

/// The state of the limits within one turn.
#[derive(Debug, Clone)]
pub struct Limits {
    max_iterations: usize,
    context_limit: usize,
    iterations: usize,
    quota: Option<Limit>,
    last: Option<u64>,
    equal: usize,
}

impl Limits {
    /// The limits at the start of a turn. `window` is the window of the model in tokens.
    #[must_use]
    pub fn new(config: &AgentConfig, window: usize) -> Self {
        let budget = context_budget(config, window);
        let four_fifths = budget / 5 * 4;
        let compaction = &config.compaction;
        Self {
            max_iterations: config.max_tool_iterations,
            // Compaction comes before this limit.
            context_limit: match compaction.enabled {
                true => compaction.tokens(budget).max(four_fifths),
                false => four_fifths,
            },
            iterations: 0,
            quota: None,
            last: None,
            equal: 0,
        }
    }

    /// Iterations so far.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// The number of tokens that stops the turn.
    #[must_use]
    pub fn context_limit(&self) -> usize {
        self.context_limit
    }

    /// Returns the limit that forbids a request with calls.
    #[must_use]
    pub fn before_request(&self, estimated_tokens: usize) -> Option<Limit> {
        if estimated_tokens > self.context_limit() {
            return Some(Limit::Context);
        }
        if self.quota.is_some() {
            return self.quota;
        }
        (self.iterations >= self.max_iterations).then_some(Limit::Iterations)
    }

    /// Records that a call was refused because `used` of `max` calls of the session are used.
    pub fn over_quota(&mut self, used: u64, max: u64) {
        self.quota = Some(Limit::Quota { used, max });
    }

    /// Records an iteration. Returns [`Limit::DoomLoop`] if it completes a doom loop.
    pub fn after_iteration<'a>(&mut self, steps: impl Iterator<Item = Step<'a>>) -> Option<Limit> {
        self.iterations += 1;
        let fingerprint = fingerprint(steps);
        if self.last == Some(fingerprint) {
            self.equal += 1;
        } else {
            self.last = Some(fingerprint);
            self.equal = 1;
        }
        (self.equal >= DOOM_LOOP).then_some(Limit::DoomLoop)
    }
}

/// The tokens that a conversation may take: the configured budget, or else the window of the model. The window of an
/// unknown model is a guess, so it does not limit a configured budget.
#[must_use]
pub fn context_budget(config: &AgentConfig, window: usize) -> usize {
    config.context_budget_tokens.unwrap_or(window)
}

/// A hash that is equal for iterations with the same calls and the same results. Call ids, times, durations and
/// references of stored outputs do not count.
fn fingerprint<'a>(steps: impl Iterator<Item = Step<'a>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for step in steps {
        step.tool.hash(&mut hasher);
        canonical(step.input).hash(&mut hasher);
        // A repeated call may have a note about the cache, which the first one lacks.
        without_times(split_note(step.content).1).hash(&mut hasher);
    }
    hasher.finish()
}

/// JSON text with sorted keys.
fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn without_compaction() -> AgentConfig {
        let mut config = AgentConfig::default();
        config.compaction.enabled = false;
        config
    }

    fn config(max_tool_iterations: usize) -> AgentConfig {
        AgentConfig {
            max_tool_iterations,
            context_budget_tokens: Some(1000),
            ..without_compaction()
        }
    }

    fn run(limits: &mut Limits, input: &Value, content: &str) -> Option<Limit> {
        limits.after_iteration(std::iter::once(Step {
            tool: "bash",
            input,
            content,
        }))
    }

    /// Proves AGT-2, AGT-4.
    #[test]
    fn iterations_and_context_are_capped() {
        let mut limits = Limits::new(&config(2), 100_000);
        assert_eq!(limits.before_request(800), None);
        assert_eq!(limits.before_request(801), Some(Limit::Context));
        run(&mut limits, &json!(1), "a");
        assert_eq!(limits.before_request(0), None);
        run(&mut limits, &json!(2), "b");
        assert_eq!(limits.before_request(0), Some(Limit::Iterations));
        limits.over_quota(3, 4);
        assert_eq!(
            limits.before_request(0),
            Some(Limit::Quota { used: 3, max: 4 })
        );
        assert_eq!(limits.before_request(801), Some(Limit::Context));
        let unset = Limits::new(&without_compaction(), 1000);
        assert_eq!(unset.before_request(800), None);
        assert_eq!(unset.before_request(801), Some(Limit::Context));
        let said = AgentConfig {
            context_budget_tokens: Some(2000),
            ..without_compaction()
        };
        assert_eq!(Limits::new(&said, 1000).before_request(1600), None);
        // Compaction comes first, at any threshold.
        let mut making = AgentConfig::default();
        for (threshold, limit) in [(0.9, 900), (0.5, 800)] {
            making.compaction.threshold = threshold;
            let limits = Limits::new(&making, 1000);
            assert_eq!(limits.before_request(limit), None, "{threshold}");
            let over = limits.before_request(limit + 1);
            assert_eq!(over, Some(Limit::Context), "{threshold}");
        }
    }

    /// Proves AGT-3.
    #[test]
    fn three_equal_iterations_in_a_row_are_a_doom_loop() {
        let mut limits = Limits::new(&config(100), 1000);
        let test = json!({"command": "cargo test", "cwd": "."});
        let same = json!({"cwd": ".", "command": "cargo test"});
        assert_eq!(run(&mut limits, &test, "failed in 0.53s"), None);
        assert_eq!(run(&mut limits, &same, "failed in 12 ms"), None);
        assert_eq!(
            run(&mut limits, &test, "failed in 1.2s"),
            Some(Limit::DoomLoop)
        );
    }

    #[test]
    fn an_edit_and_test_loop_is_none() {
        let mut limits = Limits::new(&config(100), 1000);
        for round in 0..10 {
            assert_eq!(run(&mut limits, &json!({"edit": round}), "edited"), None);
            assert_eq!(
                run(&mut limits, &json!({"command": "test"}), "failed"),
                None
            );
        }
        for round in 0..5 {
            let other = format!("{round} tests failed");
            assert_eq!(run(&mut limits, &json!({"command": "test"}), &other), None);
        }
    }
}
