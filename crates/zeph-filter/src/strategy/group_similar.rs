//! `template`: a strategy that omits repeated lines of equal shape, adjacent or not, and shows their number.
//!
//! In the shape of a line ([`line_template`](crate::line_template)) numbers, ids, paths and times are masked. The first and the last line of
//! each shape stay, and so do rare shapes. An error and the lines that belong to it, such as its trace, are one unit:
//! each distinct unit stays, and equal ones are counted. Short outputs stay as they are.

mod group;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde::Deserialize;

use super::dedup::Dedup;
use super::kind::Kind;
use super::unit::Unit;
use super::{FilterConfidence, Strategy, StrategyFactory};
use crate::line::{ExitInfo, Line, OwnedLine, Sink};
use crate::line_template::{Mask, shape};
use group::{Entry, Group, Role};

/// The maximum number of shapes. Lines of further shapes stay.
const MAX_SHAPES: usize = 4096;
/// Bytes of lines that are stored to be emitted in order. If more lines would stay, grouping is not worth it.
const MAX_BYTES: usize = 512 * 1024;
/// From so many stored bytes on a tenth of all lines must be left out. This is checked every `ROUND` lines.
const MANY_BYTES: usize = 256 * 1024;
const ROUND: u64 = 1024;
/// Lines of a shape up to which all of them stay.
const RARE: u64 = 3;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Outputs of fewer lines stay whole.
    #[serde(default = "hundred")]
    min_lines: usize,
    /// In shorter outputs, consecutive lines that differ in time and ids alone become one.
    #[serde(default)]
    dedup: bool,
}

fn hundred() -> usize {
    100
}

/// Letters of the shortest word.
const MIN_WORD: usize = 3;
/// The most lines that `min_lines` may ask for: so many are stored.
const MAX_MIN_LINES: usize = 10_000;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    let params: Params = super::params(table)?;
    if params.min_lines > MAX_MIN_LINES {
        return Err(format!("`min_lines` may be {MAX_MIN_LINES} at most"));
    }
    Ok(Arc::new(params))
}

impl StrategyFactory for Params {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Template {
            min_lines: self.min_lines,
            dedup: self.dedup,
            ..Template::default()
        })
    }
}

/// Groups the lines of one output.
#[derive(Debug, Default)]
pub(crate) struct Template {
    min_lines: usize,
    dedup: bool,
    /// Lines at the start and at the end that are shown in any case.
    edge: usize,
    /// The last lines, at most `edge`.
    tail: VecDeque<OwnedLine>,
    /// The first lines, up to `min_lines`.
    early: Vec<OwnedLine>,
    grouping: bool,
    groups: Vec<Group>,
    index: HashMap<u64, usize>,
    /// The kind of the first line of each shape.
    kinds: HashMap<u64, Kind>,
    /// Hashes of units that are emitted, without and with the lines after them.
    units: HashSet<u64>,
    entries: Vec<Entry>,
    bytes: usize,
    /// An error that the next line may belong to.
    open: Option<Unit>,
    /// Lines of the result.
    emitted: u64,
    /// The number of the last line that is an entry.
    last_shown: u64,
    lines: u64,
    /// Left-out lines that no group counts.
    dropped: u64,
    /// Whether a line has a word: otherwise the output is data.
    has_words: bool,
    given_up: bool,
}

impl Template {
    /// A template for an output of any length, which shows `edge` lines at the start and at the end as they are.
    pub(crate) fn with_edge(edge: usize) -> Self {
        Self {
            edge,
            ..Self::default()
        }
    }

    fn show(&mut self, line: OwnedLine, group: Option<usize>, role: Role) {
        self.bytes += line.text.len() + size_of::<Entry>();
        if self.bytes > MAX_BYTES {
            self.give_up();
            return;
        }
        if role != Role::Said {
            self.last_shown = line.number;
        }
        self.entries.push(Entry { line, group, role });
    }

    fn give_up(&mut self) {
        *self = Self {
            given_up: true,
            ..Self::default()
        };
    }

    /// The number of lines of the result, however many of them fit.
    pub(crate) fn emitted(&self) -> u64 {
        self.emitted
    }

    /// Adds a line that another strategy says.
    pub(crate) fn say(&mut self, number: u64, text: &str) {
        let text = text.to_owned();
        if !self.given_up {
            self.show(OwnedLine { number, text }, None, Role::Said);
        }
    }

    fn group(&mut self, line: Line<'_>) {
        let shape = shape(line.text, Mask::Shape);
        if let Some(mut open) = self.open.take() {
            let is_common = self.index.contains_key(&shape);
            let is_taken = open.take(line, is_common, || self.kind(shape, line.text));
            self.open = Some(open);
            if is_taken {
                return;
            }
            self.close();
            if self.given_up {
                return;
            }
        }
        match self.kind(shape, line.text) {
            Kind::Plain => self.single(line, shape),
            kind => self.open = Some(Unit::new(kind, line, shape)),
        }
    }

