//! The kind of a simple command: whether it does its own work or runs another command.

use super::blocklist::file_name;
use super::find::executes;
use super::programs;
use super::shells::is_shell;
use super::wrappers::{only_looks_up, runs_others};
use crate::syntax::word::Word;
use serde::Serialize;

/// The way in which a part of a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// It does its own work.
    Simple,
    /// It runs another command: `env`, `timeout`, `xargs`, `find -exec`, `npx`.
    Wrapper,
    /// It is a shell or an interpreter. Its script is not a command.
    Interpreter,
    /// It is an assignment without a command. It applies to the following commands.
    Assignment,
}

/// Returns the kind of a simple command. A command with an unresolved name counts as a wrapper.
pub fn kind_of(words: &[Word]) -> PartKind {
    let Some(name) = words.first().and_then(Word::known).map(file_name) else {
        return PartKind::Wrapper;
    };
    if is_shell(name) || programs::is_interpreter(name) {
        return PartKind::Interpreter;
    }
    let arguments = &words[1..];
    let wraps = match name {
        "find" | "fd" | "fdfind" => arguments.iter().any(|word| executes(name, word)),
        "command" => !only_looks_up(arguments),
        _ => runs_others(name) || programs::runs(words),
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
    fn wrappers_and_interpreters_are_classified() {
        let check = |command: &str, expect| {
            let words: Vec<Word> = command.split(' ').map(Word::literal).collect();
            assert_eq!(kind_of(&words), expect, "{command}");
        };
        check("cargo test", Simple);
        check("ls -l", Simple);
        check("find . -name x", Simple);
        check("command -v cargo", Simple);
        check("command -pV cargo", Simple);
        check("command rm -v x", Wrapper);
        check("command -- rm -V x", Wrapper);
        check("git status", Simple);
        check("git -c core.pager=x log", Wrapper);
        check("find . -exec rm {} ;", Wrapper);
        check("fd . --exec=rm", Wrapper);
        check("fdfind -Hx rm", Wrapper);
        check("fd x --extension rs", Simple);
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
