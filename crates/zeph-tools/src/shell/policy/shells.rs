//! What reaches a shell or an interpreter as data: `-c` texts, here-documents, pipes.

use std::path::Path;

use super::blocklist::name_of;
use super::decide::{Around, Decider, Input};
use super::targets::normal;
use super::word::Word;

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "yash", "posh", "oksh",
    "loksh", "csh", "tcsh", "fish",
];
const DOWNLOADS: &[&str] = &[
    "curl", "wget", "aria2c", "fetch", "http", "https", "httpie", "xh", "lynx", "w3m", "nc",
    "ncat", "netcat", "socat", "ftp", "lftp", "scp", "ssh", "telnet",
];

/// Whether a word is the name of something that loads from the network.
pub(super) fn is_download(word: &str) -> bool {
    DOWNLOADS.contains(&name_of(word))
}

/// Whether a command with this name is a shell.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Whether a text that `by` is given runs in another shell than this one.
pub(super) fn runs_apart(by: &str) -> bool {
    !matches!(
        by,
        "eval"
            | "trap"
            | "alias"
            | "mapfile"
            | "readarray"
            | "compgen"
            | "complete"
            | "PROMPT_COMMAND"
            | "BASH_ALIASES"
            | "PS4"
    )
}

/// Files that stand for standard input or another open file.
pub(super) fn is_descriptor(path: &str) -> bool {
    let path = normal(Path::new(path));
    let of_a_process =
        path.starts_with("/proc") && path.components().any(|part| part.as_os_str() == "fd");
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || of_a_process
}

/// What an interpreter or a shell is told to run.
enum Program<'w> {
    /// This text.
    Text(&'w Word),
    /// What it reads from standard input.
    Input,
    /// A file or a module.
    File(&'w Word),
    /// Nothing: `--version`.
    Nothing,
}

impl Decider<'_> {
    /// Judges what shells and interpreters are given as data.
    pub(super) fn scripts(&mut self, name: &str, words: &[Word], around: &Around) {
        let arguments = &words[1..];
        if SHELLS.contains(&name) {
            let program = shell_program(arguments);
            self.program(name, &program, true, around);
        }
    }

    fn program(&mut self, name: &str, program: &Program<'_>, is_shell: bool, around: &Around) {
        match program {
            Program::Nothing => {}
            Program::Text(word) => match word.known() {
                None if around.downloads => self.block("a download that reaches a shell"),
                _ if is_shell => self.script(name, &word.script(), around),
                Some(_) => self.ask(format!("what the text for `{name}` does cannot be read")),
                None => self.ask(format!(
                    "the text for `{name}` cannot be known before it runs"
                )),
            },
            Program::File(word) => match word.known() {
                Some(path) if is_descriptor(path) => {
                    self.program(name, &Program::Input, is_shell, around);
                }
                Some(_) => {}
                None if around.downloads => self.block("a download that reaches a shell"),
                None => self.ask(format!("which script `{name}` runs cannot be known")),
            },
            Program::Input => match &around.input {
                Input::Closed => {}
                Input::Text(text) if is_shell => self.script(name, text, around),
                Input::Data { download: true } => {
                    self.block(format!("a download that `{name}` runs"));
                }
                Input::Text(_) | Input::Data { .. } => {
                    self.ask(format!("what `{name}` reads and runs cannot be known"));
                }
            },
        }
    }
}

fn shell_program(words: &[Word]) -> Program<'_> {
    let mut command = false;
    let mut input = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some(text) = word.known() else {
            return if command {
                Program::Text(word)
            } else {
                Program::File(word)
            };
        };
        at += 1;
        match text {
            "-" | "--" => break,
            "--version" | "--help" => return Program::Nothing,
            "--rcfile" | "--init-file" => at += 1,
            _ if text.starts_with("--") => {}
            _ if text.starts_with(['-', '+']) => {
                for letter in text[1..].chars() {
                    match letter {
                        'c' => command = true,
                        's' => input = true,
                        'o' | 'O' => at += 1,
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
    match words.get(at) {
        Some(word) if command => Program::Text(word),
        Some(word) if !input => Program::File(word),
        _ => Program::Input,
    }
}
