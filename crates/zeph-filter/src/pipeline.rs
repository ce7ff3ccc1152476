//! Command output filter pipeline.
//!
//! [`FilterPipeline::start`] finds the rule by the command. [`FilterStream::push`] takes the text piece by piece:
//! sanitize → lines → strategies and fact guard. [`FilterStream::finish`] takes the exit
//! code, selects one of the rule's two chains, restores missing facts, and measures. Memory is bounded
//! regardless of the length of the output.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::command::Subject;
use super::filtered::FilteredOutput;
use super::metrics::FilterMetrics;
use super::plan::Plan;
use super::rule_feedback::RuleFeedback;
use super::rulebook::RuleSet;
use super::run::{FilterStream, NO_RULE};

/// The maximum length of an output that is filtered as a whole, in characters.
const MAX_CHARS: usize = 50_000;

/// The filters of a session: rules, counters and feedback.
#[derive(Debug, Default)]
pub struct FilterPipeline {
    book: RuleSet,
    metrics: Arc<FilterMetrics>,
    habits: Mutex<RuleFeedback>,
    off: bool,
}

impl FilterPipeline {
    /// Creates filters with the rules of `book`.
    #[must_use]
    pub fn new(book: RuleSet) -> Self {
        Self {
            book,
            ..Self::default()
        }
    }

    /// Creates filters that only sanitize.
    #[must_use]
    pub fn off() -> Self {
        Self {
            off: true,
            ..Self::default()
        }
    }

    /// The rules.
    #[must_use]
    pub fn book(&self) -> &RuleSet {
        &self.book
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> &FilterMetrics {
        &self.metrics
    }

    /// Returns the plan for the output of `command`.
    #[must_use]
    pub fn plan(&self, command: &str) -> Plan {
        if self.off {
            return Plan::Plain;
        }
        // Output that is redirected to a file does not reach the model.
        let subject = Subject::of(command).filter(|subject| !subject.redirected);
        match subject {
            Some(subject) if subject.is_asked_in_full() => Plan::InFull,
            Some(subject) => match self.book.find(&subject.text) {
                Some(rule) if !self.habits().is_relaxed(&rule.name) => Plan::Rule(Arc::clone(rule)),
                _ => self.unknown(),
            },
            None => self.unknown(),
        }
    }

    /// The plan for an output without a rule. If grouped output did not suffice before, it is grouped only if it is too
    /// long.
    fn unknown(&self) -> Plan {
        match self.habits().is_relaxed(NO_RULE) {
            true => Plan::InFull,
            false => Plan::Unknown,
        }
    }

    /// Records the start of a command from the model.
    ///
    /// If it repeats the last shortened command within a minute, the repetition is counted, and the rule is
    /// disabled for the session.
    pub fn on_command_start(&self, command: &str, now: Instant) {
        if let Some(rule) = self.habits().run(command, now) {
            self.metrics.count_rerun(&rule);
        }
    }

    /// Records that `rule` shortened the output of a command from the model. `reference`: the stored raw
    /// output.
    pub fn shortened(&self, command: &str, rule: &str, reference: Option<&str>, now: Instant) {
        self.habits().filtered(command, rule, reference, now);
    }

    /// Records another action of the model.
    pub fn on_other_action(&self) {
        self.habits().acted();
    }

    /// Records a request for the output under `reference`. The rule that shortened it is disabled for the
    /// session.
    pub fn on_recall(&self, reference: &str) {
        if let Some(rule) = self.habits().recall(reference) {
            self.metrics.count_recall(&rule);
        }
    }

    fn habits(&self) -> MutexGuard<'_, RuleFeedback> {
        self.habits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Filters the complete output of `command`, which exited with `exit_code`. The result has at most 50,000 characters.
    #[must_use]
    pub fn filter(&self, command: &str, output: &str, exit_code: Option<i32>) -> FilteredOutput {
        let mut stream = self.start(command, MAX_CHARS);
        stream.push(output);
        stream.finish(exit_code)
    }

    /// Starts the filter for the output of `command`. The result has at most `max_chars` characters.
    #[must_use]
    pub fn start(&self, command: &str, max_chars: usize) -> FilterStream {
        FilterStream::new(self.plan(command), max_chars, Arc::clone(&self.metrics))
    }
}

#[cfg(test)]
mod tests {
    use super::super::confidence::FilterConfidence;
    use super::super::parse_rules::parse_rules;
    use super::*;

    fn filters(rules: &str) -> FilterPipeline {
        let (rules, warnings) = parse_rules("test", rules);
        assert_eq!(warnings, []);
        FilterPipeline::new(RuleSet::new(rules))
    }

