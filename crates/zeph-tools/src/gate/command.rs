//! What a command is made of, as rules see it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::call_targets::PathRole;
use super::glob::Text;
use super::parsed_call::SubjectPath;
#[cfg(feature = "shell")]
use zeph_bash::Parsed;
pub use zeph_bash::PartKind;

/// A simple command at any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPart {
    /// `NAME=value` in front of it; `None` for a value that cannot be known.
    pub assignments: Vec<(String, Option<String>)>,
    /// Its words after quote removal; what cannot be known is a `…` at the end of a word.
    pub words: Vec<String>,
    /// Assignments and words, joined by blanks.
    pub text: String,
    /// Whether all of it is known before it runs.
    pub known: bool,
    /// What it is.
    pub kind: PartKind,
    /// In how many others it is nested.
    pub depth: usize,
    /// The indexes of the words with an option that is not known to be harmless.
    pub unlisted: Vec<usize>,
    /// The number of leading words of which all calls with harmless options can be allowed at once.
    pub offered: usize,
    /// As an allow rule sees it: blanks inside words are none between them.
    pub(crate) strict: Text,
    /// As other rules see it: with assignments, without, and with the file name alone.
    pub(crate) loose: Vec<Text>,
    /// What it may come to: without options in front, and what it may run.
    pub(crate) perhaps: Vec<Text>,
}

/// What a command says by its text alone, wherever links lead.
#[derive(Debug, Default)]
pub struct ParsedCommand {
    /// The text.
    pub text: String,
    /// Where it starts; absolute.
    pub start: PathBuf,
    /// The home that `~` stands for.
    home: Option<PathBuf>,
    /// Every simple command at every depth, those that others run as well, in order.
    pub parts: Vec<CommandPart>,
    /// What redirections write to: as it was given, and from where the command works; each once.
    pub(crate) targets: Vec<(String, PathBuf)>,
    /// Whether something is written that cannot be known.
    pub unknown_writes: bool,
    /// What about it cannot be known before it runs; `None` when all of it can.
    pub unknown: Option<String>,
    /// The text that the shell runs, if it differs in more than quoting and layout.
    pub rewritten: Option<String>,
    pub(super) whole: Text,
    /// Every word that it names.
    #[cfg(feature = "shell")]
    pub(crate) named: Vec<zeph_bash::NamedWord>,
}

/// A command of a call, for one decision.
#[derive(Debug)]
pub struct CommandSubject {
    read: Arc<ParsedCommand>,
    /// Where it starts as it was given, where it was.
    pub cwd: Option<String>,
    /// What redirections write to, wherever that may be.
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
        crate::shell::rule_segments::read(self, &parsed, self.home.clone());
    }

    /// Without the shell there is no parser: nothing is known of a command.
    #[cfg(not(feature = "shell"))]
    fn fill(&mut self, _last: &ParsedCommandCache) {
        self.unknown = Some("commands are not read in this build".to_owned());
    }
}

/// The command that was read last on the way of a call: several gates look at the same, and what it says
/// depends on nothing but what is compared here. Where its paths lead each gate asks for itself.
#[derive(Debug, Default)]
pub(crate) struct ParsedCommandCache {
    read: Mutex<Option<Arc<ParsedCommand>>>,
    #[cfg(feature = "shell")]
    parsed: Mutex<Option<Arc<Parsed>>>,
}

impl ParsedCommandCache {
    /// The command `text` that starts in `start`, read now or before.
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

    /// The tree of the command `text`, parsed now or before.
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

    /// Nobody will look again.
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
    fn a_command_is_read_again_unless_it_is_the_very_same() {
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
        // Each differs in one thing from the one before.
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
}
