//! Detection of rules whose filtered outputs are insufficient, from the next actions of the model.
//!
//! The model may run the same command again within a minute, without another action between, or request the raw
//! output. Both are counted, and the rule is disabled for the rest of the session.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The maximum time between two runs for which the second one counts as a repetition.
const SOON: Duration = Duration::from_secs(60);
/// The maximum number of remembered references.
const MAX_REFERENCES: usize = 1_000;

/// The reactions of a session to filtered outputs.
#[derive(Debug, Default)]
pub(super) struct RuleFeedback {
    last: Option<Last>,
    /// The rules for stored raw outputs, by reference.
    stored: BTreeMap<String, String>,
    relaxed: BTreeSet<String>,
}

/// The last command, if a rule shortened its output.
#[derive(Debug)]
struct Last {
    command: String,
    rule: String,
    at: Instant,
}

impl RuleFeedback {
    /// Records the start of a command. Returns the rule of the previous run, if this one repeats it.
    pub(super) fn run(&mut self, command: &str, now: Instant) -> Option<String> {
        let last = self.last.take()?;
        let again = last.command == command && now.saturating_duration_since(last.at) < SOON;
        again.then(|| self.relax(last.rule))
    }

    /// Records that a rule shortened the output of a command. The raw output is stored under `reference`.
    pub(super) fn filtered(
        &mut self,
        command: &str,
        rule: &str,
        reference: Option<&str>,
        now: Instant,
    ) {
        self.last = Some(Last {
            command: command.to_owned(),
            rule: rule.to_owned(),
            at: now,
        });
        if let Some(reference) = reference
            && self.stored.len() < MAX_REFERENCES
        {
            self.stored.insert(reference.to_owned(), rule.to_owned());
        }
    }

    /// Records another action, after which the same command may print something else.
    pub(super) fn acted(&mut self) {
        self.last = None;
    }

    /// Records a request for a stored output. Returns the rule that shortened it, once per output.
    pub(super) fn recall(&mut self, reference: &str) -> Option<String> {
        let rule = self.stored.remove(reference)?;
        Some(self.relax(rule))
    }

    /// Returns true if the rule is disabled for the session.
    pub(super) fn is_relaxed(&self, rule: &str) -> bool {
        self.relaxed.contains(rule)
    }

    fn relax(&mut self, rule: String) -> String {
        self.relaxed.insert(rule.clone());
        rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-12.
    #[test]
    fn second_run_within_a_minute_counts() {
        let start = Instant::now();
        let check = |command: &str, seconds, acted, expect: Option<&str>| {
            let mut habits = RuleFeedback::default();
            habits.filtered("cargo test", "cargo-test", None, start);
            if acted {
                habits.acted();
            }
            let found = habits.run(command, start + Duration::from_secs(seconds));
            assert_eq!(found.as_deref(), expect);
            assert_eq!(habits.is_relaxed("cargo-test"), expect.is_some());
        };
        check("cargo test", 59, false, Some("cargo-test"));
        check("cargo test", 60, false, None);
        check("cargo test", 1, true, None);
        check("cargo build", 1, false, None);
    }

    /// Proves OUT-12.
    #[test]
    fn request_for_raw_output_counts_once() {
        let mut habits = RuleFeedback::default();
        habits.filtered(
            "cargo test",
            "cargo-test",
            Some("overflow:1"),
            Instant::now(),
        );
        assert_eq!(habits.recall("overflow:2"), None);
        assert!(!habits.is_relaxed("cargo-test"));
        assert_eq!(habits.recall("overflow:1").as_deref(), Some("cargo-test"));
        assert!(habits.is_relaxed("cargo-test"));
        assert_eq!(habits.recall("overflow:1"), None);
    }
}
