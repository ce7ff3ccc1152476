//! Finds where a terminal has wrapped a line.
//!
//! Some displays (indicatif's, for one) fill every line with blanks up to the right margin and print the
//! next one behind it, without a line break. How wide the screen was is not told: it is found by
//! what is drawn over. A row whose width is a multiple of a screen's, with blanks at the margins, was several
//! lines. To take one line for several costs a line that a terminal would not show any more, and hides
//! nothing.

use unicode_width::UnicodeWidthChar as _;

use super::terminal_line::{TerminalLine, is_narrow};
use super::{Line, Sanitizer, WINDOW};

/// What a screen may have as columns.
const NARROWEST: usize = 40;
const MAX_COLUMNS: usize = 512;
/// Widths that are tried before any was seen.
const COMMON: [usize; 7] = [80, 100, 120, 132, 160, 200, 240];
/// Bytes that a line grows by before it is looked at whether it is several.
const EARLY: usize = 16 * 1024;
/// Blanks that are no end of a sentence.
const PADDING: &str = "  ";

/// The widths of the screen, as far as they were seen.
#[derive(Debug, Default)]
pub(super) struct Margins {
    seen: [usize; 4],
    count: usize,
}

impl Margins {
    /// Whether rows were wrapped before.
    pub(super) fn are_known(&self) -> bool {
        self.count > 0
    }

    /// A row that is drawn over, by a cursor that goes `up` so many rows: where each of its lines ends, in
    /// bytes. Nothing where it is one line.
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

    /// A row that still grows: where its complete lines end.
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

/// Whether a row over which the cursor does not go up may be several lines.
fn may_be_wrapped(text: &[u8]) -> bool {
    text.len() >= NARROWEST && text.ends_with(PADDING.as_bytes())
}

fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Where the lines of a row end, on a screen of `width` columns. A line that is longer than the screen
/// is one, but for those below the place to which the cursor goes `up`; without it the row still grows.
/// `None` where the blanks at the margins are not those of lines that were filled up.
fn seams(text: &str, width: usize, up: Option<usize>) -> Option<Vec<usize>> {
    // No character has more columns than bytes.
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

/// Where the lines of a row end but for the last one, on a screen of `width` columns.
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
    /// The cursor's row is about to be drawn over, by a cursor that goes `up`: if it was several lines, it becomes them.
    pub(super) fn unwrap_row(&mut self, up: usize, out: &mut impl FnMut(Line<'_>)) {
        let row = &mut self.rows[self.row];
        if !row.has_grown() {
            return;
        }
        if let Some(seams) = self.margins.seams(row.text(), up) {
            self.split_row(&seams, out);
        }
    }

    /// Adds text at the end of the cursor's row; of a long one the complete lines become rows.
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

    /// Nothing is added to the cursor's row for now: lines of it that are complete become rows.
    pub(super) fn unwrap_early(&mut self, out: &mut impl FnMut(Line<'_>)) {
        let row = &mut self.rows[self.row];
        if !self.margins.are_known() || !row.has_grown() {
            return;
        }
        if let Some(seams) = self.margins.early_seams(row.text()) {
            self.split_row(&seams, out);
        }
    }

    /// Cuts the cursor's row; the rows below it are written over.
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
    fn a_row_is_cut_where_the_screen_ends() {
        let check = |text: &str, widths: &[usize], up, expect: &[&str]| {
            assert_eq!(lines(widths, text, up), expect, "{text:?}");
        };
        let bars = ["PASS a::b", "Running ▎ 1/69", "[ 00:00] a"];
        check(&padded(&bars, 80), &[], 0, &bars);
        check(&padded(&bars, 91), &[], 2, &bars);
        check(&padded(&bars, 91), &[91], 0, &bars);
        // Nothing tells how wide it was.
        check(&padded(&bars, 91), &[], 0, &[]);
        check(&padded(&bars[..1], 80), &[80], 0, &[]);
        check("short", &[80], 0, &[]);
        // A longer line goes on.
        let long = "a word ".repeat(30);
        check(
            &padded(&["x", &long, "y"], 80),
            &[],
            0,
            &["x", long.trim_end(), "y"],
        );
        // Text of that length by chance.
        check(&"word ".repeat(32), &[80], 0, &[]);
    }
}
