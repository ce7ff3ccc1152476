//! The character NUL in texts of PostgreSQL, which cannot contain it.
//!
//! A text is stored with [`ESCAPE`] and a digit in place of NUL and of the escape itself, and restored when it is read.

use std::borrow::Cow;

/// A noncharacter of Unicode, which occurs in no sensible text.
const ESCAPE: char = '\u{10fffe}';

/// The form of a text that PostgreSQL stores.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// A value of a column as it was before it was stored.
pub(crate) trait Restore {
    /// The original value.
    fn restore(self) -> Self;
}

impl Restore for String {
    fn restore(self) -> Self {
        if !self.contains(ESCAPE) {
            return self;
        }
        let mut restored = Self::with_capacity(self.len());
        let mut characters = self.chars();
        while let Some(character) = characters.next() {
            match character {
                ESCAPE => match characters.next() {
                    Some('0') => restored.push('\0'),
                    _ => restored.push(ESCAPE),
                },
                other => restored.push(other),
            }
        }
        restored
    }
}

impl Restore for Option<String> {
    fn restore(self) -> Self {
        self.map(Restore::restore)
    }
}

/// Types without escapes. A borrowed text cannot be restored; the store borrows only names of its own.
macro_rules! unchanged {
    ($($type:ty),*) => {$(
        impl Restore for $type {
            fn restore(self) -> Self {
                self
            }
        }
        impl Restore for Option<$type> {
            fn restore(self) -> Self {
                self
            }
        }
    )*};
}

unchanged!(i64, bool, &str, &[u8], Vec<u8>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Proves OPS-1: any text is stored without NUL and restored as it was.
        #[test]
        fn text_is_restored(text in "(\\PC|\0|\u{10fffe}|[01])*") {
            let stored = escaped(&text).into_owned();
            prop_assert!(!stored.contains('\0'));
            prop_assert_eq!(stored.restore(), text);
        }
    }
}
