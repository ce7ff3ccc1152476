//! Run of the filter pipeline over one output.

use std::sync::Arc;

use super::binary::{self, Sniffer};
use super::confidence::FilterConfidence;
use super::facts::FactGuard;
use super::filtered::{FilteredOutput, no_longer_than};
use super::fit::{Fit, Fitted, Grouping};
use super::head_tail::{Kept, OutputLine, insert, joined};
use super::line::{ExitInfo, Line, Sink as _};
use super::metrics::FilterMetrics;
use super::notice::OmissionStats;
use super::plan::Plan;
use super::removed::Removed;
use super::sanitize::Sanitizer;
use super::strategy::Chain;

/// A run of the filter pipeline over the output of one command.
pub struct FilterStream {
    sanitizer: Sanitizer,
    sniffer: Sniffer,
    lines: LinePipeline,
}

/// Passes sanitized lines to the strategies and the fact guard.
struct LinePipeline {
    plan: Plan,
    max_chars: usize,
    metrics: Arc<FilterMetrics>,
    main: Option<Branch>,
    on_failure: Option<Branch>,
    plain: Fit,
    guard: FactGuard,
    /// The forms of the lines, for a rule that removes all of them.
    removed: Removed,
    count: u64,
    blank: u64,
    last: u64,
    bytes: u64,
    /// Replacement characters: one for each invalid part of UTF-8.
    undecoded: u64,
    /// The most bytes of the text with its notice; known at the end.
    limit: u64,
}

/// A chain of strategies and the lines that it emits.
struct Branch {
    chain: Chain,
    fit: Fit,
}

/// Alternatives to the lines that strategies selected.
struct BranchResult {
    /// The whole text, unless it is too long. It replaces a selection that is not shorter.
    whole: Option<Box<Kept>>,
    /// The worst confidence among them.
    worst: FilterConfidence,
}

/// How the lines of a result were selected.
enum Source {
    /// All lines.
    Whole,
    /// Head and tail.
    Cut,
    /// By strategies.
    Chosen(BranchResult),
}

impl FilterStream {
    /// Creates a run that follows `plan`; the result has at most `max_chars` characters.
    #[must_use]
    pub fn new(plan: Plan, max_chars: usize, metrics: Arc<FilterMetrics>) -> Self {
        let branch = |recipes: &[_]| Branch {
            chain: Chain::start(recipes),
            fit: Fit::new(max_chars, Some(EDGE)),
        };
        let (main, on_failure) = match &plan {
            Plan::Rule(rule) => (
                Some(branch(&rule.strategies)),
                rule.on_failure.as_deref().map(branch),
            ),
            Plan::Unknown | Plan::InFull | Plan::Plain => (None, None),
        };
        let edge = match &plan {
            Plan::Plain => None,
            Plan::InFull => Some(EDGE_IN_FULL),
            Plan::Rule(_) | Plan::Unknown => Some(EDGE),
        };
        Self {
            sanitizer: Sanitizer::new(),
            sniffer: Sniffer::default(),
            lines: LinePipeline {
                plan,
                max_chars,
                metrics,
                main,
                on_failure,
                plain: Fit::new(max_chars, edge),
                guard: FactGuard::default(),
                removed: Removed::default(),
                count: 0,
                blank: 0,
                last: 0,
                bytes: 0,
                undecoded: 0,
                limit: 0,
            },
        }
    }

    /// Processes the next bytes of the output before they are decoded. Without them, binary output is not recognized.
    pub fn see_bytes(&mut self, bytes: &[u8]) {
        self.sniffer.take(bytes);
    }

    /// Processes the next part of the output.
    pub fn push(&mut self, text: &str) {
        let Self {
            sanitizer, lines, ..
        } = self;
        lines.arrive(text);
        sanitizer.push(text, &mut |line| lines.line(line));
    }

    /// Ends the output, and returns the result. `exit_code`: the exit code of the command, if it is known.
    #[must_use]
    pub fn finish(mut self, exit_code: Option<i32>) -> FilteredOutput {
        let Self {
            sanitizer,
            sniffer,
            lines,
        } = &mut self;
        sanitizer.finish(&mut |line| lines.line(line));
        let overwritten = sanitizer.dropped_visible();
        lines.limit = lines.max_bytes(sniffer.bytes());
        let report = sniffer.report(lines.undecoded);
        let is_plain = matches!(lines.plan, Plan::Plain);
        let mut filtered = match report.filter(|_| !is_plain) {
            Some(report) => self.lines.binary(&report),
            None => self.lines.finish(exit_code, overwritten),
        };
        filtered.shorten();
        filtered
    }
}

/// Whether a line is empty or has only blanks.
fn is_blank(text: &str) -> bool {
    let shown = text.as_bytes().first().is_some_and(u8::is_ascii_graphic);
    !shown && text.trim_ascii().is_empty()
}

