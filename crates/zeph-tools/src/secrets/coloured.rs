//! Lines with colours: they are looked at as they are shown, and what they are without their colours is handed on, so
//! that nobody has to find it out again.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr_iter;

use super::scan::{self, Candidates};
use super::stream::StreamRedactor;
use super::visible_text::{self, HiddenKind};

/// A piece of text whose values were replaced, and what parts of it are without colours.
#[derive(Debug)]
pub struct Piece<'t, 'r> {
    pub(super) text: Cow<'t, str>,
    pub(super) shown: &'r Shown,
}

impl<'t, 'r> Piece<'t, 'r> {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text alone.
    #[must_use]
    pub fn into_text(self) -> Cow<'t, str> {
        self.text
    }

    /// The same, its text copied where it is borrowed.
    #[must_use]
    pub fn into_owned(self) -> Piece<'static, 'r> {
        Piece {
            text: Cow::Owned(self.text.into_owned()),
            shown: self.shown,
        }
    }

    /// Parts of the text, in order: whole lines of which colours are all that a terminal does not show. Each with its
    /// place, and as it is shown.
    pub fn without_colours(&self) -> impl Iterator<Item = (Range<usize>, &'r str)> {
        let shown = self.shown;
        let part = |part: &Part| {
            let text = str::from_utf8(shown.bytes.get(part.shown.clone())?).ok()?;
            Some((part.place.clone(), text))
        };
        shown.parts.iter().filter_map(part)
    }
}

/// Lines of a piece as they are shown.
#[derive(Debug, Default)]
pub(super) struct Shown {
    bytes: Vec<u8>,
    parts: Vec<Part>,
    /// Whether parts are asked for; else nothing is kept.
    pub(super) wanted: bool,
}

/// A part of a text.
#[derive(Debug)]
struct Part {
    /// Where it is in what is handed out.
    place: Range<usize>,
    /// Where it is, as it is shown.
    shown: Range<usize>,
}

impl Shown {
    /// Forgets what the last piece was; its memory is used again.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }
}

impl StreamRedactor {
    /// Takes the whole lines of `text` in a range, until one changes what the next are; returns how many bytes that
    /// were. Up to `copied` the text is handed out. Lines are looked at as they are shown, and as they are printed:
    /// where nothing but colours is in them, those of which something is found as they are shown alone.
    pub(super) fn coloured(
        &mut self,
        text: &str,
        range: Range<usize>,
        copied: &mut usize,
    ) -> usize {
        let mut shown = std::mem::take(&mut self.shown);
        if !shown.wanted {
            shown.clear();
        }
        let taken = self.coloured_into(&mut shown, text, range, copied);
        self.shown = shown;
        taken
    }

    fn coloured_into(
        &mut self,
        all: &mut Shown,
        text: &str,
        range: Range<usize>,
        copied: &mut usize,
    ) -> usize {
        let base = all.bytes.len();
        // Where each line is, in what is shown and in the text.
        let mut lines = Vec::with_capacity(range.len() / 64);
        let (mut start, mut at) = (0, range.start);
        let hidden =
            visible_text::add_shown(&text[range.clone()], &mut all.bytes, |shown, line| {
                let (shown, end) = (shown - base, range.start + line);
                lines.push((start..shown, at..end));
                (start, at) = (shown, end);
            });
        let secrets = Arc::clone(&self.secrets);
        let Ok(as_shown) = str::from_utf8(&all.bytes[base..]) else {
            // It is UTF-8; if it were not, the first line would be looked at by itself.
            let line = lines
                .first()
                .map_or(range.clone(), |(_, line)| line.clone());
            self.copy(text, *copied..line.start);
            self.complete(&text[line.clone()], 0);
            *copied = line.end;
            return line.end - range.start;
        };
        let keeps = all.wanted && hidden == HiddenKind::Colours && !has_c1(as_shown);
        let mut candidates = Candidates::new(&secrets, as_shown);
        let printed = &text[..range.end];
        let mut as_printed = Candidates::new(&secrets, printed);
        let is_plain = hidden <= HiddenKind::Controls;
        let mut suspect = match is_plain {
            true => None,
            false => as_printed.suspect(range.start),
        };
        let mut number = 0;
        let mut taken = range.end;
        // What is handed out as it is begins here, in what is shown and in the text.
        let (mut same, mut same_shown) = (range.start, 0);
        let mut parts = Vec::new();
        let mut keep = |out: usize, text: Range<usize>, copied: usize, shown: Range<usize>| {
            if keeps && !text.is_empty() {
                let place = out + text.start - copied;
                parts.push(Part {
                    place: place..place + text.len(),
                    shown: base + shown.start..base + shown.end,
                });
            }
        };
        while let Some((start, _)) = lines.get(number) {
            let place = candidates.place(start.start);
            let of_shown =
                place.map(|place| lines.partition_point(|(shown, _)| shown.start <= place));
            let of_printed =
                suspect.map(|start| lines.partition_point(|(_, line)| line.start <= start));
            let Some(behind) = of_shown.into_iter().chain(of_printed).min() else {
                break;
            };
            number = behind;
            let (shown, line) = lines[behind - 1].clone();
            if of_printed == Some(behind) {
                suspect = as_printed.suspect(line.end);
            } else if candidates.is_clean(shown.clone())
                && (!is_plain || scan::is_clean(&secrets, &printed[line.clone()]))
            {
                continue;
            }
            keep(
                self.out.len(),
                same..line.start,
                *copied,
                same_shown..shown.start,
            );
            self.copy(text, *copied..line.start);
            self.complete(&text[line.clone()], 0);
            *copied = line.end;
            (same, same_shown) = (line.end, shown.end);
            if !self.is_plain() {
                taken = line.end;
                break;
            }
        }
        if taken == range.end {
            let end = as_shown.len();
            keep(self.out.len(), same..taken, *copied, same_shown..end);
        }
        all.parts.append(&mut parts);
        // What is not handed on is not kept.
        let kept = all.parts.last().map_or(0, |part| part.shown.end);
        all.bytes.truncate(kept);
        taken - range.start
    }
}

/// Whether a control character beyond ASCII, U+0080 to U+009F, is in a text.
fn has_c1(text: &str) -> bool {
    let bytes = text.as_bytes();
    let begins = |at: usize| bytes.get(at + 1).is_some_and(|next| *next < 0xa0);
    !text.is_ascii() && memchr_iter(0xc2, bytes).any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::SecurityPatterns;

    /// Proves OUT-21: no more is kept than is handed on, however often a key seems to begin.
    #[test]
    fn what_is_kept_of_a_piece_is_no_longer_than_it() {
        let begin = ["-----BEGIN ", "PRIVATE KEY-----"].concat();
        let line = format!("\x1b[1m{begin}\x1b[m\n\x1b[32mnothing\x1b[m\nok\x1b[m\n");
        let text = line.repeat(100);
        let mut redactor = StreamRedactor::new(Arc::new(SecurityPatterns::default()));
        let piece = redactor.push_piece(&text);
        assert_eq!(piece.text(), text);
        let shown: Vec<&str> = piece.without_colours().map(|(_, shown)| shown).collect();
        assert_eq!(shown, ["ok\n"; 100]);
        assert_eq!(redactor.shown.bytes.len(), 300);
    }
}
