//! Whether a line is worth a look: whether one of a few words stands in it, in whatever case.
//!
//! Of each word four bytes are looked for. Four tables say of a byte which of them it fits at the first,
//! the second, the third, the fourth place, a bit for each: where what they say of four bytes in a row
//! has a bit in common, a pattern looks at the line. Before, the same is asked of pairs of bytes, of five
//! bits of each: every second pair is enough, for one of any two begins within the four bytes.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::shape::build;
use crate::bytes::filled;

/// The words. What is a fact has one of them.
const WORDS: &str = r"(?i)error|fail|panic|fatal|exception|conflict|abort|not ok|✖|-->|\*\*\*|segmentation|summary|test result|passed|undefined|traceback|could not|cannot|denied|no such file|killed|timed? ?out|fehler|erreur|plan: |^---- |\[ERR|✕|✗|×|●";

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| build(WORDS));

/// What is looked for: four bytes of each word, letters in both cases, `?` for any byte. Those of one row
/// differ at one place alone.
pub(super) const STEMS: &[&[&[u8; 4]]] = &[
    &[b"rror"],
    &[b"fail"],
    &[b"pani"],
    &[b"fata"],
    &[b"xcep"],
    &[b"nfli"],
    &[b"abor"],
    &[b"t ok"],
    &[b"?-->"],
    &[b"?***"],
    &[b"egme"],
    &[b"umma"],
    &[b"resu"],
    &[b"ssed"],
    &[b"ndef"],
    &[b"ceba"],
    &[b"ld n"],
    &[b"cann"],
    &[b"enie"],
    &[b"ch f"],
    &[b"ille"],
    &[b"imed"],
    &[b"me o"],
    &[b"eout"],
    &[b"ehle"],
    &[b"rreu"],
    &[b"lan:"],
    &[b"[err"],
    // ✕, ✖, ✗
    &[b"?\xe2\x9c\x95", b"?\xe2\x9c\x96", b"?\xe2\x9c\x97"],
    // ×
    &[b"??\xc3\x97"],
    // ●
    &[b"?\xe2\x97\x8f"],
];

/// For each of the four places which rows of [`STEMS`] a byte fits.
static FITS: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut row = 0;
    while row < STEMS.len() {
        let mut stem = 0;
        while stem < STEMS[row].len() {
            let mut place = 0;
            while place < 4 {
                let byte = STEMS[row][stem][place];
                let mut other = 0;
                while other < 256 {
                    if byte == b'?' || byte.eq_ignore_ascii_case(&(other as u8)) {
                        tables[place][other] |= 1 << row;
                    }
                    other += 1;
                }
                place += 1;
            }
            stem += 1;
        }
        row += 1;
    }
    tables
};

/// Bits of a byte that count in a pair: those that do not tell the case.
const FEW: u8 = 0x1f;

/// For each pair of bytes, [`FEW`] bits of each, which rows of [`STEMS`] it fits: in the lower half those that
/// begin with it, in the upper half those that have it behind their first byte.
static BEGINS: [u64; 1024] = fitting([0, 1]);
/// The same of the pair behind: the last two bytes of the row, in the upper half the last one.
static ENDS: [u64; 1024] = fitting([2, 3]);

/// Rows that begin with any two bytes: these may stand before the line.
const BEFORE: u64 = {
    let table = fitting([0, 1]);
    table[0] & table[1023]
};

/// Which rows fit a pair of bytes at two places that follow one another, and at the next two.
const fn fitting(places: [usize; 2]) -> [u64; 1024] {
    let mut table = [0; 1024];
    let mut row = 0;
    while row < STEMS.len() {
        let mut stem = 0;
        while stem < STEMS[row].len() {
            let stem_bytes = STEMS[row][stem];
            let mut pair = 0;
            while pair < 1024 {
                let mut half = 0;
                while half < 2 {
                    let first = fits_few(stem_bytes, places[0] + half, pair & 0x1f);
                    let second = fits_few(stem_bytes, places[1] + half, pair >> 5);
                    if first && second {
                        table[pair] |= 1 << (row + 32 * half);
                    }
                    half += 1;
                }
                pair += 1;
            }
            stem += 1;
        }
        row += 1;
    }
    table
}

