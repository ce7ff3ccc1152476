//! The parts of a command, in the form that rules are compared with.

#[cfg(feature = "shell")]
pub(crate) mod path_words;
#[cfg(all(feature = "policy-enforcer", feature = "shell"))]
pub(crate) mod referenced_paths;
#[cfg(feature = "shell")]
mod rule_segments;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::glob::Text;
use super::parsed_call::SubjectPath;
use crate::contract::call_targets::PathRole;
#[cfg(feature = "shell")]
use zeph_bash::Parsed;
pub use zeph_bash::PartKind;

/// Whether a command that starts in `cwd` only reads, according to its text.
#[must_use]
pub fn only_reads(command: &str, cwd: &Path) -> bool {
    let parsed = zeph_bash::Parsed::new(command);
    let start = zeph_bash::WorkingDirState {
        cwd: cwd.to_owned(),
        ..zeph_bash::WorkingDirState::default()
    };
    zeph_bash::read_only(&parsed, &start).is_ok()
}

/// A simple command at any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandPart {
    /// `NAME=value` before it; `None` for a value that cannot be known.
    pub assignments: Vec<(String, Option<String>)>,
    /// The words after quote removal; an unknown rest of a word is a `…` at its end.
    pub words: Vec<String>,
    /// Assignments and words, joined by blanks.
    pub text: String,
    /// Whether all of it is known before it runs.
    pub known: bool,
    /// The kind.
    pub kind: PartKind,
    /// The number of commands that it is nested in.
    pub depth: usize,
    /// The indexes of the words with an option that is not known to be harmless.
    pub unlisted: Vec<usize>,
    /// The number of leading words that can be allowed together with all harmless options.
    pub offered: usize,
    /// The text for allow rules: blanks inside words do not separate words.
    pub(crate) strict: Text,
    /// The texts for other rules: with assignments, without assignments, and with only the file name of the
    /// program.
    pub(crate) loose: Vec<Text>,
    /// The texts that it may be equivalent to: without leading options, and the commands that it may run.
    pub(crate) perhaps: Vec<Text>,
}

/// The parsed form of a command, from its text alone; links are not resolved.
#[derive(Debug, Default)]
pub struct ParsedCommand {
    /// The text.
    pub text: String,
    /// The absolute path of the directory in which it starts.
    pub start: PathBuf,
    /// The home directory that `~` expands to.
    home: Option<PathBuf>,
    /// All simple commands at all depths in order, also those that other commands run.
    pub parts: Vec<CommandPart>,
    /// The targets of redirections: the given text and the path from the directory of the command; each once.
    pub(crate) targets: Vec<(String, PathBuf)>,
    /// Whether it writes to a target that cannot be known.
    pub unknown_writes: bool,
    /// The part that cannot be known before it runs; `None` if all of it is known. In operands of
    /// `rm -r`, `chmod -R`, `chown -R` and `chgrp -R`, the values of variables that the command
    /// sets are known.
    pub unknown: Option<String>,
    /// The part that is unknown without the values of variables, for rules about the whole text and
    /// about paths.
    pub(crate) unresolved: Option<String>,
    /// Whether an allow rule with the exact text of the command replaces the confirmation for the unknown part.
    pub can_be_allowed_exactly: bool,
    /// The text that the shell runs, if it differs in more than quoting and layout.
    pub rewritten: Option<String>,
    pub(super) whole: Text,
    /// All words that it names.
    #[cfg(feature = "shell")]
    pub(crate) named: Vec<zeph_bash::NamedWord>,
    /// The paths that it reads, if it only reads.
    #[cfg(feature = "shell")]
    pub(crate) reads: Option<Vec<zeph_bash::ReadPath>>,
}

/// A command of a call, for one decision.
#[derive(Debug)]
pub struct CommandSubject {
    read: Arc<ParsedCommand>,
    /// The given start directory, if any.
    pub cwd: Option<String>,
    /// The targets of redirections, in any directory.
    pub writes: Vec<SubjectPath>,
}

impl CommandSubject {
    pub(super) fn new(read: Arc<ParsedCommand>, cwd: Option<&str>) -> Self {
        let write = |(given, path): &(String, PathBuf)| {
            SubjectPath::new(given, PathRole::Write, path.clone())
        };
        Self {
            writes: read.targets.iter().map(write).collect(),
            cwd: cwd.map(str::to_owned),
            read,
        }
    }
}

impl Deref for CommandSubject {
    type Target = ParsedCommand;

    fn deref(&self) -> &ParsedCommand {
        &self.read
    }
}

impl ParsedCommand {
    fn new(text: &str, start: PathBuf, home: Option<&Path>, last: &ParsedCommandCache) -> Self {
        let mut read = Self {
            text: text.to_owned(),
            whole: Text::of(text.trim()),
            start,
            home: home.map(Path::to_owned),
            ..Self::default()
        };
        read.fill(last);
        read
    }