impl LinePipeline {
    /// Takes the next line.
    fn line(&mut self, line: Line<'_>) {
        self.count += 1;
        self.last = line.number;
        self.blank += u64::from(is_blank(line.text));
        self.guard.see(line);
        if matches!(self.plan, Plan::Rule(_)) {
            self.removed.see(line);
        }
        self.plain.keep(line);
        for branch in self.main.iter_mut().chain(&mut self.on_failure) {
            branch.chain.line(line, &mut branch.fit);
        }
    }

    /// Counts text that arrives.
    fn arrive(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.undecoded += text.matches(char::REPLACEMENT_CHARACTER).count() as u64;
    }

    /// Whether a text with its notice is longer than the output, however its marks and gaps are shortened.
    fn exceeds_limit(&self, text: &str) -> bool {
        let room = self.limit.saturating_sub(SHORT_NOTICE as u64);
        text.len() as u64 > room && no_longer_than(text.to_owned(), room).len() as u64 > room
    }

    /// The bytes that the text may have; `raw`: the bytes that were seen before they were decoded. The replacements of
    /// secrets may be longer than the secrets.
    fn max_bytes(&self, raw: u64) -> u64 {
        let mark = char::REPLACEMENT_CHARACTER.len_utf8() as u64;
        match raw {
            0 => self.bytes,
            _ => raw.max(self.bytes - (mark - 1) * self.undecoded),
        }
    }

    /// The result for binary output: a report instead of the data, and the text around it.
    fn binary(mut self, report: &str) -> FilteredOutput {
        let plain = std::mem::replace(&mut self.plain, Fit::new(0, None));
        let lines = plain.verbatim().kept.into_lines();
        let is_text = |line: &&OutputLine| binary::is_text(&line.text);
        let before = lines.iter().take_while(is_text).take(MAX_AROUND).count();
        let words = |line: &&OutputLine| line.text.len() >= MIN_AROUND || line.text.is_empty();
        let rest = lines[before..].iter().rev();
        let after = rest.take_while(is_text).take_while(words);
        let after = after.take(MAX_AROUND).count();
        let mut kept = Kept::new(self.max_chars);
        let keep = |kept: &mut Kept, lines: &[OutputLine]| {
            for OutputLine { number, text, .. } in lines {
                let number = *number;
                kept.keep(Line { number, text });
            }
        };
        keep(&mut kept, &lines[..before]);
        kept.say(
            lines.get(before).map_or(self.last, |line| line.number),
            report,
        );
        keep(&mut kept, &lines[lines.len() - after..]);
        let (_, lines) = self.guarded(kept, true);
        let (self_lines, self_last) = (self.count, self.last);
        let mut filtered = self.ended(FilterConfidence::Partial, lines, Source::Cut, false);
        filtered.rule = Some(BINARY.to_owned());
        // Zero bytes have no lines.
        filtered.left_out.get_or_insert(OmissionStats {
            lines: self_lines.max(1),
            of: self_lines.max(1),
            longest: (1, self_last.max(1)),
            place: filtered.text.len(),
        });
        filtered
    }

    fn finish(mut self, exit_code: Option<i32>, overwritten: bool) -> FilteredOutput {
        let end = ExitInfo {
            exit_code,
            lines: self.count,
        };
        let branch = match (self.on_failure.take(), self.main.take()) {
            (Some(on_failure), _) if end.failed() => Some(on_failure),
            (_, main) => main,
        };
        let plain = std::mem::replace(&mut self.plain, Fit::new(0, None));
        let mut understood = FilterConfidence::Full;
        if let Some(mut branch) = branch {
            let outcome = branch.chain.finish(end, &mut branch.fit);
            if !outcome.mistaken {
                let fitted = branch.fit.choose(end, IF_LONG);
                let cut = fitted.grouped || fitted.kept.is_cut();
                let (restored, lines) = self.guarded(fitted.kept, plain.is_cut());
                let confidence = match restored || cut {
                    true => outcome.confidence.and(FilterConfidence::Partial),
                    false => outcome.confidence,
                };
                let chosen = BranchResult {
                    whole: (!plain.is_cut()).then(|| Box::new(plain.verbatim().kept)),
                    worst: outcome.worst,
                };
                return self.ended(confidence, lines, Source::Chosen(chosen), overwritten);
            }
            understood = outcome.confidence;
        }
        let Fitted {
            kept,
            whole,
            grouped,
            confidence,
        } = match &self.plan {
            Plan::Plain => plain.verbatim(),
            Plan::Unknown => plain.choose(end, UNKNOWN),
            Plan::InFull => plain.choose(end, IN_FULL),
            Plan::Rule(_) => plain.choose(end, IF_LONG),
        };
        let cut = kept.is_cut();
        let (restored, lines) = self.guarded(kept, cut);
        let mut confidence = confidence.and(understood);
        if restored {
            confidence = confidence.and(FilterConfidence::Partial);
        }
        let source = match (grouped, cut) {
            (true, _) => Source::Chosen(BranchResult {
                whole: whole.map(Box::new),
                worst: FilterConfidence::Fallback,
            }),
            (false, true) => Source::Cut,
            (false, false) => Source::Whole,
        };
        self.ended(confidence, lines, source, overwritten)
    }

