//! Facts that a result already contains, as a line or in another form.

use std::collections::{HashMap, HashSet};

use super::prefix::without_prefix;
use super::shape::Shape;
use crate::duration_tokens::without_time;
use crate::head_tail::OutputLine;
use crate::line_template::{Mask, shape as form_of};

/// Words of a short line.
const FEW_WORDS: usize = 4;

/// The lines and words of a result.
pub(super) struct Told<'r> {
    lines: HashSet<&'r str>,
    words: HashSet<&'r str>,
    /// Adjacent words of a line.
    pairs: HashSet<(&'r str, &'r str)>,
    /// The words of each line.
    by_line: Vec<HashSet<&'r str>>,
    /// The number of lines of each form.
    forms: HashMap<u64, u64>,
    /// The counts that lines state.
    counts: HashSet<u64>,
}

impl<'r> Told<'r> {
    pub(super) fn new(result: &'r [OutputLine]) -> Self {
        let mut told = Self {
            lines: HashSet::default(),
            words: HashSet::default(),
            pairs: HashSet::default(),
            by_line: Vec::new(),
            forms: HashMap::default(),
            counts: HashSet::default(),
        };
        for line in result {
            *told
                .forms
                .entry(form_of(&line.text, Mask::Shape))
                .or_default() += 1;
            told.counts.extend(stated_count(&line.text));
            told.lines.insert(line.text.trim());
            let words: Vec<&str> = words_of(&line.text).collect();
            told.words.extend(&words);
            told.pairs
                .extend(words.windows(2).map(|pair| (pair[0], pair[1])));
            told.by_line.push(words.into_iter().collect());
        }
        told
    }

    /// Whether the result contains the fact: the line itself, or its words in another form, such as a group of
    /// diagnostics with all locations.
    pub(super) fn tells(&self, fact: &str, shape: Shape) -> bool {
        let tells = |fact: &str| {
            self.lines.contains(fact)
                || self.says(fact)
                || (shape == Shape::Failing && self.words.contains(name_of(fact)))
                || (shape == Shape::Warning && self.says_message(fact))
        };
        let fact = without_time(fact.trim());
        let message = without_prefix(fact).trim();
        tells(fact) || (message.len() < fact.len() && !message.is_empty() && tells(message))
    }

    /// Whether the result shows some of `count` lines of a form, and states nowhere how many there are.
    pub(super) fn conceals(&self, form: u64, count: u64) -> bool {
        let shown = self.forms.get(&form).copied().unwrap_or(0);
        0 < shown && shown < count && !self.counts.contains(&count)
    }

    /// Whether all words of the fact occur, and enough of them are adjacent: words of a short line also occur by
    /// chance, unless one of them is a name.
    fn says(&self, fact: &str) -> bool {
        let words: Vec<&str> = words_of(fact).collect();
        if words.len() < 2 && !words.iter().any(|word| is_name(word)) {
            return false;
        }
        if !words.iter().all(|word| self.words.contains(word)) {
            return false;
        }
        let pairs = words.windows(2).map(|pair| (pair[0], pair[1]));
        let adjacent = pairs.filter(|pair| self.pairs.contains(pair)).count();
        let all = words.len() - 1;
        // A group of diagnostics separates the location, the code and the message.
        match (
            words.len() > FEW_WORDS,
            words.iter().any(|word| is_name(word)),
        ) {
            (true, true) => adjacent > 0,
            (true, false) => adjacent * 2 >= all,
            (false, true) => true,
            (false, false) => adjacent == all,
        }
    }

    /// Whether one line contains the subject of a warning, or its message without locations and quoted names: groups
    /// of warnings show the message once.
    fn says_message(&self, fact: &str) -> bool {
        let in_one_line = |words: &[&str]| {
            let mut lines = self.by_line.iter();
            lines.any(|line| words.iter().all(|word| line.contains(word)))
        };
        // `npm warn deprecated NAME: …`
        let subject = fact.split_once(": ").map_or("", |(subject, _)| subject);
        let subject: Vec<&str> = words_of(subject).collect();
        if subject.len() > 3 && in_one_line(&subject) {
            return true;
        }
        let message = without_quotes(fact);
        let words = words_of(&message).filter(|word| !is_specific(word));
        let words: Vec<&str> = words.collect();
        words.len() > 1 && in_one_line(&words)
    }
}

/// The count of a line that represents others: `request 0 is slow [×40 like this]`.
fn stated_count(text: &str) -> Option<u64> {
    let (_, count) = text.rsplit_once(" [×")?;
    let (count, _) = count.split_once(" like this")?;
    count.parse().ok()
}

/// Whether a word is the name of something: a path, a test, a location.
fn is_name(word: &str) -> bool {
    word.len() > 16 || word.contains(['/', ':', '_', '.'])
}

/// Whether a word is a location or a number.
fn is_specific(word: &str) -> bool {
    word.contains(['/', ':', '.']) || word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The name of a failed test that follows a mark: `× renders`.
fn name_of(fact: &str) -> &str {
    let mut words = words_of(fact);
    let name = words.next().filter(|_| words.next().is_none());
    name.unwrap_or_default()
}

/// The text without quoted parts.
fn without_quotes(text: &str) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut quote = None;
    let mut before = ' ';
    for c in text.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if matches!(c, '`' | '\'' | '"' | '‘') && !before.is_alphanumeric() => {
                quote = Some(match c {
                    '‘' => '’',
                    other => other,
                });
                rest.push(' ');
            }
            None => rest.push(c),
        }
        before = c;
    }
    match quote {
        Some(_) => text.to_owned(),
        None => rest,
    }
}

/// The words of a line without the punctuation around them; a word has a letter or a digit.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split_whitespace().map(unpunctuated);
    words.filter(|word| word.contains(char::is_alphanumeric))
}

/// A word without the punctuation around it.
fn unpunctuated(word: &str) -> &str {
    word.trim_matches([',', ';', '(', ')', '[', ']', '`', '\'', '"', ':', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-7a.
    #[test]
    fn words_of_a_short_line_follow_one_another() {
        let lines = [
            "npm error code 4",
            "npm error path 1",
            "---- a::b stdout ----",
            "x FAILED test",
            "worker Killed the job",
            "warning: unused variable: `x` [×3]",
            "pool connection lost",
            "the table users is full of old rows",
        ];
        let lines = lines.map(|text| OutputLine {
            number: 1,
            text: text.to_owned(),
            ours: false,
        });
        let told = Told::new(&lines);
        let check = |fact: &str, expect| {
            assert_eq!(told.tells(fact, Shape::Error), expect, "{fact}");
        };
        check("npm error code 4", true);
        check("npm error code 1", false);
        check("test a::b ... FAILED", true);
        check("test a::c ... FAILED", false);
        check("Killed", false);
        check("warning: unused variable: `x`", true);
        check("warning: unused variable: `y`", false);
        check("error: connection pool lost the users", false);
        let warns = |fact: &str, expect| {
            assert_eq!(told.tells(fact, Shape::Warning), expect, "{fact}");
        };
        warns("warning: unused variable: `y`", true);
        warns("src/a.c:3:5: warning: unused variable 'y'", true);
        warns("warning: unused import: `y`", false);
        warns("WARNING: full", false);
    }
}
