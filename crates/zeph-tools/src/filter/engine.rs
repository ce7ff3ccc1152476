//! From what a command prints to what is read of it.
//!
//! [`FilterPipeline::start`] finds the rule by the command. [`FilterRun::push`] takes the text piece by piece:
//! sanitize → lines → strategies, with the fact guard beside them. [`FilterRun::finish`] takes the exit
//! code, picks between the rule's two chains, has the guard put back what vanished, and measures.
//! Whatever the length of the output, memory stays bounded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::but_for_digits;
use super::command::Subject;
use super::confidence::FilterConfidence;
use super::facts::Guard;
use super::habits::Habits;
use super::kept::{Kept, KeptLine};
use super::line::{Block, End, Line, Sink as _, Take, Whole};
use super::metrics::FilterMetrics;
use super::notice::LeftOut;
use super::removed::Removed;
use super::rule::Rule;
use super::rulebook::RuleBook;
use super::sanitize::Sanitizer;
use super::strategy::{self, Chain};
use crate::secrets::Piece;

/// The filters of a session: rules, and counters of what they did.
#[derive(Debug, Default)]
pub struct FilterPipeline {
    book: RuleBook,
    metrics: Arc<FilterMetrics>,
    habits: Mutex<Habits>,
    off: bool,
}

/// What is done with an output.
#[derive(Debug, Clone)]
pub enum Plan {
    /// It is sanitized, and nothing else: it was asked for in full, or filters are off.
    Plain,
    /// A rule is for it.
    Rule(Arc<Rule>),
    /// No rule is for it: it stays as it is unless it is long.
    Unknown,
}

impl FilterPipeline {
    /// Filters by the rules of `book`.
    #[must_use]
    pub fn new(book: RuleBook) -> Self {
        Self {
            book,
            ..Self::default()
        }
    }

    /// Filters that sanitize alone.
    #[must_use]
    pub fn off() -> Self {
        Self {
            off: true,
            ..Self::default()
        }
    }

    /// The rules.
    #[must_use]
    pub fn book(&self) -> &RuleBook {
        &self.book
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> &FilterMetrics {
        &self.metrics
    }

    /// What is done with the output of `command`.
    #[must_use]
    pub fn plan(&self, command: &str) -> Plan {
        if self.off {
            return Plan::Plain;
        }
        // What goes to a file is not what is read.
        let subject = Subject::of(command).filter(|subject| !subject.redirected);
        match subject {
            Some(subject) if subject.is_asked_in_full() => Plan::Plain,
            Some(subject) => match self.book.find(&subject.text) {
                Some(rule) if !self.habits().is_relaxed(&rule.name) => Plan::Rule(Arc::clone(rule)),
                _ => Plan::Unknown,
            },
            None => Plan::Unknown,
        }
    }

    /// A model's command is about to run. When it runs for the second time within a minute, and the
    /// rule had made the first output shorter, that is counted, and the rule is not used any more.
    pub fn about_to_run(&self, command: &str, now: Instant) {
        if let Some(rule) = self.habits().run(command, now) {
            self.metrics.count_rerun(&rule);
        }
    }

    /// The output of a model's command was made shorter by `rule`; all of it is stored under `reference`.
    pub fn shortened(&self, command: &str, rule: &str, reference: Option<&str>, now: Instant) {
        self.habits().filtered(command, rule, reference, now);
    }

    /// The model did something else.
    pub fn acted(&self) {
        self.habits().acted();
    }

    /// The model asks for what is stored under `reference`: the rule that had made it shorter is
    /// not used any more.
    pub fn recalled(&self, reference: &str) {
        if let Some(rule) = self.habits().recall(reference) {
            self.metrics.count_recall(&rule);
        }
    }

    fn habits(&self) -> MutexGuard<'_, Habits> {
        self.habits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with the output of `command`, of which at most `max_chars` characters are read.
    #[must_use]
    pub fn start(&self, command: &str, max_chars: usize) -> FilterRun {
        FilterRun::new(self.plan(command), max_chars, Arc::clone(&self.metrics))
    }
}

/// The output of one command on its way through the filters.
pub struct FilterRun {
    sanitizer: Sanitizer,
    lines: Lines,
}

/// What takes lines.
struct Lines {
    plan: Plan,
    max_chars: usize,
    metrics: Arc<FilterMetrics>,
    main: Option<Branch>,
    on_failure: Option<Branch>,
    plain: Kept,
    guard: Guard,
    /// The forms of the lines, for a rule that removes all of them.
    removed: Removed,
    /// Those of the lines of a block, but for their digits.
    hashes: Vec<u64>,
    /// A line without its ids; its memory is used again.
    masked: Vec<u8>,
    count: u64,
    blank: u64,
    last: u64,
    bytes: u64,
}

/// A chain of strategies and what it keeps.
struct Branch {
    chain: Chain,
    kept: Kept,
}

/// What strategies were for the lines that they chose.
struct Chosen {
    /// The whole text where it is there, which is read instead when they made nothing shorter.
    whole: Option<Kept>,
    /// The worst confidence among them.
    worst: FilterConfidence,
}

/// What is read of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filtered {
    /// The text, without the notice; no line break at its end.
    pub text: String,
    /// The rule that was used.
    pub rule: Option<String>,
    /// How well it understood; of an output without a rule whether it was cut.
    pub confidence: FilterConfidence,
    /// What is not in the text.
    pub left_out: Option<LeftOut>,
    /// Text that had been visible was overwritten by what followed: states of a progress bar.
    pub overwritten: bool,
    /// Lines of the sanitized output, and of the text.
    pub lines: (u64, u64),
    /// Bytes of what was printed, and of the text.
    pub bytes: (u64, u64),
}

