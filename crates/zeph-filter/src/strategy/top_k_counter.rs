//! How often names came, as long as there are not too many of them.

use std::collections::HashMap;

/// Names that are told apart.
const MAX_NAMES: usize = 400;
/// Up to so many are looked through one by one.
const FEW: usize = 8;

/// Names with their numbers.
#[derive(Debug, Default)]
pub(super) struct Counts {
    list: Vec<(String, u64)>,
    /// Where each is in `list`, when there are more than [`FEW`].
    index: HashMap<String, usize>,
    /// The one that came last: it often comes again.
    last: usize,
}

impl Counts {
    /// Whether there was room.
    pub(super) fn add(&mut self, name: &str, count: u64) -> bool {
        if let Some((last, known)) = self.list.get_mut(self.last)
            && last == name
        {
            *known += count;
            return true;
        }
        if let Some(at) = self.place_of(name) {
            self.list[at].1 += count;
            self.last = at;
            return true;
        }
        let at = self.list.len();
        if at == MAX_NAMES {
            return false;
        }
        self.list.push((name.to_owned(), count));
        match at {
            ..FEW => {}
            FEW => {
                let names = self.list.iter().enumerate();
                self.index = names.map(|(at, (name, _))| (name.clone(), at)).collect();
            }
            _ => {
                self.index.insert(name.to_owned(), at);
            }
        }
        self.last = at;
        true
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        if self.list.len() > FEW {
            return self.index.get(name).copied();
        }
        self.list.iter().position(|(known, _)| known == name)
    }

    /// How often one came.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.place_of(name).map(|at| self.list[at].1)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// All, in the order of their names.
    pub(super) fn sorted(&self) -> Vec<(&str, u64)> {
        let all = self.list.iter();
        let mut all: Vec<_> = all.map(|(name, count)| (name.as_str(), *count)).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_is_counted(names in proptest::collection::vec("[a-d]{1,2}", 0..60)) {
            let (mut counts, mut expect) = (Counts::default(), BTreeMap::new());
            for name in &names {
                prop_assert!(counts.add(name, 1));
                *expect.entry(name.as_str()).or_insert(0) += 1;
            }
            prop_assert_eq!(counts.len(), expect.len());
            for (name, count) in &expect {
                prop_assert_eq!(counts.get(name), Some(*count));
            }
            prop_assert_eq!(counts.get("x"), None);
            prop_assert_eq!(counts.sorted(), expect.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn there_are_not_too_many() {
        let mut counts = Counts::default();
        let told = (0..=MAX_NAMES).filter(|number| counts.add(&number.to_string(), 1));
        assert_eq!(told.count(), MAX_NAMES);
        assert!(counts.add("7", 2) && !counts.add("x", 1));
        assert_eq!(counts.get("7"), Some(3));
    }
}
