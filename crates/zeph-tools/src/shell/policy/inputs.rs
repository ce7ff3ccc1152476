//! Redirections: files that are written or read, and the input that a command gets.

use super::decide::{Around, Decider, Input};
use super::named::Role;
use super::programs::is_interpreter;
use super::shells::is_shell;
use super::targets::is_block_device;
use super::tree::{Command, Construct, Kind, List, Redirect};
use super::visit::Part;
use super::word::Word;
use super::wrappers::runs_others;

/// Commands that read their standard input, whatever their arguments.
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
/// Commands that read it unless this many arguments are files, counted from this one.
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
pub(super) fn reads_input(list: &List) -> bool {
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
        // `exec` gives the whole shell another input.
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
    let Some(name) = words.first().and_then(Word::known).map(super::name_of) else {
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
    /// A redirection, and the input that it gives.
    pub(super) fn redirect(&mut self, redirect: &Redirect, around: &mut Around) {
        match redirect {
            Redirect::Output { target, .. } => {
                self.redirections += 1;
                self.each_reading(std::slice::from_ref(target), false, |decider, reading| {
                    reading.words.iter().for_each(|word| decider.written(word));
                });
            }
            Redirect::Input(word) => {
                let inherited = around.input.clone();
                let downloads = around.downloads;
                let mut input = None;
                self.each_reading(std::slice::from_ref(word), false, |decider, reading| {
                    for word in &reading.words {
                        let read = decider.source(word, &inherited, downloads);
                        input = Some(match input.take() {
                            Some(before) if before != read => Input::Data { download: false },
                            _ => read,
                        });
                    }
                });
                around.input = input.unwrap_or(Input::Data { download: false });
            }
            Redirect::Elsewhere(inner) => {
                let mut elsewhere = around.clone();
                self.redirect(inner, &mut elsewhere);
                if let Input::Text(text) = elsewhere.input {
                    around.descriptors.push(text);
                }
            }
            Redirect::Duplicate => {}
            Redirect::HereDocument(word) => around.input = self.text_input(word, around.downloads),
            Redirect::HereString(word) => {
                if !self.policy.admits(Construct::HereString) {
                    self.block_construct(Construct::HereString);
                }
                around.input = self.text_input(word, around.downloads);
            }
        }
    }

    /// The input from the text `word`.
    fn text_input(&self, word: &Word, downloads: bool) -> Input {
        let readings = self.readings(std::slice::from_ref(word), false);
        let word = match readings.as_slice() {
            [one] => one.words.first().unwrap_or(word),
            _ => word,
        };
        match word.known() {
            None if downloads => Input::Data { download: true },
            _ => Input::Text(word.script()),
        }
    }

    /// A file that a redirection opens for writing.
    fn written(&mut self, word: &Word) {
        self.name(Role::Target, std::slice::from_ref(word));
        if let Some(visit) = &mut self.visit {
            let places = match self.later {
                0 => self.places.now(),
                _ => &[None],
            };
            visit(Part::Redirection {
                target: word,
                places,
            });
        }
        self.output(word);
    }

    /// A file that a redirection opens for reading, and the input from it.
    fn source(&mut self, word: &Word, inherited: &Input, downloads: bool) -> Input {
        self.name(Role::Argument, std::slice::from_ref(word));
        if let Some(visit) = &mut self.visit {
            visit(Part::Source(word));
        }
        let device = word
            .pattern()
            .is_some_and(|path| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/"));
        self.network_device(word);
        match word.known() {
            Some("/dev/null") => Input::Closed,
            Some(path) if self.places.is_input(path) => inherited.clone(),
            _ => Input::Data {
                download: device || (word.substituted && downloads),
            },
        }
    }

    /// A redirection may write from any directory.
    pub(super) fn written_anywhere(&mut self) {
        if let Some(visit) = &mut self.visit {
            visit(Part::Redirection {
                target: &Word::unknown(""),
                places: &[None],
            });
        }
    }

    /// A file that is written to.
    pub(super) fn output(&mut self, word: &Word) {
        if let Some(visit) = &mut self.visit {
            visit(Part::Output(word));
        }
        match word.known() {
            Some(path) if is_block_device(path) => {
                self.block(format!("writing onto the device `{path}`"));
            }
            None if word.prefix().starts_with("/dev/") => {
                self.ask(format!(
                    "which device `{}` is cannot be known",
                    word.shown()
                ));
            }
            _ => {}
        }
        self.network_device(word);
    }

    fn network_device(&mut self, word: &Word) {
        let network = ["/dev/tcp/", "/dev/udp/"];
        if !self.policy.admits_network() && network.iter().any(|dev| word.prefix().starts_with(dev))
        {
            self.block(format!(
                "`{}`: `[tools.shell] allow_network` is false",
                word.shown()
            ));
        }
    }
}