    fn run(filters: &FilterPipeline, printed: &str, exit_code: i32) -> FilteredOutput {
        let mut run = filters.start("build", 50_000);
        run.push(printed);
        run.finish(Some(exit_code))
    }

    /// The result for an output without a rule that arrives in chunks of `piece` bytes.
    fn in_pieces(
        filters: &FilterPipeline,
        max_chars: usize,
        printed: &str,
        bytes: usize,
    ) -> FilteredOutput {
        let mut run = filters.start("unheard-of", max_chars);
        let mut rest = printed;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(bytes.min(rest.len()));
            run.push(piece);
            rest = more;
        }
        run.finish(Some(0))
    }

    fn compiling(count: usize) -> String {
        (0..count)
            .map(|number| format!("   Compiling part-{number} v1.0.0\n"))
            .collect()
    }

    const STRIP: &str = r#"
        [[rules]]
        name = "build"
        match = { prefix = "build" }
        strategy = { type = "strip_noise", patterns = ["^ *Compiling"] }
    "#;

    /// Proves OUT-4, OUT-8.
    #[test]
    fn noise_is_removed_and_counted() {
        let filters = filters(STRIP);
        let filtered = run(&filters, &format!("{}done\n", compiling(20)), 0);
        assert_eq!(filtered.text, "done");
        assert_eq!(filtered.confidence, FilterConfidence::Full);
        assert_eq!(filtered.lines, (21, 1));
        let left_out = filtered.left_out.unwrap();
        assert_eq!(
            (left_out.lines, left_out.of, left_out.longest),
            (20, 21, (1, 20))
        );
        assert_eq!(left_out.notice(), "[20 of 21 lines omitted]");
        let nothing = run(&filters, "done\n", 0);
        assert_eq!(
            (nothing.text.as_str(), nothing.confidence),
            ("done", FilterConfidence::Fallback)
        );
        assert_eq!(nothing.left_out, None);
        assert_eq!(filters.metrics().levels(), [1, 0, 1]);
    }

    /// Proves OUT-7a.
    #[test]
    fn wrong_rule_loses_no_fact() {
        let rules = STRIP.replace("^ *Compiling", ".");
        let printed = format!(
            "{}error[E0308]: mismatched types\n  --> src/main.rs:3:5\n   |\n{}thread 'x' panicked at src/x.rs:1:2:\nboom\n{}",
            compiling(30),
            compiling(30),
            compiling(30)
        );
        let filtered = run(&filters(&rules), &printed, 101);
        assert_eq!(
            filtered.text,
            "   Compiling part-0 v1.0.0 [×90 like this]\nerror[E0308]: mismatched types\n  --> src/main.rs:3:5\n   |\nthread 'x' panicked at src/x.rs:1:2:\nboom"
        );
        assert_eq!(filtered.confidence, FilterConfidence::Partial);
    }

    /// Proves OUT-5.
    #[test]
    fn failure_can_have_its_own_strategies() {
        let rules = format!(
            "{STRIP}\non_failure = {{ type = \"truncate\", max_lines = 4, head = 2, tail = 2 }}"
        );
        let filters = filters(&rules);
        let printed = format!("{}done\n", compiling(60));
        assert_eq!(run(&filters, &printed, 0).text, "done");
        let failed = run(&filters, &printed, 1);
        assert_eq!(failed.lines, (61, 4));
        assert_eq!(failed.confidence, FilterConfidence::Partial);
    }

    /// Proves OUT-8.
    #[test]
    fn empty_strip_step_does_not_decide_the_confidence() {
        let check = |strategy: &str, printed: &str, expect| {
            let rule = STRIP.lines().filter(|line| !line.contains("strategy"));
            let rules = format!(
                "{}\nstrategy = {strategy}",
                rule.collect::<Vec<_>>().join("\n")
            );
            let confidence = run(&filters(&rules), printed, 0).confidence;
            assert_eq!(confidence, expect, "{strategy}");
        };
        let strip = r#"{ type = "strip_noise", patterns = ["^noise"] }"#;
        let cut = r#"{ type = "truncate", max_lines = 4, head = 2, tail = 2 }"#;
        let dedup = r#"{ type = "dedup" }"#;
        let text = format!("{}done\n", compiling(60));
        check(strip, &text, FilterConfidence::Fallback);
        check(
            &format!("[{strip}, {cut}]"),
            &text,
            FilterConfidence::Partial,
        );
        check(
            &format!("[{strip}, {dedup}]"),
            &text,
            FilterConfidence::Fallback,
        );
        check(
            &format!("[{strip}, {dedup}]"),
            &"a line\n".repeat(60),
            FilterConfidence::Full,
        );
        // Nothing is omitted.
        check(
            &format!("[{strip}, {cut}]"),
            "a\nb\n",
            FilterConfidence::Fallback,
        );
    }

