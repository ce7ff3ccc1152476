//! Detection of lines that the terminal wraps at its right margin.
//!
//! Some displays (such as that of indicatif) fill every line with blanks up to the right margin and print the next one
//! after it, without a line break. The output does not contain the width of the screen, so the width is inferred when a
//! row is redrawn. A row with blanks at the margins is several lines if its width is a multiple of a screen width. If
//! one line is split by mistake, the result has an additional line that a terminal would have overwritten. No text is
//! hidden.

use unicode_width::UnicodeWidthChar as _;

use super::terminal_line::{TerminalLine, is_narrow};
use super::{Line, Sanitizer, WINDOW};

/// The minimum number of columns of a screen.
const NARROWEST: usize = 40;
/// The maximum number of columns of a screen.
const MAX_COLUMNS: usize = 512;
/// Common widths, which are tried after the known ones.
const COMMON: [usize; 7] = [80, 100, 120, 132, 160, 200, 240];
/// The interval in bytes at which a growing row is split into lines.
const EARLY: usize = 16 * 1024;
/// The blanks at the end of a filled line. A single blank may belong to a text.
const PADDING: &str = "  ";

/// The detected widths of the screen.
#[derive(Debug, Default)]
pub(super) struct Margins {
    seen: [usize; 4],
    count: usize,
}

impl Margins {
    /// Returns true if a width was detected.
    pub(super) fn are_known(&self) -> bool {
        self.count > 0
    }

    /// Returns the byte offsets at which the lines of a redrawn row end; `None` if the row is one line. `up` is the
    /// number of rows that the cursor moves up.
    pub(super) fn seams(&mut self, text: &str, up: usize) -> Option<Vec<usize>> {
        let padded = text.ends_with(PADDING);
        if text.len() < NARROWEST || up == 0 && !may_be_wrapped(text.as_bytes()) {
            return None;
        }
        let columns = columns(text);
        let own = columns.is_multiple_of(up + 1).then(|| columns / (up + 1));
        let own = own.filter(|width| (NARROWEST..=MAX_COLUMNS).contains(width));
        if !(padded || own.is_some()) {
            return None;
        }
        let widths = self
            .seen
            .into_iter()
            .take(self.count)
            .chain(COMMON)
            .chain(own);
        let several = |width: &usize| columns.is_multiple_of(*width) && columns > *width;
        let found = widths.filter(several).find_map(|width| {
            let seams = seams(text, width, Some(up))?;
            Some((width, seams))
        });
        if let Some(width) = found.as_ref().map(|(width, _)| *width).or(own) {
            self.learn(width);
        }
        found.map(|(_, seams)| seams)
    }

    /// Returns the byte offsets at which the complete lines of a growing row end.
    pub(super) fn early_seams(&self, text: &str) -> Option<Vec<usize>> {
        let mut widths = self.seen.into_iter().take(self.count);
        widths.find_map(|width| seams(text, width, None))
    }

    fn learn(&mut self, width: usize) {
        if !self.seen.contains(&width) {
            self.seen.rotate_right(1);
            self.seen[0] = width;
            self.count = (self.count + 1).min(self.seen.len());
        }
    }
}

/// Returns true if a row may be several lines although the cursor does not move up.
fn may_be_wrapped(text: &[u8]) -> bool {
    text.len() >= NARROWEST && text.ends_with(PADDING.as_bytes())
}

fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Returns the byte offsets at which the lines of a row end on a screen of `width` columns.
///
/// A line that is longer than the screen is one line. The last `up` screen lines, which the cursor moves over, are
/// always separate. If `up` is `None`, the row still grows. Returns `None` if no line ends, or if fewer than half of
/// the screen lines end with padding.
fn seams(text: &str, width: usize, up: Option<usize>) -> Option<Vec<usize>> {
    // A character has at most as many columns as bytes.
    if text.len() <= width && up.is_none() {
        return None;
    }
    let mut ends = line_ends(text, width);
    if up.is_some() {
        ends.push(text.len());
    }
    let mut start = 0;
    let (mut padded, mut lines) = (0, 0);
    let mut seams = Vec::with_capacity(ends.len());
    for (index, end) in ends.iter().enumerate() {
        let line = &text[start..*end];
        start = *end;
        lines += 1;
        let filled = line.ends_with(PADDING);
        padded += usize::from(filled);
        let goes_on = !line.ends_with(' ') || !filled && !text[start..].starts_with(' ');
        if !goes_on || up.is_some_and(|up| index + 1 + up >= ends.len()) {
            seams.push(*end);
        }
    }
    (padded * 2 >= lines && !seams.is_empty()).then_some(seams)
}

