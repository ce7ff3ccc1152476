//! Commands that may read the folder of their version-control program although a rule denies it.
//!
//! `deny_read = ["**/.git/config"]` hides the file from every command. Git does not run without it, so a
//! command that consists of Git alone keeps access. Programs that only pass on or count text may surround
//! it, since the parser refuses the denied path among their arguments. Any other program in the
//! command ends the exception.

use zeph_bash::{Parsed, Part, Verdict, Word, WorkingDirState, visit_from};

/// A version-control program.
struct VersionControl {
    program: &'static str,
    /// The folder in which it stores its files.
    folder: &'static str,
    /// Subcommands that are built in. Others may be aliases, which start programs.
    subcommands: &'static [&'static str],
    /// Subcommands that print any file in their arguments. Their operands must be known.
    printing: &'static [&'static str],
}

const PROGRAMS: &[VersionControl] = &[
    VersionControl {
        program: "git",
        folder: ".git",
        subcommands: &[
            "add",
            "am",
            "annotate",
            "apply",
            "archive",
            "bisect",
            "blame",
            "branch",
            "bundle",
            "cat-file",
            "check-ignore",
            "checkout",
            "cherry",
            "cherry-pick",
            "clean",
            "clone",
            "commit",
            "config",
            "count-objects",
            "describe",
            "diff",
            "diff-files",
            "diff-index",
            "diff-tree",
            "fetch",
            "for-each-ref",
            "format-patch",
            "fsck",
            "gc",
            "grep",
            "hash-object",
            "help",
            "init",
            "log",
            "ls-files",
            "ls-remote",
            "ls-tree",
            "maintenance",
            "merge",
            "merge-base",
            "mv",
            "name-rev",
            "notes",
            "pull",
            "push",
            "range-diff",
            "rebase",
            "reflog",
            "remote",
            "reset",
            "restore",
            "rev-list",
            "rev-parse",
            "revert",
            "rm",
            "shortlog",
            "show",
            "show-branch",
            "show-ref",
            "sparse-checkout",
            "stash",
            "status",
            "submodule",
            "switch",
            "symbolic-ref",
            "tag",
            "update-index",
            "update-ref",
            "version",
            "whatchanged",
            "worktree",
            "write-tree",
        ],
        printing: &[
            "apply",
            "blame",
            "annotate",
            "config",
            "diff",
            "grep",
            "hash-object",
        ],
    },
    VersionControl {
        program: "hg",
        folder: ".hg",
        subcommands: &[
            "add",
            "annotate",
            "bookmarks",
            "branch",
            "branches",
            "commit",
            "diff",
            "files",
            "heads",
            "id",
            "identify",
            "incoming",
            "log",
            "manifest",
            "merge",
            "outgoing",
            "parents",
            "paths",
            "pull",
            "push",
            "remove",
            "resolve",
            "revert",
            "status",
            "summary",
            "tags",
            "tip",
            "update",
            "version",
        ],
        printing: &["annotate", "diff"],
    },
    VersionControl {
        program: "svn",
        folder: ".svn",
        subcommands: &[
            "add", "blame", "cleanup", "commit", "delete", "diff", "info", "list", "log", "ls",
            "resolve", "revert", "stat", "status", "switch", "update", "up",
        ],
        printing: &["blame", "diff"],
    },
    VersionControl {
        program: "jj",
        folder: ".jj",
        subcommands: &[
            "abandon", "bookmark", "commit", "describe", "diff", "edit", "git", "log", "new", "op",
            "rebase", "restore", "show", "squash", "st", "status", "undo",
        ],
        printing: &["diff"],
    },
];

/// Programs that only print text, standard input or named files.
const PASSIVE: &[&str] = &[
    "[", "cat", "cd", "cut", "echo", "false", "head", "ls", "nl", "printf", "pwd", "sort", "tac",
    "tail", "test", "tr", "true", "uniq", "wc",
];

/// The folders that stay readable for `command`, which starts at `start`.
pub(super) fn folders(command: &Parsed, start: &WorkingDirState) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut alone = true;
    let (verdict, _) = visit_from(command, start, &mut |part| match part {
        Part::Command {
            words, assignments, ..
        } => match folder(words) {
            Some(folder) if assignments.is_empty() => {
                if !folder.is_empty() && !found.iter().any(|known| known == folder) {
                    found.push(folder.to_owned());
                }
            }
            _ => alone = false,
        },
        Part::Source(word) => alone &= word.known().is_some(),
        Part::Assignments { .. } | Part::Output(_) | Part::Redirection { .. } => {}
    });
    match verdict {
        Verdict::Allow if alone => found,
        _ => Vec::new(),
    }
}