    /// Proves OUT-7b.
    #[test]
    fn unmatched_output_is_unchanged() {
        let rules = STRIP
            .replace("strip_noise", "keep_matching")
            .replace("^ *Compiling", "^never$");
        let printed = compiling(60);
        let filtered = run(&filters(&rules), &printed, 0);
        assert_eq!(filtered.text, printed.trim_end());
        assert_eq!(filtered.confidence, FilterConfidence::Fallback);
        assert_eq!(filtered.left_out, None);
    }

    /// Proves OUT-11: for any length.
    #[test]
    fn long_output_retains_head_tail_and_facts() {
        let filters = filters(STRIP);
        let mut run = filters.start("cat numbers", 10_000);
        for number in 0..100_000 {
            if number == 50_000 {
                run.push("error: it broke\n");
            }
            run.push(&format!("line {number}\n"));
        }
        let filtered = run.finish(Some(1));
        assert!(filtered.text.starts_with("line 0\nline 1\n"));
        assert!(filtered.text.contains("\nerror: it broke\n"));
        assert!(filtered.text.ends_with("\nline 99999"));
        assert!(filtered.text.len() <= 10_000);
        assert_eq!(filtered.confidence, FilterConfidence::Partial);
        assert!(filtered.lost_text());
    }

    /// Proves OUT-7a, OUT-7d, OUT-11: if lines differ too much, nothing is grouped, and the size of the chunks
    /// has no effect.
    #[test]
    fn dissimilar_lines_yield_head_tail_and_facts() {
        let filters = FilterPipeline::new(RuleSet::new(Vec::new()));
        let word = |number: u64| {
            let digits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let letter = |byte: &u8| char::from(b'a' + byte % 26);
            digits.iter().map(letter).collect::<String>()
        };
        let mut printed = String::new();
        for number in 0..60_000 {
            printed += &format!(
                "{} {} {}\n",
                word(number),
                word(number + 1),
                word(number + 2)
            );
            match number {
                40_000 => printed += "\n\n  \n",
                50_000 => printed += "thread 'main' panicked at src/a.rs:1:2:\nno\n\n\n",
                55_000..55_030 => printed += "\nerror: it broke\n  --> src/b.rs:3:4\n",
                _ => {}
            }
        }
        let in_pieces = |bytes| in_pieces(&filters, 50_000, &printed, bytes);
        let filtered = in_pieces(64 * 1024);
        assert_eq!(filtered.confidence, FilterConfidence::Partial);
        assert_eq!(filtered.rule, None);
        assert!(filtered.text.starts_with(&format!("{} ", word(0))));
        assert!(filtered.text.ends_with(&format!(" {}", word(60_001))));
        for fact in [
            "panicked at src/a.rs:1:2:",
            "\nno\n",
            "error: it broke",
            "  --> src/b.rs:3:4",
        ] {
            assert!(filtered.text.contains(fact), "{fact}");
        }
        for bytes in [printed.len(), 200_000, 5000, 333, 61] {
            assert_eq!(in_pieces(bytes), filtered, "{bytes}");
        }
    }

    /// Proves OUT-7a, OUT-7d, OUT-11: a long output without a rule is grouped, for any size of chunks.
    #[test]
    fn long_output_is_grouped_to_its_end() {
        let filters = FilterPipeline::new(RuleSet::new(Vec::new()));
        let mut printed = String::new();
        for number in 0..100_000_u64 {
            let digits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            // These letters do not form a word such as `fail`.
            let letters = digits.map(|byte| char::from(b'a' + byte % 5));
            let word = String::from_iter(letters).repeat(4);
            printed += &format!("GET /{word}/{number} took {}ms\n", number % 7);
            match number {
                9 => printed += "a line that is rare\n",
                77_000 => printed += "error: it broke\n\n\n  --> src/b.rs:3:4\n",
                _ => {}
            }
        }
        let in_pieces = |bytes| in_pieces(&filters, 5000, &printed, bytes);
        let filtered = in_pieces(64 * 1024);
        assert_eq!(filtered.confidence, FilterConfidence::Partial);
        assert_eq!(filtered.rule.as_deref(), Some(NO_RULE));
        assert!(filtered.text.starts_with("GET /aaaaaaaaaaaa"));
        assert!(filtered.text.contains("[×100000 like this]"));
        for told in [
            "a line that is rare",
            "error: it broke",
            "  --> src/b.rs:3:4",
        ] {
            assert!(filtered.text.contains(told), "{told}");
        }
        assert!(filtered.text.ends_with("/99999 took 4ms"));
        assert!(filtered.lost_text());
        for bytes in [printed.len(), 200_000, 5000, 333] {
            assert_eq!(in_pieces(bytes), filtered, "{bytes}");
        }
    }
}
