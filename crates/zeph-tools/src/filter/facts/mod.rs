//! The fact guard: whatever a rule does, what a developer needs is still there afterwards.
//!
//! While lines pass, those with the shape of a fact ([`shape`]) are noted. When the rule is done,
//! each has to be found in the result; what is not is put back, raw, at its place. A wrong rule
//! then costs size, never a fact.

mod seen;
mod shape;
mod words;
mod worth;

use std::collections::BTreeMap;

use super::but_for_digits;
use super::kept::KeptLine;
use super::line::{Block, Held, Line, Whole};
use super::strategy::{Mask, shape as shape_of};
use super::timing::without_time;
use foldhash::HashSet;
use memchr::{memchr, memchr_iter, memrchr};
use seen::Seen;
use shape::{may_have_shape, shape_alone};
use words::next_suspect;

pub(super) use shape::{Shape, Shapes};
pub(super) use worth::may_have_stem;

/// Bytes of facts that are noted.
const MOST_BYTES: usize = 512 * 1024;
/// Bytes of one fact: of what is longer, the beginning.
const MOST_LINE: usize = 2 * 1024;
/// How often lines that are equal but for numbers, ids and paths are noted, where they are mostly chatter.
const SAME_CHATTER: u64 = 5;
/// How often where they are complaints.
const SAME_COMPLAINT: u64 = 20;
/// Forms of them that are told apart.
const MOST_FORMS: usize = 1024;

/// Lines of one form.
#[derive(Debug, Default)]
struct Alike {
    count: u64,
    /// The last one, once there were too many.
    last: Held,
}

/// Notes the facts of one output.
#[derive(Debug, Default)]
pub(super) struct Guard {
    shapes: Shapes,
    seen: Seen,
    /// Whether the last line has ids.
    ids: bool,
    /// A line without its ids; its memory is used again.
    masked: Vec<u8>,
    facts: Vec<Held>,
    bytes: usize,
    /// Chatter and complaints by their form.
    alike: BTreeMap<u64, Alike>,
    /// Facts that were not noted, for there were too many.
    surplus: u64,
}

impl Guard {
    /// Looks at the next line; returns a hash of what it is [but for its digits](but_for_digits), and for its ids if it
    /// is like none before it.
    pub(super) fn see(&mut self, line: Line<'_>) -> u64 {
        let (shape, hash) = self.shape(line.text);
        if let Some(shape) = shape {
            self.fact(line, shape);
        }
        hash
    }

    /// Looks at the next lines, in the same way.
    pub(super) fn see_block(&mut self, block: Block<'_>) {
        let mut rest = block.spans();
        while let Some(first) = rest.first() {
            if !self.shapes.awaits_any() {
                let Some(at) = next_suspect(block.text().as_bytes(), first.start as usize) else {
                    break;
                };
                rest = &rest[rest.partition_point(|span| span.end as usize <= at)..];
            }
            let Some((span, behind)) = rest.split_first() else {
                break;
            };
            self.look(block.line(*span));
            rest = behind;
        }
    }