    /// The lines of `kept` with the missing facts, and whether facts were restored or could not be noted. If a rule
    /// removed every line, the lines state the forms of the removed ones. `is_cut`: the whole text is too long to be shown.
    fn guarded(&self, kept: Kept, is_cut: bool) -> (bool, Vec<OutputLine>) {
        let chars = kept.chars();
        let mut lines = kept.into_lines();
        let is_report = lines.iter().all(|line| is_blank(&line.text)) && !self.removed.is_empty();
        if is_report {
            lines = self.removed.report();
        }
        // Restored facts have a share of the budget of their own, and leave room for the other lines.
        let room = (self.max_chars / 5).max(self.max_chars.saturating_sub(chars));
        let room = room.saturating_sub(NOTES.min(self.max_chars / 10));
        let Some(mut back) = self.guard.missing(&lines, room) else {
            return (is_report || self.guard.surplus() > 0, lines);
        };
        if is_cut {
            // Head and tail contain parts of long lines that the guard adds whole.
            let length = |lines: &[OutputLine]| -> usize {
                lines.iter().map(|line| line.text.len() + 1).sum()
            };
            let mut total = length(&lines) + length(&back) + SHORT_NOTICE;
            while total as u64 > self.limit
                && let Some(fact) = back.pop()
            {
                total -= fact.text.len() + 1;
            }
        }
        insert(&mut lines, back);
        (true, lines)
    }

    /// The end. `source`: how the lines were selected.
    fn ended(
        self,
        confidence: FilterConfidence,
        lines: Vec<OutputLine>,
        source: Source,
        overwritten: bool,
    ) -> FilteredOutput {
        let mut text = joined(&lines);
        let mut lines = lines;
        let mut confidence = confidence;
        let mut grouped = matches!(source, Source::Chosen(_));
        let mut is_whole = matches!(source, Source::Whole);
        if let Source::Chosen(BranchResult {
            whole: Some(plain),
            worst,
        }) = source
        {
            let plain = plain.into_lines();
            let whole = joined(&plain);
            let is_shorter = text.len() + SHORT_NOTICE <= whole.len();
            if !is_shorter || self.exceeds_limit(&text) {
                confidence = confidence.and(match text == whole {
                    true => worst,
                    false => FilterConfidence::Fallback,
                });
                (lines, text) = (plain, whole);
                grouped = false;
                is_whole = true;
            }
        }
        let shown_blank = lines
            .iter()
            .filter(|line| !line.ours && line.text.trim_ascii().is_empty());
        let shown_blank = shown_blank.count() as u64;
        // The notice does not count omitted blank lines.
        let of = self.count - self.blank.saturating_sub(shown_blank);
        let left_out = match is_whole {
            true => None,
            false => OmissionStats::new(&lines, of, self.last),
        };
        let filtered = FilteredOutput {
            rule: match &self.plan {
                Plan::Rule(rule) => Some(rule.name.clone()),
                Plan::Unknown | Plan::InFull if grouped => Some(NO_RULE.to_owned()),
                Plan::Plain | Plan::Unknown | Plan::InFull => None,
            },
            confidence,
            left_out,
            overwritten,
            lines: (self.count, lines.len() as u64),
            bytes: (self.bytes, text.len() as u64),
            max_bytes: self.limit,
            text,
        };
        if let Some(rule) = &filtered.rule {
            let (before, after) = filtered.bytes;
            self.metrics.count(rule, confidence, before, after);
        }
        filtered
    }
}

/// Output without a rule.
const UNKNOWN: Grouping = Grouping {
    from: Some(100),
    max_percent: 90,
};
/// Output that is requested in full: a few equal lines are no reason to group source text.
const IN_FULL: Grouping = Grouping {
    from: None,
    max_percent: 25,
};
/// Output of a rule that leaves too many lines, or that does not understand the output.
const IF_LONG: Grouping = Grouping {
    from: None,
    max_percent: 90,
};

/// Lines at the start and at the end of grouped output that are shown as they are.
const EDGE: usize = 5;
const EDGE_IN_FULL: usize = 20;

/// Characters that are reserved for notes on the text.
const NOTES: usize = 400;

/// The rule name of grouped output without a rule.
pub(super) const NO_RULE: &str = "by-form";

/// The rule name of binary output.
const BINARY: &str = "binary";

/// Lines of text before and after binary data that are shown, and the length from which a line after it counts as text.
const MAX_AROUND: usize = 40;
const MIN_AROUND: usize = 8;

/// The least saving in bytes: about the length of a notice.
const SHORT_NOTICE: usize = 100;
