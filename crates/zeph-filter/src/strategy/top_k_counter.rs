//! Counts of names, as long as there are not too many of them.

use std::collections::BTreeMap;

/// Names that are counted.
const MAX_NAMES: usize = 400;

/// Names with their counts.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Adds to the count of a name. Returns whether there was room.
    pub(super) fn add(&mut self, name: &str, count: u64) -> bool {
        if let Some(known) = self.0.get_mut(name) {
            *known += count;
        } else if self.0.len() < MAX_NAMES {
            self.0.insert(name.to_owned(), count);
        } else {
            return false;
        }
        true
    }

    /// The count of a name.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// All names with their counts, in the order of the names.
    pub(super) fn sorted(&self) -> Vec<(&str, u64)> {
        let all = self.0.iter();
        all.map(|(name, count)| (name.as_str(), *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_counted_names_is_bounded() {
        let mut counts = Counts::default();
        let told = (0..=MAX_NAMES).filter(|number| counts.add(&number.to_string(), 1));
        assert_eq!(told.count(), MAX_NAMES);
        assert!(counts.add("7", 2) && !counts.add("x", 1));
        assert_eq!(counts.get("7"), Some(3));
    }
}
