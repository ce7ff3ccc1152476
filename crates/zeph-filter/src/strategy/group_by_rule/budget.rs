//! Size limit for printed groups: each group is shown with its count. If the places of all groups do not fit,
//! each group has a fair share of the size.

use std::fmt::Write as _;

use memchr::memchr2_iter;

use super::super::group_paths::share;
use super::Sink;

/// Bytes for the groups of one output. Longer output is reduced to head and tail.
const MAX_REPORTED_BYTES: usize = 46_000;
/// Bytes for groups that follow after these are used up.
const MIN_GROUP_BYTES: usize = 2_000;
/// Bytes of a line of places.
const WIDTH: usize = 110;
/// Bytes for the names of files whose places are omitted.
const MAX_NAMES_BYTES: usize = 160;

/// A group in printable form.
#[derive(Debug, Default)]
pub(super) struct Block<'t> {
    /// The number of the line at which it is printed.
    pub(super) number: u64,
    /// Lines that are always printed.
    pub(super) head: Vec<String>,
    /// Lines after the places.
    pub(super) foot: Vec<String>,
    /// All places in the form of the tool; `None` if `short` has that form.
    pub(super) full: Option<Lines>,
    /// The same places, with the name of each file once.
    pub(super) short: Pieces<'t>,
}

/// Lines of places. Lines after the limit add to the length only.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The limit in bytes for the text.
    most: usize,
    /// The lines within the limit, concatenated, and the end of each.
    text: String,
    ends: Vec<usize>,
    /// Bytes of all lines, and of the last one, without line breaks.
    bytes: usize,
    last: usize,
    count: usize,
}

impl Lines {
    /// An empty list with the limit `most` in bytes.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Bytes of the last line.
    pub(super) fn length(&self) -> usize {
        self.last
    }

    fn size(&self) -> usize {
        self.bytes + self.count
    }

    /// Begins another line.
    pub(super) fn begin(&mut self, text: &str) {
        self.last = 0;
        self.count += 1;
        // The first line is always stored.
        if self.count == 1 || self.size() <= self.most {
            self.ends.push(self.text.len());
        }
        self.add(text);
    }

    /// Appends to the last line.
    pub(super) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.last += text.len();
        if self.count == self.ends.len()
            && (self.count == 1 || self.size() <= self.most)
            && let Some(end) = self.ends.last_mut()
        {
            self.text.push_str(text);
            *end = self.text.len();
        }
    }

    /// Removes the trailing spaces of the last line, which are at most `most`.
    pub(super) fn trim_end(&mut self, most: usize) {
        let is_told = self.count == self.ends.len();
        let start = self.start_of_last();
        let gone = match self.ends.last_mut() {
            Some(last) if is_told && *last - start == self.last => {
                let end = start + self.text[start..].trim_ascii_end().len();
                let gone = *last - end;
                self.text.truncate(end);
                *last = end;
                gone
            }
            _ => most,
        };
        self.bytes -= gone;
        self.last -= gone;
    }

    fn start_of_last(&self) -> usize {
        let before = self.ends.len().checked_sub(2);
        before.map_or(0, |before| self.ends[before])
    }

    /// The stored lines.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[start..*end])
    }
}

/// Lines of places, each with places in one file.
#[derive(Debug, Default)]
pub(super) struct Pieces<'t> {
    lines: Lines,
    pieces: Vec<Piece<'t>>,
}

/// A line of places in one file.
#[derive(Debug, Clone, Copy)]
struct Piece<'t> {
    file: &'t str,
    count: usize,
    /// Bytes of the line.
    length: usize,
}

impl<'t> Pieces<'t> {
    /// An empty list, with a limit as for [`Lines::new`].
    pub(super) fn new(most: usize) -> Self {
        Self {
            lines: Lines::new(most),
            pieces: Vec::new(),
        }
    }

    /// Begins another line for this file.
    pub(super) fn begin(&mut self, file: &'t str, text: &str) {
        self.lines.begin(text);
        let length = self.lines.length();
        self.pieces.push(Piece {
            file,
            count: 0,
            length,
        });
    }

    /// Appends to the last line.
    pub(super) fn add(&mut self, text: &str) {
        self.lines.add(text);
        self.measure();
    }

