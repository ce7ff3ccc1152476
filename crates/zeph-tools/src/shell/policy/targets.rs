//! What a command destroys: directories that must stay, block devices.

use std::path::{Component, Path, PathBuf};

use super::decide::{Decider, Start};
use super::values::{Possible, Values};
use super::word::Word;

/// How many working directories are told apart.
const MAX_DIRECTORIES: usize = 16;

/// Where a command may be working, and what must not be destroyed from there.
#[derive(Debug, Clone)]
pub(super) struct Places {
    home: Option<PathBuf>,
    roots: Vec<PathBuf>,
    /// The directories in which it may work; `None` is any.
    now: Vec<Option<PathBuf>>,
    /// Those in which it works if the `cd` before failed.
    failed: Vec<Option<PathBuf>>,
    /// The directories in which it may have worked before: the values of `OLDPWD`.
    old: Vec<Option<PathBuf>>,
    /// Those before a `cd` that may have failed.
    failed_old: Vec<Option<PathBuf>>,
    /// The values of variables.
    pub(super) values: Values,
    /// Whether `cd -` returns to a known directory. Otherwise it may be any.
    pub(super) returns: bool,
}

/// Whether a path is, or holds, something that must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hit {
    No,
    Perhaps,
    Yes,
}

/// Makes too many directories any.
fn limit(places: &mut Vec<Option<PathBuf>>) {
    if places.len() > MAX_DIRECTORIES {
        *places = vec![None];
    }
}

impl Places {
    pub(super) fn new(start: &Start) -> Self {
        let now = start.cwd.is_absolute().then(|| normal(&start.cwd));
        Self {
            home: start.home.as_deref().map(normal),
            roots: start.roots.iter().map(|root| normal(root)).collect(),
            now: vec![now],
            failed: Vec::new(),
            old: vec![None],
            failed_old: Vec::new(),
            values: Values::default(),
            returns: true,
        }
    }

