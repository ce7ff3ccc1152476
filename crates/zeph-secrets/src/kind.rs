//! Kinds of secrets and their names.

use super::custom_patterns::MAX_PATTERNS;

/// A kind of secret: one of [`BUILT_IN`], a known value, or a configured pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind(u8);

/// The category of a built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Keys of cloud providers.
    CloudKeys,
    /// Tokens of code hosts and package registries.
    CodeHostTokens,
    /// Keys of other services.
    ApiKeys,
    /// Private keys and certificates.
    PrivateKeys,
    /// Credentials in URLs and assignments.
    Credentials,
    /// Paths of files that hold secrets.
    SensitivePaths,
}

/// The built-in patterns, with their names in messages.
pub const BUILT_IN: [(&str, Category); 17] = [
    ("aws_access_key", Category::CloudKeys),
    ("google_key", Category::CloudKeys),
    ("azure_key", Category::CloudKeys),
    ("github_token", Category::CodeHostTokens),
    ("gitlab_token", Category::CodeHostTokens),
    ("registry_token", Category::CodeHostTokens),
    ("slack_token", Category::ApiKeys),
    ("stripe_key", Category::ApiKeys),
    ("openai_key", Category::ApiKeys),
    ("anthropic_key", Category::ApiKeys),
    ("huggingface_token", Category::ApiKeys),
    ("service_key", Category::ApiKeys),
    ("jwt", Category::ApiKeys),
    ("private_key", Category::PrivateKeys),
    ("url_credentials", Category::Credentials),
    ("assignment", Category::Credentials),
    ("sensitive_path", Category::SensitivePaths),
];

/// The name that is shown instead of a known value.
const KNOWN_NAME: &str = "known_secret";

impl Kind {
    pub(super) const AWS: Self = Self(0);
    pub(super) const GOOGLE: Self = Self(1);
    pub(super) const AZURE: Self = Self(2);
    pub(super) const GITHUB: Self = Self(3);
    pub(super) const GITLAB: Self = Self(4);
    pub(super) const REGISTRY: Self = Self(5);
    pub(super) const SLACK: Self = Self(6);
    pub(super) const STRIPE: Self = Self(7);
    pub(super) const OPENAI: Self = Self(8);
    pub(super) const ANTHROPIC: Self = Self(9);
    pub(super) const HUGGINGFACE: Self = Self(10);
    pub(super) const SERVICE: Self = Self(11);
    pub(super) const JWT: Self = Self(12);
    pub(super) const PRIVATE_KEY: Self = Self(13);
    pub(super) const URL: Self = Self(14);
    pub(super) const ASSIGNMENT: Self = Self(15);
    pub(super) const PATH: Self = Self(16);
    pub(super) const KNOWN: Self = Self(17);
    const FIRST_EXTRA: u8 = 18;

    /// The kind of the configured pattern with this index.
    pub(super) fn extra(number: usize) -> Self {
        Self(Self::FIRST_EXTRA + u8::try_from(number.min(MAX_PATTERNS - 1)).unwrap_or_default())
    }

    /// The index of the configured pattern, if the kind is one.
    pub(super) fn as_extra(self) -> Option<usize> {
        self.0.checked_sub(Self::FIRST_EXTRA).map(usize::from)
    }

    /// The name of the kind, unless it is a configured pattern.
    pub(super) fn built_in_name(self) -> Option<&'static str> {
        if self == Self::KNOWN {
            return Some(KNOWN_NAME);
        }
        BUILT_IN.get(usize::from(self.0)).map(|(name, _)| *name)
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u64);

impl Kinds {
    /// Adds a kind.
    pub(super) fn insert(&mut self, kind: Kind) {
        self.0 |= 1 << kind.0;
    }

    /// Adds the kinds of another set.
    pub fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `kind` is in the set.
    #[must_use]
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind.0) != 0
    }

    /// The kinds with values that are replaced.
    #[must_use]
    pub fn values(self) -> Self {
        Self(self.0 & !(1 << Kind::PATH.0))
    }

    /// The kinds in order.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        (0..64).map(Kind).filter(move |kind| self.contains(*kind))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Proves OUT-20.
    #[test]
    fn built_in_patterns_are_17_in_6_categories() {
        let names: BTreeSet<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), 17);
        let mut categories: Vec<Category> = Vec::new();
        for (_, category) in BUILT_IN {
            if !categories.contains(&category) {
                categories.push(category);
            }
        }
        assert_eq!(categories.len(), 6);
        assert_eq!(Kind::PATH.built_in_name(), Some("sensitive_path"));
        assert_eq!(Kind::KNOWN.built_in_name(), Some("known_secret"));
        assert_eq!(Kind::extra(0).built_in_name(), None);
        assert_eq!(Kind::extra(3).as_extra(), Some(3));
        assert_eq!(Kind::KNOWN.as_extra(), None);
    }

    #[test]
    fn set_contains_the_last_pattern() {
        let mut kinds = Kinds::default();
        kinds.insert(Kind::extra(MAX_PATTERNS - 1));
        kinds.insert(Kind::PATH);
        assert_eq!(kinds.iter().count(), 2);
        assert_eq!(kinds.values().iter().count(), 1);
    }
}
