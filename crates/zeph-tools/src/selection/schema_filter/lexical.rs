//! The similarity of tools to a text by common words, for use without embeddings: BM25 (Robertson and Zaragoza,
//! "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).

use std::collections::{HashMap, HashSet};

use crate::def::ToolDef;
use crate::tafc::THINK_FIELD;

/// The saturation of the count of a word (`k1`).
const K1: f32 = 1.2;
/// The weight of the length of a text (`b`).
const B: f32 = 0.75;
/// The weight of the words of the name of a tool.
const NAME_WEIGHT: usize = 3;

/// Returns the score of each tool for `query`: the best is 1, and none is negative. `None` if no tool has a word
/// of the query.
///
/// The words of a tool are those of its id, its description, and the names and descriptions of its parameters.
#[must_use]
pub fn scores(query: &str, tools: &[ToolDef]) -> Option<HashMap<String, f32>> {
    let wanted: HashSet<String> = words(query).collect();
    let texts: Vec<Counted> = tools.iter().map(Counted::of).collect();
    #[allow(clippy::cast_precision_loss)] // small numbers
    let number = |count: usize| count as f32;
    let all = number(texts.len());
    let average = number(texts.iter().map(|text| text.length).sum()) / all.max(1.0);
    let weight: HashMap<&str, f32> = wanted
        .iter()
        .map(|word| {
            let having = texts.iter().filter(|text| text.counts.contains_key(word));
            let having = number(having.count());
            (
                word.as_str(),
                (1.0 + (all - having + 0.5) / (having + 0.5)).ln(),
            )
        })
        .collect();
    let score = |text: &Counted| -> f32 {
        let terms = weight.iter().map(|(word, weight)| {
            let count = number(text.counts.get(*word).copied().unwrap_or(0));
            let length = K1 * (1.0 - B + B * number(text.length) / average.max(1.0));
            weight * count * (K1 + 1.0) / (count + length)
        });
        terms.sum()
    };
    let raw: Vec<f32> = texts.iter().map(score).collect();
    let best = raw.iter().copied().fold(0.0, f32::max);
    if best <= 0.0 {
        return None;
    }
    let ids = tools.iter().map(|def| def.id.to_string());
    Some(ids.zip(raw.into_iter().map(|score| score / best)).collect())
}

/// The word counts of a tool.
struct Counted {
    counts: HashMap<String, usize>,
    length: usize,
}

impl Counted {
    fn of(def: &ToolDef) -> Self {
        let mut counted = Self {
            counts: HashMap::new(),
            length: 0,
        };
        for _ in 0..NAME_WEIGHT {
            counted.add(&def.id);
        }
        counted.add(&def.description);
        if let Some(properties) = def.parameters["properties"].as_object() {
            for (name, schema) in properties {
                if name == THINK_FIELD {
                    continue;
                }
                counted.add(name);
                counted.add(schema["description"].as_str().unwrap_or_default());
            }
        }
        counted
    }

    fn add(&mut self, text: &str) {
        for word in words(text) {
            *self.counts.entry(word).or_default() += 1;
            self.length += 1;
        }
    }
}

/// Words without meaning for the choice of a tool.
const EMPTY: &[&str] = &[
    "a", "all", "also", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do",
    "does", "for", "from", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "no",
    "not", "of", "on", "one", "or", "our", "please", "should", "so", "that", "the", "them", "then",
    "there", "these", "this", "to", "up", "us", "use", "was", "we", "what", "when", "where",
    "which", "will", "with", "would", "you", "your",
];

/// Returns the words of a text: runs of letters and digits in lower case, with `fooBar` and `foo_bar` split,
/// without common endings and without stop words.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut apart = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for character in text.chars() {
        if before.is_lowercase() && character.is_uppercase() {
            apart.push(' ');
        }
        before = character;
        apart.extend(character.to_lowercase());
    }
    let found: Vec<String> = apart
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty() && !EMPTY.contains(word))
        .map(|word| stem(word).to_owned())
        .collect();
    found.into_iter()
}

/// A word without its common English ending: `searches`, `searching` and `searched` are `search`.
fn stem(word: &str) -> &str {
    let without = |word: &'_ str, ending: &str, least: usize| -> Option<usize> {
        let stem = word.strip_suffix(ending)?;
        (stem.chars().count() >= least).then_some(stem.len())
    };
    let singular = without(word, "ies", 3)
        .or_else(|| without(word, "sses", 1).map(|length| length + 2))
        .or_else(|| without(word, "ches", 1).map(|length| length + 2))
        .or_else(|| without(word, "shes", 1).map(|length| length + 2))
        .or_else(|| {
            without(word, "s", 3).filter(|length| !word[..*length].ends_with(['s', 'u', 'i']))
        })
        .unwrap_or(word.len());
    let word = &word[..singular];
    let plain = without(word, "ing", 4).or_else(|| without(word, "ed", 4));
    let word = &word[..plain.unwrap_or(word.len())];
    let bare = without(word, "e", 3).or_else(|| without(word, "y", 3));
    &word[..bare.unwrap_or(word.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_stemmed_and_stop_words_dropped() {
        let check = |text: &str, expect: &str| {
            let found: Vec<String> = words(text).collect();
            assert_eq!(found.join(" "), expect, "{text:?}");
        };
        check("", "");
        check("Please search the files!", "search fil");
        check("searched searches searching", "search search search");
        check("read_overflow maxResults", "read overflow max result");
        check("directories directory", "director director");
        check("Grüße, 日本", "grüß 日本");
        check("files file", "fil fil");
        check("class status", "class status");
    }
}
