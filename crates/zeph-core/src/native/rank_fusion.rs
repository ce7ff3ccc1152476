//! Fusion of several orders of results: facts by keywords and by embeddings, and messages. Pure.
//!
//! Reciprocal rank fusion (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
//! Rank Learning Methods", 2009): a result scores `1 / (60 + rank)` in each order that contains it.

use std::collections::HashMap;

/// The constant of the paper.
const K: f64 = 60.0;

/// A result that can appear in several orders.
pub trait Identified {
    /// The identity, which is equal in every order.
    fn identity(&self) -> String;
}

/// Returns up to `most` results with the best score. If scores are equal, the result of the earlier order comes
/// first.
#[must_use]
pub fn fused<T: Identified>(orders: Vec<Vec<T>>, most: usize) -> Vec<T> {
    let mut scores: HashMap<String, f64> = HashMap::new();
    let mut results: Vec<T> = Vec::new();
    for order in orders {
        for (place, result) in (1_u32..).zip(order) {
            let score = scores.entry(result.identity()).or_default();
            if *score == 0.0 {
                results.push(result);
            }
            *score += 1.0 / (K + f64::from(place));
        }
    }
    let score = |result: &T| scores.get(&result.identity()).copied().unwrap_or_default();
    results.sort_by(|a, b| score(b).total_cmp(&score(a)));
    results.truncate(most);
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Identified for char {
        fn identity(&self) -> String {
            self.to_string()
        }
    }

    /// Proves NAT-1.
    #[test]
    fn fuses_rankings() {
        let check = |orders: &[&str], most, expect: &str| {
            let orders = orders.iter().map(|order| order.chars().collect()).collect();
            let found: String = fused::<char>(orders, most).into_iter().collect();
            assert_eq!(found, expect);
        };
        check(&[], 9, "");
        check(&["", ""], 9, "");
        check(&["abc", ""], 9, "abc");
        check(&["", "abc"], 9, "abc");
        check(&["abc", "abc"], 2, "ab");
        // A result of two orders comes before a result of one.
        check(&["abc", "dc"], 9, "cadb");
        check(&["ab", "ba"], 9, "ab");
        // Orders without common results alternate, beginning with the earlier order.
        check(&["ab", "", "xyz"], 9, "axbyz");
        check(&["ab", "b", "xy"], 3, "bax");
    }
}
