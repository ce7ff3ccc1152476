//! The search for a text that does not occur exactly: line by line, with one kind of difference ignored at a time.
//! Exactly one place must match.
//!
//! Similarity is never used. A kind of difference is not ignored if the edit changes nothing else. Lines that the
//! edit does not change keep their bytes.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use memchr::memmem;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag};

use crate::indentation::IndentDelta;
use crate::lines::{Line, indent, lines, offset, plain, segments, trimmed, widths, with_signs};

/// Contents with more bytes are not searched.
const MAX_BYTES: usize = 8 << 20;
/// Places that an error names.
const MAX_NAMED: usize = 20;
/// The time limit for the comparison of the old and the new text.
const TIME: Duration = Duration::from_millis(200);

/// A kind of difference that a search ignores, in the order of the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToleratedDifference {
    /// LF and CR LF.
    LineEndings,
    /// White space at the ends of lines.
    TrailingSpace,
    /// An indentation that differs by the same amount on every line.
    Indentation,
    /// Typographic and plain quotes and dashes.
    Typography,
}

impl ToleratedDifference {
    /// Returns the name of the difference in messages, as a plural.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::LineEndings => "line endings",
            Self::TrailingSpace => "trailing white space",
            Self::Indentation => "indentation",
            Self::Typography => "typographic quotes and dashes",
        }
    }
}

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FuzzyMatch {
    /// One place: the text replaces the bytes from `start` to `end`.
    One {
        start: usize,
        end: usize,
        text: Vec<u8>,
        /// The first line of the place, from 1.
        line: usize,
        ignored: ToleratedDifference,
    },
    /// Several places, on these lines.
    Several(ToleratedDifference, Vec<usize>),
    /// The edit is already applied, at this line.
    Applied(usize),
    /// No place matches.
    Nothing,
}

/// A place that matches.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The index of its first line.
    line: usize,
    start: usize,
    end: usize,
}

struct Search<'a> {
    content: &'a [u8],
    lines: Vec<Line>,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

/// Searches `old`, which does not occur exactly, in `content` (UTF-8, possibly with invalid bytes).
pub(crate) fn fuzzy_match(content: &[u8], old: &str, new: &str) -> FuzzyMatch {
    if content.len() > MAX_BYTES || old.trim().is_empty() {
        return FuzzyMatch::Nothing;
    }
    if content.ends_with(b"\n") || !old.ends_with('\n') {
        return search(content, old, new);
    }
    // The text may end with the last line, which has no ending and gets none. The search sees the
    // ending of the line before it.
    let ending: &[u8] = match memchr::memrchr(b'\n', content) {
        Some(feed) if content[..feed].ends_with(b"\r") => b"\r\n",
        _ => b"\n",
    };
    match search(&[content, ending].concat(), old, new) {
        FuzzyMatch::One {
            start,
            end,
            mut text,
            line,
            ignored,
        } if end > content.len() => {
            for ending in [b"\n", b"\r"] {
                text.truncate(text.strip_suffix(ending).map_or(text.len(), <[u8]>::len));
            }
            let end = content.len();
            if content[start..end] == text {
                return FuzzyMatch::Applied(line);
            }
            FuzzyMatch::One {
                start,
                end,
                text,
                line,
                ignored,
            }
        }
        found => found,
    }
}

/// Searches `old` with one difference after another.
fn search(content: &[u8], old: &str, new: &str) -> FuzzyMatch {
    let (asked, wanted) = (segments(old), segments(new));
    if asked == wanted {
        return FuzzyMatch::Nothing;
    }
    let Some(lines) = lines(content) else {
        return FuzzyMatch::Nothing;
    };
    let search = Search {
        content,
        lines,
        old: asked,
        new: wanted,
    };
    let solid = |text: &str| -> String { text.split_whitespace().collect() };
    let about_space = solid(old) == solid(new);
    let flat = |text: &str| plain(solid(text).as_bytes()).into_owned();
    let about_signs = flat(old) == flat(new);
    for ignored in [
        ToleratedDifference::LineEndings,
        ToleratedDifference::TrailingSpace,
        ToleratedDifference::Indentation,
        ToleratedDifference::Typography,
    ] {
        match ignored {
            ToleratedDifference::LineEndings => {}
            _ if about_space => break,
            ToleratedDifference::Typography if about_signs => break,
            _ => {}
        }
        match search.places(ignored).as_slice() {
            [] => {}
            [place] => {
                return search
                    .replaced(*place, ignored)
                    .unwrap_or(FuzzyMatch::Nothing);
            }
            several => {
                let mut lines: Vec<usize> = several.iter().map(|place| place.line + 1).collect();
                lines.dedup();
                return FuzzyMatch::Several(ignored, lines);
            }
        }
    }
    FuzzyMatch::Nothing
}

