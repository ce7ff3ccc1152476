//! Walks the tree of a command and judges every simple command in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use super::blocklist::{Fit, ShellPolicy, file_name};
use super::dataflow_rules::{calls_of, list_downloads, runs_download};
use super::destructive_targets::changes_directory;
use super::effects::Effects;
use super::places::Places;
use super::read_only::Collector;
use super::values::Values;
use super::visit::{Part, Visit};
use super::word_list::{NamedWord, Role};
use super::written_files::WrittenFiles;
use crate::syntax::ast::{Assignment, Command, Connector, Construct, Kind, List, Pipeline};
use crate::syntax::eval_flags::EvalFlags;
use crate::syntax::special_variables::decides_what_runs;
use crate::syntax::word::Word;

/// The maximum number of simple commands that are judged for one command.
const MAX_JUDGED: usize = 20_000;

/// The decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The command may run.
    Allow,
    /// The user has to confirm the command first.
    Ask {
        /// The part that is not known before the command runs.
        why: String,
        /// Whether an allow rule with the exact text of the command replaces the confirmation. This is so if only the
        /// name of a command or the text of `eval` is unknown.
        can_be_allowed_exactly: bool,
    },
    /// The command does not run.
    Block {
        /// The blocked part.
        what: String,
    },
}

/// The directories from which a command is judged: its working directory and those that it must not destroy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkingDirState {
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The sandbox's directories; absolute.
    pub roots: Vec<PathBuf>,
    /// Values of environment variables that the command receives.
    pub variables: BTreeMap<String, String>,
}

/// The standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// No input.
    Closed,
    /// A known text.
    Text(String),
    /// Unknown data, with `download` from the network.
    Data { download: bool },
}

/// The context of a simple command.
#[derive(Debug, Clone)]
pub(super) struct CommandContext {
    pub(super) input: Input,
    /// Whether a download is substituted into one of its words.
    pub(super) downloads: bool,
    /// The number of scripts for shells that contain it.
    pub(super) scripts: usize,
    /// Texts that are connected to descriptors other than standard input.
    pub(super) descriptors: Vec<String>,
    /// The words of the simple command that writes to standard input, for the check of reads.
    pub(super) writer: Option<Rc<[Word]>>,
}

/// The builtin that runs its operands as a command.
const EVAL: &str = "eval";

/// The context of a whole command.
const TOP: CommandContext = CommandContext {
    input: Input::Closed,
    downloads: false,
    scripts: 0,
    descriptors: Vec::new(),
    writer: None,
};

/// The state of one decision.
pub(super) struct Decider<'p> {
    pub(super) policy: &'p ShellPolicy,
    pub(super) places: Places,
    pub(super) verdict: Verdict,
    judged: usize,
    pub(super) script_bytes: usize,
    /// The signs of double evaluation in all texts so far.
    pub(super) signs: EvalFlags,
    pub(super) functions: BTreeMap<String, BTreeSet<(String, bool)>>,
    /// The bodies of functions, by name.
    pub(super) bodies: BTreeMap<String, Rc<Command>>,
    /// The number of function calls that are followed so far, and the depth of the current one.
    pub(super) calls: usize,
    pub(super) call_depth: usize,
    /// The values of aliases, and programs with another name (`hash -p`).
    pub(super) aliases: BTreeMap<String, String>,
    pub(super) hashes: BTreeMap<String, Word>,
    /// Aliases and other names that are being expanded.
    pub(super) renaming: Vec<String>,
    /// The words that the command names, if the caller needs them.
    pub(super) named: Option<Vec<NamedWord>>,
    /// Receives every part when it is judged.
    pub(super) visit: Option<Visit<'p>>,
    /// The assignments before the next simple command, for the visitor.
    pub(super) front: Vec<Assignment>,
    /// The number of commands that contain the next one.
    depth: usize,
    /// The number of enclosing texts that run later, from an unknown directory. It stays raised when the shell may
    /// work anywhere.
    pub(super) later: usize,
    /// The number of redirections so far that write.
    pub(super) redirections: usize,
    /// Collects the paths that the command reads, if the caller asks whether it only reads.
    pub(super) reads: Option<Box<Collector>>,
    /// The files that the command writes and runs.
    pub(super) files: WrittenFiles,
}