    #[cfg(feature = "shell")]
    fn fill(&mut self, last: &ParsedCommandCache) {
        let parsed = last.parsed(&self.text);
        rule_segments::read(self, &parsed, self.home.clone());
    }

    /// Marks the command as unknown: without the shell feature, commands are not parsed.
    #[cfg(not(feature = "shell"))]
    fn fill(&mut self, _last: &ParsedCommandCache) {
        self.unknown = Some("this build cannot parse commands".to_owned());
        self.unresolved.clone_from(&self.unknown);
    }
}

/// The command that was parsed last for a call. Several gates check the same command, and the result depends only
/// on the values that are compared here. Each gate resolves the paths itself.
#[derive(Debug, Default)]
pub(crate) struct ParsedCommandCache {
    read: Mutex<Option<Arc<ParsedCommand>>>,
    #[cfg(feature = "shell")]
    parsed: Mutex<Option<Arc<Parsed>>>,
}

impl ParsedCommandCache {
    /// Returns the command `text` that starts in `start`, from the cache if it is the last one.
    pub(super) fn read(
        &self,
        text: &str,
        start: PathBuf,
        home: Option<&Path>,
    ) -> Arc<ParsedCommand> {
        let mut last = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = &*last
            && read.text == text
            && read.start == start
            && read.home.as_deref() == home
        {
            return Arc::clone(read);
        }
        let read = Arc::new(ParsedCommand::new(text, start, home, self));
        *last = Some(Arc::clone(&read));
        read
    }

    /// Returns the syntax tree of the command `text`, from the cache if it is the last one.
    #[cfg(feature = "shell")]
    pub(crate) fn parsed(&self, text: &str) -> Arc<Parsed> {
        let mut last = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = &*last
            && parsed.is_of(text)
        {
            return Arc::clone(parsed);
        }
        let parsed = Arc::new(Parsed::new(text));
        *last = Some(Arc::clone(&parsed));
        parsed
    }

    /// Empties the cache.
    pub(crate) fn forget(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
        #[cfg(feature = "shell")]
        {
            *self.parsed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

#[cfg(all(test, feature = "shell"))]
mod tests {
    use super::*;

    #[test]
    fn only_an_identical_command_is_taken_from_the_cache() {
        let last = ParsedCommandCache::default();
        let read = |text: &str, start: &str, home: Option<&str>| {
            last.read(text, start.into(), home.map(Path::new))
        };
        let first = read("rm -r ~/x > out", "/w", Some("/h"));
        assert!(Arc::ptr_eq(
            &first,
            &read("rm -r ~/x > out", "/w", Some("/h"))
        ));
        assert_eq!(first.parts[0].text, "rm -r /h/x");
        assert_eq!(first.targets, [("out".to_owned(), "/w/out".into())]);
        // Each input differs from the previous one in one value.
        let moved = read("rm -r ~/x > out", "/v", Some("/h"));
        assert_eq!(moved.targets, [("out".to_owned(), "/v/out".into())]);
        let homed = read("rm -r ~/x > out", "/v", Some("/g"));
        assert_eq!(homed.parts[0].text, "rm -r /g/x");
        let other = read("rm -r ~/y > out", "/v", Some("/g"));
        assert_eq!(other.parts[0].text, "rm -r /g/y");
        last.forget();
        let again = read("rm -r ~/y > out", "/v", Some("/g"));
        assert!(!Arc::ptr_eq(&other, &again));
        assert_eq!(other.parts, again.parts);
    }

    /// Proves SH-11, PERM-3: the values of variables make targets known, but not the commands that
    /// rules compare.
    #[test]
    fn variable_in_a_target_is_known_if_its_value_is() {
        let read = |text: &str| {
            ParsedCommandCache::default().read(text, "/w".into(), Some(Path::new("/h")))
        };
        for text in [
            "for d in build dist; do rm -rf \"$d\"; done",
            "OUT=dist; rm -rf \"$OUT\"/*",
            "d=src; chmod -R u+w \"$d\"",
            "d=x; e=$d/y; rm -rf $e",
        ] {
            let command = read(text);
            assert_eq!(command.unknown, None, "{text}");
            assert!(command.unresolved.is_some(), "{text}");
            assert!(command.parts.iter().any(|part| !part.known), "{text}");
        }
        for text in [
            "rm -rf \"$d\"",
            "d=build; read d; rm -rf \"$d\"",
            "d=x rm -rf \"$d\"",
            "for d in build /; do rm -rf \"$d\"; done",
            "d=; rm -rf \"$d\"/*",
            "f() { rm -rf \"$1\"; }; f /",
            // The text for the shell has commands that no rule sees.
            "s='rm -rf x'; bash -c \"$s\"",
            "d=x; rm -rf \"$d\"; eval \"$d\"",
            "d=rm; $d -rf x",
        ] {
            assert!(read(text).unknown.is_some(), "{text}");
        }
        let literal = read("rm -rf dist");
        assert!(literal.unknown.is_none() && literal.unresolved.is_none());
    }
}
