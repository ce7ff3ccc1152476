//! The part of a command text that determines its output: `cargo test` in `cd /p && cargo test 2>&1 | tail
//! -80`.
//!
//! `parts` splits the text with the shell's parser, or with the fallback `split` if the parser rejects it.
//! `wrapper` removes programs that run another command, and `normalize` normalizes names and options. Rules are
//! matched against the result, a [`Subject`]. `full_output_flags` decides whether the full output is requested.

mod full_output_flags;
mod normalize;
mod parts;
mod split;
#[cfg(test)]
mod tests;
mod wrapper;

use parts::{Part, parts};

/// The part of a command text that determines its output.
///
/// It is the last command that prints relevant output, after `&&`, `;` or `||`, without trailing pipes,
/// redirections, assignments and wrappers. Loops, conditions, groups and called functions are replaced by the
/// commands in them. Trailing commands that only report (`echo $?`, `true`, `exit 1`) are omitted.
///
/// A word that the shell expands to an unknown value ends in `…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The words joined by spaces: `cargo test --all`. Rules are matched against this text.
    pub text: String,
    /// The program and its arguments, normalized: `git`, `log` for `/usr/bin/git -C d log`.
    pub words: Vec<String>,
    /// The normalized commands that process the output: `tail`, `-80`.
    pub piped_into: Vec<Vec<String>>,
    /// True if standard output is redirected to a file, so the output is not that of the command.
    pub redirected: bool,
    /// The preceding commands whose output is also shown, in order, normalized.
    pub earlier: Vec<Vec<String>>,
}

impl Subject {
    /// Parses the subject of a command text. Returns `None` if no command prints relevant output.
    #[must_use]
    pub fn of(command: &str) -> Option<Self> {
        let mut parts = parts(command);
        while parts.len() > 1 && parts.last().is_some_and(Part::only_reports) {
            parts.pop();
        }
        let last = parts.pop()?;
        let earlier = parts
            .into_iter()
            .filter(|part| !part.only_reports() && !part.redirected)
            .map(|part| part.words)
            .collect();
        Some(Self {
            text: last.words.join(" "),
            words: last.words,
            piped_into: last.piped_into,
            redirected: last.redirected,
            earlier,
        })
    }

    /// Returns true if the full output is requested. It is only sanitized then.
    #[must_use]
    pub fn is_asked_in_full(&self) -> bool {
        full_output_flags::in_full(&self.words, &self.piped_into)
    }
}
