//! The arguments of shells: `bash -c TEXT`, `sh FILE`, `bash -s`.

use super::shells::Program;
use crate::syntax::word::Word;

/// The call of a shell.
pub(super) struct ShellCall<'w> {
    pub(super) program: Program<'w>,
    /// A script that runs before the program.
    pub(super) startup: Option<&'w Word>,
    /// The arguments after the program; with `-c` they start with `$0`.
    pub(super) rest: &'w [Word],
    /// Whether an option changes the meaning of commands.
    pub(super) unclear: bool,
    /// Whether a long option has one dash. Other shells read it as a bundle of short options.
    pub(super) long: bool,
}

/// The long options of bash, which also accepts them with one dash.
const LONG: &[&str] = &[
    "debug",
    "debugger",
    "dump-po-strings",
    "dump-strings",
    "help",
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "protected",
    "restricted",
    "verbose",
    "version",
    "wordexp",
];

/// Parses the arguments of a shell.
pub(super) fn shell_call(words: &[Word]) -> ShellCall<'_> {
    let mut call = ShellCall {
        program: Program::Nothing,
        startup: None,
        rest: &[],
        unclear: false,
        long: false,
    };
    let (mut command, mut input) = (false, false);
    let mut at = 0;
    // Long options come first.
    while let Some(text) = words.get(at).and_then(Word::known) {
        let long = text.strip_prefix("--").filter(|long| !long.is_empty());
        let Some(option) = long.or_else(|| text.strip_prefix('-')) else {
            break;
        };
        if matches!(option, "rcfile" | "init-file") {
            call.startup = words.get(at + 1);
            at += 1;
        } else if matches!(option, "help" | "version") {
            return call;
        } else if !LONG.contains(&option) && long.is_none() {
            break;
        }
        call.long |= long.is_none();
        at += 1;
    }
    at = at.min(words.len());
    while let Some(word) = words.get(at) {
        let Some(text) = word.known() else {
            call.rest = &words[at + 1..];
            call.program = if command {
                Program::Text(word)
            } else {
                Program::File(word)
            };
            return call;
        };
        at += 1;
        match text {
            "-" | "--" => break,
            "--version" | "--help" => return call,
            "--rcfile" | "--init-file" => {
                call.startup = words.get(at);
                at += 1;
            }
            _ if text.starts_with("--") => {}
            _ if text.starts_with(['-', '+']) => {
                for letter in text[1..].chars() {
                    match letter {
                        'c' => command = true,
                        's' => input = true,
                        'o' | 'O' => {
                            let value = words.get(at).map(Word::known);
                            call.unclear |= matches!(value, Some(None | Some("keyword")));
                            at += 1;
                        }
                        'k' => call.unclear = true,
                        _ => {}
                    }
                }
            }
            _ => {
                at -= 1;
                break;
            }
        }
    }
    at = at.min(words.len());
    let operand = words.get(at);
    call.rest = words.get(at + 1..).unwrap_or_default();
    call.program = match operand {
        Some(word) if command => Program::Text(word),
        Some(word) if !input => Program::File(word),
        _ => {
            call.rest = &words[at..];
            Program::Input
        }
    };
    call
}
