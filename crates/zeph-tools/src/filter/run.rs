//! One output on its way through the filters.

use std::sync::Arc;

use super::binary::{self, Sniffer};
use super::confidence::FilterConfidence;
use super::engine::Plan;
use super::facts::Guard;
use super::fit::{Fit, Fitted, Grouping};
use super::kept::{Kept, KeptLine};
use super::line::{Block, End, Line, Sink as _, Take, Whole};
use super::metrics::FilterMetrics;
use super::notice::LeftOut;
use super::sanitize::Sanitizer;
use super::strategy::Chain;
use crate::secrets::Piece;

/// The output of one command on its way through the filters.
pub struct FilterRun {
    sanitizer: Sanitizer,
    sniffer: Sniffer,
    lines: Lines,
}

/// What takes lines.
struct Lines {
    plan: Plan,
    max_chars: usize,
    metrics: Arc<FilterMetrics>,
    main: Option<Branch>,
    on_failure: Option<Branch>,
    plain: Fit,
    guard: Guard,
    count: u64,
    blank: u64,
    last: u64,
    bytes: u64,
    /// Characters that stand for bytes that are not UTF-8.
    undecoded: u64,
}

/// A chain of strategies and what it keeps.
struct Branch {
    chain: Chain,
    fit: Fit,
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
    /// Bytes before they were decoded, if they are known.
    pub raw: Option<u64>,
}

impl Filtered {
    /// Whether the raw output holds text that is not read: it has to be stored.
    #[must_use]
    pub fn lost_text(&self) -> bool {
        self.left_out.is_some() || self.overwritten
    }
}

impl Filtered {
    /// Shortens the marks of bytes that are not UTF-8 if they make the text longer than the `raw` bytes.
    fn no_longer_than(mut self, raw: u64) -> Self {
        if self.text.len() as u64 > raw {
            self.text = no_longer_than(std::mem::take(&mut self.text), raw);
            self.bytes.1 = self.text.len() as u64;
        }
        self.raw = Some(raw);
        self
    }
}

/// The text with shorter marks of bytes that are not UTF-8, if it is longer than the `raw` bytes.
pub(crate) fn no_longer_than(text: String, raw: u64) -> String {
    match text.len() as u64 > raw {
        true => text.replace(char::REPLACEMENT_CHARACTER, "?"),
        false => text,
    }
}

impl FilterRun {
    /// Follows `plan`; at most `max_chars` characters are read.
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
            lines: Lines {
                plan,
                max_chars,
                metrics,
                main,
                on_failure,
                plain: Fit::new(max_chars, edge),
                guard: Guard::default(),
                count: 0,
                blank: 0,
                last: 0,
                bytes: 0,
                undecoded: 0,
            },
        }
    }

    /// Takes the next bytes of the output before they are decoded: without them binary output is not recognized.
    pub fn see_bytes(&mut self, bytes: &[u8]) {
        self.sniffer.take(bytes);
    }

    /// Takes more of what the command prints.
    pub fn push(&mut self, text: &str) {
        let Self {
            sanitizer, lines, ..
        } = self;
        lines.arrive(text);
        sanitizer.take(text, lines);
    }

    /// Takes more of what the command prints, its secrets replaced.
    pub fn push_piece(&mut self, piece: &Piece<'_, '_>) {
        let Self {
            sanitizer, lines, ..
        } = self;
        lines.arrive(piece.text());
        sanitizer.take_piece(piece, lines);
    }

    /// The command has ended with this exit code; `None` where it is not known.
    #[must_use]
    pub fn finish(mut self, exit_code: Option<i32>) -> Filtered {
        let Self {
            sanitizer,
            sniffer,
            lines,
        } = &mut self;
        sanitizer.end(lines);
        let overwritten = sanitizer.dropped_visible();
        match sniffer.report(lines.undecoded) {
            Some(report) if !matches!(lines.plan, Plan::Plain) => self.lines.binary(&report),
            _ => {
                let raw = sniffer.bytes();
                let filtered = self.lines.finish(exit_code, overwritten);
                // Without the bytes it is not known how many of them a mark stands for.
                match raw > 0 {
                    true => filtered.no_longer_than(raw),
                    false => filtered,
                }
            }
        }
    }
}

impl Take for Lines {
    fn block(&mut self, block: Block<'_>) {
        self.count += block.spans().len() as u64;
        self.last = block.spans().last().map_or(self.last, |span| span.number);
        let blank = block.lines().filter(|line| is_blank(line.text));
        self.blank += blank.count() as u64;
        self.guard.see_block(block);
        self.plain.keep_block(block);
        for branch in self.main.iter_mut().chain(&mut self.on_failure) {
            branch.chain.block(block, &mut branch.fit);
        }
    }

    fn whole(&mut self, whole: Whole<'_>) -> bool {
        self.count += whole.lines;
        self.blank += whole.blank;
        self.last = whole.first + whole.lines - 1;
        self.guard.see_whole(whole);
        self.plain.keep_whole(whole);
        true
    }

