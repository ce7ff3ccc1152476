//! Detection of commands that may write to files.
//!
//! The decision uses the parsed command, at every depth and through commands that run others. An unresolved part counts
//! as a write: an unnecessary snapshot only costs time. Files that programs write without an argument for it (a build,
//! a test suite) are not detected. The table of programs lists the options with which programs write to files.

use zeph_bash::{Part, Verdict, Word, file_name, program_options, visit};

/// Commands that write with any arguments.
const WRITERS: &[&str] = &[
    "7z",
    "7za",
    "ar",
    "bunzip2",
    "bzip2",
    "chgrp",
    "chmod",
    "chown",
    "cp",
    "cpio",
    "csplit",
    "dos2unix",
    "ed",
    "ex",
    "fallocate",
    "gunzip",
    "gzip",
    "install",
    "link",
    "ln",
    "lzma",
    "mkdir",
    "mkfifo",
    "mknod",
    "mktemp",
    "mv",
    "patch",
    "rename",
    "rm",
    "rmdir",
    "rsync",
    "scp",
    "setfacl",
    "shred",
    "split",
    "sponge",
    "tee",
    "touch",
    "truncate",
    "unix2dos",
    "unlink",
    "unlzma",
    "unrar",
    "unxz",
    "unzip",
    "unzstd",
    "vi",
    "vim",
    "wget",
    "xz",
    "zip",
    "zstd",
];

/// Commands that write unless they have one of these arguments.
const UNLESS: &[(&str, &[&str])] = &[
    ("rustfmt", &["--check"]),
    ("black", &["--check", "--diff"]),
    ("isort", &["--check", "--check-only", "--diff", "-c"]),
];

/// Commands that write with one of these subcommands.
const BY_SUBCOMMAND: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "fmt", "fix", "add", "rm", "remove", "update", "init", "new", "clean", "vendor",
        ],
    ),
    ("npm", PACKAGES),
    ("pnpm", PACKAGES),
    ("yarn", PACKAGES),
    ("bun", PACKAGES),
    ("go", &["fmt", "mod", "generate", "get", "fix"]),
    ("ruff", &["format"]),
    ("svn", &["update", "revert", "switch", "checkout", "patch"]),
];

const PACKAGES: &[&str] = &[
    "install",
    "i",
    "ci",
    "add",
    "remove",
    "rm",
    "uninstall",
    "update",
    "up",
    "upgrade",
    "dedupe",
    "init",
    "create",
    "link",
    "unlink",
    "prune",
];

/// Subcommands of `git` that do not change files. Any other subcommand may be an alias.
const GIT_READS: &[&str] = &[
    "annotate",
    "blame",
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "fsck",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "name-rev",
    "push",
    "range-diff",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "tag",
    "var",
    "version",
    "whatchanged",
];

/// Whether `command` may write to files.
pub(super) fn writes(command: &str) -> bool {
    let mut writes = false;
    let verdict = visit(command, &mut |part| {
        writes |= match part {
            Part::Command { words, .. } => command_writes(words),
            Part::Output(word) => !is_device(word),
            Part::Assignments { .. } | Part::Source(_) | Part::Redirection { .. } => false,
        };
    });
    writes || verdict != Verdict::Allow
}

/// Whether a target is a device and not a file: `2>/dev/null`.
fn is_device(word: &Word) -> bool {
    word.prefix().starts_with("/dev/") && !word.prefix().starts_with("/dev/shm/")
}

fn command_writes(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::known).map(file_name) else {
        return true;
    };
    if program_options(words).reads {
        return false;
    }
    let arguments = &words[1..];
    let has = |given: &str| arguments.iter().any(|word| word.prefix() == given);
    match name {
        "git" => git_writes(arguments),
        "tar" | "bsdtar" | "gtar" => tar_writes(arguments),
        // `yarn` without arguments installs.
        "yarn" if arguments.is_empty() => true,
        "cargo" if has("clippy") && has("--fix") => true,
        "cargo" if has("fmt") && has("--check") => false,
        "ruff" if has("--fix") => true,
        _ => {
            WRITERS.contains(&name)
                || row(BY_SUBCOMMAND, name).is_some_and(|subcommands| {
                    first_operand(arguments).is_none_or(|first| subcommands.contains(&first))
                        && !arguments.is_empty()
                })
                || row(UNLESS, name).is_some_and(|unless| !unless.iter().any(|word| has(word)))
                || (matches!(name, "awk" | "gawk") && arguments.iter().any(is_inplace))
        }
    }
}

/// Whether an argument makes `awk` write to its operands.
fn is_inplace(word: &Word) -> bool {
    word.known().is_none() || word.prefix().ends_with("inplace")
}

fn row<'t>(table: &'t [(&str, &'t [&'t str])], name: &str) -> Option<&'t [&'t str]> {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, words)| *words)
}

/// The first argument that is not an option. `None` if it is missing or unresolved.
fn first_operand(arguments: &[Word]) -> Option<&str> {
    arguments
        .iter()
        .find(|word| !word.prefix().starts_with(['-', '+']))
        .and_then(Word::known)
}

fn git_writes(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.known() else {
            return true;
        };
        match text {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" => {
                words.next();
            }
            "--version" | "--help" => return false,
            _ if text.starts_with('-') => {}
            _ => {
                return !GIT_READS.contains(&text)
                    || words.any(|word| word.prefix().starts_with("--output"));
            }
        }
    }
    false
}

/// Whether `tar` writes: always, unless it lists the content of an archive.
fn tar_writes(arguments: &[Word]) -> bool {
    let bundle = arguments.iter().enumerate().find_map(|(at, word)| {
        let text = word.prefix();
        let letters = match text.strip_prefix('-') {
            Some(long) if long.starts_with('-') => return None,
            Some(letters) => letters,
            None if at == 0 => text,
            None => return None,
        };
        letters
            .contains(['A', 'c', 'r', 't', 'u', 'x'])
            .then_some(letters)
    });
    let long = |name: &str| arguments.iter().any(|word| word.prefix() == name);
    match bundle {
        Some(letters) => letters.contains(['A', 'c', 'r', 'u', 'x']),
        None => !(long("--list") || long("--help") || long("--version")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-31.
    #[test]
    fn write_commands_are_detected_at_every_depth() {
        for command in include_str!("writes.txt").lines() {
            assert!(writes(command), "{command}");
        }
        for command in include_str!("reads.txt").lines() {
            assert!(!writes(command), "{command}");
        }
        assert!(writes("cat > file <<'END'\ntext\nEND"));
        assert!(!writes("cat <<'END'\nrm file\n> x\nEND"));
        assert!(writes("bash <<'END'\nrm file\nEND"));
        assert!(writes("if true\nthen\n  for i in 1 2; do rm $i; done\nfi"));
    }
}
