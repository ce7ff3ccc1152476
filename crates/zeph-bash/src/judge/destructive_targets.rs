//! Targets that a command must not destroy: protected directories and block devices.

use std::path::Path;

use super::blocklist::file_name;
use super::evaluate::Decider;
use super::places::{Hit, normalize_path};
use super::rsync;
use crate::syntax::word::Word;

/// Whether a command with this name changes the directory.
pub(super) fn changes_directory(name: &str) -> bool {
    matches!(name, "cd" | "pushd" | "popd")
}

/// Whether a path is the usual name of a block device or of the memory.
pub(super) fn is_block_device(path: &str) -> bool {
    const NAMES: &[&str] = &[
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "mtdblock", "loop", "dm-", "md", "zd", "nbd",
        "sr", "ram", "rbd", "drbd", "bcache", "pmem", "zram", "dasd", "disk", "rdisk",
    ];
    const DIRECTORIES: &[&str] = &["disk", "mapper", "block", "md", "zvol", "vg"];
    let path = normalize_path(Path::new(path));
    let Some(name) = path
        .strip_prefix("/dev")
        .ok()
        .and_then(Path::to_str)
        .filter(|name| !name.is_empty())
    else {
        return false;
    };
    if let Some((directory, _)) = name.split_once('/') {
        return DIRECTORIES.contains(&directory) || directory.starts_with("vg");
    }
    let floppy = name.strip_prefix("fd");
    let unit = |rest: &str| {
        rest.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    matches!(name, "mem" | "kmem" | "port")
        || floppy.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        || NAMES.iter().any(|known| {
            name.strip_prefix(known)
                .is_some_and(|rest| !rest.is_empty() && unit(rest))
        })
}

/// Commands that write to the files in their arguments.
const WRITERS: &[&str] = &[
    "tee",
    "cp",
    "mv",
    "install",
    "shred",
    "wipefs",
    "truncate",
    "sponge",
    "blkdiscard",
    "parted",
    "sfdisk",
    "cfdisk",
    "sgdisk",
    "gdisk",
    "mkswap",
    "badblocks",
    "pv",
];

impl Decider<'_> {
    /// Judges `rm`, `chmod`, `dd` and other commands that delete files or write to devices.
    pub(super) fn destroys(&mut self, name: &str, words: &[Word]) {
        match name {
            "rm" | "chmod" | "chown" | "chgrp" if !self.policy.has_target_rules() => {}
            "rm" => self.recursive(name, &words[1..], "rR", true),
            "chmod" | "chown" | "chgrp" => self.recursive(name, &words[1..], "R", false),
            "find" => self.deletes_below(&words[1..]),
            "rsync" => self.mirrors(&words[1..]),
            "mv" => self.moves(&words[1..]),
            "dd" => {
                for word in &words[1..] {
                    if word.prefix().starts_with("of=") {
                        let target = word.after(3);
                        if target.known().is_none() {
                            self.ask("the target of `dd` is unknown before it runs");
                        }
                        self.output(&target);
                    } else if word.known().is_none() && !word.prefix().contains('=') {
                        self.ask("the target of `dd` is unknown before it runs");
                    }
                }
            }
            _ if WRITERS.contains(&name) => {
                for word in &words[1..] {
                    self.output(word);
                }
            }
            _ => {}
        }
    }

    /// Judges `find -delete` and `find -exec rm -r` below an unresolved directory.
    fn deletes_below(&mut self, words: &[Word]) {
        let operands = words
            .iter()
            .skip_while(|word| word.known().is_some_and(|word| word.starts_with('-')))
            .take_while(|word| !word.prefix().starts_with(['-', '(', '!']));
        let unresolved = operands.into_iter().find(|word| word.pattern().is_none());
        let runs = |at: usize| {
            let inner = words[at + 1..].iter();
            let inner = inner.take_while(|word| !matches!(word.known(), Some(";" | "+")));
            let mut known = inner.filter_map(Word::known);
            known.any(|word| file_name(word) == "rm")
                && known.any(|word| word.starts_with('-') && word.contains(['r', 'R']))
        };
        let destroys = words
            .iter()
            .enumerate()
            .any(|(at, word)| match word.known() {
                Some("-delete") => true,
                Some("-exec" | "-execdir" | "-ok" | "-okdir") => runs(at),
                _ => false,
            });
        if let Some(word) = unresolved.filter(|_| destroys) {
            self.ask(format!(
                "`find` may delete in a protected directory: `{}` is unknown before it runs",
                word.shown()
            ));
        }
    }

    /// Judges `rsync --delete`, which removes all files that the source does not have.
    fn mirrors(&mut self, words: &[Word]) {
        let deletes = |word: &Word| {
            word.known()
                .is_some_and(|word| word.starts_with("--del") || word == "--remove-source-files")
        };
        if !words.iter().any(deletes) {
            return;
        }
        let target = rsync::operands(words).pop();
        let Some(target) = target.filter(|word| !word.prefix().contains(':')) else {
            return;
        };
        match self.places.hit(target, true) {
            Hit::No => {}
            Hit::Perhaps => self.ask(format!(
                "`rsync --delete` may delete in a protected directory: `{}` is unknown before it \
                 runs",
                target.shown()
            )),
            Hit::Yes => self.block(format!(
                "`rsync --delete` into `{}`: the file system, your home and the sandbox's \
                 directories are protected",
                target.shown()
            )),
        }
    }

    /// Judges `mv` of a protected directory.
    fn moves(&mut self, words: &[Word]) {
        let mut operands: Vec<&Word> = words
            .iter()
            .filter(|word| !word.prefix().starts_with('-'))
            .collect();
        operands.pop();
        for operand in operands {
            if operand.known().is_some() && self.places.hit(operand, true) == Hit::Yes {
                self.block(format!(
                    "`mv` of `{}`: the file system, your home and the sandbox's directories are \
                     protected",
                    operand.shown()
                ));
            }
        }
    }

    fn recursive(&mut self, name: &str, words: &[Word], letters: &str, roots: bool) {
        let mut options = true;
        let mut recursive = Hit::No;
        let mut written = None;
        let mut operands = Vec::new();
        for word in words {
            let prefix = word.prefix();
            if options && word.known() == Some("--") {
                options = false;
            } else if options && prefix.starts_with('-') && prefix != "-" {
                let long = prefix.strip_prefix("--");
                let found = match long {
                    Some(long) => !long.is_empty() && "recursive".starts_with(long),
                    None => prefix.contains(|letter| letters.contains(letter)),
                };
                if found {
                    recursive = Hit::Yes;
                    written.get_or_insert_with(|| word.shown());
                } else if word.known().is_none() {
                    recursive = recursive.max(Hit::Perhaps);
                }
            } else {
                // An unresolved word before the others may be an option.
                if options && prefix.is_empty() && word.known().is_none() {
                    recursive = recursive.max(Hit::Perhaps);
                }
                operands.push(word);
            }
        }
        let option = written.unwrap_or_else(|| "-R".to_owned());
        for operand in operands {
            match self.places.hit(operand, roots).min(recursive) {
                Hit::No => {}
                Hit::Perhaps if recursive != Hit::Yes && operand.pattern().is_none() => {}
                Hit::Perhaps => self.ask(format!(
                    "`{name} {option}` may reach a protected directory: `{}` is unknown before it runs",
                    operand.shown()
                )),
                Hit::Yes => self.block(format!(
                    "`{name} {option}` of `{}`: the file system, your home and the sandbox's directories \
                     are protected",
                    operand.shown()
                )),
            }
        }
    }
}
