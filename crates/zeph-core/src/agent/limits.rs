//! The limits of a turn. Pure: no I/O, no clock.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use zeph_tools::cache::split_note;

use super::volatile_text::without_times;
use crate::config::AgentConfig;

/// Equal iterations in a row that count as a doom loop.
const DOOM_LOOP: usize = 3;

/// The key of the interval of check-ins.
const CHECK_IN_KEY: &str = "max_tool_iterations";
/// The key of the maximum of a turn without a user.
const MAX_KEY: &str = "max_iterations_per_turn";

/// The rounds of tool calls that a turn may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationPolicy {
    /// Rounds between two check-ins: questions to the user, or notices if no user can answer.
    pub check_in: usize,
    /// Maximum rounds if no user can answer.
    pub max_unattended: usize,
    /// The key of `[agent]` that sets `max_unattended`, for messages.
    pub max_key: &'static str,
}

impl IterationPolicy {
    /// The policy of `config`. `is_set` returns whether a source sets this key of `[agent]`: a `max_tool_iterations` that
    /// is set is a maximum, its default is not.
    #[must_use]
    pub fn new(config: &AgentConfig, is_set: impl Fn(&str) -> bool) -> Self {
        let (interval, most) = (config.max_tool_iterations, config.max_iterations_per_turn);
        let is_lower = interval <= most || !is_set(MAX_KEY);
        let (max_unattended, max_key) = match is_set(CHECK_IN_KEY) && is_lower {
            true => (interval, CHECK_IN_KEY),
            false => (most, MAX_KEY),
        };
        Self {
            check_in: interval,
            max_unattended,
            max_key,
        }
    }
}

impl Default for IterationPolicy {
    fn default() -> Self {
        Self::new(&AgentConfig::default(), |_| false)
    }
}

/// The reason why a turn must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The model requested calls too often, and no user can answer.
    Iterations,
    /// The user stopped the turn at a check-in.
    Stopped,
    /// The same calls, or calls that only read, gave the same results three times in a row.
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
    /// Whether the call changed nothing, and succeeded with a text that depends only on files or
    /// pages. Other results may be equal while work progresses.
    pub is_pure_read: bool,
}

/// The state of the limits within one turn.
#[derive(Debug, Clone)]
pub struct Limits {
    policy: IterationPolicy,
    /// The number of iterations at the next check-in; `None` means no further one.
    next_check_in: Option<usize>,
    context_limit: usize,
    iterations: usize,
    quota: Option<Limit>,
    calls: Repetition,
    results: Repetition,
}

/// A count of equal values in a row.
#[derive(Debug, Clone, Default)]
struct Repetition {
    last: Option<u64>,
    equal: usize,
}

impl Repetition {
    /// Records a value; `None` equals no value. Returns whether it completes a doom loop.
    fn record(&mut self, value: Option<u64>) -> bool {
        self.equal = match value.is_some() && value == self.last {
            true => self.equal + 1,
            false => 1,
        };
        self.last = value;
        self.equal >= DOOM_LOOP
    }
}

impl Limits {
    /// The limits at the start of a turn. `window` is the window of the model in tokens.
    #[must_use]
    pub fn new(config: &AgentConfig, policy: IterationPolicy, window: usize) -> Self {
        Self {
            policy,
            next_check_in: Some(policy.check_in),
            context_limit: context_limit(config, window),
            iterations: 0,
            quota: None,
            calls: Repetition::default(),
            results: Repetition::default(),
        }
    }

    /// Sets the window of the model, which a server may report during a turn.
    pub fn set_window(&mut self, config: &AgentConfig, window: usize) {
        self.context_limit = context_limit(config, window);
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

    /// Returns the limit that forbids a request with calls. `is_attended` is whether the user can be asked.
    #[must_use]
    pub fn before_request(&self, estimated_tokens: usize, is_attended: bool) -> Option<Limit> {
        if estimated_tokens > self.context_limit() {
            return Some(Limit::Context);
        }
        if self.quota.is_some() {
            return self.quota;
        }
        let is_over = !is_attended && self.iterations >= self.policy.max_unattended;
        is_over.then_some(Limit::Iterations)
    }

    /// Whether a check-in is due before the next request.
    #[must_use]
    pub fn is_check_in_due(&self) -> bool {
        self.next_check_in.is_some_and(|at| self.iterations >= at)
    }

    /// Plans the next check-in, one interval from now.
    pub fn plan_check_in(&mut self) {
        self.next_check_in = Some(self.iterations.saturating_add(self.policy.check_in));
    }

    /// Plans no further check-in in this turn.
    pub fn end_check_ins(&mut self) {
        self.next_check_in = None;
    }

    /// Records that a call was refused because `used` of `max` calls of the session are used.
    pub fn over_quota(&mut self, used: u64, max: u64) {
        self.quota = Some(Limit::Quota { used, max });
    }

    /// Records an iteration. Returns [`Limit::DoomLoop`] if it completes a doom loop.
    pub fn after_iteration<'a>(&mut self, steps: impl Iterator<Item = Step<'a>>) -> Option<Limit> {
        self.iterations += 1;
        let (calls, results) = fingerprints(steps);
        let has_equal_calls = self.calls.record(Some(calls));
        let has_equal_results = self.results.record(results);
        (has_equal_calls || has_equal_results).then_some(Limit::DoomLoop)
    }
}