impl Filtered {
    /// Whether the raw output holds text that is not read: it has to be stored.
    #[must_use]
    pub fn lost_text(&self) -> bool {
        self.left_out.is_some() || self.overwritten
    }
}

impl FilterRun {
    /// Follows `plan`; at most `max_chars` characters are read.
    #[must_use]
    pub fn new(plan: Plan, max_chars: usize, metrics: Arc<FilterMetrics>) -> Self {
        let branch = |recipes: &[_]| Branch {
            chain: Chain::start(recipes),
            kept: Kept::new(max_chars),
        };
        let (main, on_failure) = match &plan {
            Plan::Rule(rule) => (
                Some(branch(&rule.strategies)),
                rule.on_failure.as_deref().map(branch),
            ),
            Plan::Unknown => (Some(branch(&strategy::TEMPLATE)), None),
            Plan::Plain => (None, None),
        };
        Self {
            sanitizer: Sanitizer::new(),
            lines: Lines {
                plan,
                max_chars,
                metrics,
                main,
                on_failure,
                plain: Kept::new(max_chars),
                guard: Guard::default(),
                removed: Removed::default(),
                hashes: Vec::new(),
                masked: Vec::new(),
                count: 0,
                blank: 0,
                last: 0,
                bytes: 0,
            },
        }
    }

    /// Takes more of what the command prints.
    pub fn push(&mut self, text: &str) {
        let Self { sanitizer, lines } = self;
        lines.bytes += text.len() as u64;
        sanitizer.take(text, lines);
    }

    /// Takes more of what the command prints, its secrets replaced.
    pub fn push_piece(&mut self, piece: &Piece<'_, '_>) {
        let Self { sanitizer, lines } = self;
        lines.bytes += piece.text().len() as u64;
        sanitizer.take_piece(piece, lines);
    }

    /// The command has ended with this exit code; `None` where it is not known.
    #[must_use]
    pub fn finish(mut self, exit_code: Option<i32>) -> Filtered {
        let Self { sanitizer, lines } = &mut self;
        sanitizer.end(lines);
        let overwritten = sanitizer.dropped_visible();
        self.lines.finish(exit_code, overwritten)
    }
}

impl Take for Lines {
    fn block(&mut self, block: Block<'_>) {
        self.count += block.spans().len() as u64;
        self.last = block.spans().last().map_or(self.last, |span| span.number);
        let blank = block.lines().filter(|line| is_blank(line.text));
        self.blank += blank.count() as u64;
        let mut branches = self.main.iter().chain(&self.on_failure);
        self.hashes.clear();
        if branches.any(|branch| branch.chain.looks_at_hashes()) {
            let masked = &mut self.masked;
            let hash = |line: Line<'_>| {
                but_for_digits::hash_without_ids(line.text, masked)
                    .unwrap_or_else(|| but_for_digits::hash(line.text))
            };
            self.hashes.extend(block.lines().map(hash));
        }
        for line in block.lines() {
            self.guard.see(line);
            if matches!(self.plan, Plan::Rule(_)) {
                self.removed.see(line);
            }
        }
        if self.needs_plain() {
            self.plain.keep_block(block);
        }
        for branch in self.main.iter_mut().chain(&mut self.on_failure) {
            branch.chain.block(block, &self.hashes, &mut branch.kept);
        }
    }

    fn whole(&mut self, whole: Whole<'_>) -> bool {
        self.count += whole.lines;
        self.blank += whole.blank;
        self.last = whole.first + whole.lines - 1;
        for (text, number) in whole.text.split_terminator('\n').zip(whole.first..) {
            self.guard.see(Line { number, text });
        }
        if self.needs_plain() {
            self.plain.keep_whole(whole);
        }
        for branch in self.main.iter_mut().chain(&mut self.on_failure) {
            if branch.chain.passes_on() {
                branch.kept.keep_whole(whole);
            }
        }
        true
    }

    /// Where no strategy looks at lines any more.
    fn takes_whole(&self) -> bool {
        let mut branches = self.main.iter().chain(&self.on_failure);
        branches.all(|branch| branch.chain.has_given_up() || branch.chain.passes_on())
    }
}

