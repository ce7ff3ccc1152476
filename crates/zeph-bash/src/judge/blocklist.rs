//! The compiled shell policy: blocked commands and constructs. It makes decisions without I/O.

use std::borrow::Cow;

use super::evaluate::{Decider, Verdict, WorkingDirState};
use crate::syntax::ast::Construct;
use crate::syntax::reading::Parsed;
use crate::syntax::word::Word;

/// Programs that destroy data or escalate privileges; always blocked. `destructive_targets` judges targets (`rm -r /`,
/// block devices).
const DEFAULTS: &[&str] = &[
    "sudo", "sudoedit", "su", "doas", "pkexec", "run0", "mkfs*", "fdisk", "shutdown", "reboot",
    "halt", "poweroff", "insmod", "rmmod",
];
/// Programs that are blocked in addition if `allow_network = false`.
const NETWORK: &[&str] = &[
    "curl", "wget", "nc", "ncat", "ssh", "scp", "rsync", "telnet", "ftp",
];

/// The maximum number of commands in a list of refusals.
const MAX_LISTED: usize = 40;

/// The name of all constructs together in [`BlocklistOptions::blocked_constructs`].
pub const FOUNDING: &str = "founding";

/// Options of a [`ShellPolicy`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlocklistOptions {
    /// Leading words of further commands that are blocked, for example `terraform destroy`.
    pub blocked_commands: Vec<String>,
    /// Names of the [`Construct`]s that are refused; [`FOUNDING`] names all of them.
    pub blocked_constructs: Vec<String>,
    /// Whether programs that use the network are blocked.
    pub block_network: bool,
}

/// An invalid entry of [`BlocklistOptions`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// An entry of `blocked_commands` is not a sequence of words.
    #[error(
        "{entry:?} is not the start of a command: expected words such as \"terraform destroy\""
    )]
    Entry {
        /// The index in the list, from 0.
        index: usize,
        /// The entry.
        entry: String,
    },
    /// `blocked_constructs` has an unknown name.
    #[error("{name:?} is not a construct")]
    Construct {
        /// The index in the list, from 0.
        index: usize,
        /// The name.
        name: String,
    },
}

/// A policy of commands that may run. It is compiled once and decides without I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellPolicy {
    entries: Vec<Vec<String>>,
    blocked_constructs: Vec<Construct>,
    network: bool,
    /// Whether it judges the operands of `rm -r`, `chmod -R`, `chown -R` and `chgrp -R`.
    has_target_rules: bool,
}

impl Default for ShellPolicy {
    fn default() -> Self {
        Self {
            entries: DEFAULTS
                .iter()
                .map(|name| vec![(*name).to_owned()])
                .collect(),
            blocked_constructs: Vec::new(),
            network: true,
            has_target_rules: true,
        }
    }
}

/// Whether a command begins with the words of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// It does not.
    No,
    /// It may: a word of the command is unresolved.
    Maybe,
    /// It does.
    Yes,
}

impl ShellPolicy {
    /// Compiles the default blocklist and `options`.
    ///
    /// # Errors
    /// All [`PolicyError`]s of `options`.
    pub fn new(options: &BlocklistOptions) -> Result<Self, Vec<PolicyError>> {
        let mut policy = Self {
            network: !options.block_network,
            ..Self::default()
        };
        let mut errors = Vec::new();
        for (index, entry) in options.blocked_commands.iter().enumerate() {
            let words: Vec<String> = entry.split_whitespace().map(str::to_owned).collect();
            let meta = |c: char| c.is_control() || ";|&<>()$`\\\"'".contains(c);
            if words.is_empty() || entry.contains(meta) || words[0].starts_with('-') {
                let entry = entry.clone();
                errors.push(PolicyError::Entry { index, entry });
            } else {
                policy.entries.push(words);
            }
        }
        for (index, name) in options.blocked_constructs.iter().enumerate() {
            match Construct::ALL.iter().find(|known| known.name() == name) {
                Some(construct) => policy.blocked_constructs.push(*construct),
                None if name == FOUNDING => policy.blocked_constructs.extend(Construct::ALL),
                None => {
                    let name = name.clone();
                    errors.push(PolicyError::Construct { index, name });
                }
            }
        }
        if !policy.network {
            let names = NETWORK.iter().map(|name| vec![(*name).to_owned()]);
            policy.entries.extend(names);
        }
        if errors.is_empty() {
            Ok(policy)
        } else {
            Err(errors)
        }
    }