/// Whether a byte with these bits may stand at a place of a stem; behind it anything may.
const fn fits_few(stem: &[u8; 4], place: usize, bits: usize) -> bool {
    place > 3 || stem[place] == b'?' || (stem[place] & FEW) as usize == bits
}

/// Whether a line has a part of one of the words.
pub(super) fn has_stem_of_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.starts_with(b"----") || (may_have_stem(bytes) && has_stem(bytes))
}

/// Whether a line that has such a part has one of the words.
pub(super) fn has_word(text: &str) -> bool {
    PATTERN
        .as_ref()
        .is_none_or(|words| words.is_match(text.as_bytes()))
}

/// Whether one of [`STEMS`] may be found: of a line of which this does not hold, and which does not begin with
/// `----`, no word is found.
pub(in crate::filter) fn may_have_stem(bytes: &[u8]) -> bool {
    let mut begun = BEFORE;
    let mut found = 0;
    let mut look = |eight: u64| {
        // Each pair as a number of ten bits, sixteen bits apart.
        let first = u64::from(FEW) * 0x0001_0001_0001_0001;
        let pairs = (eight & first) | (eight & first << 8) >> 3;
        for shift in [0, 16, 32, 48] {
            let pair = (pairs >> shift) as usize & 0x3ff;
            found |= begun & ENDS[pair];
            begun = BEGINS[pair];
        }
    };
    let (chunks, rest) = bytes.as_chunks::<8>();
    for chunk in chunks {
        look(u64::from_le_bytes(*chunk));
    }
    look(filled(rest));
    found != 0
}

/// Whether one of [`STEMS`] is found.
fn has_stem(bytes: &[u8]) -> bool {
    const BLOCK: usize = 16;
    let fits = |window: &[u8]| match window {
        [a, b, c, d, ..] => {
            let fits = |place: usize, byte: &u8| FITS[place][usize::from(*byte)];
            fits(0, a) & fits(1, b) & fits(2, c) & fits(3, d)
        }
        _ => 0,
    };
    // Any byte may stand before the first one.
    let mut first = [0; 5];
    let few = bytes.len().min(3);
    first[2..2 + few].copy_from_slice(&bytes[..few]);
    let start = first[..2 + few].windows(4);
    if start.fold(0, |any, window| any | fits(window)) != 0 {
        return true;
    }
    let mut at = 0;
    while let Some(block) = bytes.get(at..at + BLOCK + 3) {
        let windows = (0..BLOCK).map(|offset| fits(&block[offset..offset + 4]));
        if windows.fold(0, |any, found| any | found) != 0 {
            return true;
        }
        at += BLOCK;
    }
    let rest = bytes[at..].windows(4);
    rest.fold(0, |any, window| any | fits(window)) != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_worth_a_look(text: &str) -> bool {
        has_stem_of_word(text) && has_word(text)
    }

    #[test]
    fn each_row_has_a_bit() {
        assert!(PATTERN.is_some());
        assert!(STEMS.len() <= 32);
    }

    #[test]
    fn each_word_has_a_stem() {
        let words = WORDS.trim_start_matches("(?i)").replace(['\\', '^'], "");
        for word in words.split('|').filter(|word| !word.contains('?')) {
            for word in [word.to_owned(), word.to_uppercase(), word.to_lowercase()] {
                assert!(is_worth_a_look(&word), "{word}");
                assert!(is_worth_a_look(&format!("{word} behind it")), "{word}");
            }
        }
        for word in ["time out", "timeout", "timed out", "TimedOut"] {
            assert!(is_worth_a_look(&format!("it {word}")), "{word}");
        }
        assert!(!is_worth_a_look("test cart::total ... ok"));
    }

    proptest! {
        #[test]
        fn what_has_a_word_is_found(
            before in "[a-zE× -]{0,20}",
            word in "(error|Fail|PANIC|fatal|Exception|conflict|abort|not ok|✖|-->|[*]{3}|segmentation|summary|test result|passed|undefined|traceback|could not|cannot|denied|no such file|killed|timed? ?out|fehler|erreur|plan: |---- |\\[ERR|✕|✗|×|●)",
            after in "[a-z ]{0,20}",
        ) {
            let text = format!("{before}{word}{after}");
            let words = PATTERN.as_ref().is_some_and(|words| words.is_match(text.as_bytes()));
            prop_assert_eq!(is_worth_a_look(&text), words);
        }
    }
}
