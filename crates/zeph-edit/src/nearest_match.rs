//! The place in a text that is most similar to a text that does not occur in it.
//!
//! Every window with the requested number of lines gets a cheap estimate: a signature of 256 bits per line, with a
//! bit for each pair of neighbouring characters, compared by Dice's coefficient. The Levenshtein distance decides
//! among the few best. The limits below bound the time.

/// Texts with more bytes are not searched.
const MAX_BYTES: usize = 2 << 20;
/// Texts with more lines are not searched.
const MAX_LINES: usize = 50_000;
/// Lines of the wanted text that count.
const MAX_WANTED: usize = 40;
/// Characters of a line that count.
const MAX_CHARS: usize = 300;
/// Windows that the Levenshtein distance compares.
const CANDIDATES: usize = 5;
/// A place with a lower similarity, in percent, is probably another text.
const MIN_SIMILARITY: u8 = 35;

/// The passage that is most similar to a missing text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NearestMatch {
    /// Its first line, from 1.
    pub first: usize,
    /// Its last line, from 1.
    pub last: usize,
    /// Its similarity in percent; below 100.
    pub percent: u8,
    /// The first line that differs, from 1.
    pub line: usize,
    /// The requested line there; `None` if the place has one line more.
    pub wanted: Option<String>,
    /// The line of the text there; `None` after the end of the text.
    pub found: Option<String>,
}

impl NearestMatch {
    /// Whether the similarity is so low that the request probably means another text or file.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.percent < MIN_SIMILARITY
    }

    /// Whether the first difference is only white space.
    #[must_use]
    pub fn is_blank_difference(&self) -> bool {
        match (&self.wanted, &self.found) {
            (Some(wanted), Some(found)) => wanted.split_whitespace().eq(found.split_whitespace()),
            _ => false,
        }
    }
}

/// The hashed pairs of neighbouring characters of a line.
struct Signature {
    bits: [u64; 4],
    count: u32,
}

impl Signature {
    fn of(line: &str) -> Self {
        let mut bits = [0_u64; 4];
        let mut previous = 0_u32;
        let characters = line.chars().filter(|char| !char.is_whitespace());
        for character in characters.take(MAX_CHARS) {
            let code = u32::from(character);
            let hash = (previous.wrapping_mul(31) ^ code).wrapping_mul(0x9E37_79B1) >> 24;
            bits[(hash >> 6) as usize] |= 1 << (hash & 63);
            previous = code;
        }
        let count = bits.iter().map(|word| word.count_ones()).sum();
        Self { bits, count }
    }

    /// Dice's coefficient times the weight of the wanted line.
    fn score(&self, wanted: &Self) -> f64 {
        if wanted.count == 0 {
            return if self.count == 0 { 1.0 } else { 0.0 };
        }
        let words = self.bits.iter().zip(&wanted.bits);
        let common: u32 = words.map(|(a, b)| (a & b).count_ones()).sum();
        f64::from(2 * common) / f64::from(self.count + wanted.count) * f64::from(wanted.count)
    }
}

/// Whether `text` exceeds the limits of [`find_nearest`]: 2 MiB or 50,000 lines.
#[must_use]
pub fn is_too_long(text: &str) -> bool {
    text.len() > MAX_BYTES
        || memchr::memchr_iter(b'\n', text.as_bytes())
            .nth(MAX_LINES)
            .is_some()
}

