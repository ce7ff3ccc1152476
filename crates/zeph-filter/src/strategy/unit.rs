//! An error or a warning with the lines that belong to it.

use super::kind::Kind;
use crate::line::{Line, OwnedLine};
use crate::line_template::{Mask, shape};

/// Lines of a trace, a place or a snippet that belong to an error.
const MAX_TRACE: usize = 40;
/// Other lines that may belong to it.
const MAX_AFTER: usize = 2;

/// Consecutive lines that are shown or omitted together.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) kind: Kind,
    /// The shape of the first line.
    first: u64,
    /// The first line and its trace.
    pub(super) head: Vec<OwnedLine>,
    /// Lines after the trace that may belong to it, such as the message of a panic.
    pub(super) after: Vec<OwnedLine>,
    /// True until the line of a Python traceback that names the exception.
    traceback: bool,
}

impl Unit {
    /// A unit that begins with `line`, which has the shape `first`.
    pub(super) fn new(kind: Kind, line: Line<'_>, first: u64) -> Self {
        Self {
            kind,
            first,
            traceback: line.text.trim_start().starts_with("Traceback ("),
            head: vec![line.into()],
            after: Vec::new(),
        }
    }

    /// Takes the next line if it belongs to the unit. `is_common`: lines of its shape precede the unit, so that only a
    /// trace takes it. `kind`: the kind of the line.
    pub(super) fn take(
        &mut self,
        line: Line<'_>,
        is_common: bool,
        kind: impl FnOnce() -> Kind,
    ) -> bool {
        let text = line.text;
        if text.trim_ascii().is_empty() {
            return false;
        }
        if self.after.is_empty() && self.head.len() <= MAX_TRACE {
            let is_trace = is_trace(text);
            if is_trace || self.traceback {
                self.traceback &= is_trace;
                self.head.push(line.into());
                return true;
            }
        }
        let belongs = !is_common && self.after.len() < MAX_AFTER && kind() == Kind::Plain;
        if belongs {
            self.after.push(line.into());
        }
        belongs
    }

    /// The hash that units of one group share. Facts differ in every number, errors of a log only in their traces.
    pub(super) fn shape(&self) -> u64 {
        match self.kind {
            Kind::Fact => self.hash(None),
            Kind::Plain | Kind::Alike | Kind::Complaint => self.hash(Some(self.first)),
        }
    }

    /// The hash that only equal units share: times and ids are masked.
    pub(super) fn exact(&self) -> u64 {
        mix(1, self.hash(None))
    }

    /// The hash of the unit with the lines after it; `exact`: the hash of the unit.
    pub(super) fn whole(&self, exact: u64) -> u64 {
        let start = mix(2, exact);
        let after = self.after.iter();
        after.fold(start, |hash, line| mix(hash, shape(&line.text, Mask::Ids)))
    }

    /// The hash of the first line and its trace; `first`: the hash of the first line, if more than its ids is masked.
    fn hash(&self, first: Option<u64>) -> u64 {
        let start = first.map_or(0, |first| mix(0, first));
        let rest = self.head.iter().skip(first.iter().len());
        rest.fold(start, |hash, line| mix(hash, shape(&line.text, Mask::Ids)))
    }
}

fn mix(hash: u64, more: u64) -> u64 {
    (hash.rotate_left(5) ^ more).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// Whether a line continues an error: an indented line, a line of source text, a frame, a cause.
fn is_trace(text: &str) -> bool {
    const STARTS: [&str; 6] = [" ", "\t", "at ", "... ", "Caused by: ", "note: "];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    STARTS.iter().any(|start| text.starts_with(start))
        || (digits > 0 && text[digits..].trim_start().starts_with('|'))
}