    /// If filters are off, no line has to be read on its own.
    fn takes_whole(&self) -> bool {
        !self.plain.groups()
    }
}

/// Whether nothing but blanks stands in a line.
fn is_blank(text: &str) -> bool {
    let shown = text.as_bytes().first().is_some_and(u8::is_ascii_graphic);
    !shown && text.trim_ascii().is_empty()
}

impl Lines {
    /// Counts text that arrives.
    fn arrive(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.undecoded += text.matches(char::REPLACEMENT_CHARACTER).count() as u64;
    }

    /// The result for binary output: a report in place of the data, and the text around it.
    fn binary(mut self, report: &str) -> Filtered {
        let plain = std::mem::replace(&mut self.plain, Fit::new(0, None));
        let lines = plain.verbatim().kept.into_lines();
        let is_text = |line: &&KeptLine| binary::is_text(&line.text);
        let before = lines.iter().take_while(is_text).take(MAX_AROUND).count();
        let words = |line: &&KeptLine| line.text.len() >= MIN_AROUND || line.text.is_empty();
        let rest = lines[before..].iter().rev();
        let after = rest.take_while(is_text).take_while(words);
        let after = after.take(MAX_AROUND).count();
        let mut kept = Kept::new(self.max_chars);
        let keep = |kept: &mut Kept, lines: &[KeptLine]| {
            for KeptLine { number, text, .. } in lines {
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
        let (_, lines) = self.guarded(kept);
        let (self_lines, self_last) = (self.count, self.last);
        let mut filtered = self.ended(FilterConfidence::Partial, lines, None, false);
        filtered.rule = Some(BINARY.to_owned());
        // Zero bytes have no lines.
        filtered.left_out.get_or_insert(LeftOut {
            lines: self_lines.max(1),
            of: self_lines.max(1),
            longest: (1, self_last.max(1)),
            place: filtered.text.len(),
        });
        filtered
    }

    fn finish(mut self, exit_code: Option<i32>, overwritten: bool) -> Filtered {
        let end = End {
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
                let (restored, lines) = self.guarded(fitted.kept);
                let confidence = match restored || cut {
                    true => outcome.confidence.and(FilterConfidence::Partial),
                    false => outcome.confidence,
                };
                let chosen = Chosen {
                    whole: (!plain.is_cut()).then(|| plain.verbatim().kept),
                    worst: outcome.worst,
                };
                return self.ended(confidence, lines, Some(chosen), overwritten);
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
        let (restored, lines) = self.guarded(kept);
        let mut confidence = confidence.and(understood);
        if restored {
            confidence = confidence.and(FilterConfidence::Partial);
        }
        let chosen = grouped.then_some(Chosen {
            whole,
            worst: FilterConfidence::Fallback,
        });
        self.ended(confidence, lines, chosen, overwritten)
    }

    /// The lines of `kept`, with the facts that are missing in it; whether there were any, or more than
    /// were noted.
    fn guarded(&self, mut kept: Kept) -> (bool, Vec<KeptLine>) {
        let chars = kept.chars();
        let mut lines = kept.into_lines();
        let missing = self.guard.missing(&lines);
        if missing.is_empty() {
            return (self.guard.surplus() > 0, lines);
        }
        // What is put back has its share of the budget, so that it does not push out everything else.
        let room = (self.max_chars / 5).max(self.max_chars.saturating_sub(chars));
        let room = room.saturating_sub(NOTES.min(self.max_chars / 10));
        let mut back = Vec::new();
        let mut used = 0;
        for fact in missing {
            used += fact.text.chars().count() + 1;
            if used > room {
                break;
            }
            back.push(KeptLine {
                number: fact.number,
                text: fact.text.clone(),
                ours: false,
            });
        }
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
                Plan::Unknown | Plan::InFull if grouped => Some(NO_RULE.to_owned()),
                Plan::Plain | Plan::Unknown | Plan::InFull => None,
            },
            confidence,
            left_out,
            overwritten,
            lines: (self.count, lines.len() as u64),
            bytes: (self.bytes, text.len() as u64),
            raw: None,
            text,
        };
        if let Some(rule) = &filtered.rule {
            let (before, after) = filtered.bytes;
            self.metrics.count(rule, confidence, before, after);
        }
        filtered
    }
}

/// Output that no rule is for.
const UNKNOWN: Grouping = Grouping {
    from: Some(100),
    max_percent: 90,
};
/// Output that was asked for in full: source text, for example, is not taken apart for a few equal lines.
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

/// Characters that are set aside for what is said of the text.
const NOTES: usize = 400;

/// What is told as the rule of an output that no rule is for, and whose lines were grouped by form.
pub(super) const NO_RULE: &str = "by-form";

/// The rule name of binary output.
const BINARY: &str = "binary";

/// Lines of text before and after binary data that are shown, and the length from which a line after it counts as text.
const MAX_AROUND: usize = 40;
const MIN_AROUND: usize = 8;

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
