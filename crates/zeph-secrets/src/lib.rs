#![doc = include_str!("../README.md")]
//! # Structure
//!
//! One pass over a text (`scan`) searches rare literals. Each literal selects one of a few hand-written matchers
//! (`token`, `assignment`, `url`, `private_key`, `path`). These do not backtrack, and they know whether more text could
//! change the result. `token_formats` is the table of tokens. `value` distinguishes values from words and placeholders.
//! `name` classifies the names of variables, `visible_text` is a line as a terminal shows it, and `known_values` finds
//! known values. `stream` applies all of this to a text in parts. `placeholder` is the text that replaces a value.

#![deny(missing_docs)]

mod assignment;
pub mod config;
mod custom_patterns;
mod json;
mod kind;
mod known_stream;
mod known_values;
mod line_buffer;
mod literal_set;
mod name;
mod path;
mod placeholder;
mod private_key;
mod scan;
mod stream;
mod token;
mod token_formats;
mod url;
mod value;
mod visible_text;

use std::borrow::Cow;
use std::sync::Arc;

pub use config::{ExtraPattern, SecurityConfig};
pub use custom_patterns::Skipped;
pub use kind::{BUILT_IN, Category, Kind, Kinds};
pub use known_stream::KnownStream;
pub use placeholder::{added_mark, marks};
pub use stream::StreamRedactor;

use arc_swap::ArcSwap;

use custom_patterns::CustomPattern;
use known_values::Known;

/// The patterns and known values that are searched, and whether they are replaced.
#[derive(Debug, Default)]
pub struct SecurityPatterns {
    shows: bool,
    extras: Vec<CustomPattern>,
    known: ArcSwap<Known>,
}

/// Values that are secret, regardless of their form.
#[derive(Debug, Clone, Default)]
pub struct KnownSecrets {
    /// Keys of providers.
    pub keys: Vec<String>,
    /// Other values that are likely secret; words and paths among them are ignored.
    pub likely: Vec<String>,
}

/// A text with its secret values replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redacted<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// The kinds that were found in it.
    pub kinds: Kinds,
}

impl SecurityPatterns {
    /// Compiles the settings of `config`. Returns the patterns, and those that are invalid.
    #[must_use]
    pub fn new(config: &SecurityConfig, known: &KnownSecrets) -> (Self, Vec<Skipped>) {
        let (extras, skipped) = custom_patterns::compile(&config.extra_patterns);
        let secrets = Self {
            shows: !config.redact,
            extras,
            known: ArcSwap::from_pointee(Known::new(&known.keys, &known.likely)),
        };
        (secrets, skipped)
    }

    /// Adds values that are probably secret, such as a refreshed token. Text that was processed before is unchanged.
    pub fn add(&self, likely: &[String]) {
        self.known.rcu(|known| known.with(likely));
    }

    /// Whether the model reads the values, with a warning.
    #[must_use]
    pub fn shows(&self) -> bool {
        self.shows
    }

    /// The name of a kind.
    #[must_use]
    pub fn name(&self, kind: Kind) -> &str {
        let extra = || Some(self.extras.get(kind.as_extra()?)?.name.as_str());
        kind.built_in_name().or_else(extra).unwrap_or("secret")
    }

    /// Replaces the values in a text, even if the configuration shows values.
    #[must_use]
    pub fn redact<'t>(self: &Arc<Self>, text: &'t str) -> Redacted<'t> {
        if self.is_clean(text) {
            return Redacted {
                text: Cow::Borrowed(text),
                kinds: Kinds::default(),
            };
        }
        let mut stream = StreamRedactor::strict(Arc::clone(self));
        let mut redacted = stream.push(text).into_owned();
        redacted.push_str(&stream.finish());
        let mut kinds = stream.kinds();
        // A stream does not find a value that contains line breaks.
        if let Cow::Owned(joined) = self.redact_known(&redacted) {
            kinds.insert(Kind::KNOWN);
            redacted = joined;
        }
        let text = if redacted == text {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(redacted)
        };
        Redacted { text, kinds }
    }

    /// Replaces only known values.
    #[must_use]
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let ranges = self.known.load().ranges(text);
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut at = 0;
        for range in ranges {
            redacted.push_str(&text[at..range.start]);
            redacted.push_str("[redacted:");
            redacted.push_str(self.name(Kind::KNOWN));
            redacted.push(']');
            at = range.end;
        }
        redacted.push_str(&text[at..]);
        Cow::Owned(redacted)
    }

    /// Whether a text certainly contains no secret.
    fn is_clean(&self, text: &str) -> bool {
        self.extras.is_empty()
            && !visible_text::is_needed_anywhere(text)
            && scan::Candidates::new(self, text).place(0).is_none()
            && self.known.load().ranges(text).is_empty()
    }

    /// The warning about the secrets in a tool's output; `None` if there are none.
    #[must_use]
    pub fn warning(&self, kinds: Kinds, replaced: bool) -> Option<String> {
        if kinds.is_empty() {
            return None;
        }
        let names: Vec<&str> = kinds.iter().map(|kind| self.name(kind)).collect();
        let names = names.join(", ");
        Some(if kinds.values().is_empty() {
            format!("[warning: the output names files that contain secrets: {names}]")
        } else {
            let end = if replaced {
                "; values were redacted"
            } else {
                ""
            };
            format!("[warning: the output contained possible secrets: {names}{end}]")
        })
    }
}
