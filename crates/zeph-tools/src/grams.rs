//! Finds literals in a text, many of them in one pass, eight bytes a step.
//!
//! Of each literal four bytes in a row are looked for, two pairs, and of each byte five bits. A table says of a pair
//! which rows of literals have it as their first pair, and which as their second one, a bit for each row: where both
//! are said of pairs that follow one another, the literals of the row are compared. Which literals share a row is
//! chosen so that this seldom happens by chance. Pairs are looked at every second
//! byte, so that a literal has two places in the table: one for each way in which pairs may divide it.

use std::cmp::Reverse;

use crate::bytes::filled;

/// The bits of a byte that count: letters are told apart, upper from lower case is not.
const BITS: u64 = 0x1f;
/// Pairs of bytes, of which these bits count.
const PAIRS: usize = 1 << 10;
/// Rows of literals.
const ROWS: usize = 64;
/// The logarithm of the bytes of an entry.
const SCALE: u32 = size_of::<Fits>().ilog2();
/// How far behind the beginning of a literal its pairs may begin.
const MAX_PAIR_OFFSET: usize = 8;

/// How rare the bytes with these bits are, about the logarithm of how seldom they come.
const RARE: [u32; 32] = [
    3, 4, 6, 5, 5, 3, 5, 6, 6, 4, 7, 7, 5, 5, 4, 4, 5, 9, 4, 4, 4, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6,
];

/// In which rows a pair comes.
#[derive(Debug, Clone, Copy, Default)]
struct Fits {
    /// As the first of two.
    first: u64,
    /// As the second one.
    second: u64,
}

/// A literal in a row.
#[derive(Debug, Clone, Copy)]
struct Entry {
    literal: u16,
    /// Where it has its two pairs: one byte behind this, so that they may begin before it.
    place: u16,
}

/// A row that is filled.
#[derive(Debug, Default)]
struct Row {
    entries: Vec<Entry>,
    /// The pairs that its literals have as the first one, and as the second.
    pairs: [Pairs; 2],
}

/// Different pairs.
#[derive(Debug, Default)]
struct Pairs {
    all: [u64; KEYS.div_ceil(64)],
    /// How often one of them comes.
    weight: u64,
}

/// The bits of the bytes of a pair; none where any byte may stand.
type Bytes = [Option<usize>; 2];

/// Literals that are looked for together.
#[derive(Debug)]
pub(crate) struct Grams {
    fits: Box<[Fits; PAIRS]>,
    rows: Vec<Vec<Entry>>,
    literals: Vec<&'static [u8]>,
    /// Of all entries the last place.
    furthest: usize,
}

impl Grams {
    /// Looks for literals as they are.
    pub(crate) fn exact(literals: impl IntoIterator<Item = &'static [u8]>) -> Self {
        Self::new(literals.into_iter().collect())
    }

    fn new(literals: Vec<&'static [u8]>) -> Self {
        let mut entries = Vec::new();
        for (number, literal) in (0..).zip(&literals) {
            for odd in [0, 1] {
                let places = (0..MAX_PAIR_OFFSET.min(literal.len()) + 1).rev();
                let places = places.filter(|place| place % 2 == odd);
                let rarest = places.max_by_key(|place| rarity(literal, *place));
                let place = rarest.unwrap_or_default() as u16;
                let entry = Entry {
                    literal: number,
                    place,
                };
                entries.push((gram(literal, place.into()), entry));
            }
        }
        // Those that come often have the first choice of a row.
        entries.sort_by_key(|(gram, _)| Reverse(weight(first(gram)) * weight(second(gram))));
        let mut fits = Box::new([Fits::default(); PAIRS]);
        let mut rows: Vec<Row> = (0..ROWS).map(|_| Row::default()).collect();
        for (gram, entry) in &entries {
            let choice = (0..ROWS).min_by_key(|row| rows[*row].more(gram));
            let row = choice.unwrap_or_default();
            rows[row].add(gram, *entry);
            numbers(first(gram)).for_each(|pair| fits[pair].first |= 1 << row);
            numbers(second(gram)).for_each(|pair| fits[pair].second |= 1 << row);
        }
        let places = entries.iter().map(|(_, entry)| usize::from(entry.place));
        Self {
            furthest: places.max().unwrap_or_default(),
            fits,
            rows: rows.into_iter().map(|row| row.entries).collect(),
            literals,
        }
    }

