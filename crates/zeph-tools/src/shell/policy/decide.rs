//! Walks the tree of a command and judges every simple command in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::blocklist::{Fit, ShellPolicy, name_of};
use super::evaluated::Signs;
use super::flow::{calls_of, list_downloads, runs_download};
use super::named::{Named, Role};
use super::parse::parse;
use super::shells::runs_apart;
use super::targets::{Places, changes_directory, is_block_device};
use super::tree::{Assignment, Command, Construct, Kind, List, Pipeline, Redirect, Then};
use super::visit::{Part, Visit};
use super::word::Word;

/// How deep texts that shells are given may be nested.
const MAX_SCRIPTS: usize = 16;
/// How many simple commands are judged for one command.
const MAX_JUDGED: usize = 20_000;
/// How many bytes of texts for shells are parsed for one command.
const MAX_SCRIPT_BYTES: usize = 256 * 1024;

/// What is decided about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person has to agree first.
    Ask {
        /// What cannot be known before it runs.
        why: String,
    },
    /// It does not run.
    Block {
        /// What was hit.
        what: String,
    },
}

/// Where a command starts, and what must not be destroyed from there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The sandbox's directories; absolute.
    pub roots: Vec<PathBuf>,
}

/// What a command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// Nothing.
    Closed,
    /// This text.
    Text(String),
    /// What cannot be known, from the network perhaps.
    Data { download: bool },
}

/// What surrounds a simple command.
#[derive(Debug, Clone)]
pub(super) struct Around {
    pub(super) input: Input,
    /// Whether a download is substituted into one of its words.
    pub(super) downloads: bool,
    /// How many texts for shells it is nested in.
    pub(super) scripts: usize,
}

/// One decision.
pub(super) struct Decider<'p> {
    pub(super) policy: &'p ShellPolicy,
    pub(super) places: Places,
    pub(super) verdict: Verdict,
    judged: usize,
    script_bytes: usize,
    /// What in all texts so far could be evaluated a second time.
    pub(super) signs: Signs,
    pub(super) functions: BTreeMap<String, BTreeSet<(String, bool)>>,
    /// What is named, where that is asked for.
    pub(super) named: Option<Vec<Named>>,
    /// Sees every part as it is judged.
    pub(super) visit: Option<Visit<'p>>,
    /// What is assigned in front of the next simple command, for whoever sees it.
    front: Vec<Assignment>,
    /// In how many commands the next one is nested.
    depth: usize,
    /// In how many texts that run later, wherever the shell works then; more once it may work anywhere.
    pub(super) later: usize,
    /// How many redirections write so far.
    redirections: usize,
}

impl<'p> Decider<'p> {
    pub(super) fn new(policy: &'p ShellPolicy, start: &Start) -> Self {
        Self {
            policy,
            visit: None,
            front: Vec::new(),
            depth: 0,
            later: 0,
            redirections: 0,
            places: Places::new(start),
            verdict: Verdict::Allow,
            judged: 0,
            script_bytes: 0,
            signs: Signs::default(),
            functions: BTreeMap::new(),
            named: None,
        }
    }

    pub(super) fn decide(mut self, list: &List) -> Verdict {
        self.walk(list);
        self.verdict
    }

    pub(super) fn walk(&mut self, list: &List) {
        let around = Around {
            input: Input::Closed,
            downloads: false,
            scripts: 0,
        };
        self.signs = list.signs;
        self.list(list, &around);
        if self.signs.subscript && self.signs.calculates {
            self.ask("a subscript has a command in it, which bash runs when it calculates");
        }
        self.fork_bomb();
    }

    pub(super) fn block(&mut self, what: impl Into<String>) {
        if !matches!(self.verdict, Verdict::Block { .. }) {
            self.verdict = Verdict::Block { what: what.into() };
        }
    }

    pub(super) fn ask(&mut self, why: impl Into<String>) {
        if self.verdict == Verdict::Allow {
            self.verdict = Verdict::Ask { why: why.into() };
        }
    }

    fn list(&mut self, list: &List, around: &Around) {
        let mut before = Then::Next;
        for pipeline in &list.pipelines {
            if matches!(self.verdict, Verdict::Block { .. }) {
                return;
            }
            if before != Then::And {
                self.places.forget_success();
            }
            let alone = pipeline.commands.len() == 1 && pipeline.then != Then::Background;
            let places = (!alone).then(|| self.places.clone());
            self.pipeline(pipeline, around);
            if let Some(places) = places {
                self.places = places;
            }
            before = pipeline.then;
        }
        self.places.forget_success();
    }