    /// The sandbox's directories.
    pub(super) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The user's home.
    pub(super) fn home_path(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The directories in which it may work; `None` is any.
    pub(super) fn now(&self) -> &[Option<PathBuf>] {
        &self.now
    }

    /// The values that the variable `name` may have.
    pub(super) fn value(&self, name: &str) -> Possible {
        let directories = |directories: &[Option<PathBuf>]| {
            Possible::of(directories.iter().map(|directory| {
                let text = directory.as_deref().and_then(Path::to_str);
                text.map(str::to_owned)
            }))
        };
        self.values.get(name).unwrap_or_else(|| match name {
            "PWD" => directories(&self.now),
            "OLDPWD" => directories(&self.old),
            "HOME" => directories(std::slice::from_ref(&self.home)),
            _ => Possible::unknown(),
        })
    }

    /// A `cd`, `pushd` or `popd` with these arguments.
    pub(super) fn change(&mut self, name: &str, words: &[Word]) {
        let operand = words
            .iter()
            .find(|word| word.prefix() == "-" || !word.prefix().starts_with('-'));
        // `-P` takes `..` to where a link before it leads.
        let physical = words
            .iter()
            .any(|word| word.prefix().starts_with('-') && word.prefix().contains('P'));
        let returns = operand.is_some_and(|word| word.known() == Some("-")) && name == "cd";
        let unknown = |to: &str| {
            // The others know where they have been.
            (name != "cd" && to.starts_with(['+', '-'])) || (physical && to.contains(".."))
        };
        let to: Vec<Option<PathBuf>> = match operand {
            _ if returns && self.returns => self.old.clone(),
            _ if returns => vec![None],
            None if name == "cd" => self.value("HOME").paths(),
            _ if name == "popd" => vec![None],
            Some(word) => {
                let known = word.known().filter(|to| !unknown(to));
                vec![known.map(PathBuf::from)]
            }
            None => vec![None],
        };
        let change = |from: &Option<PathBuf>, to: &Option<PathBuf>| match (to, from) {
            (Some(to), _) if to.is_absolute() => Some(normal(to)),
            (Some(to), Some(from)) => Some(normal(&from.join(to))),
            _ => None,
        };
        let mut now: Vec<Option<PathBuf>> = Vec::new();
        for (from, to) in self
            .now
            .iter()
            .flat_map(|from| to.iter().map(move |to| (from, to)))
        {
            let place = change(from, to);
            if !now.contains(&place) {
                now.push(place);
            }
        }
        limit(&mut now);
        let before = std::mem::replace(&mut self.now, now);
        self.failed.extend_from_slice(&before);
        let old = std::mem::replace(&mut self.old, before);
        self.failed_old.extend(old);
        self.values.directory_changed();
    }

    /// The `cd` before may have failed.
    pub(super) fn forget_success(&mut self) {
        let pairs = [
            (&mut self.failed, &mut self.now),
            (&mut self.failed_old, &mut self.old),
        ];
        for (failed, places) in pairs {
            for place in std::mem::take(failed) {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            limit(places);
        }
    }

    /// Either of the two.
    pub(super) fn join(&mut self, other: &Self) {
        let pairs = [
            (&mut self.now, &other.now),
            (&mut self.failed, &other.failed),
            (&mut self.old, &other.old),
            (&mut self.failed_old, &other.failed_old),
        ];
        for (places, others) in pairs {
            for place in others {
                if !places.contains(place) {
                    places.push(place.clone());
                }
            }
            limit(places);
        }
        self.values.join(&other.values);
    }

    pub(super) fn may_be_anywhere(&mut self) {
        for places in [&mut self.now, &mut self.old] {
            if !places.contains(&None) {
                places.push(None);
            }
        }
    }

    /// Whether `word` names what must stay, or a directory that holds it. The sandbox's own
    /// directories count only with `roots`.
    fn hit(&self, word: &Word, roots: bool) -> Hit {
        let mut hits = self.now.iter().map(|place| match place {
            Some(place) => self.hit_from(place, word, roots),
            None if word.prefix().starts_with('/') => self.hit_from(Path::new("/"), word, roots),
            None => hit_from_anywhere(word),
        });
        let first = hits.next().unwrap_or(Hit::Perhaps);
        hits.fold(
            first,
            |one, other| {
                if one == other { one } else { Hit::Perhaps }
            },
        )
    }

    fn hit_from(&self, place: &Path, word: &Word, roots: bool) -> Hit {
        let stays = |path: &Path| self.stays(path, roots);
        match word.pattern().map(|text| (text, without_all(text))) {
            Some((_, path)) if !path.contains(['*', '?', '[']) || word.known().is_some() => {
                if stays(&normal(&place.join(path))) {
                    Hit::Yes
                } else {
                    Hit::No
                }
            }
            _ => {
                let prefix = word.prefix();
                let empty = word.pattern().is_none() && stays(&normal(&place.join(prefix)));
                if empty || self.could_become(&place.join(prefix), prefix, roots) {
                    Hit::Perhaps
                } else {
                    Hit::No
                }
            }
        }
    }

    /// Whether something that stays, or holds it, begins with `path` (a text that is cut off).
    fn could_become(&self, path: &Path, prefix: &str, roots: bool) -> bool {
        let mut text = normal(path).display().to_string();
        if (prefix.is_empty() || prefix.ends_with('/')) && text != "/" {
            text.push('/');
        }
        let list = self.list(roots);
        list.iter()
            .any(|stays| stays.display().to_string().starts_with(&text))
    }

    fn list(&self, roots: bool) -> Vec<&Path> {
        let mut list = vec![Path::new("/")];
        list.extend(self.home.as_deref());
        if roots {
            list.extend(self.roots.iter().map(PathBuf::as_path));
        }
        list
    }

    fn stays(&self, path: &Path, roots: bool) -> bool {
        self.list(roots).iter().any(|stays| stays.starts_with(path))
    }
}

/// The same where it is not known from where: only what points at the directory itself counts.
fn hit_from_anywhere(word: &Word) -> Hit {
    let Some(text) = word.pattern() else {
        return Hit::Perhaps;
    };
    let path = normal(&Path::new("/a").join(without_all(text)));
    if Path::new("/a").starts_with(path) {
        Hit::Perhaps
    } else {
        Hit::No
    }
}

/// The directory of a pattern that means all that is in it: `/*`, `x/.[!.]*`.
fn without_all(text: &str) -> &str {
    let mut path = text;
    loop {
        let trimmed = path.trim_end_matches('/');
        let (directory, last) = match trimmed.rfind('/') {
            Some(at) => (&trimmed[..=at], &trimmed[at + 1..]),
            None => ("", trimmed),
        };
        let all = matches!(
            last,
            "*" | "**" | ".*" | "?*" | "*?" | ".??*" | ".?*" | ".[!.]*" | ".[^.]*"
        );
        if !all {
            return path;
        }
        path = directory;
    }
}

/// The path without `.`, `..` and doubled slashes; links are not followed.
pub(in crate::shell) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// Whether a command with this name changes the directory.
pub(super) fn changes_directory(name: &str) -> bool {
    matches!(name, "cd" | "pushd" | "popd")
}

/// Whether a path names a block device, or the memory, by the names that systems give them.
pub(super) fn is_block_device(path: &str) -> bool {
    const NAMES: &[&str] = &[
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "mtdblock", "loop", "dm-", "md", "zd", "nbd",
        "sr", "ram", "rbd", "drbd", "bcache", "pmem", "zram", "dasd", "disk", "rdisk",
    ];
    const DIRECTORIES: &[&str] = &["disk", "mapper", "block", "md", "zvol", "vg"];
    let path = normal(Path::new(path));
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

/// Commands that write onto the files they are given.
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
    /// `rm`, `chmod`, `dd` and what else writes onto devices.
    pub(super) fn destroys(&mut self, name: &str, words: &[Word]) {
        match name {
            "rm" => self.recursive(name, &words[1..], "rR", true),
            "chmod" => self.recursive(name, &words[1..], "R", false),
            "dd" => {
                for word in &words[1..] {
                    if word.prefix().starts_with("of=") {
                        let target = word.after(3);
                        if target.known().is_none() {
                            self.ask("what `dd` writes onto cannot be known before it runs");
                        }
                        self.output(&target);
                    } else if word.known().is_none() && !word.prefix().contains('=') {
                        self.ask("what `dd` writes onto cannot be known before it runs");
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

    fn recursive(&mut self, name: &str, words: &[Word], letters: &str, roots: bool) {
        let mut options = true;
        let mut recursive = Hit::No;
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
                } else if word.known().is_none() {
                    recursive = recursive.max(Hit::Perhaps);
                }
            } else {
                // An unknown word in front may be an option.
                if options && prefix.is_empty() && word.known().is_none() {
                    recursive = recursive.max(Hit::Perhaps);
                }
                operands.push(word);
            }
        }
        for operand in operands {
            match self.places.hit(operand, roots).min(recursive) {
                Hit::No => {}
                Hit::Perhaps if recursive != Hit::Yes && operand.pattern().is_none() => {}
                Hit::Perhaps => self.ask(format!(
                    "whether `{name} -r` would reach a directory that must stay cannot be known: `{}`",
                    operand.shown()
                )),
                Hit::Yes => self.block(format!(
                    "`{name} -r` of `{}`: the file system, your home and the sandbox's directories stay",
                    operand.shown()
                )),
            }
        }
    }
}
