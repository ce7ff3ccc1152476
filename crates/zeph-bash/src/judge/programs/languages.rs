//! Scripts in other languages: whether they start commands.

use super::row::{Language, Row};
use super::sed::starts_commands;
use crate::syntax::word::Word;

/// The effect of a text in the language of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// It starts no commands.
    Harmless,
    /// It passes this text to a shell.
    Shell(Word),
    /// It may start commands.
    Unknown,
}

/// The effect of `text` as a script of the program that `row` describes.
pub(super) fn effect(row: &Row, text: &Word) -> Effect {
    let harmless = |yes| {
        if yes {
            Effect::Harmless
        } else {
            Effect::Unknown
        }
    };
    let known = text.prefix();
    match row.language {
        Language::Shell => Effect::Shell(text.clone()),
        Language::Awk => harmless(text.known().is_some_and(|text| !awk_starts_commands(text))),
        Language::Sed => harmless(!starts_commands(&text.script())),
        Language::Ex => ex(text),
        Language::Other if row.triggers.is_empty() => {
            let is_harmless = |text: &str| row.harmless.iter().any(|glob| is_plain(glob, text));
            harmless(text.known().is_some_and(|text| is_harmless(text.trim())))
        }
        Language::Other => {
            let script = text.pattern().map_or_else(|| text.script(), str::to_owned);
            let lower = script.to_lowercase();
            let hit = row.triggers.iter().any(|trigger| {
                let trigger = trigger.to_lowercase();
                match trigger.starts_with('.') {
                    true => has_dot_command(&lower, &trigger),
                    false => lower.contains(&trigger),
                }
            });
            harmless(!hit && (text.pattern().is_some() || !known.is_empty()))
        }
    }
}

/// Whether a line or a statement of `text` starts with `command`, such as `.shell`, or an
/// abbreviation of it. In other places, `.` separates names. sqlite3 accepts blanks, quotes and
/// escapes after the dot: `. shell`, `."\163hell"`.
fn has_dot_command(text: &str, command: &str) -> bool {
    let command = command.trim_start_matches('.');
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'');
    let mut statements = text.split(['\n', '\r', ';']);
    statements.any(|statement| {
        let Some(rest) = statement.trim_start().strip_prefix('.') else {
            return false;
        };
        let rest = rest.trim_start().trim_start_matches(['"', '\'']);
        let first = rest.split(is_end).next().unwrap_or_default();
        let is_abbreviation = !first.is_empty() && command.starts_with(first);
        first.contains('\\') || first.starts_with(command) || is_abbreviation
    })
}

/// Whether a debugger command matches `glob` and calls nothing else.
fn is_plain(glob: &str, text: &str) -> bool {
    let calls = text.contains(['(', '|', '`', '!', '$', ';', '\n']);
    !calls && super::row::matches(glob, text)
}

/// The effect of a command of `vi`: a line number, a search, a write or an end starts no commands.
fn ex(text: &Word) -> Effect {
    let Some(command) = text.known() else {
        return Effect::Unknown;
    };
    let command = command.trim().trim_start_matches(':');
    if let Some(shell) = command.strip_prefix('!') {
        return Effect::Shell(Word::literal(shell));
    }
    const ENDS: &[&str] = &[
        "q", "q!", "qa", "qa!", "qall", "qall!", "wq", "wqa", "x", "w", "wa", "quit", "$", "",
    ];
    const STARTS: &[&str] = &[
        "syntax ",
        "colorscheme ",
        "noh",
        "set nu",
        "set number",
        "set rnu",
        "set list",
        "set paste",
        "set ft=",
        "set tw=",
        "set sw=",
        "set ts=",
        "set et",
    ];
    let plain = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || " =._-".contains(c))
    };
    let search = command.starts_with('/') && !command.contains(['|', '\n', '!', '`']);
    let fits = ENDS.contains(&command)
        || command.bytes().all(|byte| byte.is_ascii_digit())
        || search
        || (plain(command) && STARTS.iter().any(|start| command.starts_with(start)));
    match fits {
        true => Effect::Harmless,
        false => Effect::Unknown,
    }
}

/// Whether an awk program has `system`, `getline`, a pipe, or a directive that loads code.
pub(crate) fn awk_starts_commands(program: &str) -> bool {
    if program.contains("system") || program.contains("getline") || program.contains('@') {
        return true;
    }
    let bytes = program.as_bytes();
    program.match_indices('|').any(|(at, _)| {
        let double = bytes.get(at + 1) == Some(&b'|') || (at > 0 && bytes[at - 1] == b'|');
        !double && !in_pattern(program, at)
    })
}

/// Whether the offset is inside `/…/` without anything that could end a statement.
fn in_pattern(program: &str, at: usize) -> bool {
    let ends = |c: char| c == '/' || c.is_whitespace() || "\";{}".contains(c);
    let before = program[..at].rfind(ends).map(|at| program.as_bytes()[at]);
    let after = program[at..]
        .find(ends)
        .map(|after| program.as_bytes()[at + after]);
    before == Some(b'/') && after == Some(b'/')
}