/// The tokens that a conversation may take: the configured budget, or else the window of the model. The window of an
/// unknown model is a guess, so it does not limit a configured budget.
#[must_use]
pub fn context_budget(config: &AgentConfig, window: usize) -> usize {
    config.context_budget_tokens.unwrap_or(window)
}

/// The number of tokens that stops a turn. Compaction comes before this limit.
fn context_limit(config: &AgentConfig, window: usize) -> usize {
    let budget = context_budget(config, window);
    let four_fifths = budget / 5 * 4;
    match config.compaction.enabled {
        true => config.compaction.tokens(budget).max(four_fifths),
        false => four_fifths,
    }
}

/// Returns two hashes: one is equal for iterations with the same calls and the same results, the other
/// for iterations with the same results. The other one is `None` if a call did not only read, or if
/// all results are empty. Call ids, times, durations and references of stored outputs do not count.
fn fingerprints<'a>(steps: impl Iterator<Item = Step<'a>>) -> (u64, Option<u64>) {
    let (mut calls, mut results) = (DefaultHasher::new(), DefaultHasher::new());
    let (mut is_pure_read, mut has_content) = (true, false);
    for step in steps {
        // A repeated call may have a note about the cache, which the first one lacks.
        let content = without_times(split_note(step.content).1);
        step.tool.hash(&mut calls);
        canonical(step.input).hash(&mut calls);
        content.hash(&mut calls);
        content.hash(&mut results);
        is_pure_read &= step.is_pure_read;
        has_content |= !is_empty(&content);
    }
    let results = (is_pure_read && has_content).then(|| results.finish());
    (calls.finish(), results)
}

