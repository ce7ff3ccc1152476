//! Counts with singular or plural nouns.

use std::fmt::Display;

/// Formats a count: `1 file`, `2 files`.
pub fn pluralize<N: Display + PartialEq + From<u8>>(number: N, one: &str) -> String {
    match number == N::from(1) {
        true => format!("1 {one}"),
        false => format!("{number} {one}s"),
    }
}

/// Formats a count with a plural that is not the singular with an `s`.
pub fn counted_as<N: Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    match number == N::from(1) {
        true => format!("1 {one}"),
        false => format!("{number} {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_one() {
        let check = |number: u64, expect: &str| assert_eq!(pluralize(number, "hit"), expect);
        check(0, "0 hits");
        check(1, "1 hit");
        check(2, "2 hits");
        assert_eq!(counted_as(1_usize, "match is", "matches are"), "1 match is");
        assert_eq!(
            counted_as(3_usize, "match is", "matches are"),
            "3 matches are"
        );
    }
}
