//! `template`: lines of one shape are told once, with their number, wherever they stand.
//!
//! Of each shape ([`mask`](super::mask)) the first and the last line are shown; shapes that are
//! rare stay whole, and so does what looks like an error, a warning or a failure, with the lines
//! that belong to it. Short outputs stay as they are. Where so much is unlike what was before that reading the shapes
//! takes long, what follows stays as it is, if that is asked for.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use serde::Deserialize;

use super::dedup::Dedup;
use super::forms::Forms;
use super::kind::Kind;
use super::sample::Sample;
use super::{FilterConfidence, Recipe, Strategy};
use crate::filter::but_for_digits;
use crate::filter::line::{Block, End, Held, Line, Sink};

/// Shapes that are told apart; lines of further ones stay.
const MOST_SHAPES: usize = 4096;
/// Bytes of lines that are held back to be told in order, many times what is read of an output: where more would
/// stay, it is no use to group them.
const MOST_BYTES: usize = 512 * 1024;
/// Of so many bytes of lines that are held back, a tenth of all lines has to be like others: every so many lines it is
/// looked whether that holds.
const MANY_BYTES: usize = 256 * 1024;
const ROUND: u64 = 1024;
/// Lines of a shape up to which all of them stay.
const RARE: u64 = 3;
/// Indented lines that stay after one that tells of an error: a trace, a place.
const TRACE: u32 = 40;
/// Other lines that stay after it.
const AFTER: u32 = 2;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Outputs of fewer lines stay whole.
    #[serde(default = "hundred")]
    min_lines: usize,
    /// Of these, consecutive lines that differ in time and ids alone are told once.
    #[serde(default)]
    dedup: bool,
    /// Lines with fewer words stay: they are data.
    #[serde(default)]
    min_words: usize,
    /// Behind so many bytes of lines that are like none before but for digits and ids, lines stay as they are.
    max_unlike: Option<u64>,
}

fn hundred() -> usize {
    100
}

/// The most lines that `min_lines` may ask for: so many are held back.
const MOST_LINES: usize = 10_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn Recipe>, String> {
    let params: Params = super::params(table)?;
    if params.min_lines > MOST_LINES {
        return Err(format!("`min_lines` may be {MOST_LINES} at most"));
    }
    Ok(Arc::new(params))
}

impl Recipe for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Template {
            min_lines: self.min_lines,
            forms: Forms::new(self.min_words),
            dedup: self.dedup,
            early: Vec::new(),
            grouping: false,
            groups: Vec::new(),
            index: HashMap::default(),
            held: Vec::new(),
            bytes: 0,
            trace: 0,
            after: 0,
            grown: Vec::new(),
            lines: 0,
            sample: self
                .max_unlike
                .map(|most| Sample::new(self.min_words, most)),
            state: State::Groups,
        })
    }
}

/// A hash as it is: the shapes are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// The lines of one shape.
struct Group {
    kind: Kind,
    count: u64,
    /// The second, as long as there are no more than [`RARE`].
    second: Option<Held>,
    last: Held,
    /// A later one, by its place in the block at hand.
    newest: Option<usize>,
}

impl Group {
    /// Whether lines of it are left out.
    fn many(&self) -> bool {
        match self.kind {
            Kind::Plain => self.count > RARE,
            kind => self.count > kind.shown(),
        }
    }
}

/// A line that stays, and the group that it is the first of.
struct Shown {
    line: Held,
    group: Option<usize>,
}

struct Template {
    min_lines: usize,
    forms: Forms,
    dedup: bool,
    /// The first lines, until there are enough of them.
    early: Vec<Held>,
    grouping: bool,
    groups: Vec<Group>,
    index: HashMap<u64, usize, BuildHasherDefault<AsIs>>,
    held: Vec<Shown>,
    bytes: usize,
    /// Lines that may yet belong to the last error.
    trace: u32,
    after: u32,
    /// Groups of which the block at hand has a newer line.
    grown: Vec<usize>,
    lines: u64,
    /// Whether the next lines are worth it, if that is asked.
    sample: Option<Sample>,
    state: State,
}

/// What is done with the next lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// They are grouped.
    Groups,
    /// They stay as they are: those before this one were grouped, and told.
    PassesOn,
    /// Nothing: too many of those before would have stayed.
    GivenUp,
}

impl Template {
    fn show(&mut self, line: Line<'_>, group: Option<usize>) {
        self.bytes += line.text.len() + size_of::<Shown>();
        if self.bytes > MOST_BYTES {
            self.give_up();
            return;
        }
        self.held.push(Shown {
            line: line.into(),
            group,
        });
    }

