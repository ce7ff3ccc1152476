//! What the model does after an output was filtered: a rule whose outputs do not suffice shows in it.
//!
//! It runs the same command once more within a minute, without having done anything else, or asks for
//! the raw output. Both are counted, and for the rest of the session the rule is not used any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// So soon a second run means that the first did not say enough.
const SOON: Duration = Duration::from_secs(60);
/// References that are remembered.
const MAX_REFERENCES: usize = 1_000;

/// What a session did with filtered outputs.
#[derive(Debug, Default)]
pub(super) struct RuleFeedback {
    last: Option<Last>,
    /// The rules whose raw outputs are stored, by reference.
    stored: BTreeMap<String, String>,
    relaxed: BTreeSet<String>,
}

/// The last call, when it was a command whose output a rule made shorter.
#[derive(Debug)]
struct Last {
    command: String,
    rule: String,
    at: Instant,
}

impl RuleFeedback {
    /// A command is about to run. The rule that it is the second run for, if it is one.
    pub(super) fn run(&mut self, command: &str, now: Instant) -> Option<String> {
        let last = self.last.take()?;
        let again = last.command == command && now.saturating_duration_since(last.at) < SOON;
        again.then(|| self.relax(last.rule))
    }

    /// The output of a command was made shorter by a rule; all of it is stored under a reference.
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

    /// Something else was done, after which the same command may print something else.
    pub(super) fn acted(&mut self) {
        self.last = None;
    }

    /// A stored output is asked for. The rule that had made it shorter, once for each output.
    pub(super) fn recall(&mut self, reference: &str) -> Option<String> {
        let rule = self.stored.remove(reference)?;
        Some(self.relax(rule))
    }

    /// Whether the rule is no longer used.
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
    fn a_second_run_within_a_minute_counts() {
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
    fn asking_for_the_raw_output_counts_once() {
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