/// The folder that a simple command needs; empty for a passive program, `None` for any other.
fn folder(words: &[Word]) -> Option<&'static str> {
    let (name, arguments) = words.split_first()?;
    let name = name.known()?;
    let Some(program) = PROGRAMS.iter().find(|program| program.program == name) else {
        return is_passive(name, arguments).then_some("");
    };
    let subcommand = subcommand(arguments)?;
    let is_own = program.subcommands.contains(&subcommand);
    let prints = program.printing.contains(&subcommand);
    let known = arguments.iter().all(|word| word.known().is_some());
    (is_own && (known || !prints)).then_some(program.folder)
}

/// The first word after the program's own options. An option that sets a configuration value may start
/// programs and ends the exception.
fn subcommand(arguments: &[Word]) -> Option<&str> {
    let mut arguments = arguments.iter();
    loop {
        let word = arguments.next()?.known()?;
        match word {
            "-C" => {
                arguments.next()?.known()?;
            }
            "--no-pager" | "-P" | "--no-optional-locks" | "--version" | "--help" => {}
            _ if word.starts_with('-') => return None,
            _ => return Some(word),
        }
    }
}

fn is_passive(name: &str, arguments: &[Word]) -> bool {
    let known = arguments.iter().all(|word| word.known().is_some());
    let names_files = arguments.iter().any(|word| {
        let word = word.prefix();
        word.starts_with("--files0-from") || word.starts_with("--compress-program")
    });
    PASSIVE.contains(&name) && known && !names_files
        // Only for standard input, and not for directories.
        || name == "grep" && known && !arguments.iter().any(|word| recurses(word.prefix()))
}

/// Whether an option makes `grep` read directories or a file of patterns.
fn recurses(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => ["rec", "deref", "dir", "file", "incl", "excl"]
            .iter()
            .any(|start| long.starts_with(start)),
        None => word.starts_with('-') && word.contains(['r', 'R', 'd', 'f', 'D']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves D-44: which commands keep access to the folder of their version-control program.
    #[test]
    fn folder_stays_readable_for_its_program_only() {
        let check = |command: &str, expect: &[&str]| {
            let start = WorkingDirState {
                cwd: "/p".into(),
                home: Some("/h".into()),
                roots: vec!["/p".into()],
                ..WorkingDirState::default()
            };
            let parsed = Parsed::new(command);
            assert_eq!(folders(&parsed, &start), expect, "{command}");
        };
        for git in [
            "git status",
            "git status --short && git diff HEAD",
            "git log --oneline | head -5",
            "git log --format='%h %s' | grep fix | wc -l",
            "cd sub && git add -A && git commit -m 'a message'",
            "git -C sub log -n 3",
            "git --no-pager diff --stat",
            "git push origin main 2>&1 | tail -3",
            "git config --get remote.origin.url",
            "git show HEAD:src/main.rs > /tmp/old.rs",
            "git stash; git pull --rebase; git stash pop",
            "git log | sort | uniq -c",
            "git fetch --all && echo done",
            "git blame src/main.rs",
            "git ls-files '*.rs'",
        ] {
            check(git, &[".git"]);
        }
        check("hg status | head", &[".hg"]);
        check("svn diff", &[".svn"]);
        check("jj log && git status", &[".jj", ".git"]);
        check("ls -la", &[]);
        for other in [
            "cat .git/config; python3 x.py",
            "git status; python3 x.py",
            "git status && make",
            "git log | python3 -c 'print(1)'",
            "git log | xargs cat",
            "git log | grep -r x .",
            "git log | grep -f .git/config x",
            "git log | grep --recursive x",
            "git log | tee out",
            "git -c core.pager=cat log",
            "git --exec-path=. status",
            "git unknown-alias",
            "git diff --no-index /dev/null $X",
            "git config -f $X --list",
            "git status; cat $X",
            "git status; cat < $X",
            "GIT_PAGER=x git log",
            "env git status",
            "./git status",
            "sh -c 'git status'; sh x.sh",
            "git log | sort --files0-from=x",
            "git() { cat x; }; git status; node x.js",
            "$X status",
        ] {
            check(other, &[]);
        }
    }
}
