//! Commands with effects that Landlock does not confine: attributes of files, and the state of the system.
//!
//! As root, or for the user's own files, they reach outside the sandbox's directories.

use std::path::{Path, PathBuf};

use super::evaluate::Decider;
use super::places::normalize_path;
use crate::syntax::word::Word;

/// Commands that change attributes of files. They are refused outside the sandbox's directories.
const ATTRIBUTES: &[&str] = &[
    "chattr", "setfattr", "setcap", "setfacl", "chacl", "chflags",
];
/// Commands that change the owner or the mode. Outside the sandbox's directories and home they need
/// confirmation.
const MODES: &[&str] = &["chmod", "chown", "chgrp"];
/// Commands that change the state of the system, with their subcommands that only print it.
const STATE: &[(&str, &[&str])] = &[
    (
        "swapon",
        &[
            "-s",
            "--show",
            "--summary",
            "--help",
            "--version",
            "-V",
            "-h",
        ],
    ),
    ("swapoff", &["--help", "--version", "-V", "-h"]),
    (
        "losetup",
        &[
            "-a",
            "--all",
            "-l",
            "--list",
            "-j",
            "--associated",
            "-h",
            "--help",
            "-V",
            "--version",
        ],
    ),
    (
        "kexec",
        &["--help", "--version", "-h", "-v", "--status", "-S"],
    ),
    (
        "modprobe",
        &[
            "-n",
            "--dry-run",
            "--show-depends",
            "-D",
            "-c",
            "--showconfig",
            "-V",
            "--version",
            "-h",
            "--help",
        ],
    ),
    (
        "hwclock",
        &["-r", "--show", "--get", "-V", "--version", "-h", "--help"],
    ),
    ("setenforce", &[]),
    ("auditctl", &["-l", "-s", "-v"]),
    (
        "iptables",
        &[
            "-L",
            "--list",
            "-S",
            "--list-rules",
            "-V",
            "--version",
            "-h",
        ],
    ),
    (
        "ip6tables",
        &[
            "-L",
            "--list",
            "-S",
            "--list-rules",
            "-V",
            "--version",
            "-h",
        ],
    ),
    ("nft", &["list", "-v", "--version", "-h", "--help"]),
    (
        "dmsetup",
        &[
            "ls", "info", "status", "table", "deps", "targets", "version",
        ],
    ),
    (
        "cryptsetup",
        &[
            "status",
            "luksDump",
            "isLuks",
            "benchmark",
            "--version",
            "--help",
        ],
    ),
    ("pivot_root", &[]),
    ("umount", &["-V", "--version", "-h", "--help"]),
    (
        "zpool",
        &["list", "status", "get", "history", "iostat", "version"],
    ),
    ("zfs", &["list", "get", "version", "holds", "diff"]),
];
/// Directories in which every command may write.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];

/// The position of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    Inside,
    Home,
    Unknown,
    Outside,
}

impl Decider<'_> {
    /// Refuses, or asks about, effects that the OS sandbox does not confine.
    pub(super) fn unconfined(&mut self, name: &str, arguments: &[Word]) {
        let attributes = ATTRIBUTES.contains(&name);
        if (attributes || MODES.contains(&name)) && !self.places.roots().is_empty() {
            for word in arguments
                .iter()
                .filter(|word| !word.prefix().starts_with('-'))
            {
                match self.position(word) {
                    Position::Outside | Position::Home if attributes => self.block(format!(
                        "`{name}` of `{}`, outside the sandbox's directories: the OS sandbox does not confine it",
                        word.shown()
                    )),
                    Position::Outside => self.ask(format!(
                        "`{name}` of `{}` is not confined by the OS sandbox",
                        word.shown()
                    )),
                    Position::Unknown if attributes => self.ask(format!(
                        "whether `{name}` stays in the sandbox's directories is unknown before it runs"
                    )),
                    Position::Inside | Position::Home | Position::Unknown => {}
                }
            }
        }
        let shows = STATE.iter().find(|(known, _)| *known == name);
        if let (Some((_, shows)), Some(first)) = (shows, arguments.first())
            && !first.known().is_some_and(|word| shows.contains(&word))
        {
            self.ask(format!(
                "`{name}` changes the system, which the OS sandbox does not confine"
            ));
        }
        let sets = match name {
            "sysctl" => arguments
                .iter()
                .any(|word| word.prefix().contains('=') || has_letter(word, &['w', 'p'])),
            "date" => arguments.iter().any(sets_clock),
            "hostname" | "domainname" => {
                arguments.iter().any(|word| !word.prefix().starts_with('-'))
            }
            _ => false,
        };
        if sets {
            self.ask(format!(
                "`{name}` changes the system, which the OS sandbox does not confine"
            ));
        }
    }

    fn position(&self, word: &Word) -> Position {
        let Some(text) = word.pattern() else {
            return Position::Unknown;
        };
        let places: Vec<Option<PathBuf>> = self.places.now().to_vec();
        let positions = places.iter().map(|place| match place {
            _ if text.starts_with('/') => self.position_of(&normalize_path(Path::new(text))),
            Some(place) => self.position_of(&normalize_path(&place.join(text))),
            None => Position::Unknown,
        });
        positions.max().unwrap_or(Position::Unknown)
    }

    fn position_of(&self, path: &Path) -> Position {
        let below = |directory: &Path| path.starts_with(directory);
        if self.places.roots().iter().any(|root| below(root))
            || TEMPORARY.iter().any(|dir| below(Path::new(dir)))
        {
            Position::Inside
        } else if self.places.home_path().is_some_and(below) {
            Position::Home
        } else {
            Position::Outside
        }
    }
}

/// Whether the word is a bundle of short options with one of these letters.
fn has_letter(word: &Word, letters: &[char]) -> bool {
    let text = word.prefix();
    text.starts_with('-') && !text.starts_with("--") && text.contains(letters)
}

/// Whether the word is an option of `date` that sets the clock. The letters after `I`, `d`, `r` or
/// `f` are a value.
fn sets_clock(word: &Word) -> bool {
    let text = word.prefix();
    let sets = |letters: &str| {
        let mut flags = letters
            .chars()
            .take_while(|letter| !"Idrf".contains(*letter));
        flags.any(|letter| letter == 's')
    };
    match text.strip_prefix("--") {
        Some(name) => name.starts_with('s'),
        None => text.strip_prefix('-').is_some_and(sets),
    }
}
