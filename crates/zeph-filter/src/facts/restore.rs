//! Selects which missing facts are restored when not all of them fit.
//!
//! Lines of one form differ in numbers, ids and paths only. The first and the last line of each form come before
//! further ones, and errors before warnings. A form that is not restored whole states its count.

use std::collections::{BTreeMap, BTreeSet};

use super::Fact;
use crate::head_tail::OutputLine;

/// Characters of the statement of a count.
const COUNT_CHARS: usize = 30;
/// Steps of the selection: a level, and the share of the room, in percent, that is used after it at most.
const STEPS: [(usize, usize); 6] = [(0, 60), (1, 80), (0, 100), (1, 100), (2, 100), (3, 100)];

/// Selects the facts to restore within `room` characters, in order.
///
/// `missing` is in the order of lines. `counts` has the number of all facts of each form, the next map that of
/// noted facts that are not missing.
pub(super) fn select(
    missing: &[&Fact],
    counts: &BTreeMap<u64, u64>,
    told: &BTreeMap<u64, u64>,
    room: usize,
) -> Vec<OutputLine> {
    let mut bounds: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for fact in missing {
        let number = fact.line.number;
        bounds
            .entry(fact.form)
            .and_modify(|(_, last)| *last = number)
            .or_insert((number, number));
    }
    let level = |fact: &Fact| {
        let is_bound = bounds.get(&fact.form).is_some_and(|(first, last)| {
            *first == fact.line.number || (*last == fact.line.number && fact.shape.is_strong())
        });
        match (fact.shape.is_strong(), is_bound) {
            (true, true) => 0,
            (false, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
        }
    };
    let mut levels: [Vec<usize>; 4] = Default::default();
    for (index, fact) in missing.iter().enumerate() {
        levels[level(fact)].push(index);
    }
    let mut used = 0;
    let mut chosen = BTreeSet::new();
    let max_chars = room / 4;
    let size = |fact: &Fact| {
        let first = bounds.get(&fact.form).map(|(first, _)| *first);
        let states = counts.get(&fact.form).is_some_and(|count| *count > 1)
            && first == Some(fact.line.number);
        clip(&fact.line.text, max_chars).chars().count() + 1 + if states { COUNT_CHARS } else { 0 }
    };
    for (level, share) in STEPS {
        for index in from_both_ends(&levels[level]) {
            let size = missing.get(index).map_or(0, |fact| size(fact));
            if !chosen.contains(&index) && used + size <= room * share / 100 {
                used += size;
                chosen.insert(index);
            }
        }
    }
    let chosen: Vec<&Fact> = chosen
        .iter()
        .filter_map(|index| missing.get(*index).copied())
        .collect();
    let mut restored: BTreeMap<u64, u64> = BTreeMap::new();
    for fact in &chosen {
        *restored.entry(fact.form).or_default() += 1;
    }
    let mut stated = BTreeSet::new();
    let line = |fact: &&Fact| {
        let of_form = |counts: &BTreeMap<u64, u64>| counts.get(&fact.form).copied().unwrap_or(0);
        let count = of_form(counts);
        let states = stated.insert(fact.form) && count > of_form(told) + of_form(&restored);
        let text = clip(&fact.line.text, max_chars);
        OutputLine {
            number: fact.line.number,
            text: match states {
                true => format!("{text} [×{count} like this]"),
                false => text.to_owned(),
            },
            ours: states,
        }
    };
    chosen.iter().map(line).collect()
}

/// The first characters of a line.
fn clip(text: &str, max_chars: usize) -> &str {
    let end = text.char_indices().nth(max_chars);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The last, the first, the last but one, the second, and so on.
fn from_both_ends(indexes: &[usize]) -> impl Iterator<Item = usize> {
    let mut rest = indexes.iter().copied();
    let mut from_end = false;
    std::iter::from_fn(move || {
        from_end = !from_end;
        match from_end {
            true => rest.next_back(),
            false => rest.next(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;
    use crate::line::OwnedLine;

    fn facts(texts: &[(&str, Shape, u64)]) -> Vec<Fact> {
        let fact = |((text, shape, form), number): (&(&str, Shape, u64), u64)| Fact {
            line: OwnedLine {
                number,
                text: (*text).to_owned(),
            },
            shape: *shape,
            form: *form,
        };
        texts.iter().zip(1..).map(fact).collect()
    }

    fn counts(facts: &[Fact]) -> BTreeMap<u64, u64> {
        let mut counts = BTreeMap::new();
        for fact in facts {
            *counts.entry(fact.form).or_default() += 1;
        }
        counts
    }

    fn texts(facts: &[Fact], room: usize) -> Vec<String> {
        let all: Vec<&Fact> = facts.iter().collect();
        let chosen = select(&all, &counts(facts), &BTreeMap::new(), room);
        chosen.into_iter().map(|line| line.text).collect()
    }

    /// Proves OUT-7a: with little room each form is restored before further lines of one.
    #[test]
    fn each_form_precedes_further_lines_of_one() {
        let mut all = vec![("WARN 1", Shape::Warning, 1); 40];
        all.push(("error: it broke", Shape::Error, 2));
        all.extend(vec![("WARN 2", Shape::Warning, 3); 40]);
        all.push(("Killed", Shape::Panic, 4));
        let all = facts(&all);
        assert_eq!(
            texts(&all, 100),
            [
                "WARN 1 [×40 like this]",
                "error: it broke",
                "WARN 2 [×40 like this]",
                "Killed"
            ]
        );
        assert_eq!(texts(&all, 4000).len(), all.len());
    }

    #[test]
    fn order_alternates_between_the_ends() {
        let order =
            |count: usize| from_both_ends(&(0..count).collect::<Vec<_>>()).collect::<Vec<_>>();
        assert!(order(0).is_empty());
        assert_eq!(order(5), [4, 0, 3, 1, 2]);
    }
}