    fn give_up(&mut self) {
        self.end(State::GivenUp);
    }

    fn end(&mut self, state: State) {
        self.state = state;
        self.groups = Vec::new();
        self.index = HashMap::default();
        self.held = Vec::new();
        self.grown = Vec::new();
    }

    /// Takes a line; `hash`: of what it is but for its digits, if that is known.
    fn group(&mut self, line: Line<'_>, hash: Option<u64>) {
        if self.belongs_to_error(line.text) {
            self.show(line, None);
            return;
        }
        let Some(shape) = self.forms.shape(line.text, hash) else {
            self.show(line, None);
            return;
        };
        let Some(&at) = self.index.get(&shape) else {
            self.open(shape, line);
            return;
        };
        if let Some(hash) = hash {
            self.forms.grouped(hash, at);
        }
        let group = &mut self.groups[at];
        group.count += 1;
        if group.count <= group.kind.shown() {
            self.expect_trace();
            self.show(line, None);
            return;
        }
        if group.count == 3 && group.kind == Kind::Plain {
            group.second = Some(std::mem::replace(&mut group.last, line.into()));
            return;
        }
        group.last.set(line);
    }

    /// The first line of a shape.
    fn open(&mut self, shape: u64, line: Line<'_>) {
        let kind = Kind::of(line.text);
        if kind != Kind::Plain {
            self.expect_trace();
        }
        if self.groups.len() == MOST_SHAPES {
            self.show(line, None);
            return;
        }
        let at = self.groups.len();
        self.groups.push(Group {
            kind,
            count: 1,
            second: None,
            last: Held::default(),
            newest: None,
        });
        self.index.insert(shape, at);
        self.show(line, Some(at));
    }

    fn expect_trace(&mut self) {
        self.trace = TRACE;
        self.after = AFTER;
    }

    /// Whether a line goes on with what the error before it said.
    fn belongs_to_error(&mut self, text: &str) -> bool {
        if self.trace == 0 && self.after == 0 {
            return false;
        }
        if text.starts_with([' ', '\t']) && self.trace > 0 {
            self.trace -= 1;
            return true;
        }
        self.trace = 0;
        if self.after > 0 && Kind::of(text) == Kind::Plain {
            self.after -= 1;
            return true;
        }
        false
    }

    /// Whether the next lines are grouped as well.
    fn goes_on(&self) -> bool {
        self.state == State::Groups
    }

    /// Counts the next line, and from time to time asks whether it is worth it.
    fn count(&mut self) {
        self.lines += 1;
        if self.lines.is_multiple_of(ROUND) && self.bytes > MANY_BYTES && !self.fits(self.lines) {
            self.give_up();
        }
    }

    /// Whether lines that are alike are what the output is made of: a tenth of it at least.
    fn fits(&self, lines: u64) -> bool {
        let many = self.groups.iter().filter(|group| group.many());
        many.map(|group| group.count).sum::<u64>() >= lines / 10
    }

    /// Whether there was so much that is unlike what was before that the next lines are not worth it; a line has come.
    fn has_had_enough(&mut self, text: &str) -> bool {
        let too_many = self.sample.as_mut().is_some_and(|sample| sample.take(text));
        too_many && self.grouping && self.goes_on()
    }

    /// Tells what was grouped up to a line; what follows stays as it is.
    fn close(&mut self, number: u64, out: &mut dyn Sink) {
        if !self.fits(self.lines) {
            self.give_up();
            return;
        }
        self.tell(Some(number), out);
        self.end(State::PassesOn);
    }

    /// The lines that were held back, in order, with the numbers of those like them `up_to` a line.
    fn tell(&mut self, up_to: Option<u64>, out: &mut dyn Sink) -> bool {
        let mut dropped = false;
        let mut lasts = Vec::new();
        for group in &mut self.groups {
            if group.count <= group.kind.shown() {
                continue;
            }
            let many = group.many();
            dropped |= many;
            lasts.extend(group.second.take().filter(|_| !many));
            let last = std::mem::take(&mut group.last);
            lasts.push(last);
        }
        let lasts = lasts.into_iter().map(|line| Shown { line, group: None });
        self.held.extend(lasts);
        self.held.sort_by_key(|shown| shown.line.number);
        for shown in &self.held {
            let line = shown.line.line();
            let group = shown.group.and_then(|group| self.groups.get(group));
            match group.filter(|group| group.many()) {
                Some(group) => out.say(line.number, &told(line.text, group.count, up_to)),
                None => out.keep(line),
            }
        }
        dropped
    }
}