    /// Looks at the next lines, in the same way.
    pub(super) fn see_whole(&mut self, whole: Whole<'_>) {
        let bytes = whole.text.as_bytes();
        let (mut start, mut number) = (0, whole.first);
        // Where the line with this number begins: lines before one that is looked at are counted only then.
        let mut counted = 0;
        while start < bytes.len() {
            if !self.shapes.awaits_any() {
                let Some(at) = next_suspect(bytes, start) else {
                    break;
                };
                let before = &bytes[start..(at + 1).max(start)];
                start += memrchr(b'\n', before).map_or(0, |last| last + 1);
            }
            let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at);
            let text = &whole.text[start..end];
            if self.may_be_fact(text) {
                number += memchr_iter(b'\n', &bytes[counted..start]).count() as u64;
                counted = start;
                self.see(Line { number, text });
            }
            start = end + 1;
        }
    }

    /// Looks at a line that has a stem of a fact's words, or belongs to what was before it.
    fn look(&mut self, line: Line<'_>) {
        if self.may_be_fact(line.text) {
            self.see(line);
        }
    }

    fn may_be_fact(&self, text: &str) -> bool {
        self.shapes.expects(text) || may_have_shape(text)
    }

    /// A line with the shape of a fact.
    fn fact(&mut self, line: Line<'_>, shape: Shape) {
        if let Some(most) = most_alike(shape)
            && !self.is_new(line, most)
        {
            return;
        }
        self.note(line);
    }

    fn note(&mut self, line: Line<'_>) {
        if self.bytes + line.text.len().min(MOST_LINE) > MOST_BYTES {
            self.surplus += 1;
            return;
        }
        let text = &line.text[..line.text.floor_char_boundary(MOST_LINE)];
        self.bytes += text.len();
        self.facts.push(Held {
            number: line.number,
            text: text.to_owned(),
        });
    }

    /// The shape of a line, and its hash.
    fn shape(&mut self, text: &str) -> (Option<Shape>, u64) {
        // Where the last line was known without its ids, this one may be.
        let without_ids = match self.ids {
            true => but_for_digits::hash_without_ids(text, &mut self.masked),
            false => None,
        };
        self.ids = without_ids.is_some();
        let mut hash = without_ids.unwrap_or_else(|| but_for_digits::hash(text));
        if self.shapes.expects(text) {
            return (self.shapes.of(text), hash);
        }
        // Most lines look like one that came before.
        let mut known = self.seen.shape(Seen::key(hash));
        if known.is_none()
            && !self.ids
            && let Some(without) = but_for_digits::hash_without_ids(text, &mut self.masked)
        {
            hash = without;
            self.ids = true;
            known = self.seen.shape(Seen::key(hash));
        }
        let shape = known.unwrap_or_else(|| {
            let shape = shape_alone(text);
            self.seen.add(Seen::key(hash), shape);
            shape
        });
        if let Some(shape) = shape {
            self.shapes.expect(shape, text);
        }
        (shape, hash)
    }

    /// Whether lines of this form came seldom so far; the last one is noted as well.
    fn is_new(&mut self, line: Line<'_>, most: u64) -> bool {
        let form = shape_of(line.text, Mask::Shape);
        if self.alike.len() >= MOST_FORMS && !self.alike.contains_key(&form) {
            return false;
        }
        let alike = self.alike.entry(form).or_default();
        alike.count += 1;
        if alike.count > most {
            alike.last.number = line.number;
            alike.last.text.clear();
            let end = line.text.floor_char_boundary(MOST_LINE);
            alike.last.text.push_str(&line.text[..end]);
        }
        alike.count <= most
    }

    /// Whether facts had to be let go.
    pub(super) fn surplus(&self) -> u64 {
        self.surplus
    }

    /// The facts that `lines` do not tell.
    pub(super) fn missing(&self, lines: &[KeptLine]) -> Vec<&Held> {
        if self.facts.is_empty() {
            return Vec::new();
        }
        let told = Told::new(lines);
        let lasts = self.alike.values().map(|alike| &alike.last);
        let lasts = lasts.filter(|last| !last.text.is_empty());
        let facts = self.facts.iter().chain(lasts);
        let mut missing: Vec<&Held> = facts.filter(|fact| !told.tells(&fact.text)).collect();
        missing.sort_by_key(|fact| fact.number);
        missing
    }
}

/// How many lines of a form are noted, where their shape comes often.
fn most_alike(shape: Shape) -> Option<u64> {
    match shape {
        Shape::Chatter => Some(SAME_CHATTER),
        Shape::Complaint => Some(SAME_COMPLAINT),
        _ => None,
    }
}

/// Whether a word is the name of something: a path, a test, a place.
fn is_name(word: &str) -> bool {
    word.len() > 16 || word.contains(['/', ':', '_', '.'])
}

/// Words of a line that is short.
const FEW_WORDS: usize = 4;

/// What a result tells.
struct Told<'r> {
    lines: HashSet<&'r str>,
    words: HashSet<&'r str>,
    /// Words that follow one another.
    pairs: HashSet<(&'r str, &'r str)>,
}

impl<'r> Told<'r> {
    fn new(result: &'r [KeptLine]) -> Self {
        let mut lines = HashSet::default();
        let mut words = HashSet::default();
        let mut pairs = HashSet::default();
        for line in result {
            lines.insert(line.text.trim());
            words.extend(words_of(&line.text));
            pairs.extend(words_of(&line.text).zip(words_of(&line.text).skip(1)));
        }
        Self {
            lines,
            words,
            pairs,
        }
    }

    /// Whether a line says it, or its words are said in another form: grouped by lint, for one,
    /// with the places behind one another.
    fn tells(&self, fact: &str) -> bool {
        let fact = without_time(fact.trim());
        self.lines.contains(fact) || self.says(fact)
    }

