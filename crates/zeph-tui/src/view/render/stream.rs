//! Markdown that arrives in pieces.
//!
//! The document is cut at the start of the last block that is not complete. A complete block never changes, so that its
//! lines are stable. Code is stable line by line. A paragraph or a table that becomes too long is cut as well, so the
//! work for each piece is bounded, and the time for the document is linear in its length.

use ratatui_core::text::Line;

use super::fence::Fence;
use super::markdown::units::{Unit, UnitKind, has_gap, is_blank, is_blank_before, units};
use super::markdown::writer::{Origin, Written, write};
use super::markdown::{CONTINUATION, Head};
use super::styled_text::{StyledText, safe};
use super::wrap::{Hanging, MIN_COLUMNS, ranges, wrap};
use crate::sanitize::Sanitizer;

/// Lines of an open paragraph or table. A longer one is cut.
const MAX_OPEN_LINES: usize = 40;
/// The smallest open block that is cut.
const MIN_CUT_BYTES: usize = 2 * 1024;
/// The largest open block that is not cut.
const MAX_OPEN_BYTES: usize = 16 * 1024;
/// The largest open block that is shown as Markdown. The rest of a larger one is shown as text until it is complete.
const MAX_SHOWN_BYTES: usize = 32 * 1024;
/// Lines at the end of a cut paragraph that are open again.
const OPEN_AFTER_CUT: usize = 2;

/// A Markdown document that grows. Stable lines never change; the open rest may.
#[derive(Debug, Clone, Default)]
pub(crate) struct MarkdownStream {
    sanitizer: Sanitizer,
    /// The part of the document that is not stable.
    source: String,
    /// The part of the first unit of `source` that was already shown before `source`.
    head: Head,
    /// The lines of the first unit that were already returned.
    returned: usize,
    /// The open block of code; `source` continues it.
    fence: Option<Fence>,
    /// The unit before `source`.
    before: Option<UnitKind>,
    /// There is an empty line before `source`.
    has_blank: bool,
    /// The length of the complete lines in `source` that have been examined.
    examined: usize,
    /// The length of `source` at which a cut is tried.
    next_cut: usize,
}

impl MarkdownStream {
    /// Adds a piece of the document.
    pub(crate) fn push(&mut self, text: &str) {
        self.sanitizer.push(text, &mut self.source);
    }

    /// The lines that no further text can change, each once.
    pub(crate) fn take_stable(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        loop {
            if self.fence.is_some() {
                if !self.take_code(false, &mut lines) {
                    return lines;
                }
                continue;
            }
            let end = self.source.rfind('\n').map_or(0, |at| at + 1);
            if end == self.examined || end < self.next_cut {
                break;
            }
            self.examined = end;
            let units = units(&self.source[..end]);
            if let Some(code) = units.iter().position(|unit| unit.kind == UnitKind::Fence) {
                self.take_units(&units[..=code], width, &mut lines);
                self.open_fence(&mut lines);
                continue;
            }
            // The next line may still belong to a definition.
            let is_open = |last: &Unit| is_after_definition(&self.source, last.start);
            if units.len() > 1 && !units.last().is_some_and(is_open) {
                self.take_units(&units, width, &mut lines);
            }
            break;
        }
        self.cut(width, &mut lines);
        lines
    }