fn told(text: &str, count: u64, up_to: Option<u64>) -> String {
    match up_to {
        Some(number) => format!("{text} [×{count} like this up to line {number}]"),
        None => format!("{text} [×{count} like this]"),
    }
}

impl Template {
    /// Takes the next line; `hash`: of what it is but for its digits, if that is known.
    fn next(&mut self, line: Line<'_>, hash: Option<u64>) {
        if self.grouping {
            self.group(line, hash);
            return;
        }
        self.early.push(line.into());
        if self.early.len() >= self.min_lines {
            self.grouping = true;
            for held in std::mem::take(&mut self.early) {
                if self.goes_on() {
                    let line = held.line();
                    self.group(line, Some(but_for_digits::hash(line.text)));
                }
            }
        }
    }

    /// Takes line `index` of a block, if it is like one before it and changes nothing but which the last such line
    /// is, and how many there are.
    fn one_more(&mut self, index: usize, hash: u64) -> bool {
        if self.trace > 0 || self.after > 0 || !self.grouping {
            return false;
        }
        let Some(at) = self.forms.group(hash) else {
            return false;
        };
        let group = &mut self.groups[at];
        if group.count < RARE || group.count < group.kind.shown() {
            return false;
        }
        group.count += 1;
        if group.newest.replace(index).is_none() {
            self.grown.push(at);
        }
        true
    }

    /// Takes the last lines of groups from the block in which they are.
    fn remember_newest(&mut self, block: Block<'_>) {
        for at in self.grown.drain(..) {
            let group = &mut self.groups[at];
            let newest = group
                .newest
                .take()
                .map(|index| block.line(block.spans()[index]));
            if let Some(line) = newest.filter(|line| line.number >= group.last.number) {
                group.last.set(line);
            }
        }
    }
}