    /// Appends a place to the last line.
    pub(super) fn add_place(&mut self, text: &str) {
        self.add(text);
        if let Some(last) = self.pieces.last_mut() {
            last.count += 1;
        }
    }

    /// Removes trailing spaces, as [`Lines::trim_end`] does.
    pub(super) fn trim_end(&mut self, most: usize) {
        self.lines.trim_end(most);
        self.measure();
    }

    fn measure(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.length = self.lines.length();
        }
    }

    /// Bytes of the last line.
    pub(super) fn length(&self) -> usize {
        self.lines.length()
    }

    /// The number of places in the last line.
    pub(super) fn count(&self) -> usize {
        self.pieces.last().map_or(0, |last| last.count)
    }
}

/// The number of bytes printed so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    told: usize,
}

fn size<'t>(lines: impl IntoIterator<Item = &'t String>) -> usize {
    lines.into_iter().map(|line| line.len() + 1).sum()
}

impl Block<'_> {
    fn head_size(&self) -> usize {
        size(&self.head) + size(&self.foot)
    }

    fn full_size(&self) -> usize {
        match &self.full {
            Some(full) => self.head_size() + full.size(),
            None => self.short_size(),
        }
    }

    fn short_size(&self) -> usize {
        self.head_size() + self.short.lines.size()
    }

    fn say_full(&self, out: &mut dyn Sink) {
        match &self.full {
            Some(full) => self.say(full.texts(), out),
            None => self.say_short(out),
        }
    }

    fn say_short(&self, out: &mut dyn Sink) {
        self.say(self.short.lines.texts(), out);
    }

    fn say<'s>(&self, body: impl IntoIterator<Item = &'s str>, out: &mut dyn Sink) {
        for line in &self.head {
            out.say(self.number, line);
        }
        for line in body {
            out.say(self.number, line);
        }
        for line in &self.foot {
            out.say(self.number, line);
        }
    }

    /// Prints the places that fit, then the number of omitted places with the names of some of their files.
    fn say_cut(&self, room: usize, out: &mut dyn Sink) {
        let room = room.saturating_sub(self.head_size() + MAX_NAMES_BYTES + 40);
        let mut used = 0;
        let fits = |piece: &&Piece<'_>| {
            used += piece.length + 1;
            used <= room
        };
        let pieces = &self.short.pieces;
        let told = pieces.iter().take_while(fits).count();
        let told = told.max(1).min(pieces.len());
        let left = &pieces[told..];
        let mut body: Vec<&str> = self.short.lines.texts().take(told).collect();
        let note = note(left);
        body.extend(note.as_deref());
        self.say(body, out);
    }
}