    /// The rest of the document as it looks now. The work is bounded if [`Self::take_stable`] was called before.
    pub(crate) fn open(&self, width: usize) -> Vec<Line<'static>> {
        if self.source.len() > MAX_SHOWN_BYTES && self.fence.is_none() {
            return self.tail(width);
        }
        let mut rest = self.clone();
        let last = &self.source[self.source.rfind('\n').map_or(0, |at| at + 1)..];
        // A line of marks that is not complete may become any block.
        let is_vague = match &self.fence {
            Some(fence) => fence.may_be_end(last),
            None => is_marks(last),
        };
        if is_vague {
            rest.source.truncate(self.source.len() - last.len());
        } else if self.fence.is_none() {
            close_inline(&mut rest.source);
        }
        rest.finish(width)
    }

    /// Ends the document: the lines that were not stable.
    pub(crate) fn finish(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        loop {
            if self.fence.is_some() {
                if !self.take_code(true, &mut lines) {
                    break;
                }
                continue;
            }
            let mut units = units(&self.source);
            if let Some(code) = units.iter().position(|unit| unit.kind == UnitKind::Fence) {
                self.take_units(&units[..=code], width, &mut lines);
                self.open_fence(&mut lines);
                continue;
            }
            units.push(Unit {
                kind: UnitKind::Other,
                start: self.source.len(),
            });
            self.take_units(&units, width, &mut lines);
            break;
        }
        *self = Self::default();
        lines
    }

    /// Renders all units except the last one, and removes them from the source.
    fn take_units(&mut self, units: &[Unit], width: usize, lines: &mut Vec<Line<'static>>) {
        let Some(last) = units.last() else { return };
        let start_number = match self.head {
            Head::Item(number) => Some(number),
            _ => None,
        };
        let first_number = units.first().and_then(|unit| number(unit.kind));
        // Items after a cut continue the numbers of their list.
        let head_of = |kind: UnitKind| match kind {
            UnitKind::Item {
                list: 0,
                number: Some(number),
            } => {
                let skipped = number.saturating_sub(first_number.unwrap_or(number));
                Head::Item(start_number.map_or(number, |start| start.saturating_add(skipped)))
            }
            UnitKind::Item {
                number: Some(number),
                ..
            } => Head::Item(number),
            _ => Head::Nothing,
        };
        for (at, pair) in units.windows(2).enumerate() {
            let [unit, next] = pair else { continue };
            if at > 0 || matches!(unit.kind, UnitKind::Item { .. }) {
                self.head = head_of(unit.kind);
            }
            self.gap(unit.kind, unit.start, lines);
            let written = write(&self.source[unit.start..next.start], width, &self.head);
            lines.extend(written.lines.into_iter().skip(self.returned));
            self.returned = 0;
            self.before = Some(unit.kind);
        }
        if units.len() > 1 {
            self.head = head_of(last.kind);
        }
        self.has_blank = match self.source[..last.start].is_empty() {
            true => self.has_blank,
            false => {
                is_blank_before(&self.source, last.start) || (units.len() == 1 && self.has_blank)
            }
        };
        self.source.drain(..last.start);
        self.examined = self.examined.saturating_sub(last.start);
        self.next_cut = 0;
    }

    /// Adds the empty line before a unit, if there has to be one.
    fn gap(&self, kind: UnitKind, start: usize, lines: &mut Vec<Line<'static>>) {
        let is_continued =
            self.returned > 0 || matches!(self.head, Head::Paragraph | Head::Table(_));
        let is_first = is_blank(&self.source[..start]);
        let is_blank = is_blank_before(&self.source, start) || (is_first && self.has_blank);
        if let Some(before) = self.before
            && !(is_first && is_continued)
            && has_gap(before, kind, is_blank)
        {
            lines.push(Line::default());
        }
    }

    /// Enters the block of code at the start of the source.
    fn open_fence(&mut self, lines: &mut Vec<Line<'static>>) {
        self.gap(UnitKind::Fence, 0, lines);
        let end = self
            .source
            .find('\n')
            .map_or(self.source.len(), |at| at + 1);
        self.fence = Some(Fence::open(self.source[..end].trim_end_matches('\n')));
        self.source.drain(..end);
        self.before = Some(UnitKind::Fence);
        self.head = Head::Nothing;
    }

    /// Moves complete lines of the open block of code to `lines`; at the end of the document all lines. Returns
    /// whether the block has ended.
    fn take_code(&mut self, is_end: bool, lines: &mut Vec<Line<'static>>) -> bool {
        let Some(fence) = &mut self.fence else {
            return true;
        };
        let mut used = 0;
        let mut is_closed = false;
        for line in self.source.split_inclusive('\n') {
            let text = line.strip_suffix('\n');
            if text.is_none() && !is_end {
                break;
            }
            used += line.len();
            let text = text.unwrap_or(line);
            if fence.is_end(text) {
                is_closed = true;
                break;
            }
            lines.push(fence.push(text));
        }
        self.source.drain(..used);
        if is_closed {
            self.fence = None;
            self.has_blank = false;
            self.examined = 0;
            self.next_cut = 0;
        }
        is_closed
    }

    /// Makes the beginning of an open block stable that is too long.
    fn cut(&mut self, width: usize, lines: &mut Vec<Line<'static>>) {
        let len = self.source.len();
        let limit = (width * MAX_OPEN_LINES).clamp(MIN_CUT_BYTES, MAX_OPEN_BYTES);
        let has_row = self.source.match_indices('\n').nth(2).is_some();
        let is_cut_table = matches!(self.head, Head::Table(_)) && has_row && self.next_cut == 0;
        if (len <= limit || len < self.next_cut) && !is_cut_table {
            return;
        }
        let end = self.source.rfind('\n').map_or(0, |at| at + 1);
        let units = units(&self.source);
        let is_done = match units.as_slice() {
            [unit] if unit.kind == UnitKind::Paragraph => {
                self.cut_paragraph(unit.start, width, lines)
            }
            [unit] if unit.kind == UnitKind::Table => self.cut_table(unit.start, end, width, lines),
            [unit] if unit.kind != UnitKind::Definitions => {
                self.cut_block(*unit, end, width, lines)
            }
            _ => false,
        };
        // The next try is after the block has grown by a quarter, so that the sum of all tries is linear.
        self.next_cut = if is_done {
            0
        } else {
            self.source.len() + self.source.len() / 4
        };
    }

    fn cut_paragraph(
        &mut self,
        start: usize,
        width: usize,
        lines: &mut Vec<Line<'static>>,
    ) -> bool {
        let Written {
            paragraph,
            lines: written,
            ..
        } = write(&self.source, width, &self.head);
        let Some((text, origins)) = paragraph else {
            return false;
        };
        let Some((count, at)) = paragraph_cut(&text, &origins, width) else {
            return false;
        };
        self.gap(UnitKind::Paragraph, start, lines);
        lines.extend(written.into_iter().take(count));
        self.source
            .replace_range(..at, CONTINUATION.encode_utf8(&mut [0; 4]));
        self.head = Head::Paragraph;
        self.examined = 0;
        true
    }

    /// The complete rows become stable. The columns retain their widths.
    fn cut_table(
        &mut self,
        start: usize,
        end: usize,
        width: usize,
        lines: &mut Vec<Line<'static>>,
    ) -> bool {
        let mut rows = self.source[start..end]
            .match_indices('\n')
            .map(|(at, _)| start + at + 1);
        let Some(header) = rows.nth(1) else {
            return false;
        };
        let Written {
            table: Some(layout),
            lines: written,
            ..
        } = write(&self.source[..end], width, &self.head)
        else {
            return false;
        };
        self.gap(UnitKind::Table, start, lines);
        lines.extend(written);
        self.source.drain(header..end);
        self.source.drain(..start);
        self.head = Head::Table(layout);
        self.examined = self.source.rfind('\n').map_or(0, |at| at + 1);
        true
    }

    /// The inner blocks before the last one become stable.
    fn cut_block(
        &mut self,
        unit: Unit,
        end: usize,
        width: usize,
        lines: &mut Vec<Line<'static>>,
    ) -> bool {
        let written = write(&self.source[..end], width, &self.head);
        if written.fixed > self.returned {
            self.gap(unit.kind, unit.start, lines);
            lines.extend(
                written
                    .lines
                    .into_iter()
                    .take(written.fixed)
                    .skip(self.returned),
            );
            self.returned = written.fixed;
        }
        // The source remains, as the end of the block is rendered with it.
        false
    }

    /// The last lines of a block that is too long to be rendered again and again.
    fn tail(&self, width: usize) -> Vec<Line<'static>> {
        let start = self
            .source
            .ceil_char_boundary(self.source.len().saturating_sub(MIN_CUT_BYTES));
        let text = StyledText::new(
            &safe(&self.source[start..]),
            ratatui_core::style::Style::new(),
        );
        wrap(&text, width, &Hanging::default())
    }
}

