//! Patterns of secrets from the configuration.

use std::fmt;
use std::ops::Range;

use regex::{Regex, RegexBuilder};

use super::config::ExtraPattern;

/// The maximum length of a pattern in characters.
const MAX_PATTERN_CHARS: usize = 512;
/// The maximum size of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// The maximum number of patterns.
pub(super) const MAX_PATTERNS: usize = 40;

/// A configured pattern that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The name of the pattern.
    pub name: String,
    /// The reason why it is not used.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[tools.filters.security] extra_patterns: {:?} is skipped: {}",
            self.name, self.reason
        )
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct CustomPattern {
    /// The name that is shown instead of a value.
    pub(super) name: String,
    regex: Regex,
}

impl CustomPattern {
    fn new(extra: &ExtraPattern) -> Result<Self, String> {
        let ExtraPattern { name, pattern } = extra;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_word) {
            return Err("its name must be 1 to 64 letters, digits, `_` and `-`".to_owned());
        }
        let length = pattern.chars().count();
        if length > MAX_PATTERN_CHARS {
            return Err(format!(
                "its pattern has {length} characters; at most {MAX_PATTERN_CHARS} are allowed"
            ));
        }
        let regex = RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|error| format!("its pattern does not compile: {error}"))?;
        if regex.is_match("") {
            return Err("its pattern matches the empty text".to_owned());
        }
        Ok(Self {
            name: name.clone(),
            regex,
        })
    }

    /// The ranges of its values in a line.
    pub(super) fn find<'t>(&'t self, line: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        self.regex.captures_iter(line).filter_map(|captures| {
            let value = captures.get(1).or_else(|| captures.get(0))?;
            (!value.is_empty()).then(|| value.range())
        })
    }
}

/// Compiles the patterns. Returns the valid patterns and the skipped ones.
pub(super) fn compile(patterns: &[ExtraPattern]) -> (Vec<CustomPattern>, Vec<Skipped>) {
    let mut extras: Vec<CustomPattern> = Vec::new();
    let mut skipped = Vec::new();
    for pattern in patterns {
        let result = if extras.len() == MAX_PATTERNS {
            Err(format!("there are more than {MAX_PATTERNS}"))
        } else {
            CustomPattern::new(pattern)
        };
        match result {
            Ok(extra) => extras.push(extra),
            Err(reason) => skipped.push(Skipped {
                name: pattern.name.clone(),
                reason,
            }),
        }
    }
    (extras, skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(name: &str, pattern: &str) -> ExtraPattern {
        ExtraPattern {
            name: name.to_owned(),
            pattern: pattern.to_owned(),
        }
    }

    /// Proves OUT-20.
    #[test]
    fn unusable_pattern_is_named_and_the_rest_apply() {
        let check = |name: &str, text: &str, expect: &str| {
            let (extras, skipped) = compile(&[pattern("a", "x"), pattern(name, text)]);
            assert_eq!(extras.len(), 1);
            let said = skipped[0].to_string();
            assert!(said.contains(name) && said.contains(expect), "{said}");
        };
        check("long", &"x".repeat(513), "513 characters");
        check("broken", "(", "does not compile");
        check("vast", r"(\w{500}){500}", "does not compile");
        check("empty", "x*", "the empty text");
        check("a b", "x", "letters, digits");
        check("", "x", "letters, digits");
        assert_eq!(compile(&[pattern("long", &"ä".repeat(512))]).0.len(), 1);
    }

    #[test]
    fn pattern_value_is_the_first_group_or_the_match() {
        let check = |text: &str, line: &str, expect: &[&str]| {
            let (extras, _) = compile(&[pattern("p", text)]);
            let found: Vec<_> = extras[0].find(line).map(|range| &line[range]).collect();
            assert_eq!(found, expect);
        };
        check(
            "ACME-[0-9]{4}",
            "ACME-1234 ACME-5678",
            &["ACME-1234", "ACME-5678"],
        );
        check("pin: ([0-9]{4})", "pin: 1234", &["1234"]);
        check("(a)|b", "ab", &["a", "b"]);
        check("()b", "b", &[]);
    }
}