    fn pipeline(&mut self, pipeline: &Pipeline, around: &Around) {
        let mut input = around.input.clone();
        // Each begins where the pipeline does: what one of them changes, its neighbours do not see.
        let places = self.places.clone();
        for command in &pipeline.commands {
            self.places.clone_from(&places);
            let inside = Around {
                input: input.clone(),
                ..around.clone()
            };
            self.command(command, &inside);
            let download = input == Input::Data { download: true } || runs_download(command);
            input = Input::Data { download };
        }
    }

    fn command(&mut self, command: &Command, around: &Around) {
        let mut around = around.clone();
        around.downloads |= command
            .substitutions
            .iter()
            .any(|substitution| list_downloads(&substitution.body));
        for substitution in &command.substitutions {
            if !self.policy.admits(substitution.construct) {
                self.block_construct(substitution.construct);
            }
            let inside = Around {
                downloads: false,
                ..around.clone()
            };
            let places = self.places.clone();
            self.depth += 1;
            self.list(&substitution.body, &inside);
            self.depth -= 1;
            self.places = places;
        }
        for redirect in &command.redirects {
            self.redirect(redirect, &mut around);
        }
        self.name(Role::Argument, &command.others);
        match &command.kind {
            Kind::Simple { assignments, words } => {
                for assignment in assignments {
                    if let Some(value) = &assignment.value {
                        self.name(Role::Argument, &[Word::literal(value)]);
                    }
                    self.assigned(&assignment.name, assignment.value.as_deref(), &around);
                }
                if self.visit.is_some() {
                    self.front.clone_from(assignments);
                }
                self.simple(words, &around);
            }
            Kind::Subshell(list) => {
                let places = self.places.clone();
                self.list(list, &around);
                self.places = places;
            }
            Kind::Compound(lists) => {
                let before = (self.places.now().to_vec(), self.redirections);
                for list in lists {
                    self.list(list, &around);
                    self.places.forget_success();
                }
                // In a loop it writes from where the round before has gone.
                if self.places.now() != before.0 && self.redirections > before.1 {
                    self.written_anywhere();
                }
            }
            Kind::Function { name, body } => {
                let mut calls = BTreeSet::new();
                calls_of(body, false, &mut calls);
                self.functions
                    .entry(name.clone())
                    .or_default()
                    .extend(calls);
                // It may be given anything.
                let inside = Around {
                    input: Input::Data { download: false },
                    ..around.clone()
                };
                let places = self.places.clone();
                (self.depth, self.later) = (self.depth + 1, self.later + 1);
                self.command(body, &inside);
                (self.depth, self.later) = (self.depth - 1, self.later - 1);
                // Wherever it is called.
                if self.places.now() != places.now() {
                    self.later += 1;
                }
                self.places = places;
                let mut calls = BTreeSet::new();
                calls_of(body, false, &mut calls);
                if calls.iter().any(|(name, _)| changes_directory(name)) {
                    self.places.may_be_anywhere();
                }
            }
            Kind::Expression => {}
        }
    }

