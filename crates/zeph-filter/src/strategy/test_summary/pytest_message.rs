//! What a failure of pytest says: the lines that begin with `E`.
//!
//! The first ones tell it. What follows shows where values come from (`+  where …`) and compares them line by
//! line; of a long comparison the lines that differ count.

use super::super::excerpt::keep_cut;
use crate::line::{Line, Sink};

/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;
/// First lines that stay.
const FIRST: usize = 16;
/// Of them, those that tell where a value comes from.
const ORIGINS: usize = 6;
/// Of a failure that is told in brief.
const FIRST_IN_BRIEF: usize = 8;
const ORIGINS_IN_BRIEF: usize = 2;
/// Lines that differ, behind them.
const DIFFERENT: usize = 12;

/// Takes the lines of one message.
#[derive(Debug)]
pub(super) struct Message {
    brief: bool,
    shown: usize,
    derived: usize,
    different: usize,
    gone: u64,
    last: u64,
}

impl Message {
    pub(super) fn new(brief: bool) -> Self {
        Self {
            brief,
            shown: 0,
            derived: 0,
            different: 0,
            gone: 0,
            last: 0,
        }
    }

    /// The next line, which begins with `E`.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let said = said(line.text);
        if said.is_empty() {
            return;
        }
        let derived = is_derived(said);
        let (first, origins) = match self.brief {
            true => (FIRST_IN_BRIEF, ORIGINS_IN_BRIEF),
            false => (FIRST, ORIGINS),
        };
        self.derived += usize::from(derived);
        if self.shown < first && !(derived && self.derived > origins) {
            self.shown += 1;
            keep_cut(line, MAX_LINE_BYTES, out);
        } else if !self.brief && self.different < DIFFERENT && is_different(said) {
            self.different += 1;
            keep_cut(line, MAX_LINE_BYTES, out);
        } else {
            self.gone += u64::from(!derived);
            self.last = line.number;
        }
    }

    /// The message has ended.
    pub(super) fn end(&mut self, out: &mut dyn Sink) {
        if self.gone > 0 && !self.brief {
            out.say(self.last, &format!("E   [… {} lines …]", self.gone));
        }
        *self = Self::new(self.brief);
    }
}

/// What a line says, without the sign of a message.
pub(super) fn said(text: &str) -> &str {
    text.strip_prefix('E').unwrap_or(text).trim_ascii()
}

/// Whether a line tells where a value of the message comes from.
fn is_derived(said: &str) -> bool {
    let rest = said.strip_prefix('+').map(str::trim_ascii_start);
    rest.is_some_and(|rest| rest.starts_with("where ") || rest.starts_with("and "))
}

/// Whether a line of a comparison differs: `- old`, `+ new`.
fn is_different(said: &str) -> bool {
    matches!(said.as_bytes(), [b'+' | b'-', b' ', ..])
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Texts;
    use super::*;

    #[test]
    fn the_first_lines_and_what_differs_stay() {
        let mut text: Vec<String> = ["E       assert 7 == 6", "E        +  where 7 = total(4)"]
            .map(str::to_owned)
            .into();
        text.extend((0..20).map(|number| format!("E         {number},")));
        text.push("E       -     8,".to_owned());
        let told = |brief| {
            let mut message = Message::new(brief);
            let mut out = Texts::default();
            for (number, text) in (1..).zip(&text) {
                message.line(Line { number, text }, &mut out);
            }
            message.end(&mut out);
            out.0
        };
        let full = told(false);
        assert_eq!(full[..16], text[..16]);
        assert_eq!(full[16..], ["E       -     8,", "E   [… 6 lines …]"]);
        assert_eq!(told(true), text[..8]);
    }
}