impl<'a> Search<'a> {
    fn body(&self, line: Line) -> &'a [u8] {
        &self.content[line.start..line.body]
    }

    /// The first places that match without regard to `ignored`.
    fn places(&self, ignored: ToleratedDifference) -> Vec<Place> {
        let mut places = Vec::new();
        let room = self.old.len() - 1;
        for line in 0..self.lines.len().saturating_sub(room) {
            match (ignored, self.old.as_slice()) {
                (ToleratedDifference::Indentation, _) => {
                    places.extend(self.shift(line).map(|(_, place)| place));
                }
                (ToleratedDifference::LineEndings, [_]) => return places,
                (ToleratedDifference::TrailingSpace, [only]) => {
                    places.extend(self.before_end(line, only))
                }
                (ToleratedDifference::Typography, [only]) => self.within(line, only, &mut places),
                _ => places.extend(self.across(line, ignored)),
            }
            if places.len() >= MAX_NAMED {
                break;
            }
        }
        places
    }

    /// A text at the end of a line, requested with other white space at its end.
    fn before_end(&self, line: usize, only: &str) -> Option<Place> {
        let at = self.lines[line];
        let (body, only) = (trimmed(self.body(at)), trimmed(only.as_bytes()));
        body.ends_with(only).then(|| Place {
            line,
            start: at.start + body.len() - only.len(),
            end: at.start + body.len(),
        })
    }

    /// Texts within one line that differ in typographic signs.
    fn within(&self, line: usize, only: &str, places: &mut Vec<Place>) {
        let at = self.lines[line];
        let body = self.body(at);
        let (flat, only) = (plain(body), plain(only.as_bytes()));
        for found in memmem::find_iter(&flat, only.as_ref()) {
            let first = widths(&flat[..found]).count();
            let start = offset(body, first);
            let length = offset(&body[start..], widths(&only).count());
            places.push(Place {
                line,
                start: at.start + start,
                end: at.start + start + length,
            });
        }
    }

    /// A text across several lines: the end of `line`, whole lines, the start of the last one.
    fn across(&self, line: usize, ignored: ToleratedDifference) -> Option<Place> {
        let seen = |text: &'a [u8]| -> Cow<'a, [u8]> {
            match ignored {
                ToleratedDifference::LineEndings => text.into(),
                ToleratedDifference::TrailingSpace | ToleratedDifference::Indentation => {
                    trimmed(text).into()
                }
                ToleratedDifference::Typography => plain(trimmed(text)),
            }
        };
        let (first, rest) = self.old.split_first()?;
        let (last, middle) = rest.split_last()?;
        let lines = self.lines.get(line..line + self.old.len())?;
        let (at, first) = (lines[0], seen(first.as_bytes()));
        let flat = seen(self.body(at));
        if !flat.ends_with(&first) {
            return None;
        }
        let whole = lines[1..].iter().zip(middle);
        for (at, middle) in whole {
            if seen(self.body(*at)) != seen(middle.as_bytes()) {
                return None;
            }
        }
        let start = if first.is_empty() {
            at.body
        } else {
            let before = widths(&flat[..flat.len() - first.len()]).count();
            at.start + offset(self.body(at), before)
        };
        let at = lines[lines.len() - 1];
        let body = self.body(at);
        let last = last.as_bytes();
        let begins = match ignored {
            ToleratedDifference::Typography => plain(body).starts_with(&plain(last)),
            _ => body.starts_with(last),
        };
        let end = if begins {
            at.start + offset(body, widths(last).count())
        } else if ignored != ToleratedDifference::LineEndings && seen(body) == seen(last) {
            at.start + trimmed(body).len()
        } else {
            return None;
        };
        Some(Place { line, start, end })
    }

    /// The difference of indentation of the lines from `line` on, if they differ in nothing else.
    fn shift(&self, line: usize) -> Option<(IndentDelta<'a>, Place)> {
        let whole = match self.old.as_slice() {
            [whole @ .., ""] if !whole.is_empty() => whole,
            whole => whole,
        };
        let lines = self.lines.get(line..line + self.old.len())?;
        let mut indents = Vec::new();
        for (at, asked) in lines.iter().zip(whole) {
            let (here, text) = indent(trimmed(self.body(*at)));
            let (asked, wanted) = indent(trimmed(asked.as_bytes()));
            if text != wanted {
                return None;
            }
            if !text.is_empty() {
                indents.push((here, asked));
            }
        }
        let shift = IndentDelta::between(&indents)?;
        let last = lines[whole.len() - 1];
        let end = if whole.len() < self.old.len() {
            lines[whole.len()].start
        } else {
            last.start + trimmed(self.body(last)).len()
        };
        let start = lines[0].start;
        Some((shift, Place { line, start, end }))
    }

    /// The text that replaces `place`; `None` if the indentation of a new line is unknown.
    fn replaced(&self, place: Place, ignored: ToleratedDifference) -> Option<FuzzyMatch> {
        let shift = match ignored {
            ToleratedDifference::Indentation => self.shift(place.line).map(|(shift, _)| shift),
            _ => None,
        };
        let deadline = Some(Instant::now() + TIME);
        let ops = line_operations(&self.old, &self.new, deadline);
        let mut place = place;
        let last = self.old.len() - 1;
        // White space at the end of the last line remains there if lines are added after it. White space after the last
        // line ending of the old text belongs to another line.
        if !self.old[last].is_empty()
            && self
                .pairs(&ops)
                .any(|(new, old, same)| same && old == last && new + 1 < self.new.len())
        {
            let body = self.lines[place.line + last].body;
            if place.end < body && trimmed(&self.content[place.end..body]).is_empty() {
                place.end = body;
            }
        }
        let mut text = Vec::new();
        for (new, old, same) in self.pairs(&ops) {
            let there = self.there(place, old);
            let line = self.new[new].as_bytes();
            if same {
                text.extend_from_slice(there);
            } else if trimmed(line).is_empty() {
                text.extend_from_slice(line);
            } else {
                match &shift {
                    None if ignored == ToleratedDifference::Typography => {
                        text.extend_from_slice(&with_signs(there, self.old[old], self.new[new]));
                    }
                    None => text.extend_from_slice(line),
                    Some(shift) => text.extend_from_slice(&shift.applied(line)?),
                }
            }
            if new + 1 < self.new.len() {
                text.extend_from_slice(self.ending(place.line + old));
            }
        }
        let line = place.line + 1;
        if self.is_applied(place, &text) {
            return Some(FuzzyMatch::Applied(line));
        }
        Some(FuzzyMatch::One {
            start: place.start,
            end: place.end,
            text,
            line,
            ignored,
        })
    }

    /// For every line of the new text the line of the old text that it replaces, and whether both are equal.
    fn pairs(&self, ops: &[DiffOp]) -> impl Iterator<Item = (usize, usize, bool)> {
        let last = self.old.len() - 1;
        ops.iter().flat_map(move |op| {
            let (tag, old, new) = op.as_tag_tuple();
            let same = tag == DiffTag::Equal;
            new.enumerate().map(move |(index, new)| {
                let paired = if old.is_empty() {
                    old.start.saturating_sub(1)
                } else {
                    (old.start + index).min(old.end - 1)
                };
                (new, paired.min(last), same)
            })
        })
    }

    /// The bytes at `place` that match the line `old` of the old text.
    fn there(&self, place: Place, old: usize) -> &'a [u8] {
        let line = self.lines[place.line + old];
        let start = if old == 0 { place.start } else { line.start };
        let end = if old + 1 == self.old.len() {
            place.end
        } else {
            line.body
        };
        &self.content[start..end]
    }

    /// The ending of `line`. A last line without an ending takes that of the line before it.
    fn ending(&self, line: usize) -> &'a [u8] {
        let of = |line: Line| &self.content[line.body..line.end];
        let before = line.checked_sub(1).map(|line| of(self.lines[line]));
        match (of(self.lines[line]), before) {
            (b"", Some(before)) => before,
            (b"", None) => b"\n",
            (own, _) => own,
        }
    }

    /// Whether `text` already surrounds `place`: the edit would be applied twice. White space that
    /// the edit adds is not evidence.
    fn is_applied(&self, place: Place, text: &[u8]) -> bool {
        let there = &self.content[place.start..place.end];
        let solid = |text: &[u8]| text.iter().filter(|c| !c.is_ascii_whitespace()).count();
        if solid(text) == solid(there) {
            return text == there;
        }
        memmem::find_iter(text, there).any(|before| {
            place
                .start
                .checked_sub(before)
                .is_some_and(|start| self.content[start..].starts_with(text))
        })
    }
}

/// The operations that lead from `old` to `new`.
///
/// The function calls one algorithm directly: the general functions of the library contain the code of all six.
fn line_operations(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let (all_old, all_new) = (0..old.len(), 0..new.len());
    let Ok(()) = myers::diff_deadline(&mut hook, old, all_old, new, all_new, deadline);
    hook.into_inner().into_inner().into_ops()
}

#[cfg(test)]
mod tests;