    fn redirect(&mut self, redirect: &Redirect, around: &mut Around) {
        match redirect {
            Redirect::Output { target: word, .. } => {
                self.name(Role::Target, std::slice::from_ref(word));
                self.redirections += 1;
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
            Redirect::Input(word) => {
                self.name(Role::Argument, std::slice::from_ref(word));
                if let Some(visit) = &mut self.visit {
                    visit(Part::Source(word));
                }
                let device = word.pattern().is_some_and(|path| {
                    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
                });
                around.input = match word.known() {
                    Some("/dev/null") => Input::Closed,
                    Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => around.input.clone(),
                    _ => Input::Data {
                        download: device || (word.substituted && around.downloads),
                    },
                };
                self.network_device(word);
            }
            Redirect::Elsewhere(inner) => self.redirect(inner, &mut around.clone()),
            Redirect::Duplicate => {}
            Redirect::HereDocument(text) => {
                around.input = match text {
                    Some(text) => Input::Text(text.clone()),
                    None => Input::Data {
                        download: around.downloads,
                    },
                };
            }
            Redirect::HereString(word) => {
                if !self.policy.admits(Construct::HereString) {
                    self.block_construct(Construct::HereString);
                }
                around.input = match word.known() {
                    Some(text) => Input::Text(text.to_owned()),
                    None => Input::Data {
                        download: around.downloads,
                    },
                };
            }
        }
    }

    /// A redirection may write from any directory.
    fn written_anywhere(&mut self) {
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

    pub(super) fn block_construct(&mut self, construct: Construct) {
        self.block(format!(
            "{} is not allowed (`[tools.shell] allow_constructs` admits \"{}\")",
            construct.title(),
            construct.name()
        ));
    }

    /// Judges one simple command by its words.
    pub(super) fn simple(&mut self, words: &[Word], around: &Around) {
        if let Some(visit) = &mut self.visit {
            let front = std::mem::take(&mut self.front);
            let (assignments, depth) = (front.as_slice(), self.depth);
            if !words.is_empty() {
                visit(Part::Command {
                    words,
                    assignments,
                    depth,
                });
            } else if !assignments.is_empty() {
                visit(Part::Assignments { assignments, depth });
            }
        }
        let Some(first) = words.first() else { return };
        self.judged += 1;
        if self.judged > MAX_JUDGED {
            self.block("a command with too many parts cannot be judged");
            return;
        }
        let Some(text) = first.known() else {
            self.name_all("", words, around);
            self.ask(format!(
                "which command `{}` is cannot be known before it runs",
                first.shown()
            ));
            return;
        };
        match self.policy.entry(words) {
            Some((Fit::Yes, entry)) => {
                self.block(format!("`{entry}` is on the blocklist"));
                return;
            }
            Some((Fit::Maybe, entry)) => {
                self.ask(format!(
                    "whether it is `{entry}` cannot be known before it runs"
                ));
            }
            _ => {}
        }
        let name = name_of(text).to_owned();
        self.name_all(&name, words, around);
        self.destroys(&name, words);
        self.depth += 1;
        self.builtins(&name, words, around);
        self.evaluates(&name, words, around);
        self.scripts(&name, words, around);
        self.wrapped(&name, words, around);
        self.depth -= 1;
    }

    /// `eval`, `exec`, `source`, `.`, `cd`.
    fn builtins(&mut self, name: &str, words: &[Word], around: &Around) {
        match name {
            "eval" => {
                if !self.policy.admits(Construct::Eval) {
                    self.block_construct(Construct::Eval);
                }
                self.joined(name, &words[1..], around);
            }
            "source" | "." => {
                let operand = words[1..].iter().find(|word| word.known() != Some("--"));
                let literal = operand
                    .and_then(Word::known)
                    .is_some_and(|path| !path.starts_with("/dev/") && !path.starts_with("/proc/"));
                if operand.is_some() && !literal {
                    self.block(format!("`{name}` of anything but a literal file"));
                }
                // What it does is not read.
                self.later += 1;
            }
            _ if changes_directory(name) => self.places.change(name, &words[1..]),
            _ => {}
        }
    }

    /// Words that are joined with blanks and given to a shell.
    pub(super) fn joined(&mut self, by: &str, words: &[Word], around: &Around) {
        let texts: Option<Vec<&str>> = words.iter().map(Word::known).collect();
        match texts {
            Some(texts) => self.script(by, &texts.join(" "), around),
            None if around.downloads => self.block("a download that reaches a shell"),
            None => self.ask(format!("what `{by}` runs cannot be known before it runs")),
        }
    }

    /// A text that a shell is given.
    pub(super) fn script(&mut self, by: &str, text: &str, around: &Around) {
        self.script_bytes += text.len() + 1;
        if around.scripts >= MAX_SCRIPTS || self.script_bytes > MAX_SCRIPT_BYTES {
            self.block("shells that are nested too deeply in each other");
            return;
        }
        let home = self.places.home_text();
        match parse(text, home.as_deref()) {
            Ok(list) => {
                self.signs = self.signs.or(list.signs);
                let inside = Around {
                    scripts: around.scripts + 1,
                    ..around.clone()
                };
                let places = self.places.clone();
                self.list(&list, &inside);
                if self.places.now() != places.now() && !runs_apart(by) {
                    self.later += 1;
                }
                self.places = places;
            }
            Err(error) => self.block(format!(
                "the text that `{by}` is given cannot be read: {error}"
            )),
        }
    }
}