    /// The kind of a line. Lines that differ in numbers and ids alone are of one kind; the fact guard restores the rest.
    fn kind(&mut self, shape: u64, text: &str) -> Kind {
        if let Some(kind) = self.kinds.get(&shape) {
            return *kind;
        }
        let kind = Kind::of(text);
        if self.kinds.len() < MAX_SHAPES {
            self.kinds.insert(shape, kind);
        }
        kind
    }

    /// Takes a line that belongs to no other one.
    fn single(&mut self, line: Line<'_>, shape: u64) {
        if !line.text.chars().any(char::is_alphanumeric) {
            match self.last_shown + 1 == line.number {
                true => self.show(line.into(), None, Role::Bare),
                false => self.dropped += 1,
            }
            return;
        }
        self.has_words = self.has_words || is_worded(line.text);
        let Some(&at) = self.index.get(&shape) else {
            let group = self.new_group(shape, Kind::Plain, 1);
            self.show(line.into(), group, Role::Line);
            return;
        };
        let is_head = self.lines <= self.edge as u64;
        let group = &mut self.groups[at];
        group.count += 1;
        if is_head {
            // The count follows the last of them.
            group.shown += 1;
            let before = std::mem::replace(&mut group.entry, self.entries.len());
            self.entries[before].group = None;
            self.show(line.into(), Some(at), Role::Line);
            return;
        }
        match &mut group.last {
            Some(last) if group.count == RARE => {
                group.second = Some(std::mem::replace(last, line.into()));
            }
            Some(last) => last.set(line),
            None => group.last = Some(line.into()),
        }
    }

    /// A group for a new shape; `None` if there are too many.
    fn new_group(&mut self, shape: u64, kind: Kind, lines: u64) -> Option<usize> {
        let at = self.groups.len();
        if at == MAX_SHAPES {
            return None;
        }
        self.groups.push(Group {
            kind,
            count: 1,
            shown: 1,
            lines,
            second: None,
            last: None,
            entry: self.entries.len() + usize::try_from(lines).unwrap_or(1) - 1,
        });
        self.index.insert(shape, at);
        Some(at)
    }

    /// Takes the open unit: no further line belongs to it.
    fn close(&mut self) {
        let Some(unit) = self.open.take() else {
            return;
        };
        self.has_words = true;
        let (shape, exact) = (unit.shape(), unit.exact());
        let whole = unit.whole(exact);
        let room = self.units.len() < 4 * MAX_SHAPES;
        let known = self.units.contains(&exact);
        if room {
            self.units.insert(exact);
        }
        let lines = unit.head.len() as u64;
        let group = match self.index.get(&shape) {
            None => self.new_group(shape, unit.kind, lines),
            Some(&at) => {
                let group = &mut self.groups[at];
                group.count += 1;
                if known || group.shown >= unit.kind.shown() {
                    if !known {
                        group.last = unit.head.into_iter().next();
                    }
                    self.after_dropped(unit.after, whole);
                    return;
                }
                group.shown += 1;
                None
            }
        };
        if room {
            self.units.insert(whole);
        }
        let last = unit.head.len().saturating_sub(1);
        for (at, line) in unit.head.into_iter().enumerate() {
            self.show(line, group.filter(|_| at == last), Role::Line);
        }
        for line in unit.after {
            self.show(line, None, Role::Line);
        }
    }

    /// The lines after a unit that is left out: they go with it if they followed an equal one.
    fn after_dropped(&mut self, after: Vec<OwnedLine>, whole: u64) {
        if self.units.contains(&whole) {
            self.dropped += after.len() as u64;
            return;
        }
        for line in after {
            if !self.given_up {
                self.single(line.line(), shape(&line.text, Mask::Shape));
            }
        }
    }

    /// Whether at least a tenth of the lines is left out.
    fn fits(&self) -> bool {
        let missing = self
            .groups
            .iter()
            .map(|group| group.missing() * group.lines);
        missing.sum::<u64>() + self.dropped >= self.lines.div_ceil(10)
    }