    /// The first literal that begins at `from` or behind it: where, and which one.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let (words, rest) = text.get(from..)?.as_chunks::<8>();
        let mut begun = 0;
        // Two words a step, with one branch for both.
        let (steps, last) = words.as_chunks::<2>();
        for (index, step) in steps.iter().enumerate() {
            let [one, other] = step.map(u64::from_le_bytes);
            let (of_one, between) = self.rows(one, begun);
            let (of_other, begins) = self.rows(other, between);
            if of_one | of_other != 0 {
                let at = from + index * 16;
                for (at, word, begun) in [(at, one, begun), (at + 8, other, between)] {
                    if let Some(found) = self.compare(text, from, at, (word, begun)) {
                        let begins = self.rows(word, begun).1;
                        return Some(self.earliest(text, from, at + 8, begins, found));
                    }
                }
            }
            begun = begins;
        }
        if let Some(word) = last.first() {
            let at = from + steps.len() * 16;
            let word = u64::from_le_bytes(*word);
            let begins = self.rows(word, begun).1;
            if let Some(found) = self.compare(text, from, at, (word, begun)) {
                return Some(self.earliest(text, from, at + 8, begins, found));
            }
            begun = begins;
        }
        // What is behind the end is no part of a literal, but pairs may be.
        let at = text.len() - rest.len();
        let word = filled(rest);
        let found = self.compare(text, from, at, (word, begun));
        let begins = self.rows(word, begun).1;
        match found {
            Some(found) => Some(self.earliest(text, from, at + 8, begins, found)),
            None => self.compare(text, from, at + 8, (0, begins)),
        }
    }

    /// The first one among `found` and those that have their pairs behind a place: such a one may begin earlier.
    fn earliest(
        &self,
        text: &[u8],
        from: usize,
        place: usize,
        mut begun: u64,
        mut found: (usize, usize),
    ) -> (usize, usize) {
        let mut at = place;
        while at < text.len() + 8 && at <= found.0 + self.furthest + 1 {
            let rest = text.get(at..).unwrap_or_default();
            let word = match rest.first_chunk::<8>() {
                Some(word) => u64::from_le_bytes(*word),
                None => filled(rest),
            };
            let (rows, begins) = self.rows(word, begun);
            if rows != 0 {
                let other = self.compare(text, from, at, (word, begun));
                found = other.map_or(found, |other| found.min(other));
            }
            begun = begins;
            at += 8;
        }
        found
    }

    /// The rows of which a pair of a word is the second one, and those of which the last one is the first, as the pair
    /// before the word is of `begun`.
    #[inline(always)]
    fn rows(&self, word: u64, begun: u64) -> (u64, u64) {
        let ([a, b, c, d], begins) = self.rows_by_pair(word, begun);
        (a | b | c | d, begins)
    }

    /// The same, the rows for each pair by itself.
    #[inline(always)]
    fn rows_by_pair(&self, word: u64, begun: u64) -> ([u64; 4], u64) {
        // Each pair as a number of ten bits, sixteen bits apart, where it is the number of bytes of so many entries.
        const FEW: u64 = BITS * 0x0001_0001_0001_0001;
        let pairs = (word & FEW) << SCALE | (word & FEW << 8) << (SCALE - 3);
        let fits = |shift: u32| self.fits[(pairs >> (shift + SCALE)) as usize & (PAIRS - 1)];
        let [a, b, c, d] = [fits(0), fits(16), fits(32), fits(48)];
        let rows = [
            begun & a.second,
            a.first & b.second,
            b.first & c.second,
            c.first & d.second,
        ];
        (rows, d.first)
    }

    /// The first literal of those that have their second pair in the word at a place; with the word, the rows of which
    /// the pair before it is the first.
    #[inline(never)]
    fn compare(
        &self,
        text: &[u8],
        from: usize,
        at: usize,
        (word, begun): (u64, u64),
    ) -> Option<(usize, usize)> {
        let mut found: Option<(usize, usize)> = None;
        let (rows, _) = self.rows_by_pair(word, begun);
        for (pair, mut rows) in rows.into_iter().enumerate() {
            while rows != 0 {
                let row = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                for entry in &self.rows[row] {
                    // The first pair is one pair before this one.
                    let start = (at + 2 * pair).checked_sub(1 + usize::from(entry.place));
                    let Some(start) = start.filter(|start| *start >= from) else {
                        continue;
                    };
                    let is_first = found.is_none_or(|(first, _)| start < first);
                    let literal = usize::from(entry.literal);
                    if is_first && self.is_at(text, start, self.literals[literal]) {
                        found = Some((start, literal));
                    }
                }
            }
        }
        found
    }

    fn is_at(&self, text: &[u8], start: usize, literal: &[u8]) -> bool {
        text.get(start..)
            .is_some_and(|rest| rest.starts_with(literal))
    }
}