/// Returns the offsets at which the screen lines of a row end, except the last one, for a screen of `width` columns.
fn line_ends(text: &str, width: usize) -> Vec<usize> {
    if is_narrow(text.as_bytes()) {
        return (width..text.len()).step_by(width).collect();
    }
    let mut ends = Vec::new();
    let mut column = 0;
    for (at, c) in text.char_indices() {
        let next = c.width().unwrap_or(0);
        if next > 0 && column + next > width {
            ends.push(at);
            column = 0;
        }
        column += next;
    }
    ends
}

impl Sanitizer {
    /// Splits the row of the cursor before it is redrawn, if it is several lines. `up` is the number of rows that the
    /// cursor moves up.
    pub(super) fn unwrap_row(&mut self, up: usize, out: &mut impl FnMut(Line<'_>)) {
        let row = &mut self.rows[self.row];
        if !row.has_grown() {
            return;
        }
        if let Some(seams) = self.margins.seams(row.text(), up) {
            self.split_row(&seams, out);
        }
    }

    /// Appends text to the row of the cursor. The complete lines of a long row become rows.
    pub(super) fn append_wrapped(&mut self, text: &str, out: &mut impl FnMut(Line<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let row = &mut self.rows[self.row];
            let length = row.text().len();
            let room = EARLY - length % EARLY;
            let (piece, more) = rest.split_at(rest.ceil_char_boundary(room));
            row.append(piece);
            rest = more;
            if piece.len() >= room {
                self.unwrap_early(out);
            }
        }
    }

    /// Splits the complete lines off the row of the cursor, if the screen width is known.
    pub(super) fn unwrap_early(&mut self, out: &mut impl FnMut(Line<'_>)) {
        let row = &mut self.rows[self.row];
        if !self.margins.are_known() || !row.has_grown() {
            return;
        }
        if let Some(seams) = self.margins.early_seams(row.text()) {
            self.split_row(&seams, out);
        }
    }

    /// Splits the row of the cursor at `seams`. The new rows overwrite the rows below.
    fn split_row(&mut self, seams: &[usize], out: &mut impl FnMut(Line<'_>)) {
        let Some(whole) = self.rows.remove(self.row) else {
            return;
        };
        let text = whole.text();
        let rest = seams.last().is_none_or(|end| *end < text.len());
        let ends = seams.iter().copied().chain(rest.then_some(text.len()));
        let mut start = 0;
        let mut at = self.row;
        for end in ends {
            let mut row = TerminalLine::default();
            row.append(text[start..end].trim_end_matches(' '));
            row.number = whole.number;
            row.ended = end < text.len() || whole.ended;
            start = end;
            if at > self.row
                && let Some(below) = self.rows.remove(at)
            {
                self.lost |= below.is_visible();
                row.ended |= below.ended;
            }
            self.rows.insert(at, row);
            at += 1;
        }
        self.row = at - 1;
        while self.rows.len() > WINDOW + 1 {
            self.evict(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(widths: &[usize], text: &str, up: usize) -> Vec<String> {
        let mut margins = Margins::default();
        widths.iter().for_each(|width| margins.learn(*width));
        let seams = margins.seams(text, up).unwrap_or_default();
        let mut start = 0;
        let line = |end: usize| {
            text[std::mem::replace(&mut start, end)..end]
                .trim_end()
                .to_owned()
        };
        seams.into_iter().map(line).collect()
    }

    fn padded(lines: &[&str], width: usize) -> String {
        let pad = |line: &&str| {
            let taken = columns(line);
            format!(
                "{line}{}",
                " ".repeat(taken.next_multiple_of(width) - taken)
            )
        };
        lines.iter().map(pad).collect()
    }

    /// Proves OUT-1.
    #[test]
    fn row_is_cut_at_the_screen_width() {
        let check = |text: &str, widths: &[usize], up, expect: &[&str]| {
            assert_eq!(lines(widths, text, up), expect, "{text:?}");
        };
        let bars = ["PASS a::b", "Running ▎ 1/69", "[ 00:00] a"];
        check(&padded(&bars, 80), &[], 0, &bars);
        check(&padded(&bars, 91), &[], 2, &bars);
        check(&padded(&bars, 91), &[91], 0, &bars);
        // The width is unknown.
        check(&padded(&bars, 91), &[], 0, &[]);
        check(&padded(&bars[..1], 80), &[80], 0, &[]);
        check("short", &[80], 0, &[]);
        // A line that is longer than the screen is one line.
        let long = "a word ".repeat(30);
        check(
            &padded(&["x", &long, "y"], 80),
            &[],
            0,
            &["x", long.trim_end(), "y"],
        );
        // Plain text that has such a length by chance.
        check(&"word ".repeat(32), &[80], 0, &[]);
    }
}