    /// Emits the entries in order, with the counts of their groups. Returns whether lines are left out.
    fn tell(&mut self, out: &mut dyn Sink) -> bool {
        let mut missing = self.dropped > 0;
        let mut entries = std::mem::take(&mut self.entries);
        let firsts = entries
            .iter()
            .filter_map(|entry| Some((entry.group?, &entry.line)));
        let firsts: HashMap<usize, String> = firsts
            .map(|(group, line)| (group, line.text.clone()))
            .collect();
        for (at, group) in self.groups.iter_mut().enumerate() {
            let many = group.missing() > 0;
            missing |= many;
            let equal = |last: &OwnedLine| firsts.get(&at).is_some_and(|first| *first == last.text);
            let last = group.last.take().filter(|last| !many || !equal(last));
            let second = group.second.take().filter(|_| !many);
            let role = Role::Line;
            entries.extend(second.into_iter().chain(last).map(|line| Entry {
                line,
                group: None,
                role,
            }));
            if !many {
                group.lines = 0;
            }
        }
        let tail = std::mem::take(&mut self.tail);
        // Rows that are drawn over each other share a line number, so sorting does not make equal ones neighbours.
        for line in tail {
            if !entries.iter().any(|entry| entry.line == line) {
                entries.push(Entry {
                    line,
                    group: None,
                    role: Role::Line,
                });
            }
        }
        entries.sort_by_key(|entry| entry.line.number);
        entries.dedup_by(|next, entry| next.line == entry.line && next.role != Role::Said);
        self.emitted = entries.len() as u64;
        let mut rest = &entries[..];
        let mut shown = 0;
        while let Some(first) = rest.first() {
            let run = self.run(rest);
            let (these, more) = rest.split_at(run.max(1));
            rest = more;
            if first.role == Role::Bare && first.line.number != shown + 1 {
                continue;
            }
            for (at, entry) in these.iter().enumerate() {
                let line = entry.line.line();
                match entry.role {
                    Role::Said => out.say(line.number, line.text),
                    _ if at + 1 == run => {
                        let count = self.count_of(entry).unwrap_or_default();
                        let lines = self.lines_of(entry);
                        let text = format!("{} {}", line.text, count_note(count, run, lines));
                        out.say(line.number, &text);
                    }
                    _ => out.keep(line),
                }
                if entry.role != Role::Said {
                    shown = line.number;
                }
            }
        }
        missing
    }

    /// The number of consecutive lines at the start of `entries` whose groups have equal counts; 0 if the first line
    /// has no count.
    fn run(&self, entries: &[Entry]) -> usize {
        let Some(first) = entries.first() else {
            return 0;
        };
        let Some(count) = self.count_of(first) else {
            return 0;
        };
        if self.lines_of(first) > 1 {
            return 1;
        }
        let expected = (first.line.number..).zip(entries);
        let run = expected.take_while(|(number, entry)| {
            entry.line.number == *number
                && self.count_of(entry) == Some(count)
                && self.lines_of(entry) == 1
        });
        run.count()
    }

    /// The number of units in the group of an entry, if some are left out.
    fn count_of(&self, entry: &Entry) -> Option<u64> {
        let group = entry.group.and_then(|at| self.groups.get(at))?;
        (group.lines > 0).then_some(group.count)
    }

    fn lines_of(&self, entry: &Entry) -> u64 {
        let group = entry.group.and_then(|at| self.groups.get(at));
        group.map_or(0, |group| group.lines)
    }
}

/// Whether a line has a word: at least three ASCII letters and no digit, or a letter of another script.
fn is_worded(text: &str) -> bool {
    let mut runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    runs.any(|run| run.len() >= MIN_WORD && run.bytes().all(|byte| byte.is_ascii_alphabetic()))
        || text.chars().any(|c| !c.is_ascii() && c.is_alphabetic())
}

/// The count of the units of a group: `[×40 like this]`; of `run` lines with the same count, or of a unit of several
/// `lines`.
fn count_note(count: u64, run: usize, lines: u64) -> String {
    match (run, lines) {
        (2.., _) => format!("[×{count} like each of these {run} lines]"),
        (_, 2..) => format!("[×{count} like these {lines} lines]"),
        _ => format!("[×{count} like this]"),
    }
}

impl Strategy for Template {
    fn line(&mut self, line: Line<'_>, _out: &mut dyn Sink) {
        if self.given_up {
            return;
        }
        self.lines += 1;
        if self.edge > 0 {
            let held = match self.tail.len() < self.edge {
                true => None,
                false => self.tail.pop_front(),
            };
            let mut held = held.unwrap_or_default();
            held.set(line);
            self.tail.push_back(held);
        }
        if self.lines.is_multiple_of(ROUND) && self.bytes > MANY_BYTES && !self.fits() {
            self.give_up();
            return;
        }
        if self.grouping {
            self.group(line);
            return;
        }
        self.early.push(line.into());
        if self.early.len() >= self.min_lines {
            self.grouping = true;
            for held in std::mem::take(&mut self.early) {
                if !self.given_up {
                    self.group(held.line());
                }
            }
        }
    }

    fn finish(&mut self, end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        if self.given_up {
            return FilterConfidence::Fallback;
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
        self.close();
        let fits = self.fits() && self.has_words;
        if !self.given_up && self.tell(out) && fits {
            FilterConfidence::Full
        } else {
            FilterConfidence::Fallback
        }
    }
}

#[cfg(test)]
mod tests;
