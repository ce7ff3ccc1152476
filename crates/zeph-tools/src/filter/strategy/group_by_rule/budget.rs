//! Groups of diagnostics within the length that is read: every group is told, with its number; where all places
//! do not fit, each group has a fair share of the room.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::places::share;
use super::Sink;

/// Bytes that the groups of one output may take: of a longer output head and tail are read.
const MOST_TOLD: usize = 46_000;
/// What there is for groups that come when these are used up.
const LEAST: usize = 2_000;
/// Bytes of a line of places.
const WIDTH: usize = 110;
/// Bytes for the names of files whose places are left out.
const MOST_NAMES: usize = 160;

/// A group, to be printed.
#[derive(Debug, Default)]
pub(super) struct Block<'t> {
    /// The line where it belongs.
    pub(super) number: u64,
    /// What it says, in any case.
    pub(super) head: Vec<String>,
    /// What it says behind the places.
    pub(super) foot: Vec<String>,
    /// All places as the tool prints them; `None`: as `short` has them.
    pub(super) full: Option<Vec<String>>,
    /// The same places, the name of a file told once.
    pub(super) short: Vec<Piece<'t>>,
}

/// A line of places in one file.
#[derive(Debug, Default)]
pub(super) struct Piece<'t> {
    pub(super) file: &'t str,
    pub(super) count: usize,
    pub(super) text: String,
}

/// How much was told so far.
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
            Some(full) => self.head_size() + size(full),
            None => self.short_size(),
        }
    }

    fn short_size(&self) -> usize {
        self.head_size() + size(self.short.iter().map(|piece| &piece.text))
    }

    fn say_full(&self, out: &mut dyn Sink) {
        match &self.full {
            Some(full) => self.say(full, out),
            None => self.say_short(out),
        }
    }

    fn say_short(&self, out: &mut dyn Sink) {
        self.say(self.short.iter().map(|piece| &piece.text), out);
    }

    fn say(&self, body: impl IntoIterator<Item = impl AsRef<str>>, out: &mut dyn Sink) {
        for line in &self.head {
            out.say(self.number, line);
        }
        for line in body {
            out.say(self.number, line.as_ref());
        }
        for line in &self.foot {
            out.say(self.number, line);
        }
    }

    /// As many places as fit, and how many more there are, with the names of some of their files.
    fn say_cut(&self, room: usize, out: &mut dyn Sink) {
        let room = room.saturating_sub(self.head_size() + MOST_NAMES + 40);
        let mut used = 0;
        let fits = |piece: &&Piece<'_>| {
            used += piece.text.len() + 1;
            used <= room
        };
        let told = self.short.iter().take_while(fits).count();
        let (told, left) = self.short.split_at(told.max(1).min(self.short.len()));
        let mut body: Vec<&str> = told.iter().map(|piece| piece.text.as_str()).collect();
        let note = note(left);
        body.extend(note.as_deref());
        self.say(body, out);
    }
}

/// How many places are left out, and the names of some of their files.
fn note(left: &[Piece<'_>]) -> Option<String> {
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for piece in left.iter().filter(|piece| piece.count > 0) {
        *files.entry(piece.file).or_default() += piece.count;
    }
    let count: usize = files.values().sum();
    if count == 0 {
        return None;
    }
    let mut note = format!("  [… {count} more");
    files.remove("");
    if !files.is_empty() {
        let _ = write!(note, " in {} files:", files.len());
    }
    let most = note.len() + MOST_NAMES;
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
    /// Hands on groups: whole where there is room, else those that are long with shorter places, and as
    /// many of these as fit.
    pub(super) fn tell(&mut self, blocks: &[Block<'_>], out: &mut dyn Sink) {
        let full: Vec<usize> = blocks.iter().map(Block::full_size).collect();
        let room = MOST_TOLD.saturating_sub(self.told).max(LEAST);
        self.told += full.iter().sum::<usize>().min(room);
        if full.iter().sum::<usize>() <= room {
            blocks.iter().for_each(|block| block.say_full(out));
            return;
        }
        // Who takes less than a fair share is told whole; the others share the rest.
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

/// The places of a group by file: `src/a.py:3:5 17:1`.
pub(super) fn by_file(places: &[String]) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for place in places {
        let (file, position) = split(place);
        match pieces.last_mut() {
            Some(last) if last.file == file && last.text.len() + position.len() < WIDTH => {
                last.count += 1;
                last.text.push(' ');
                last.text.push_str(position);
            }
            _ => pieces.push(Piece {
                file,
                count: 1,
                text: format!("  {place}"),
            }),
        }
    }
    pieces
}

/// File and position of `src/a.py:3:5`.
fn split(place: &str) -> (&str, &str) {
    let is_end = |at: &usize| {
        let behind = place.as_bytes().get(at + 1);
        behind.is_some_and(u8::is_ascii_digit)
    };
    let colon = place
        .match_indices([':', '('])
        .map(|(at, _)| at)
        .find(is_end);
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
        Block {
            number: 1,
            head: vec![format!("{name} ×{}", places.len())],
            foot: vec!["  help".to_owned()],
            full: Some(places.iter().map(|place| format!("  {place}")).collect()),
            short: by_file(places),
        }
    }

    /// Proves OUT-7d.
    #[test]
    fn every_group_is_told_with_its_number() {
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
        assert!(text.len() <= MOST_TOLD, "{}", text.len());
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
    fn what_fits_stays_as_it_is() {
        let mut out = Texts::default();
        Budget::default().tell(&[block("small", &places(2, 3))], &mut out);
        assert_eq!(out.0.len(), 8);
    }
}
