//! The fact guard: no rule loses the facts that a developer needs.
//!
//! The guard inspects every line of the output and notes the facts ([`shape`]). After the rule, each fact that the
//! result does not contain is restored at its position. A wrong rule then costs size, never a fact.

mod literals;
mod matcher;
mod patterns;
mod prefix;
mod restore;
mod shape;
#[cfg(test)]
mod tests;
mod told;

use std::collections::{BTreeMap, VecDeque};

use super::head_tail::OutputLine;
use super::line::{Line, OwnedLine};
use crate::line_template::{Mask, shape as form_of};
use shape::is_library_frame;
use told::Told;

pub(super) use shape::{Shape, Shapes};

/// Bytes of facts that are noted.
const MAX_FACTS_BYTES: usize = 512 * 1024;
/// The maximum bytes of one fact. A longer line is truncated.
const MAX_FACT: usize = 2 * 1024;
/// Forms that are distinguished.
const MAX_FORMS: usize = 1024;
/// Facts that are noted in addition, when there are too many: the last ones.
const MAX_RECENT: usize = 64;

/// A noted line.
#[derive(Debug)]
struct Fact {
    line: OwnedLine,
    shape: Shape,
    /// The hash of the line without numbers, ids and paths.
    form: u64,
}

/// Notes the facts of one output.
#[derive(Debug, Default)]
pub(super) struct FactGuard {
    shapes: Shapes,
    facts: Vec<Fact>,
    bytes: usize,
    /// The number of facts of each form.
    counts: BTreeMap<u64, u64>,
    /// The last fact of each form that has more facts than are noted.
    lasts: BTreeMap<u64, Fact>,
    /// The last facts that found no room.
    recent: VecDeque<Fact>,
    /// Facts that were not noted, because there were too many.
    surplus: u64,
    /// The last frame of a Python traceback that has not ended, outside of libraries.
    frame: Option<OwnedLine>,
}

impl FactGuard {
    /// Inspects the next line.
    pub(super) fn see(&mut self, line: Line<'_>) {
        let was_in_traceback = self.shapes.in_traceback();
        let shape = self.shapes.of(line.text);
        if let Some(shape) = shape {
            // The frame before the exception is its location.
            if let Some(frame) = self.frame.take().filter(|_| was_in_traceback) {
                self.note(frame.line(), Shape::Panic);
            }
            self.note(line, shape);
        } else if self.shapes.in_traceback() {
            if line.text.contains("File \"") && !is_library_frame(line.text) {
                OwnedLine::put(&mut self.frame, line);
            }
        } else if was_in_traceback {
            self.frame = None;
        }
    }

    fn note(&mut self, line: Line<'_>, shape: Shape) {
        let form = form_of(line.text, Mask::Shape);
        let text = &line.text[..line.text.floor_char_boundary(MAX_FACT)];
        let fact = || Fact {
            line: OwnedLine {
                number: line.number,
                text: text.to_owned(),
            },
            shape,
            form,
        };
        let has_room = self.bytes + text.len() <= MAX_FACTS_BYTES;
        if self.counts.len() >= MAX_FORMS && !self.counts.contains_key(&form) {
            self.surplus += 1;
            self.recent.push_back(fact());
            if self.recent.len() > MAX_RECENT {
                self.recent.pop_front();
            }
            return;
        }
        let count = self.counts.entry(form).or_default();
        *count += 1;
        if *count > shape.max_alike() || !has_room {
            self.surplus += u64::from(!has_room);
            match self.lasts.get_mut(&form) {
                Some(last) => {
                    last.line.set(Line {
                        number: line.number,
                        text,
                    });
                    last.shape = shape;
                }
                None => {
                    self.lasts.insert(form, fact());
                }
            }
            return;
        }
        self.bytes += text.len();
        self.facts.push(fact());
    }

    /// The number of facts that were not noted.
    pub(super) fn surplus(&self) -> u64 {
        self.surplus
    }

    /// The facts that `lines` do not contain, in order, as many as fit into `room` characters. `None`: nothing is
    /// missing.
    pub(super) fn missing(&self, lines: &[OutputLine], room: usize) -> Option<Vec<OutputLine>> {
        if self.facts.is_empty() {
            return None;
        }
        let result = Told::new(lines);
        let mut missing: Vec<&Fact> = Vec::new();
        let mut told: BTreeMap<u64, u64> = BTreeMap::new();
        for fact in self.facts.iter().chain(&self.recent) {
            match result.tells(&fact.line.text, fact.shape) || is_beginning(fact, lines) {
                true => *told.entry(fact.form).or_default() += 1,
                false => missing.push(fact),
            }
        }
        for (form, last) in &self.lasts {
            let count = self.counts.get(form).copied().unwrap_or(0);
            let is_told = result.tells(&last.line.text, last.shape) || is_beginning(last, lines);
            if !is_told || result.conceals(*form, count) {
                missing.push(last);
            }
        }
        missing.sort_by_key(|fact| fact.line.number);
        (!missing.is_empty()).then(|| restore::select(&missing, &self.counts, &told, room))
    }
}

/// Whether a fact is the beginning of a long line that `lines` contain.
fn is_beginning(fact: &Fact, lines: &[OutputLine]) -> bool {
    let text = &fact.line.text;
    // A cut at a character boundary leaves at most three bytes less.
    text.len() + 3 >= MAX_FACT && lines.iter().any(|line| line.text.starts_with(text))
}
