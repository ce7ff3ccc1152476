//! Walks the tree of a command and judges every simple command in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::blocklist::{Fit, ShellPolicy, name_of};
use super::effects::Effects;
use super::evaluated::{Signs, is_special};
use super::flow::{calls_of, list_downloads, runs_download};
use super::named::{Named, Role};
use super::parse::parse;
use super::shells::runs_apart;
use super::targets::{Places, changes_directory, is_block_device};
use super::tree::{Assignment, Command, Construct, Kind, List, Pipeline, Redirect, Shape, Then};
use super::values::{Possible, Values};
use super::visit::{Part, Visit};
use super::word::{UNRESOLVED, Word};

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
        // The values where the pipelines before are skipped.
        let mut skipped: Option<Values> = None;
        for pipeline in &list.pipelines {
            if matches!(self.verdict, Verdict::Block { .. }) {
                return;
            }
            if before != Then::And {
                self.places.forget_success();
                self.places.values.join_all(skipped.take());
            }
            if matches!(before, Then::And | Then::Or) {
                let mut values = self.places.values.clone();
                values.join_all(skipped.take());
                skipped = Some(values);
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
        self.places.values.join_all(skipped);
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
            if substitution.construct == Construct::Arithmetic {
                self.list(&substitution.body, &around);
                continue;
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
            Kind::Simple { assignments, words } => self.assigning(assignments, words, &around),
            Kind::Subshell(list) => {
                let places = self.places.clone();
                self.list(list, &around);
                self.places = places;
            }
            Kind::Compound(shape, lists) => {
                let before = (self.places.now().to_vec(), self.redirections);
                self.compound(shape, lists, command, &around);
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
                let mut effects = Effects::default();
                effects.command(body);
                // It sees the values at the time of its call.
                self.places.values.make_all_volatile();
                (self.depth, self.later) = (self.depth + 1, self.later + 1);
                self.command(body, &inside);
                (self.depth, self.later) = (self.depth - 1, self.later - 1);
                // Wherever it is called.
                if self.places.now() != places.now() {
                    self.later += 1;
                }
                self.places = places;
                self.places.values.may_change(&effects);
                let mut calls = BTreeSet::new();
                calls_of(body, false, &mut calls);
                if calls.iter().any(|(name, _)| changes_directory(name)) {
                    self.places.may_be_anywhere();
                }
            }
            Kind::Expression => {}
        }
    }

    /// A simple command with the assignments in front of it.
    fn assigning(&mut self, assignments: &[Assignment], words: &[Word], around: &Around) {
        let has_command = !words.is_empty();
        let before = self.places.values.clone();
        self.each_reading(words, true, |decider, reading| {
            let mut front = assignments.to_vec();
            for assignment in &mut front {
                let given = decider.given(assignment);
                decider.assign(assignment, &given, has_command, around);
            }
            if reading.assigned && reading.words.first() != words.first() {
                decider.ask("a variable decides which command runs");
            }
            if decider.visit.is_some() {
                decider.front = front;
            }
            decider.simple(&reading.words, around);
            if has_command && !reading.words.is_empty() {
                let names = assignments
                    .iter()
                    .map(|assignment| assignment.name.as_str());
                let name = reading.words[0].known().map(name_of);
                let lasting = name
                    .is_none_or(|name| is_special(name) || decider.functions.contains_key(name));
                if lasting {
                    decider.places.values.join(&before);
                } else {
                    decider.places.values.restore(names, &before);
                }
            }
        });
    }

    /// One assignment; with `exported`, only for a command.
    fn assign(
        &mut self,
        assignment: &mut Assignment,
        given: &Possible,
        exported: bool,
        around: &Around,
    ) {
        let values: Vec<Word> = match given.known_texts() {
            [] => vec![assignment.word.clone()],
            texts => texts.iter().map(Word::literal).collect(),
        };
        for value in &values {
            self.name(Role::Argument, std::slice::from_ref(value));
            self.assigned(&assignment.name, value, around);
        }
        if let ([value], false) = (values.as_slice(), assignment.partial) {
            assignment.value = value.known().map(str::to_owned);
        }
        self.places.values.assign(&assignment.name, given.clone());
        if exported {
            self.places.values.export(&assignment.name, given);
        }
    }

    /// The lists of a compound command.
    fn compound(&mut self, shape: &Shape, lists: &[List], command: &Command, around: &Around) {
        if *shape == Shape::Group {
            lists.iter().for_each(|list| self.list(list, around));
            return;
        }
        let repeats = matches!(shape, Shape::Loop | Shape::Each { .. });
        if repeats {
            let mut effects = Effects::default();
            effects.command(command);
            self.places.values.may_have_changed(&effects);
            if effects.moves {
                self.places.may_be_anywhere();
            }
        }
        let mut values = self.places.values.clone();
        if let Shape::Each { name, listed } = shape {
            let given = match listed {
                true => self.listed(&command.others),
                false => Possible::unknown(),
            };
            self.places.values.assign(name, given);
        }
        for list in lists {
            self.list(list, around);
            self.places.forget_success();
            values.join(&self.places.values);
            if *shape == Shape::Branches {
                self.places.values.clone_from(&values);
            }
        }
        self.places.values = values;
    }

    fn redirect(&mut self, redirect: &Redirect, around: &mut Around) {
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
            Redirect::Elsewhere(inner) => self.redirect(inner, &mut around.clone()),
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
            Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => inherited.clone(),
            _ => Input::Data {
                download: device || (word.substituted && downloads),
            },
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
                self.places.values.make_all_volatile();
            }
            _ if changes_directory(name) => self.places.change(name, &words[1..]),
            _ => {}
        }
    }

    /// Words that are joined with blanks and given to a shell.
    pub(super) fn joined(&mut self, by: &str, words: &[Word], around: &Around) {
        if around.downloads && words.iter().any(|word| word.known().is_none()) {
            self.block("a download that reaches a shell");
            return;
        }
        let texts: Vec<String> = words.iter().map(Word::script).collect();
        self.script(by, &texts.join(" "), around);
    }

    /// A text that a shell is given.
    pub(super) fn script(&mut self, by: &str, text: &str, around: &Around) {
        self.script_bytes += text.len() + 1;
        if around.scripts >= MAX_SCRIPTS || self.script_bytes > MAX_SCRIPT_BYTES {
            self.block("shells that are nested too deeply in each other");
            return;
        }
        let unresolved = text.contains(UNRESOLVED);
        match parse(text) {
            Ok(list) => {
                if unresolved {
                    self.ask(format!("what `{by}` runs cannot be known before it runs"));
                }
                self.signs = self.signs.or(list.signs);
                let inside = Around {
                    scripts: around.scripts + 1,
                    ..around.clone()
                };
                let places = self.places.clone();
                let apart = runs_apart(by);
                if apart {
                    self.places.values = places.values.in_child();
                }
                self.list(&list, &inside);
                if self.places.now() != places.now() && !apart {
                    self.later += 1;
                }
                let values = std::mem::replace(&mut self.places, places).values;
                match by {
                    _ if apart => {}
                    "eval" => self.places.values = values,
                    _ => self.places.values.may_change(&Effects::of(&list)),
                }
            }
            Err(_) if unresolved => {
                self.ask(format!("what `{by}` runs cannot be known before it runs"));
            }
            Err(error) => self.block(format!(
                "the text that `{by}` is given cannot be read: {error}"
            )),
        }
    }
}