/// Whether nothing but blanks stands in a line.
fn is_blank(text: &str) -> bool {
    let shown = text.as_bytes().first().is_some_and(u8::is_ascii_graphic);
    !shown && text.trim_ascii().is_empty()
}

impl Lines {
    /// Whether what no strategy chose may be read: it is not where none of them can be mistaken any more.
    fn needs_plain(&self) -> bool {
        let mut branches = self.main.iter().chain(&self.on_failure);
        let chosen = self.main.is_some() && branches.all(|branch| branch.chain.passes_on());
        !chosen || !self.plain.is_cut()
    }

    fn finish(mut self, exit_code: Option<i32>, overwritten: bool) -> Filtered {
        let end = End {
            exit_code,
            lines: self.count,
        };
        let branch = match (self.on_failure.take(), self.main.take()) {
            (Some(on_failure), _) if end.failed() => Some(on_failure),
            _ if !self.plain.is_cut() && matches!(self.plan, Plan::Unknown) => None,
            (_, main) => main,
        };
        let whole = (!self.plain.is_cut()).then(|| self.plain.chars());
        let plain = std::mem::replace(&mut self.plain, Kept::new(0));
        let (mut confidence, kept) = match branch {
            None if whole.is_some() => (FilterConfidence::Full, plain),
            None => (FilterConfidence::Partial, plain),
            Some(mut branch) => {
                let outcome = branch.chain.finish(end, &mut branch.kept);
                if outcome.mistaken {
                    (outcome.confidence, plain)
                } else {
                    let (confidence, kept) = (outcome.confidence, branch.kept);
                    let cut = kept.is_cut();
                    let (restored, lines) = self.guarded(kept);
                    let confidence = match restored || cut {
                        true => confidence.and(FilterConfidence::Partial),
                        false => confidence,
                    };
                    let chosen = Chosen {
                        whole: whole.map(|_| plain),
                        worst: outcome.worst,
                    };
                    return self.ended(confidence, lines, Some(chosen), overwritten);
                }
            }
        };
        let (restored, lines) = self.guarded(kept);
        if restored {
            confidence = confidence.and(FilterConfidence::Partial);
        }
        self.ended(confidence, lines, None, overwritten)
    }

    /// The lines of `kept` with the missing facts, and whether facts were restored or could not be noted. If a rule
    /// removed every line, the lines state the forms of the removed ones.
    fn guarded(&self, mut kept: Kept) -> (bool, Vec<KeptLine>) {
        let chars = kept.chars();
        let mut lines = kept.into_lines();
        let is_report = lines.iter().all(|line| is_blank(&line.text)) && !self.removed.is_empty();
        if is_report {
            lines = self.removed.report();
        }
        // Restored facts have a share of the budget of their own, and leave room for the other lines.
        let room = (self.max_chars / 5).max(self.max_chars.saturating_sub(chars));
        let room = room.saturating_sub(NOTES.min(self.max_chars / 10));
        let Some(back) = self.guard.missing(&lines, room) else {
            return (is_report || self.guard.surplus() > 0, lines);
        };
        insert(&mut lines, back);
        (true, lines)
    }

    /// The end. `chosen`: strategies chose the lines.
    fn ended(
        self,
        confidence: FilterConfidence,
        lines: Vec<KeptLine>,
        chosen: Option<Chosen>,
        overwritten: bool,
    ) -> Filtered {
        let mut text = joined(&lines);
        let mut lines = lines;
        let mut confidence = confidence;
        let mut grouped = chosen.is_some();
        if let Some(Chosen {
            whole: Some(plain),
            worst,
        }) = chosen
        {
            let plain = plain.into_lines();
            let whole = joined(&plain);
            if text.len() + SHORT_NOTICE > whole.len() {
                confidence = confidence.and(match text == whole {
                    true => worst,
                    false => FilterConfidence::Fallback,
                });
                (lines, text) = (plain, whole);
                grouped = false;
            }
        }
        let shown_blank = lines
            .iter()
            .filter(|line| !line.ours && line.text.trim_ascii().is_empty());
        let shown_blank = shown_blank.count() as u64;
        // That blank lines went is not worth a word.
        let of = self.count - self.blank.saturating_sub(shown_blank);
        let left_out = LeftOut::new(&lines, of, self.last);
        let filtered = Filtered {
            rule: match &self.plan {
                Plan::Rule(rule) => Some(rule.name.clone()),
                Plan::Unknown if grouped => Some(NO_RULE.to_owned()),
                Plan::Plain | Plan::Unknown => None,
            },
            confidence,
            left_out,
            overwritten,
            lines: (self.count, lines.len() as u64),
            bytes: (self.bytes, text.len() as u64),
            text,
        };
        if let Some(rule) = &filtered.rule {
            let (before, after) = filtered.bytes;
            self.metrics.count(rule, confidence, before, after);
        }
        filtered
    }
}