impl<'p> Decider<'p> {
    pub(super) fn new(policy: &'p ShellPolicy, start: &WorkingDirState) -> Self {
        Self {
            policy,
            visit: None,
            front: Vec::new(),
            depth: 0,
            later: 0,
            redirections: 0,
            reads: None,
            files: WrittenFiles::default(),
            places: Places::new(start),
            verdict: Verdict::Allow,
            judged: 0,
            script_bytes: 0,
            signs: EvalFlags::default(),
            functions: BTreeMap::new(),
            bodies: BTreeMap::new(),
            calls: 0,
            call_depth: 0,
            aliases: BTreeMap::new(),
            hashes: BTreeMap::new(),
            renaming: Vec::new(),
            named: None,
        }
    }

    pub(super) fn decide(mut self, list: &List) -> Verdict {
        self.walk(list);
        self.verdict
    }

    pub(super) fn decide_for_sh(mut self, text: &str) -> Verdict {
        self.script("sh", text, &TOP);
        self.end();
        self.verdict
    }

    pub(super) fn walk(&mut self, list: &List) {
        self.signs = list.signs;
        self.list(list, &TOP);
        if let Some(why) = &list.doubt {
            self.ask(why.clone());
        }
        self.end();
    }

    /// Applies the rules that need the whole text.
    fn end(&mut self) {
        if self.signs.evaluates_again() {
            self.ask("a subscript contains a command, which bash runs during arithmetic");
        }
        self.fork_bomb();
    }

    pub(super) fn block(&mut self, what: impl Into<String>) {
        if !matches!(self.verdict, Verdict::Block { .. }) {
            self.verdict = Verdict::Block { what: what.into() };
        }
    }

    pub(super) fn ask(&mut self, why: impl Into<String>) {
        self.ask_about(why.into(), false);
    }

    /// Requires confirmation because a command cannot be determined. An allow rule with the exact text replaces the
    /// confirmation, unless the command reads data that may be a script.
    pub(super) fn ask_undetermined(&mut self, why: impl Into<String>, around: &CommandContext) {
        self.ask_about(why.into(), around.input == Input::Closed);
    }

    pub(super) fn ask_about(&mut self, why: String, can_be_allowed_exactly: bool) {
        match &mut self.verdict {
            Verdict::Allow => {
                self.verdict = Verdict::Ask {
                    why,
                    can_be_allowed_exactly,
                }
            }
            Verdict::Ask {
                can_be_allowed_exactly: earlier,
                ..
            } => *earlier &= can_be_allowed_exactly,
            Verdict::Block { .. } => {}
        }
    }

    pub(super) fn list(&mut self, list: &List, around: &CommandContext) {
        let mut before = Connector::Next;
        // The values if the preceding pipelines are skipped.
        let mut skipped: Option<Values> = None;
        for pipeline in &list.pipelines {
            self.check_connector(pipeline.then);
            if matches!(self.verdict, Verdict::Block { .. }) {
                return;
            }
            if before != Connector::And {
                self.places.forget_success();
                self.places.values.join_all(skipped.take());
            }
            if matches!(before, Connector::And | Connector::Or) {
                let mut values = self.places.values.clone();
                values.join_all(skipped.take());
                skipped = Some(values);
            }
            let alone = pipeline.commands.len() == 1 && pipeline.then != Connector::Background;
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

    fn pipeline(&mut self, pipeline: &Pipeline, around: &CommandContext) {
        let mut input = around.input.clone();
        let mut writer = around.writer.clone();
        // Each command starts from the state before the pipeline. The other commands do not see its changes.
        let places = self.places.clone();
        for command in &pipeline.commands {
            self.places.clone_from(&places);
            let inside = CommandContext {
                input: input.clone(),
                writer: writer.take(),
                ..around.clone()
            };
            self.command(command, &inside);
            if let (Kind::Simple { words, .. }, Some(_)) = (&command.kind, &self.reads) {
                writer = Some(words.as_slice().into());
            }
            let download = input == Input::Data { download: true } || runs_download(command);
            input = Input::Data { download };
        }
    }

    pub(super) fn command(&mut self, command: &Command, around: &CommandContext) {
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
                let names = Effects::of(&substitution.body).names;
                if let Some(name) = names.iter().find(|name| decides_what_runs(name)) {
                    self.ask(format!(
                        "an arithmetic expression sets `{name}`, which determines the commands \
                         that run"
                    ));
                }
                self.list(&substitution.body, &around);
                continue;
            }
            let inside = CommandContext {
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
        self.check_reads(command, &around);
        self.record_outputs(command, &around);
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
                // In a loop, it writes from the directory that the previous iteration has reached.
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
                // The function may get any input.
                let inside = CommandContext {
                    input: Input::Data { download: false },
                    ..around.clone()
                };
                let places = self.places.clone();
                // The body sees the values at the time of the call.
                self.places.values.make_all_volatile();
                self.forget_positional();
                (self.depth, self.later) = (self.depth + 1, self.later + 1);
                self.command(body, &inside);
                (self.depth, self.later) = (self.depth - 1, self.later - 1);
                // The function may be called from any directory.
                if self.places.now() != places.now() {
                    self.later += 1;
                }
                self.places = places;
                self.bodies.insert(name.clone(), Rc::new((**body).clone()));
                let mut calls = BTreeSet::new();
                calls_of(body, false, &mut calls);
                if calls.iter().any(|(name, _)| changes_directory(name)) {
                    self.places.may_be_anywhere();
                }
            }
            Kind::Expression => {}
        }
    }

