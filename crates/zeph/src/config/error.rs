//! Errors in a configuration: the problem, its position, and the fix.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use zeph_tools::hidden::is_hidden;

use super::origin::{Origin, Place};

/// How many errors are shown; the rest is counted.
const SHOWN: usize = 20;

/// How many characters of one error are shown: a key may be as long as its file.
const LENGTH: usize = 4000;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigError {
    /// The position; [`Origin::Default`] means no position.
    pub(crate) origin: Origin,
    /// The problem.
    pub(crate) message: String,
    /// How to fix it.
    pub(crate) help: Option<String>,
}

impl ConfigError {
    /// A fault at `origin`.
    pub(crate) fn new(origin: Origin, message: impl Into<String>) -> Self {
        Self {
            origin,
            message: message.into(),
            help: None,
        }
    }

    /// A fault without a place.
    pub(crate) fn general(message: impl Into<String>) -> Self {
        Self::new(Origin::Default, message)
    }

    /// Adds a hint how to fix it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = match &self.origin {
            Origin::Default => String::new(),
            Origin::User(place) | Origin::Project(place) => format!("{place}: "),
            Origin::Environment(name) => format!("environment variable {name}: "),
            Origin::Flag(flag) => format!("{flag}: "),
        };
        text.push_str(&self.message);
        if let Some(help) = &self.help {
            text.push_str("\n  help: ");
            text.push_str(help);
        }
        write_printable(f, &text)
    }
}

/// All faults that were found; never empty. Nothing ran; the exit code is 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// `Err` with all of `errors`, ordered by their place, or `Ok` without any.
    pub(crate) fn check(mut errors: Vec<ConfigError>) -> Result<(), Self> {
        if errors.is_empty() {
            return Ok(());
        }
        errors.sort_by(|a, b| order(&a.origin).cmp(&order(&b.origin)));
        errors.dedup();
        Err(Self(errors))
    }

    /// Replaces the user's file in all positions, after its new text was checked in another file.
    pub(crate) fn with_user_file(mut self, file: &Path) -> Self {
        let file: Arc<Path> = file.into();
        for error in &mut self.0 {
            if let Origin::User(place) = &mut error.origin {
                place.file = Arc::clone(&file);
            }
        }
        self
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().take(SHOWN).enumerate() {
            let newline = if number == 0 { "" } else { "\n" };
            write!(f, "{newline}{error}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for ConfigErrors {}

fn order(origin: &Origin) -> (u8, &str, usize, usize) {
    match origin {
        Origin::Default => (0, "", 0, 0),
        Origin::User(Place { file, line, column }) => {
            (1, file.to_str().unwrap_or(""), *line, *column)
        }
        Origin::Project(Place { file, line, column }) => {
            (2, file.to_str().unwrap_or(""), *line, *column)
        }
        Origin::Environment(name) => (3, name, 0, 0),
        Origin::Flag(flag) => (4, flag, 0, 0),
    }
}

/// Writes `text` without control characters from a key of the file: a terminal would execute them.
fn write_printable(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars().take(LENGTH) {
        if is_hidden(character) || (character.is_control() && character != '\n') {
            write!(f, "{}", character.escape_default())?;
        } else {
            f.write_char(character)?;
        }
    }
    Ok(())
}

/// The candidate most like `word`, and how like it is (0 to 1).
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<(&'a str, f64)> {
    // Long words are cut: the comparison is quadratic, and a file may hold any key.
    let word: String = word.chars().take(64).collect::<String>().to_lowercase();
    candidates
        .into_iter()
        .map(|name| {
            (
                name,
                strsim::normalized_damerau_levenshtein(&word, &name.to_lowercase()),
            )
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// "a, b or c", each in backticks.
pub(crate) fn any_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_and_sorted_by_line() {
        let at = |line| {
            Origin::User(Place {
                file: std::path::Path::new("/c.toml").into(),
                line,
                column: 2,
            })
        };
        let errors: Vec<ConfigError> = (0..30)
            .rev()
            .map(|line| ConfigError::new(at(line), "bad").help("mend"))
            .collect();
        let text = ConfigErrors::check(errors).unwrap_err().to_string();
        assert!(
            text.starts_with("/c.toml:0:2: bad\n  help: mend\n/c.toml:1:2: bad"),
            "{text}"
        );
        assert!(text.ends_with("… and 10 more"), "{text}");
        assert_eq!(ConfigErrors::check(Vec::new()), Ok(()));
    }

    #[test]
    fn terminals_get_no_control_characters() {
        let text = ConfigError::general("a\u{1b}[31mb\nc\u{7}").to_string();
        assert_eq!(text, "a\\u{1b}[31mb\nc\\u{7}");
    }

    #[test]
    fn nearest_names_and_lists_are_formatted() {
        let near = |word| nearest(word, ["timeout", "max_timeout", "env"]).map(|(name, _)| name);
        assert_eq!(near("timout"), Some("timeout"));
        assert_eq!(near("MAX_TIMOUT"), Some("max_timeout"));
        assert_eq!(nearest("x", []), None);
        assert_eq!(any_of([]), "");
        assert_eq!(any_of(["a"]), "`a`");
        assert_eq!(any_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