/// Characters that are set aside for what is said of the text.
const NOTES: usize = 400;

/// What is told as the rule of an output that no rule is for, and whose lines were grouped by form.
const NO_RULE: &str = "by-form";

/// A saving of less than the notice takes is none.
const SHORT_NOTICE: usize = 100;

/// Puts the lines `back` (ascending) where they belong: each behind the last line that came before it.
fn insert(lines: &mut Vec<KeptLine>, back: Vec<KeptLine>) {
    let old = std::mem::take(lines);
    let mut back = back.into_iter().peekable();
    for line in old {
        while let Some(fact) = back.next_if(|fact| fact.number < line.number) {
            lines.push(fact);
        }
        lines.push(line);
    }
    lines.extend(back);
}

fn joined(lines: &[KeptLine]) -> String {
    let length = lines.iter().map(|line| line.text.len() + 1).sum();
    let mut text = String::with_capacity(length);
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&line.text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::load::parse_rules;
    use super::*;

    fn filters(rules: &str) -> FilterPipeline {
        let (rules, warnings) = parse_rules("test", rules);
        assert_eq!(warnings, []);
        FilterPipeline::new(RuleBook::new(rules))
    }

    fn run(filters: &FilterPipeline, printed: &str, exit_code: i32) -> Filtered {
        let mut run = filters.start("build", 50_000);
        run.push(printed);
        run.finish(Some(exit_code))
    }

    /// What is read of an output without a rule that comes in pieces of so many bytes.
    fn in_pieces(
        filters: &FilterPipeline,
        max_chars: usize,
        printed: &str,
        bytes: usize,
    ) -> Filtered {
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
    fn noise_goes_and_is_counted() {
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
        assert_eq!(left_out.notice(None), "[20 of 21 lines omitted]");
        let nothing = run(&filters, "done\n", 0);
        assert_eq!(
            (nothing.text.as_str(), nothing.confidence),
            ("done", FilterConfidence::Fallback)
        );
        assert_eq!(nothing.left_out, None);
        assert_eq!(filters.metrics().levels(), "1/0/1");
    }

    /// Proves OUT-7a.
    #[test]
    fn a_wrong_rule_costs_no_fact() {
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
    fn a_failure_may_have_strategies_of_its_own() {
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
    fn that_nothing_was_to_strip_says_nothing_of_the_others() {
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
        // Nothing is left out.
        check(
            &format!("[{strip}, {cut}]"),
            "a\nb\n",
            FilterConfidence::Fallback,
        );
    }

    /// Proves OUT-7b.
    #[test]
    fn what_is_not_understood_stays_whole() {
        let rules = STRIP
            .replace("strip_noise", "keep_matching")
            .replace("^ *Compiling", "^never$");
        let printed = compiling(60);
        let filtered = run(&filters(&rules), &printed, 0);
        assert_eq!(filtered.text, printed.trim_end());
        assert_eq!(filtered.confidence, FilterConfidence::Fallback);
        assert_eq!(filtered.left_out, None);
    }

    /// Proves OUT-11: whatever the length.
    #[test]
    fn of_a_long_output_head_tail_and_facts_are_read() {
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

    /// Proves OUT-7a, OUT-7d, OUT-11: where so much is unlike, nothing is grouped, and it does not matter in which
    /// pieces the output comes.
    #[test]
    fn of_what_is_unlike_head_tail_and_facts_are_read() {
        let filters = FilterPipeline::new(RuleBook::new(Vec::new()));
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
        assert_eq!(filtered.confidence, FilterConfidence::Fallback);
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

    /// Proves OUT-7a, OUT-7d, OUT-11: of a long output without a rule the first lines are grouped, and it does not
    /// matter in which pieces it comes.
    #[test]
    fn of_what_is_much_and_unlike_the_first_lines_are_grouped() {
        let filters = FilterPipeline::new(RuleBook::new(Vec::new()));
        let mut printed = String::new();
        for number in 0..100_000_u64 {
            let digits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let letters = digits.map(|byte| char::from(b'a' + byte % 26));
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
        let first = filtered.text.lines().next().unwrap_or_default();
        assert!(first.starts_with("GET /aaaaaaaaaaaa"), "{first}");
        assert!(first.contains(" like this up to line "), "{first}");
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