fn number(kind: UnitKind) -> Option<u64> {
    match kind {
        UnitKind::Item { number, .. } => number,
        _ => None,
    }
}

/// The place at which a paragraph is cut: the number of its lines before it, and the place in the source. It is the
/// start of a line in text without markup.
fn paragraph_cut(text: &StyledText, origins: &[Origin], width: usize) -> Option<(usize, usize)> {
    let lines = ranges(text.as_str(), |_| width.max(MIN_COLUMNS));
    let last = lines.len().checked_sub(OPEN_AFTER_CUT)?;
    (1..last).rev().find_map(|count| {
        let start = lines.get(count)?.0;
        let origin = origins
            .iter()
            .find(|origin| (origin.start..origin.end).contains(&start))?;
        Some((count, origin.source + start - origin.start))
    })
}

/// Whether the line before `start` may be a link definition, which the next line may continue.
fn is_after_definition(source: &str, start: usize) -> bool {
    let before = source[..start].lines().next_back().unwrap_or_default();
    before.trim_start().starts_with('[') && before.contains("]:")
}

/// Whether a line consists of the marks of blocks.
fn is_marks(line: &str) -> bool {
    line.len() < 16 && line.chars().all(|c| "-=*_`~|:> #+".contains(c))
}

/// Ends open code and strong text at the end of the source, so that its marks are not shown while it arrives.
fn close_inline(source: &mut String) {
    let block = source.rfind("\n\n").map_or(0, |at| at + 2);
    let (mut has_code, mut has_strong) = (false, false);
    let mut rest = &source[block..];
    while let Some(at) = rest.find(['`', '*', '\\']) {
        let mark = &rest[at..];
        let mut skipped = 1;
        if mark.starts_with("```") {
            return;
        } else if mark.starts_with('`') {
            has_code = !has_code;
        } else if !has_code && mark.starts_with("**") {
            has_strong = !has_strong;
            skipped = 2;
        } else if !has_code && mark.starts_with('\\') {
            skipped += mark[1..].chars().next().map_or(0, char::len_utf8);
        }
        rest = &mark[skipped..];
    }
    for (is_open, mark) in [(has_code, "`"), (has_strong, "**")] {
        if is_open {
            match source.strip_suffix(mark) {
                Some(text) => source.truncate(text.len()),
                None => source.push_str(mark),
            }
        }
    }
}

#[cfg(test)]
mod tests;