impl Strategy for Template {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        match self.state {
            State::Groups => {}
            State::PassesOn => {
                out.keep(line);
                return;
            }
            State::GivenUp => return,
        }
        self.count();
        if self.goes_on() {
            self.next(line, Some(but_for_digits::hash(line.text)));
        }
        if self.has_had_enough(line.text) {
            self.close(line.number, out);
        }
    }

    fn looks_at_hashes(&self) -> bool {
        self.goes_on() && self.forms.are_found()
    }

    fn has_given_up(&self) -> bool {
        self.state == State::GivenUp
    }

    fn passes_on(&self) -> bool {
        self.state == State::PassesOn
    }

    fn block(&mut self, block: Block<'_>, hashes: &[u64], out: &mut dyn Sink) {
        if self.passes_on() {
            out.keep_block(block);
            return;
        }
        if hashes.is_empty() {
            self.forms.pass_over();
        }
        for (index, span) in block.spans().iter().enumerate() {
            self.count();
            if !self.goes_on() {
                return;
            }
            let hash = hashes.get(index).copied();
            let line = block.line(*span);
            if !hash.is_some_and(|hash| self.one_more(index, hash)) {
                self.next(line, hash);
            }
            if self.has_had_enough(line.text) {
                self.remember_newest(block);
                self.close(line.number, out);
                if self.passes_on() {
                    out.keep_block(block.last(block.spans().len() - index - 1));
                }
                return;
            }
        }
        self.remember_newest(block);
    }

    fn finish(&mut self, end: End, out: &mut dyn Sink) -> FilterConfidence {
        match self.state {
            State::Groups => {}
            State::PassesOn => return FilterConfidence::Partial,
            State::GivenUp => return FilterConfidence::Fallback,
        }
        let early = std::mem::take(&mut self.early);
        if self.dedup && !self.grouping {
            let mut dedup = Dedup::default();
            early.iter().for_each(|held| dedup.line(held.line(), out));
            return dedup.finish(end, out);
        }
        for line in early {
            out.keep(line.line());
        }
        let fits = self.fits(end.lines);
        if self.tell(None, out) && fits {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::strategy::testing::collected;

    fn told(table: &str, text: &str) -> (String, FilterConfidence) {
        collected(make, table, text, Some(0))
    }

    /// Proves OUT-7d.
    #[test]
    fn equal_shapes_are_counted_wherever_they_stand() {
        let mut text = "started\n".to_owned();
        for number in 0..40 {
            text += &format!("fetched {number} rows\nstored {number} rows in {number}ms\n");
        }
        text += "WARN disk is full\nERROR lost /a/b: 3\n    at main (a.js:1:2)\ndone\n";
        assert_eq!(
            told("min_lines = 9", &text),
            (
                "started\nfetched 0 rows [×40 like this]\nstored 0 rows in 0ms [×40 like this]\nfetched 39 rows\nstored 39 rows in 39ms\nWARN disk is full\nERROR lost /a/b: 3\n    at main (a.js:1:2)\ndone\n".to_owned(),
                FilterConfidence::Full
            )
        );
        assert_eq!(
            told("min_lines = 99", &text),
            (text, FilterConfidence::Fallback)
        );
    }

    /// Proves OUT-11: where more stays than is ever read, lines are not grouped, however many are alike.
    #[test]
    fn what_would_stay_too_long_is_not_grouped() {
        // A word of each third line is another one in each.
        let name = |number: usize| -> String {
            let letters = (0..8).map(|place| b'a' + (number >> (3 * place) & 7) as u8);
            letters.map(char::from).collect()
        };
        let text = |count: usize| -> String {
            let lines = (0..count).map(|number| {
                format!(
                    "stored row {number}\nread row {number}\nuser {} came\n",
                    name(number)
                )
            });
            lines.collect()
        };
        let few = text(1000);
        let (shown, confidence) = told("min_lines = 9", &few);
        assert_eq!(confidence, FilterConfidence::Full);
        assert_eq!(shown.lines().count(), 1000 + 4);
        let many = text(20_000);
        let (shown, confidence) = told("min_lines = 9", &many);
        assert_eq!(confidence, FilterConfidence::Fallback);
        assert_eq!(shown, "");
    }

    /// Proves OUT-7d, OUT-11: where reading the forms takes long, those of the first lines are told.
    #[test]
    fn behind_much_that_is_unlike_lines_stay() {
        let line = |number: usize| format!("read /{} in 3ms\n", "ab".repeat(1 + number % 997));
        let text: String = (0..1000).map(line).collect();
        let (shown, confidence) = told("min_lines = 9\nmax_unlike = 300000", &text);
        assert_eq!(confidence, FilterConfidence::Partial);
        let shown: Vec<&str> = shown.lines().collect();
        // Of so many lines of 13 one was looked at.
        let up_to = (1..1000).find(|up_to| {
            let looked_at = (13..=*up_to)
                .step_by(13)
                .map(|number| line(number - 1).len() - 1);
            13 * looked_at.sum::<usize>() > 300_000
        });
        let up_to = up_to.unwrap();
        assert_eq!(
            shown[0],
            format!("read /ab in 3ms [×{up_to} like this up to line {up_to}]")
        );
        assert_eq!(shown[1], line(up_to - 1).trim_end());
        let rest: Vec<String> = (up_to..1000).map(line).collect();
        assert_eq!(shown[2..], rest.concat().lines().collect::<Vec<_>>());
        // Where they are read in no time, all of them are grouped.
        let text: String = (0..40_000)
            .map(|number| format!("read row {number:05}\n"))
            .collect();
        let (shown, confidence) = self::told("min_lines = 9\nmax_unlike = 300000", &text);
        assert_eq!(shown, "read row 00000 [×40000 like this]\nread row 39999\n");
        assert_eq!(confidence, FilterConfidence::Full);
    }

    /// Proves OUT-4: short logs are told without consecutive equals.
    #[test]
    fn short_ones_lose_equal_neighbours() {
        let text = "10:00:00 tick\n10:00:01 tick\n10:00:02 tock\n";
        let (told, confidence) = told("dedup = true", text);
        assert_eq!(told, "10:00:00 tick (×2)\n10:00:02 tock\n");
        assert_eq!(confidence, FilterConfidence::Full);
    }

    proptest::proptest! {
        /// Proves OUT-7a: no error line is lost.
        #[test]
        fn errors_stay(lines in proptest::collection::vec("error\\[E0[0-9]\\]: [a-c]|panicked at [a-c]|tick [0-9]|    at [a-c]|WARN [0-9]", 0..80)) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let (told, _) = told("min_lines = 3", &text);
            for line in lines.iter().filter(|line| line.starts_with("error[")) {
                let shown = told.lines().filter(|shown| shown.starts_with(line.as_str())).count();
                let there = lines.iter().filter(|other| *other == line).count();
                proptest::prop_assert_eq!(shown, there);
            }
        }
    }
}
