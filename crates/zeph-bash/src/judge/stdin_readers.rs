//! Commands that read their standard input. In a script from standard input, they read the rest of the script.

use super::evaluate::{CommandContext, Decider, Input};
use super::programs::is_interpreter;
use super::shells::is_shell;
use super::wrappers::runs_others;
use crate::syntax::ast::{Command, Kind, List, Redirect};
use crate::syntax::reading::parse;
use crate::syntax::word::Word;

/// Commands that read standard input, regardless of their arguments.
const READS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "tr",
    "tee",
    "xargs",
    "parallel",
    "dd",
    "ssh",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "ftp",
    "sftp",
    "telnet",
    "patch",
    "cpio",
    "bc",
    "dc",
    "less",
    "more",
    "dialog",
    "whiptail",
    "line",
    "crontab",
    "at",
    "batch",
    "mail",
    "ffmpeg",
    "select",
    "vipe",
    "sponge",
    "pv",
    "exec",
];
/// Commands that read standard input unless they have this many operands; each names a file.
const READS_WITHOUT_FILE: &[(&str, usize)] = &[
    ("cat", 1),
    ("tac", 1),
    ("rev", 1),
    ("head", 1),
    ("tail", 1),
    ("sort", 1),
    ("uniq", 1),
    ("wc", 1),
    ("cut", 1),
    ("od", 1),
    ("xxd", 1),
    ("hexdump", 1),
    ("strings", 1),
    ("base64", 1),
    ("base32", 1),
    ("md5sum", 1),
    ("sha1sum", 1),
    ("sha256sum", 1),
    ("sha512sum", 1),
    ("cksum", 1),
    ("shuf", 1),
    ("split", 1),
    ("csplit", 1),
    ("fold", 1),
    ("fmt", 1),
    ("nl", 1),
    ("paste", 1),
    ("column", 1),
    ("expand", 1),
    ("gzip", 1),
    ("gunzip", 1),
    ("zcat", 1),
    ("bzip2", 1),
    ("xz", 1),
    ("zstd", 1),
    ("sed", 2),
    ("gsed", 2),
    ("awk", 2),
    ("gawk", 2),
    ("mawk", 2),
    ("nawk", 2),
    ("grep", 2),
    ("egrep", 2),
    ("fgrep", 2),
    ("jq", 2),
    ("yq", 2),
    ("python", 1),
    ("python3", 1),
    ("perl", 1),
    ("ruby", 1),
    ("node", 1),
    ("php", 1),
    ("lua", 1),
];

/// Whether a command of this list may read the standard input of the list.
fn reads_input(list: &List) -> bool {
    let first = list
        .pipelines
        .iter()
        .filter_map(|pipeline| pipeline.commands.first());
    first.into_iter().any(command_reads_input)
}

fn command_reads_input(command: &Command) -> bool {
    let own = |redirect: &Redirect| {
        matches!(
            redirect,
            Redirect::Input(_) | Redirect::HereDocument(_) | Redirect::HereString(_)
        )
    };
    let inner = command
        .substitutions
        .iter()
        .any(|inner| reads_input(&inner.body));
    if inner {
        return true;
    }
    if command.redirects.iter().any(own) {
        // `exec` replaces the standard input of the whole shell.
        return matches!(&command.kind, Kind::Simple { words, .. } if is_exec(words));
    }
    match &command.kind {
        Kind::Simple { words, .. } => words_read_input(words),
        Kind::Subshell(list) => reads_input(list),
        Kind::Compound(_, lists) => lists.iter().any(reads_input),
        Kind::Function { body, .. } => command_reads_input(body),
        Kind::Expression => false,
    }
}

fn is_exec(words: &[Word]) -> bool {
    words
        .first()
        .is_some_and(|word| word.known() == Some("exec"))
}

fn words_read_input(words: &[Word]) -> bool {
    let Some(name) = words
        .first()
        .and_then(Word::known)
        .map(super::blocklist::file_name)
    else {
        return false;
    };
    if READS.contains(&name) {
        return true;
    }
    let is_file = |word: &&Word| {
        let text = word.prefix();
        !text.starts_with('-')
            && (word.known().is_none() || text.contains(|c: char| !c.is_ascii_digit()))
    };
    if let Some((_, files)) = READS_WITHOUT_FILE.iter().find(|(known, _)| *known == name) {
        return words[1..].iter().filter(is_file).count() < *files;
    }
    if runs_others(name) {
        return (1..words.len()).any(|at| words_read_input(&words[at..]));
    }
    (is_shell(name) || is_interpreter(name)) && words.len() == 1
}

impl Decider<'_> {
    /// Judges a script that a shell reads from its standard input.
    pub(super) fn input_script(&mut self, name: &str, text: &str, around: &CommandContext) {
        if parse(text).is_ok_and(|list| reads_input(&list)) {
            self.ask(format!(
                "a command of the script that `{name}` reads may read it as well"
            ));
        }
        let inside = CommandContext {
            input: Input::Data { download: false },
            ..around.clone()
        };
        self.script(name, text, &inside);
    }
}
