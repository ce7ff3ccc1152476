//! The message of a pytest failure: the lines that begin with `E`.
//!
//! The first lines have the most information. The next lines show the origin of values (`+  where …`) and
//! compare them. Of a long comparison the changed lines are shown.

use super::super::excerpt::keep_cut;
use crate::line::{Line, Sink};

/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;
/// First lines that are shown.
const FIRST: usize = 16;
/// The maximum number of origin lines among them.
const ORIGINS: usize = 6;
/// Limits for a failure that is shown in brief.
const FIRST_IN_BRIEF: usize = 8;
const ORIGINS_IN_BRIEF: usize = 2;
/// Changed lines that are shown after the first lines.
const DIFFERENT: usize = 12;

/// Processes the lines of one message.
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

    /// Processes the next line, which begins with `E`.
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

    /// Ends the message.
    pub(super) fn end(&mut self, out: &mut dyn Sink) {
        if self.gone > 0 && !self.brief {
            out.say(self.last, &format!("E   [… {} lines …]", self.gone));
        }
        *self = Self::new(self.brief);
    }
}

/// The text of a line without the leading `E`.
pub(super) fn said(text: &str) -> &str {
    text.strip_prefix('E').unwrap_or(text).trim_ascii()
}

/// Returns true if a line shows the origin of a value in the message.
fn is_derived(said: &str) -> bool {
    let rest = said.strip_prefix('+').map(str::trim_ascii_start);
    rest.is_some_and(|rest| rest.starts_with("where ") || rest.starts_with("and "))
}

/// Returns true for a changed line of a comparison: `- old`, `+ new`.
fn is_different(said: &str) -> bool {
    matches!(said.as_bytes(), [b'+' | b'-', b' ', ..])
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Texts;
    use super::*;

    #[test]
    fn first_and_differing_lines_stay() {
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