impl Row {
    /// How much more often a pair of the row's first ones would be followed by one of its second ones, were both by
    /// chance, if it had these.
    fn more(&self, gram: &Gram) -> u64 {
        let [firsts, seconds] = &self.pairs;
        firsts.with(first(gram)) * seconds.with(second(gram)) - firsts.weight * seconds.weight
    }

    fn add(&mut self, gram: &Gram, entry: Entry) {
        self.entries.push(entry);
        let [firsts, seconds] = &mut self.pairs;
        firsts.add(first(gram));
        seconds.add(second(gram));
    }
}

impl Pairs {
    /// Its weight with one more pair.
    fn with(&self, pair: Bytes) -> u64 {
        let (word, bit) = place(pair);
        match self.all[word] & bit {
            0 => self.weight + weight(pair),
            _ => self.weight,
        }
    }

    fn add(&mut self, pair: Bytes) {
        self.weight = self.with(pair);
        let (word, bit) = place(pair);
        self.all[word] |= bit;
    }
}

/// What a byte of a pair may be: its bits, or any.
const KINDS: usize = BITS as usize + 2;
/// Pairs of these.
const KEYS: usize = KINDS * KINDS;

/// Where a pair is in a set of bits.
fn place(pair: Bytes) -> (usize, u64) {
    let [low, high] = pair.map(|byte| byte.unwrap_or(KINDS - 1));
    let key = high * KINDS + low;
    (key / 64, 1 << (key % 64))
}

/// The bits of four bytes.
type Gram = [Option<usize>; 4];

fn first(gram: &Gram) -> Bytes {
    [gram[0], gram[1]]
}

fn second(gram: &Gram) -> Bytes {
    [gram[2], gram[3]]
}

/// How often a pair comes, as a multiple of how often the rarest one does.
fn weight(pair: Bytes) -> u64 {
    const ANY: u32 = 9;
    let seldom = |byte: Option<usize>| byte.map_or(0, |byte| RARE[byte]);
    pair.map(|byte| 1 << (ANY - seldom(byte))).iter().product()
}

/// The bits of four bytes of a literal, of which the first one is before a place; none where there is no byte.
fn gram(literal: &[u8], place: usize) -> Gram {
    [0, 1, 2, 3].map(|offset| {
        let at = (place + offset).checked_sub(1)?;
        Some((u64::from(*literal.get(at)?) & BITS) as usize)
    })
}

/// How rare the four bytes are. A sign that is there twice counts once: lines are drawn with the same one.
fn rarity(literal: &[u8], place: usize) -> u32 {
    let gram = gram(literal, place);
    let is_sign = |at: usize| !literal[place + at - 1].is_ascii_alphanumeric();
    let is_drawn = |at: usize| gram[..at].contains(&gram[at]) && is_sign(at);
    let bytes = (0..gram.len()).filter(|at| gram[*at].is_some() && !is_drawn(*at));
    bytes.filter_map(|at| gram[at]).map(|byte| RARE[byte]).sum()
}

/// The numbers of the pairs that have these bytes.
fn numbers(bytes: Bytes) -> impl Iterator<Item = usize> {
    let [low, high] = bytes.map(|byte| byte.map_or(0..=BITS as usize, |byte| byte..=byte));
    high.flat_map(move |high| low.clone().map(move |low| high << 5 | low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LITERALS: [&[u8]; 9] = [
        b"ab",
        b"aba",
        b"ABc",
        b"b_b-",
        b"-----BEG",
        b"cabba",
        b"\xc3\x97",
        b"abcabcabcab",
        b"\na",
    ];

    /// What is found by looking at each place.
    fn slow(text: &[u8], from: usize) -> Option<usize> {
        (from..text.len()).find(|start| {
            LITERALS.iter().any(|literal| {
                let rest = &text[*start..];
                rest.starts_with(literal)
            })
        })
    }

    proptest! {
        #[test]
        fn the_first_literal_is_found(
            text in "(a|b|c|A|B|_|-|-----BE|G|x{1,9}|×|\n|abcabc|\u{0}| ){0,30}",
        ) {
            let grams = Grams::exact(LITERALS);
            let text = text.as_bytes();
            for from in 0..=text.len() + 1 {
                let found = grams.find(text, from);
                let start = found.map(|(start, _)| start);
                prop_assert_eq!(start, slow(text, from));
                if let Some((start, literal)) = found {
                    prop_assert!(grams.is_at(text, start, LITERALS[literal]));
                }
            }
        }
    }
}