/// Whether a result says that there is nothing, as searches in vain do.
fn is_empty(content: &str) -> bool {
    let is_nothing =
        |line: &str| matches!(line, "" | "0" | "(no output)") || line.starts_with("[exit code: ");
    let is_search = |start: &&str| content.starts_with(start);
    content.lines().map(str::trim).all(is_nothing)
        || ["No matches", "No paths match"].iter().any(is_search)
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

    fn config() -> AgentConfig {
        AgentConfig {
            context_budget_tokens: Some(1000),
            ..without_compaction()
        }
    }

    fn run(limits: &mut Limits, input: &Value, content: &str) -> Option<Limit> {
        limits.after_iteration(std::iter::once(Step {
            tool: "bash",
            input,
            content,
            is_pure_read: false,
        }))
    }

    fn limits(config: &AgentConfig) -> Limits {
        Limits::new(config, IterationPolicy::default(), 1000)
    }

    /// Proves AGT-4.
    #[test]
    fn context_over_the_budget_is_a_limit() {
        let mut quota = limits(&config());
        assert_eq!(quota.before_request(800, false), None);
        assert_eq!(quota.before_request(801, true), Some(Limit::Context));
        quota.over_quota(3, 4);
        let over = Some(Limit::Quota { used: 3, max: 4 });
        assert_eq!(quota.before_request(0, false), over);
        assert_eq!(quota.before_request(0, true), over);
        assert_eq!(quota.before_request(801, false), Some(Limit::Context));
        let mut larger = limits(&without_compaction());
        larger.set_window(&without_compaction(), 2000);
        assert_eq!(larger.before_request(1600, false), None);
        assert_eq!(larger.before_request(1601, false), Some(Limit::Context));
        let unset = limits(&without_compaction());
        assert_eq!(unset.before_request(800, false), None);
        assert_eq!(unset.before_request(801, false), Some(Limit::Context));
        let said = AgentConfig {
            context_budget_tokens: Some(2000),
            ..without_compaction()
        };
        assert_eq!(limits(&said).before_request(1600, false), None);
        // Compaction comes first, at any threshold.
        let mut making = AgentConfig::default();
        for (threshold, limit) in [(0.9, 900), (0.5, 800)] {
            making.compaction.threshold = threshold;
            let limits = limits(&making);
            assert_eq!(limits.before_request(limit, false), None, "{threshold}");
            let over = limits.before_request(limit + 1, false);
            assert_eq!(over, Some(Limit::Context), "{threshold}");
        }
    }

    /// Proves AGT-2, D-33.
    #[test]
    fn policy_depends_on_the_keys_that_are_set() {
        let check = |interval: Option<usize>, most: Option<usize>, max: usize, key: &str| {
            let default = AgentConfig::default();
            let config = AgentConfig {
                max_tool_iterations: interval.unwrap_or(default.max_tool_iterations),
                max_iterations_per_turn: most.unwrap_or(default.max_iterations_per_turn),
                ..default
            };
            let policy = IterationPolicy::new(&config, |key| match key {
                CHECK_IN_KEY => interval.is_some(),
                MAX_KEY => most.is_some(),
                _ => false,
            });
            assert_eq!(policy.check_in, interval.unwrap_or(10));
            assert_eq!((policy.max_unattended, policy.max_key), (max, key));
        };
        check(None, None, 100, MAX_KEY);
        check(None, Some(7), 7, MAX_KEY);
        check(Some(10), None, 10, CHECK_IN_KEY);
        check(Some(200), None, 200, CHECK_IN_KEY);
        check(Some(10), Some(50), 10, CHECK_IN_KEY);
        check(Some(200), Some(50), 50, MAX_KEY);
    }

    /// Proves AGT-2, D-33.
    #[test]
    fn check_ins_follow_the_interval_and_the_answers() {
        let policy = IterationPolicy {
            check_in: 2,
            max_unattended: 5,
            max_key: MAX_KEY,
        };
        let mut limits = Limits::new(&config(), policy, 1000);
        let mut due = Vec::new();
        for round in 1..=8 {
            run(&mut limits, &json!(round), "a");
            assert_eq!(limits.before_request(0, true), None);
            let over = (round >= 5).then_some(Limit::Iterations);
            assert_eq!(limits.before_request(0, false), over, "{round}");
            if limits.is_check_in_due() {
                due.push(round);
                match round < 6 {
                    true => limits.plan_check_in(),
                    false => limits.end_check_ins(),
                }
            }
        }
        assert_eq!(due, [2, 4, 6]);
    }

    /// Proves AGT-3.
    #[test]
    fn three_equal_iterations_in_a_row_are_a_doom_loop() {
        let mut limits = Limits::new(&config(), IterationPolicy::default(), 1000);
        let test = json!({"command": "cargo test", "cwd": "."});
        let same = json!({"cwd": ".", "command": "cargo test"});
        assert_eq!(run(&mut limits, &test, "failed in 0.53s"), None);
        assert_eq!(run(&mut limits, &same, "failed in 12 ms"), None);
        assert_eq!(
            run(&mut limits, &test, "failed in 1.2s"),
            Some(Limit::DoomLoop)
        );
    }

    /// Proves AGT-3, D-39: equal results of different calls, if nothing changed in between.
    #[test]
    fn equal_results_of_calls_that_only_read_are_a_doom_loop() {
        let check = |rounds: &[(&str, bool)], expect: Option<Limit>| {
            let mut limits = Limits::new(&config(), IterationPolicy::default(), 1000);
            let mut last = None;
            for (round, (content, is_pure_read)) in rounds.iter().enumerate() {
                last = limits.after_iteration(std::iter::once(Step {
                    tool: "bash",
                    input: &json!(round),
                    content,
                    is_pure_read: *is_pure_read,
                }));
            }
            assert_eq!(last, expect, "{rounds:?}");
        };
        let doom_loop = Some(Limit::DoomLoop);
        check(&[("same", true); 3], doom_loop);
        check(&[("same", true); 2], None);
        check(&[("same", false); 3], None);
        let noted = "[from the cache, 3 s old]\nsame in 3 ms";
        let rounds = [
            ("same in 12 ms", true),
            (noted, true),
            ("same in 5 ms", true),
        ];
        check(&rounds, doom_loop);
        check(&[("same", true), ("other", true), ("same", true)], None);
        let changed = [("same", true), ("same", true), ("edited", false)];
        check(&[&changed[..], &changed[..2]].concat(), None);
        check(
            &[&changed[..], &[("same", true); 3][..]].concat(),
            doom_loop,
        );
        for empty in [
            "",
            "(no output)",
            "[exit code: 1]",
            "0\n[exit code: 1]",
            "No matches in 4 files.",
            "No paths match.",
        ] {
            check(&[(empty, true); 3], None);
        }
    }

    #[test]
    fn edit_and_test_loop_is_not_a_doom_loop() {
        let mut limits = Limits::new(&config(), IterationPolicy::default(), 1000);
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
