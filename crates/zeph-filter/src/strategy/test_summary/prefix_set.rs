//! Texts that lines begin with. A table of their first bytes rules most lines out.

/// Several of them.
pub(super) struct PrefixSet {
    firsts: [bool; 256],
    all: &'static [&'static str],
}

impl PrefixSet {
    /// Of texts that are not empty.
    pub(super) const fn new(all: &'static [&'static str]) -> Self {
        let (mut firsts, mut at) = ([false; 256], 0);
        while at < all.len() {
            firsts[all[at].as_bytes()[0] as usize] = true;
            at += 1;
        }
        Self { firsts, all }
    }

    /// The first one that `text` begins with.
    pub(super) fn position(&self, text: &str) -> Option<usize> {
        let first = *text.as_bytes().first()?;
        if !self.firsts[usize::from(first)] {
            return None;
        }
        let fits = |start: &&str| start.as_bytes()[0] == first && text.starts_with(*start);
        self.all.iter().position(fits)
    }

    /// Whether `text` begins with one of them.
    pub(super) fn begin(&self, text: &str) -> bool {
        self.position(text).is_some()
    }

    /// The one of that number.
    pub(super) fn get(&self, position: usize) -> &'static str {
        self.all[position]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    static STARTS: PrefixSet = PrefixSet::new(&["ab", "a", "ä", "abc", "c "]);

    proptest! {
        #[test]
        fn the_first_that_fits_is_found(text in "[abcä ]{0,4}") {
            let expect = STARTS.all.iter().position(|start| text.starts_with(start));
            prop_assert_eq!(STARTS.position(&text), expect);
            prop_assert_eq!(STARTS.begin(&text), expect.is_some());
        }
    }
}
