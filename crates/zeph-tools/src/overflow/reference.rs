//! The id of a stored output: `overflow:` and a UUID.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The prefix of the UUID.
const PREFIX: &str = "overflow:";

/// The id of a stored output. It is random, so that it cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OverflowRef(Uuid);

impl OverflowRef {
    /// Creates a new id.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// Returns the UUID in its stored form: lower case, with hyphens.
    #[must_use]
    pub fn uuid(&self) -> String {
        self.0.hyphenated().to_string()
    }
}

impl fmt::Display for OverflowRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0.hyphenated())
    }
}

/// The error of a text that is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected overflow:UUID or the UUID alone, got {0:?}")]
pub struct InvalidReference(String);

impl FromStr for OverflowRef {
    type Err = InvalidReference;

    /// Parses `overflow:UUID` or the UUID alone, in its form with hyphens.
    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let bare = text.trim();
        let bare = bare.strip_prefix(PREFIX).unwrap_or(bare);
        // `Uuid` also accepts other forms: without hyphens, in braces, as a URN.
        if bare.len() == uuid::fmt::Hyphenated::LENGTH
            && let Ok(uuid) = Uuid::try_parse(bare)
        {
            return Ok(Self(uuid));
        }
        Err(InvalidReference(text.chars().take(100).collect()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Proves OUT-32.
    #[test]
    fn only_a_printed_reference_is_parsed() {
        let reference = OverflowRef::new();
        let uuid = reference.uuid();
        assert_eq!(uuid.as_bytes()[14], b'4', "a random UUID: {uuid}");
        assert_ne!(reference, OverflowRef::new());
        for text in [
            reference.to_string(),
            uuid.clone(),
            uuid.to_uppercase(),
            format!(" {reference}\n"),
        ] {
            assert_eq!(text.parse(), Ok(reference), "{text:?}");
        }
        for text in [
            String::new(),
            PREFIX.to_owned(),
            uuid.replace('-', ""),
            format!("{{{uuid}}}"),
            format!("urn:uuid:{uuid}"),
            format!("overflow:overflow:{uuid}"),
            format!("{uuid}0"),
            uuid.replacen(|c: char| c.is_ascii_hexdigit(), "g", 1),
            "' OR 1=1 --".to_owned(),
        ] {
            assert!(text.parse::<OverflowRef>().is_err(), "{text:?}");
        }
    }
}
