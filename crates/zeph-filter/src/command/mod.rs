//! The part of a command text that determines its output: `cargo test` in `cd /p && cargo test 2>&1 | tail -80`.
//!
//! `parts` splits the text with the shell's parser, or with the careful `split` if the parser refuses it. `wrapper` removes
//! programs that run another command, and `normalize` gives programs one name. The result is a [`Subject`], on which rules are
//! matched. `full_output_flags` decides whether the full output was requested.

mod full_output_flags;
mod normalize;
mod parts;
mod split;
#[cfg(test)]
mod tests;
mod wrapper;

use parts::{Part, parts};

/// The part of a command text that its output is about: the last one that prints something of
/// interest, after `&&`, `;` or `||`, without trailing pipes, redirections, assignments and
/// wrappers. Loops, conditions, groups and functions that are called count by the commands in
/// them. Trailing parts that only report (`echo $?`, `true`, `exit 1`) are left out.
///
/// Words of which the shell makes something that cannot be known beforehand end in `…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The words joined by blanks: `cargo test --all`. Rules are matched on this.
    pub text: String,
    /// The program and its arguments, normalized: `/usr/bin/git -C d log` is `git`, `log`.
    pub words: Vec<String>,
    /// The commands into which its output is piped, normalized: `tail`, `-80`.
    pub piped_into: Vec<Vec<String>>,
    /// Its standard output goes to a file: what is read is not its output.
    pub redirected: bool,
    /// The parts before it whose output is read as well, in order, normalized.
    pub earlier: Vec<Vec<String>>,
}

impl Subject {
    /// The subject of a command text; `None` when nothing in it prints anything of interest.
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

    /// Whether its output was asked for in full: it is sanitized then, and nothing else.
    #[must_use]
    pub fn is_asked_in_full(&self) -> bool {
        full_output_flags::in_full(&self.words, &self.piped_into)
    }
}