/// Finds the passage in `text` that is most similar to `wanted`; `None` if they have nothing in common, or if `text` is
/// too long.
#[must_use]
pub fn find_nearest(text: &str, wanted: &str) -> Option<NearestMatch> {
    if is_too_long(text) {
        return None;
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<&str> = text.split('\n').collect();
    let all: Vec<&str> = wanted
        .strip_suffix('\n')
        .unwrap_or(wanted)
        .split('\n')
        .collect();
    let asked = &all[..all.len().min(MAX_WANTED)];
    let signatures: Vec<Signature> = lines.iter().map(|line| Signature::of(line)).collect();
    let asked_signatures: Vec<Signature> = asked.iter().map(|line| Signature::of(line)).collect();

    let mut best: Vec<(f64, usize)> = Vec::with_capacity(CANDIDATES + 1);
    for start in 0..lines.len() {
        let window = signatures[start..].iter().zip(&asked_signatures);
        let score: f64 = window.map(|(line, wanted)| line.score(wanted)).sum();
        if best.len() < CANDIDATES || best.last().is_some_and(|(least, _)| score > *least) {
            best.push((score, start));
            best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            best.truncate(CANDIDATES);
        }
    }
    let mut place: Option<(f64, usize)> = None;
    for (_, start) in best {
        let like = likeness(&lines[start..], asked);
        if place.is_none_or(|(most, _)| like > most) {
            place = Some((like, start));
        }
    }
    let (like, start) = place.filter(|(like, _)| *like > 0.0)?;
    let last = (start + all.len()).min(lines.len());
    let differs = (start..start + all.len())
        .find(|index| lines.get(*index) != all.get(index - start))
        .unwrap_or(start);
    Some(NearestMatch {
        first: start + 1,
        last,
        percent: percent(like),
        line: differs + 1,
        wanted: all.get(differs - start).map(|line| (*line).to_owned()),
        found: lines.get(differs).map(|line| (*line).to_owned()),
    })
}

/// A similarity from 0 to 1 in percent, at most 99.
fn percent(like: f64) -> u8 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 99"
    )]
    let percent = (like * 100.0).clamp(0.0, 99.0) as u8;
    percent
}

/// The similarity of the lines from 0 to 1, each weighted by the length of the wanted line.
fn likeness(lines: &[&str], wanted: &[&str]) -> f64 {
    let mut like = 0.0;
    let mut weight = 0.0;
    for (index, wanted) in wanted.iter().enumerate() {
        let wanted: String = wanted.chars().take(MAX_CHARS).collect();
        #[allow(clippy::cast_precision_loss, reason = "at most 300")]
        let length = wanted.trim().len().max(1) as f64;
        weight += length;
        let Some(line) = lines.get(index) else {
            continue;
        };
        let line: String = line.chars().take(MAX_CHARS).collect();
        // The first and the last wanted line may be a part of a line.
        let part = !wanted.trim().is_empty() && line.contains(wanted.trim());
        like += length
            * if part {
                0.95_f64.max(strsim::normalized_levenshtein(&wanted, &line))
            } else {
                strsim::normalized_levenshtein(&wanted, &line)
            };
    }
    if weight > 0.0 { like / weight } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "fn one() {\n    let a = 1;\n    a + 1\n}\n\nfn two() {\n    let b = 2;\n    b * 2\n}\n";

    /// Proves FILE-21.
    #[test]
    fn closest_lines_are_found() {
        let check = |wanted: &str, first, last, line| {
            let place = find_nearest(TEXT, wanted).expect(wanted);
            assert_eq!(
                (place.first, place.last, place.line),
                (first, last, line),
                "{wanted}"
            );
            assert!((35..=99).contains(&place.percent), "{}", place.percent);
        };
        check("let b = 3;", 7, 7, 7);
        check("fn two() {\n    let b = 2;\n    b * 3\n}\n", 6, 9, 8);
        check("fn one()  {\n\tlet a = 1;", 1, 2, 1);
        check("    b * 2\n}\nend", 8, 9, 10);
    }

    #[test]
    fn first_difference_is_shown() {
        let place = find_nearest(TEXT, "fn one() {\n\tlet a = 1;\n").expect("a place");
        assert_eq!(place.line, 2);
        assert_eq!(place.wanted.as_deref(), Some("\tlet a = 1;"));
        assert_eq!(place.found.as_deref(), Some("    let a = 1;"));
        assert!(place.is_blank_difference());
    }

    /// Proves FILE-22 for a text with a low similarity.
    #[test]
    fn place_with_low_similarity_is_far() {
        let place = find_nearest(TEXT, "SELECT * FROM users WHERE id = 42").expect("a place");
        assert!(place.is_far(), "{place:?}");
        assert_eq!(find_nearest(TEXT, "§§§"), None);
        assert_eq!(find_nearest("", "something"), None);
    }

    #[test]
    fn overlong_text_is_not_searched() {
        assert_eq!(
            find_nearest(&"let b = 2;\n".repeat(MAX_LINES + 1), "let b = 3;"),
            None
        );
    }

    #[test]
    fn worst_case_ends() {
        let text = format!("{}\n", "ab c".repeat(10)).repeat(40_000);
        let wanted = format!("{}\n", "ab d".repeat(300)).repeat(2000);
        let _ = find_nearest(&text, &wanted);
    }
}
