//! Data that reaches a shell or an interpreter: `-c` texts, here-documents and pipes.

use std::path::Path;

use super::blocklist::file_name;
use super::evaluate::{CommandContext, Decider, Input};
use super::places::normalize_path;
use super::shell_call::shell_call;
use crate::syntax::word::Word;

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "yash", "posh", "oksh",
    "loksh", "csh", "tcsh", "fish",
];
const DOWNLOADS: &[&str] = &[
    "curl", "wget", "aria2c", "fetch", "http", "https", "httpie", "xh", "lynx", "w3m", "nc",
    "ncat", "netcat", "socat", "ftp", "lftp", "scp", "ssh", "telnet",
];

/// Whether a word is the name of a program that loads data from the network.
pub(super) fn is_download(word: &str) -> bool {
    DOWNLOADS.contains(&file_name(word))
}

/// Whether a command with this name is a shell.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Whether `by` runs its script in another shell than the current one.
pub(super) fn runs_apart(by: &str) -> bool {
    !matches!(
        by,
        "eval"
            | "source"
            | "."
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

/// Whether a path is standard input or another descriptor.
pub(super) fn is_descriptor(path: &str) -> bool {
    let path = normalize_path(Path::new(path));
    let of_a_process =
        path.starts_with("/proc") && path.components().any(|part| part.as_os_str() == "fd");
    let standard = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];
    standard.iter().any(|name| path == Path::new(name))
        || path.starts_with("/dev/fd")
        || of_a_process
}

/// The program that an interpreter or a shell runs.
#[derive(Clone, Copy)]
pub(super) enum Program<'w> {
    /// A text.
    Text(&'w Word),
    /// A text from standard input.
    Input,
    /// A file or a module.
    File(&'w Word),
    /// None, for example with `--version`.
    Nothing,
}

impl Decider<'_> {
    /// Judges the scripts that shells get.
    pub(super) fn scripts(&mut self, name: &str, words: &[Word], around: &CommandContext) {
        let arguments = &words[1..];
        if SHELLS.contains(&name) {
            self.shell(name, arguments, around);
        }
    }

    /// Judges a call of a shell with these arguments.
    fn shell(&mut self, name: &str, arguments: &[Word], around: &CommandContext) {
        let call = shell_call(arguments);
        if call.unclear || (call.long && name != "bash") {
            self.ask(format!(
                "the options of `{name}` change how it reads commands"
            ));
        }
        if let Some(file) = call.startup {
            self.program(name, &Program::File(file), true, around);
        }
        let before = self.places.values.clone();
        match (call.program, call.rest) {
            (Program::Text(_), [_, rest @ ..]) | (Program::Input, rest) => {
                self.set_positional(rest)
            }
            _ => self.forget_positional(),
        }
        if let (Program::File(file), rest) = (call.program, call.rest)
            && let Some(at) = arguments.len().checked_sub(rest.len() + 1)
            && arguments.get(at) == Some(file)
        {
            // Shells search a file without a directory in `PATH`.
            self.is_on_blocklist(&arguments[at..]);
        }
        self.program(name, &call.program, true, around);
        self.places.values = before;
    }

    fn program(
        &mut self,
        name: &str,
        program: &Program<'_>,
        is_shell: bool,
        around: &CommandContext,
    ) {
        match program {
            Program::Nothing => {}
            Program::Text(word) => match word.known() {
                None if around.downloads => self.block("a download that reaches a shell"),
                _ if is_shell => self.joined(name, std::slice::from_ref(*word), around),
                Some(_) => self.ask(format!("the script for `{name}` cannot be analysed")),
                None => self.ask(format!("the text for `{name}` is unknown before it runs")),
            },
            Program::File(word) => match word.known() {
                Some(path) if self.places.is_input(path) => {
                    self.program(name, &Program::Input, is_shell, around);
                }
                Some(path) if self.places.is_descriptor(path) => {
                    for text in around.descriptors.iter().filter(|_| is_shell) {
                        self.script(name, text, around);
                    }
                    self.program(name, &Program::Input, is_shell, around);
                    self.ask(format!(
                        "the commands that `{name}` reads are unknown before it \
                        runs"
                    ));
                }
                Some(_) => {
                    for text in self.written_texts(name, Some(word)) {
                        self.script(name, &text, around);
                    }
                }
                None if around.downloads => self.block("a download that reaches a shell"),
                None => self.ask(format!(
                    "the script that `{name}` runs is unknown before it \
                    runs"
                )),
            },
            Program::Input => match &around.input {
                Input::Closed => {}
                Input::Text(text) if is_shell => self.input_script(name, text, around),
                Input::Data { download: true } => {
                    self.block(format!("a download that `{name}` runs"));
                }
                Input::Text(_) | Input::Data { .. } => {
                    self.ask(format!(
                        "the commands that `{name}` reads are unknown before it \
                        runs"
                    ));
                }
            },
        }
    }
}
