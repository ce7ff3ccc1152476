//! Whether a simple command does its own work, or runs something else.

use super::blocklist::name_of;
use super::shells::is_interpreter;
use super::word::Word;
use super::wrappers::runs_others;
use crate::gate::PartKind;

/// Words of `find` and `fd` behind which a command stands.
const EXECUTING: &[&str] = &[
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "-X",
    "--exec",
    "--exec-batch",
];
/// Commands that run others behind one of these words.
const BY_SUBCOMMAND: &[(&str, &[&str])] = &[
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("cargo", &["watch"]),
    ("go", &["run"]),
    ("rustup", &["run"]),
    ("docker", &["run", "exec"]),
    ("podman", &["run", "exec"]),
    ("kubectl", &["exec", "run"]),
    (
        "git",
        &[
            "-c",
            "--config-env",
            "--exec-path",
            "bisect",
            "submodule",
            "filter-branch",
            "rebase",
        ],
    ),
];

/// What the simple command of these words is; one whose name is not known runs something else.
pub(in crate::shell) fn kind_of(words: &[Word]) -> PartKind {
    let Some(name) = words.first().and_then(Word::known).map(name_of) else {
        return PartKind::Wrapper;
    };
    if is_interpreter(name) {
        return PartKind::Interpreter;
    }
    let arguments = &words[1..];
    let has = |given: &[&str]| {
        let mut words = arguments.iter();
        words.any(|word| word.known().is_some_and(|word| given.contains(&word)))
    };
    let by_subcommand = BY_SUBCOMMAND.iter().find(|(known, _)| *known == name);
    let wraps = match name {
        "find" | "fd" | "fdfind" => has(EXECUTING),
        "command" => !has(&["-v", "-V"]),
        _ => runs_others(name) || by_subcommand.is_some_and(|(_, given)| has(given)),
    };
    match wraps {
        true => PartKind::Wrapper,
        false => PartKind::Simple,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PartKind::{Interpreter, Simple, Wrapper};

    #[test]
    fn commands_that_run_something_else() {
        let check = |command: &str, expect| {
            let words: Vec<Word> = command.split(' ').map(Word::literal).collect();
            assert_eq!(kind_of(&words), expect, "{command}");
        };
        check("cargo test", Simple);
        check("ls -l", Simple);
        check("find . -name x", Simple);
        check("command -v cargo", Simple);
        check("git status", Simple);
        check("git -c core.pager=x log", Wrapper);
        check("find . -exec rm {} ;", Wrapper);
        check("/usr/bin/env rm", Wrapper);
        check("timeout 5 cargo test", Wrapper);
        check("xargs rm", Wrapper);
        check("npx eslint", Wrapper);
        check("npm exec eslint", Wrapper);
        check("npm test", Simple);
        check("uv run x", Wrapper);
        check("nohup x", Wrapper);
        check("bash -c x", Interpreter);
        check("python3.12 x.py", Interpreter);
        check("node x.js", Interpreter);
        check("/bin/sh x", Interpreter);
        check("awk {print}", Interpreter);
        assert_eq!(kind_of(&[Word::unknown("")]), Wrapper);
    }
}