    /// Words of a short line are found by chance: there they have to follow one another, unless one of them is found
    /// nowhere else.
    fn says(&self, fact: &str) -> bool {
        let words = || words_of(fact);
        words().all(|word| self.words.contains(word))
            && (words().nth(FEW_WORDS).is_some()
                || words().any(is_name)
                || words()
                    .zip(words().skip(1))
                    .all(|pair| self.pairs.contains(&pair)))
    }
}

/// The words of a line, without the punctuation that sets them apart; those without a letter or
/// a digit do not count.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    let is_ascii = line.is_ascii();
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let word = match is_ascii {
                true => next_in_ascii(&mut rest),
                false => next_word(&mut rest),
            };
            let word = unpunctuated(word?);
            let counts = match is_ascii {
                true => word.bytes().any(|byte| byte.is_ascii_alphanumeric()),
                false => word.chars().any(char::is_alphanumeric),
            };
            if counts {
                return Some(word);
            }
        }
    })
}

/// Takes the next word from a text.
fn next_word<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let text = rest.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, more) = text.split_at(end);
    *rest = more;
    (!word.is_empty()).then_some(word)
}

/// The same of ASCII.
fn next_in_ascii<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let is_blank = |byte: u8| matches!(byte, b'\t'..=b'\r' | b' ');
    let bytes = rest.as_bytes();
    let start = bytes.iter().position(|byte| !is_blank(*byte))?;
    let end = bytes[start..].iter().position(|byte| is_blank(*byte));
    let end = end.map_or(bytes.len(), |end| start + end);
    let word = &rest[start..end];
    *rest = &rest[end..];
    Some(word)
}

/// A word without the punctuation around it.
fn unpunctuated(word: &str) -> &str {
    let sets_apart = |byte: &u8| {
        matches!(
            byte,
            b',' | b';' | b'(' | b')' | b'[' | b']' | b'`' | b'\'' | b'"' | b':' | b'.'
        )
    };
    let bytes = word.as_bytes();
    let start = bytes.iter().take_while(|byte| sets_apart(byte)).count();
    let end = bytes[start..].iter().rev();
    let end = bytes.len() - end.take_while(|byte| sets_apart(byte)).count();
    &word[start..end]
}

#[cfg(test)]
mod tests {
    use super::super::line::Span;
    use super::*;

    /// Proves OUT-7a.
    #[test]
    fn words_of_a_short_line_follow_one_another() {
        let lines = [
            "npm error code 4",
            "npm error path 1",
            "---- a::b stdout ----",
            "x FAILED test",
        ];
        let lines = lines.map(|text| KeptLine {
            number: 1,
            text: text.to_owned(),
            ours: false,
        });
        let told = Told::new(&lines);
        let check = |fact: &str, expect| assert_eq!(told.tells(fact), expect, "{fact}");
        check("npm error code 4", true);
        check("npm error code 1", false);
        check("test a::b ... FAILED", true);
        check("test a::c ... FAILED", false);
    }

    proptest::proptest! {
        /// Proves OUT-7a, OUT-11: of many lines at once the same facts are noted as of each.
        #[test]
        fn many_lines_at_once_have_the_same_facts(
            lines in proptest::collection::vec(
                "error: [a-c]|error\\[E01\\]: a|  --> a.rs:1:2|thread 'main' panicked at a.rs:1:2:|assertion failed|  left: 1| right: 2|E   [a-c]|E    \\+  where|---- a stdout ----|--- FAIL: a|rm: cannot remove '[a-c]': No such file or directory|10:00:0[0-9] ERROR no|×|not ok 1|a line|ä [a-z]{0,9}|an error|( |\t){0,2}|undefined reference to `a`|could not compile",
                1..60,
            ),
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut spans = Vec::new();
            let mut start = 0;
            let mut single = Guard::default();
            for (line, number) in lines.iter().zip(7..) {
                let end = start + line.len() as u32;
                spans.push(Span { number, start, end });
                start = end + 1;
                single.see(Line { number, text: line });
            }
            let noted = |guard: &Guard| {
                let missing = guard.missing(&[]).into_iter().cloned();
                (missing.collect::<Vec<Held>>(), guard.surplus())
            };
            let mut block = Guard::default();
            block.see_block(Block::new(&text, &spans));
            proptest::prop_assert_eq!(noted(&block), noted(&single));
            let mut whole = Guard::default();
            whole.see_whole(Whole {
                text: &text,
                first: 7,
                lines: lines.len() as u64,
                blank: 0,
            });
            proptest::prop_assert_eq!(noted(&whole), noted(&single));
        }
    }
}
