//! Two orders of facts made one: by words, and by the nearness of vectors. Pure.
//!
//! Reciprocal rank fusion (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
//! individual Rank Learning Methods", 2009): a fact counts `1 / (60 + place)` in each order that has it.

use std::collections::HashMap;

use zeph_memory::Memory;

/// The constant of the paper.
const K: f64 = 60.0;

/// The up to `most` facts that stand first in both orders together; of equal ones that of `by_words` first.
#[must_use]
pub fn fused(by_words: Vec<Memory>, near: Vec<Memory>, most: usize) -> Vec<Memory> {
    let mut scores: HashMap<String, f64> = HashMap::new();
    let mut facts: Vec<Memory> = Vec::new();
    for order in [by_words, near] {
        for (place, fact) in (1_u32..).zip(order) {
            let score = scores.entry(fact.id.clone()).or_default();
            if *score == 0.0 {
                facts.push(fact);
            }
            *score += 1.0 / (K + f64::from(place));
        }
    }
    let score = |fact: &Memory| scores.get(&fact.id).copied().unwrap_or_default();
    facts.sort_by(|a, b| score(b).total_cmp(&score(a)));
    facts.truncate(most);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(ids: &str) -> Vec<Memory> {
        let fact = |id: char| Memory {
            id: id.to_string(),
            content: String::new(),
            session: String::new(),
            project: String::new(),
            saved_at: 0,
        };
        ids.chars().map(fact).collect()
    }

    fn ids(facts: &[Memory]) -> String {
        facts.iter().map(|fact| fact.id.as_str()).collect()
    }

    /// Proves NAT-1.
    #[test]
    fn orders_are_fused() {
        let check = |words, near, most, expect: &str| {
            let found = fused(facts(words), facts(near), most);
            assert_eq!(ids(&found), expect, "{words} {near}");
        };
        check("", "", 9, "");
        check("abc", "", 9, "abc");
        check("", "abc", 9, "abc");
        check("abc", "abc", 2, "ab");
        // What both have stands before what only one has.
        check("abc", "dc", 9, "cadb");
        check("ab", "ba", 9, "ab");
    }
}