/// Formats the number of omitted places, with the names of some of their files.
fn note(left: &[Piece<'_>]) -> Option<String> {
    let same = left.chunk_by(|a, b| a.file == b.file);
    let same = same.map(|same| (same[0].file, same.iter().map(|piece| piece.count).sum()));
    let mut files: Vec<(&str, usize)> = same.filter(|(_, count)| *count > 0).collect();
    let count: usize = files.iter().map(|(_, count)| count).sum();
    if count == 0 {
        return None;
    }
    files.sort_unstable();
    files.dedup_by(|file, kept| {
        let is_same = file.0 == kept.0;
        kept.1 += if is_same { file.1 } else { 0 };
        is_same
    });
    files.retain(|(file, _)| !file.is_empty());
    let mut note = format!("  [… {count} more");
    if !files.is_empty() {
        let _ = write!(note, " in {} files:", files.len());
    }
    let most = note.len() + MAX_NAMES_BYTES;
    for (file, count) in files {
        if note.len() + file.len() > most {
            break;
        }
        let _ = write!(note, " {file} ({count})");
    }
    note.push_str(" …]");
    Some(note)
}

impl Budget {
    /// Bytes for the next groups.
    pub(super) fn room(&self) -> usize {
        MAX_REPORTED_BYTES
            .saturating_sub(self.told)
            .max(MIN_GROUP_BYTES)
    }

    /// Prints groups. If the room does not suffice, long groups have the short form, with the places that fit.
    pub(super) fn tell(&mut self, blocks: &[Block<'_>], out: &mut dyn Sink) {
        let full: Vec<usize> = blocks.iter().map(Block::full_size).collect();
        let room = self.room();
        self.told += full.iter().sum::<usize>().min(room);
        if full.iter().sum::<usize>() <= room {
            blocks.iter().for_each(|block| block.say_full(out));
            return;
        }
        // A group below its fair share is printed in full. The other groups share the rest.
        let shares = share(room, &full);
        let whole = |at: usize| shares[at] == full[at];
        let taken: usize = (0..blocks.len())
            .filter(|at| whole(*at))
            .map(|at| full[at])
            .sum();
        let short: Vec<usize> = blocks.iter().map(Block::short_size).collect();
        let wants = (0..blocks.len()).map(|at| if whole(at) { 0 } else { short[at] });
        let rest = share(room - taken, &wants.collect::<Vec<_>>());
        for (at, block) in blocks.iter().enumerate() {
            if whole(at) {
                block.say_full(out);
            } else if rest[at] == short[at] {
                block.say_short(out);
            } else {
                block.say_cut(rest[at], out);
            }
        }
    }
}

/// Appends the places of a group by file: `src/a.py:3:5 17:1`.
pub(super) fn by_file<'t>(places: impl Iterator<Item = &'t str>, pieces: &mut Pieces<'t>) {
    let mut last = None;
    for place in places {
        let (file, position) = split(place);
        if last == Some(file) && pieces.length() + position.len() < WIDTH {
            pieces.add(" ");
            pieces.add_place(position);
        } else {
            pieces.begin(file, "  ");
            pieces.add_place(place);
        }
        last = Some(file);
    }
}

/// Splits `src/a.py:3:5` into file and position.
fn split(place: &str) -> (&str, &str) {
    let bytes = place.as_bytes();
    let is_end = |at: &usize| bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    let colon = memchr2_iter(b':', b'(', bytes).find(is_end);
    colon.map_or((place, ""), |at| (&place[..at], &place[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Texts;
    use super::*;

    fn places(files: usize, places: usize) -> Vec<String> {
        let place = |n: usize| format!("src/folder/file{}.py:{}:1", n / places, n % places);
        (0..files * places).map(place).collect()
    }

    fn block<'t>(name: &str, places: &'t [String]) -> Block<'t> {
        let mut full = Lines::new(MAX_REPORTED_BYTES);
        let mut short = Pieces::new(MAX_REPORTED_BYTES);
        by_file(places.iter().map(String::as_str), &mut short);
        for place in places {
            full.begin("  ");
            full.add(place);
        }
        Block {
            number: 1,
            head: vec![format!("{name} ×{}", places.len())],
            foot: vec!["  help".to_owned()],
            full: Some(full),
            short,
        }
    }

    /// Proves OUT-7d.
    #[test]
    fn every_group_is_listed_with_its_count() {
        let groups = [
            ("small", places(2, 3)),
            ("dense", places(3, 600)),
            ("huge", places(900, 9)),
            ("last", places(1, 1)),
        ];
        let blocks = groups.each_ref().map(|(name, places)| block(name, places));
        let mut out = Texts::default();
        Budget::default().tell(&blocks, &mut out);
        let text = out.0.join("\n");
        assert!(text.len() <= MAX_REPORTED_BYTES, "{}", text.len());
        for told in [
            "small ×6\n  src/folder/file0.py:0:1\n  src/folder/file0.py:1:1",
            "dense ×1800\n  src/folder/file0.py:0:1 1:1 2:1",
            "huge ×8100\n  src/folder/file0.py:0:1 1:1",
            "last ×1\n  src/folder/file0.py:0:1",
        ] {
            assert!(text.contains(told), "{told}\n{text}");
        }
        let cut: Vec<&String> = out
            .0
            .iter()
            .filter(|line| line.contains(" more in "))
            .collect();
        assert_eq!(cut.len(), 1);
        assert!(cut[0].contains(" files: src/folder/file"), "{cut:?}");
    }

    #[test]
    fn groups_within_the_budget_are_unchanged() {
        let mut out = Texts::default();
        Budget::default().tell(&[block("small", &places(2, 3))], &mut out);
        assert_eq!(out.0.len(), 8);
    }
}