    /// Decides whether `command` may run if the shell starts at `start`.
    #[must_use]
    pub fn decide(&self, command: &str, start: &WorkingDirState) -> Verdict {
        self.decide_parsed(&Parsed::new(command), start)
    }

    /// Decides whether a parsed command may run if the shell starts at `start`.
    pub fn decide_parsed(&self, command: &Parsed, start: &WorkingDirState) -> Verdict {
        match command.tree() {
            Ok(list) => Decider::new(self, start).decide(list),
            Err(error) => Verdict::Block {
                what: format!("the command cannot be parsed, so it does not run: {error}"),
            },
        }
    }

    /// Decides whether a text may run in `sh`.
    pub fn decide_for_sh(&self, text: &str, start: &WorkingDirState) -> Verdict {
        Decider::new(self, start).decide_for_sh(text)
    }

    /// Returns the blocked part of a command, judged without a known working directory.
    #[must_use]
    pub fn find_blocked_command(&self, command: &str) -> Option<String> {
        match self.decide(command, &WorkingDirState::default()) {
            Verdict::Block { what } => Some(what),
            Verdict::Allow | Verdict::Ask { .. } => None,
        }
    }

    /// Creates a policy that blocks no commands.
    pub fn open() -> Self {
        Self {
            entries: Vec::new(),
            blocked_constructs: Vec::new(),
            network: true,
            has_target_rules: true,
        }
    }

    /// Creates a policy that blocks no commands, and does not judge the operands of `rm -r`,
    /// `chmod -R`, `chown -R` and `chgrp -R`.
    pub(super) fn without_target_rules() -> Self {
        Self {
            has_target_rules: false,
            ..Self::open()
        }
    }

    /// Returns the refused commands and constructs as a list, for the description of a tool.
    #[must_use]
    pub fn refusals(&self) -> String {
        let commands = self.entries.iter().map(|entry| entry.join(" "));
        let mut names: Vec<String> = commands.take(MAX_LISTED).collect();
        if self.entries.len() > MAX_LISTED {
            names.push("…".to_owned());
        }
        names.push("rm -r of / or ~".to_owned());
        names.push("a download piped to a shell".to_owned());
        let constructs = Construct::ALL.iter().filter(|known| !self.admits(**known));
        names.extend(constructs.map(|construct| construct.title().to_owned()));
        names.join(", ")
    }

    pub(super) fn admits(&self, construct: Construct) -> bool {
        !self.blocked_constructs.contains(&construct)
    }

    pub(super) fn admits_network(&self) -> bool {
        self.network
    }

    pub(super) fn has_target_rules(&self) -> bool {
        self.has_target_rules
    }

    /// The first entry that the command begins with, or may begin with.
    pub(super) fn entry(&self, words: &[Word]) -> Option<(Fit, String)> {
        let fits = |wanted| {
            self.entries
                .iter()
                .find(|entry| fit(entry, words) == wanted)
                .map(|entry| (wanted, entry.join(" ")))
        };
        fits(Fit::Yes).or_else(|| fits(Fit::Maybe))
    }
}

/// Compares all words with the entry, and then the words without options.
fn fit(entry: &[String], words: &[Word]) -> Fit {
    let plain = prefix_fit(entry, words.iter());
    if plain == Fit::Yes || entry.len() == 1 || entry.iter().any(|word| word.starts_with('-')) {
        return plain;
    }
    let options_left_out = words.iter().filter(|word| !word.prefix().starts_with('-'));
    match prefix_fit(entry, options_left_out) {
        Fit::No => plain,
        other => other,
    }
}

fn prefix_fit<'w>(entry: &[String], words: impl Iterator<Item = &'w Word>) -> Fit {
    let mut words = words;
    let mut fit = Fit::Yes;
    for (index, pattern) in entry.iter().enumerate() {
        let Some(word) = words.next() else {
            return Fit::No;
        };
        let Some(text) = word.known() else {
            // The words after an unresolved word have unknown positions.
            return Fit::Maybe;
        };
        let fits = if index == 0 {
            matches_pattern(file_name(pattern), &fold(file_name(text)))
        } else {
            matches_pattern(pattern, text)
        };
        if !fits {
            fit = Fit::No;
            break;
        }
    }
    fit
}

/// The file name of a command word.
pub fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// A name in the form in which the operating system compares names.
pub(super) fn fold(name: &str) -> Cow<'_, str> {
    if cfg!(target_os = "macos") {
        name.to_lowercase().into()
    } else {
        name.into()
    }
}

/// Whether `text` matches `pattern`, in which `*` matches any characters.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    true
}
