//! Splits a command text into simple commands.

use zeph_bash::{Command, Kind, List, Redirect, Word, parse};

use super::normalize::normalize;
use super::split::split;
use super::wrapper::{Inner, unwrap};

/// The maximum nesting depth of texts (`bash -c "bash -c …"`) and of function calls.
const MAX_DEPTH: usize = 6;
/// The maximum number of processed pipelines.
const MAX_COMMANDS: usize = 4096;
/// The maximum number of stored parts. The last ones are retained.
const MAX_PARTS: usize = 256;

/// Commands that print nothing, or only their arguments.
const REPORTS: &[&str] = &[
    ".", ":", "[", "alias", "break", "cd", "continue", "declare", "echo", "exit", "export",
    "false", "kill", "local", "popd", "printf", "pushd", "pwd", "read", "readonly", "return",
    "set", "shift", "shopt", "sleep", "source", "test", "trap", "true", "type", "typeset",
    "ulimit", "umask", "unset", "wait",
];
/// Commands whose only purpose is the input of the next command.
const FEEDS: &[&str] = &["echo", "printf", "yes", "cat", ":", "true"];
/// Commands that show a part of their input.
const SHOWS: &[&str] = &[
    "awk", "bat", "cat", "column", "cut", "egrep", "fgrep", "fmt", "fold", "gawk", "grep", "head",
    "jq", "less", "more", "nl", "perl", "python", "rg", "sed", "sort", "strings", "tac", "tail",
    "tee", "tr", "ts", "uniq", "wc", "xargs",
];

/// A simple command and the destination of its output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) words: Vec<String>,
    pub(super) piped_into: Vec<Vec<String>>,
    pub(super) redirected: bool,
}

impl Part {
    /// Returns true if the command prints no output that a rule may match.
    pub(super) fn only_reports(&self) -> bool {
        let name = self.words.first().map_or("", String::as_str);
        REPORTS.contains(&name) && self.piped_into.is_empty()
    }
}

/// A command of a pipeline, from the parser or from the fallback.
pub(super) enum Stage<'c> {
    /// The words, and true if standard output is redirected.
    Words(Vec<String>, bool),
    /// A group, a loop, a function.
    Other(&'c Command),
}

/// The commands of a text that print something, in order.
pub(super) fn parts(text: &str) -> Vec<Part> {
    let mut found = Parts::default();
    found.text(text, 0);
    found.parts
}

#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    /// The bodies of the functions that are defined so far.
    functions: Vec<(String, Command)>,
    seen: usize,
}

impl Parts {
    fn text(&mut self, text: &str, depth: usize) {
        match parse(text) {
            Ok(list) => self.list(&list, depth),
            Err(_) => {
                for pipeline in split(text) {
                    let stages = pipeline
                        .into_iter()
                        .map(|(words, redirected)| Stage::Words(words, redirected));
                    self.pipeline(stages.collect(), depth);
                }
            }
        }
    }

    fn list(&mut self, list: &List, depth: usize) {
        for pipeline in &list.pipelines {
            self.pipeline(pipeline.commands.iter().map(stage).collect(), depth);
        }
    }

    fn pipeline(&mut self, mut stages: Vec<Stage<'_>>, depth: usize) {
        self.seen += 1;
        if self.seen > MAX_COMMANDS {
            return;
        }
        let counts = counting(&stages);
        let piped_into: Vec<_> = stages.drain(counts + 1..).map(words_of).collect();
        let Some(stage) = stages.pop() else { return };
        let before = self.parts.len();
        let redirected = match stage {
            Stage::Words(words, redirected) => {
                self.command(words, depth);
                redirected
            }
            Stage::Other(command) => {
                self.other(command, depth);
                sends_away(command)
            }
        };
        for part in self.parts.iter_mut().skip(before) {
            part.piped_into.extend_from_slice(&piped_into);
            part.redirected |= redirected;
        }
        let surplus = self.parts.len().saturating_sub(MAX_PARTS);
        self.parts.drain(..surplus);
    }

    fn other(&mut self, command: &Command, depth: usize) {
        match &command.kind {
            Kind::Subshell(list) => self.list(list, depth),
            Kind::Compound(_, lists) => lists.iter().for_each(|list| self.list(list, depth)),
            Kind::Function { name, body } => {
                self.functions.retain(|(known, _)| known != name);
                self.functions.push((name.clone(), (**body).clone()));
            }
            Kind::Simple { .. } | Kind::Expression => {}
        }
    }

    fn command(&mut self, words: Vec<String>, depth: usize) {
        if words.is_empty() || depth >= MAX_DEPTH {
            return;
        }
        let body = self.functions.iter().find(|(name, _)| *name == words[0]);
        if let Some((_, body)) = body {
            let body = body.clone();
            self.pipeline(vec![stage(&body)], depth + 1);
            return;
        }
        match unwrap(words) {
            Inner::Text(text) => self.text(&text, depth + 1),
            Inner::Words(words) if words.is_empty() => {}
            Inner::Words(words) => self.parts.push(Part {
                words: normalize(words),
                ..Part::default()
            }),
        }
    }
}

/// The index of the command that determines the output: the first, unless it only feeds another one.
fn counting(stages: &[Stage<'_>]) -> usize {
    let names = |names: &[&str], stage: &Stage<'_>| match stage {
        Stage::Words(words, _) => words.first().is_some_and(|name| {
            let name = name.rsplit('/').next().unwrap_or(name);
            names.contains(&name)
        }),
        Stage::Other(_) => false,
    };
    let feeds = stages.first().is_some_and(|first| names(FEEDS, first));
    let fed = stages.iter().rposition(|stage| !names(SHOWS, stage));
    fed.filter(|_| feeds).unwrap_or(0)
}

fn stage(command: &Command) -> Stage<'_> {
    match &command.kind {
        Kind::Simple { words, .. } => {
            let words = words.iter().map(text_of).collect();
            Stage::Words(words, sends_away(command))
        }
        _ => Stage::Other(command),
    }
}

fn sends_away(command: &Command) -> bool {
    let is_away = |redirect: &Redirect| matches!(redirect, Redirect::Output { stdout: true, .. });
    command.redirects.iter().any(is_away)
}

fn words_of(stage: Stage<'_>) -> Vec<String> {
    match stage {
        Stage::Words(words, _) => match unwrap(words) {
            Inner::Words(words) => normalize(words),
            Inner::Text(text) => vec![text],
        },
        Stage::Other(_) => vec!["…".to_owned()],
    }
}

/// The text of a word, up to its unknown part.
fn text_of(word: &Word) -> String {
    match word.pattern() {
        Some(text) => text.to_owned(),
        None => format!("{}…", word.prefix()),
    }
}