    pub(super) fn block_construct(&mut self, construct: Construct) {
        self.block(format!(
            "{} is refused (\"{}\" in `[tools.shell] blocked_constructs`): {}",
            construct.title(),
            construct.name(),
            construct.replacement()
        ));
    }

    /// Judges one simple command.
    pub(super) fn simple(&mut self, words: &[Word], around: &CommandContext) {
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
            let why = format!("the command `{}` is unknown before it runs", first.shown());
            self.ask_undetermined(why, around);
            return;
        };
        if first.assigned {
            self.ask_undetermined("a variable determines the command that runs", around);
        }
        if self.is_on_blocklist(words) {
            return;
        }
        let name = file_name(text).to_owned();
        self.name_all(&name, words, around);
        self.destroys(&name, words);
        self.depth += 1;
        self.written_program(text, around);
        self.record_written(&name, &words[1..]);
        self.builtins(&name, words, around);
        self.evaluates(&name, words, around);
        self.scripts(&name, words, around);
        self.wrapped(&name, words, around);
        self.renamed(text, words, around);
        self.call(text, words, around);
        self.depth -= 1;
    }

    /// Blocks a command that begins with an entry of the blocklist, and returns whether it does. If it may, a
    /// confirmation is required.
    pub(super) fn is_on_blocklist(&mut self, words: &[Word]) -> bool {
        match self.policy.entry(words) {
            Some((Fit::Yes, entry)) => {
                self.block(format!("`{entry}` is on the blocklist"));
                return true;
            }
            Some((Fit::Maybe, entry)) => self.ask(format!(
                "it may be `{entry}`: the command is unknown before it runs"
            )),
            _ => {}
        }
        false
    }

    /// Judges `eval`, `source`, `.` and commands that change the directory.
    fn builtins(&mut self, name: &str, words: &[Word], around: &CommandContext) {
        match name {
            EVAL => {
                if !self.policy.admits(Construct::Eval) {
                    self.block_construct(Construct::Eval);
                }
                let ends = words.get(1).and_then(Word::known) == Some("--");
                self.joined(name, &words[1 + usize::from(ends)..], around);
            }
            "source" | "." => {
                let at = words[1..]
                    .iter()
                    .position(|word| word.known() != Some("--"));
                let operands = at.map_or(&[][..], |at| &words[1 + at..]);
                // The shell searches the file in `PATH`.
                self.is_on_blocklist(operands);
                let operand = operands.first();
                let literal = operand
                    .and_then(Word::known)
                    .is_some_and(|path| !self.places.is_system(path));
                if operand.is_some() && !literal {
                    self.block(format!("the file for `{name}` is unknown before it runs"));
                }
                for text in self.written_texts(name, operand) {
                    self.script(name, &text, around);
                }
                // Any other content of the file is not judged.
                self.later += 1;
                self.places.values.make_all_volatile();
            }
            _ if changes_directory(name) => self.places.change(name, &words[1..]),
            _ => {}
        }
    }

    /// Requires confirmation because the text that `by` runs cannot be determined.
    pub(super) fn ask_for_text(&mut self, by: &str, why: String, around: &CommandContext) {
        match by {
            EVAL => self.ask_undetermined(why, around),
            _ => self.ask(why),
        }
    }

    /// Judges words that are joined with blanks and given to a shell.
    pub(super) fn joined(&mut self, by: &str, words: &[Word], around: &CommandContext) {
        if around.downloads && words.iter().any(|word| word.known().is_none()) {
            self.block("a download that reaches a shell");
            return;
        }
        if words.iter().any(|word| word.assigned) {
            self.ask_for_text(
                by,
                format!(
                    "a variable determines the commands that `{by}` \
                runs"
                ),
                around,
            );
        }
        for word in words {
            self.name_alternatives(word);
        }
        let texts: Vec<String> = words.iter().map(Word::script).collect();
        self.script(by, &texts.join(" "), around);
    }
}
