//! Rows of the gate table: a gate, its decision, the setup that causes it, and the expected observations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::rig::{Home, Reply};

/// An entry point to the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entry {
    /// A model calls in a conversation at a terminal.
    Terminal,
    /// A model calls in a conversation on the full screen: `zeph --tui`.
    Tui,
    /// A model calls in a conversation with an editor: `zeph acp`.
    Acp,
    /// The user types `!command` in a conversation at a terminal.
    Typed,
    /// `zeph -p`.
    Text,
    /// `zeph -p --output-format json`.
    Json,
    /// `zeph -p --output-format stream-json`.
    Stream,
    /// `zeph scheduler run`: a task that is due.
    Scheduled,
    /// `zeph tools call`.
    ToolsCall,
    /// `zeph tools call --json`.
    ToolsCallJson,
    /// `zeph tools run`.
    ToolsRun,
    /// `zeph mcp serve`: a client without elicitation.
    McpServe,
    /// A sub-agent of `zeph -p` makes the calls.
    SubAgent,
}

impl Entry {
    pub(super) const ALL: [Self; 13] = [
        Self::Terminal,
        Self::Tui,
        Self::Acp,
        Self::Typed,
        Self::Text,
        Self::Json,
        Self::Stream,
        Self::Scheduled,
        Self::ToolsCall,
        Self::ToolsCallJson,
        Self::ToolsRun,
        Self::McpServe,
        Self::SubAgent,
    ];

    /// Whether a model makes the calls.
    pub(super) fn has_model(self) -> bool {
        matches!(
            self,
            Self::Terminal
                | Self::Tui
                | Self::Acp
                | Self::Text
                | Self::Json
                | Self::Stream
                | Self::Scheduled
                | Self::SubAgent
        )
    }

    /// Whether it differs from another entry point only in the output format. Each outcome is checked in
    /// these formats in its first row only.
    pub(super) fn is_form(self) -> bool {
        matches!(self, Self::Json | Self::Stream | Self::ToolsCallJson)
    }

    /// Whether each call is its own process.
    pub(super) fn is_one_call(self) -> bool {
        matches!(self, Self::ToolsCall | Self::ToolsCallJson)
    }
}

/// The entry points at which the user makes the calls.
pub(super) const OWN: [Entry; 4] = [
    Entry::Typed,
    Entry::ToolsCall,
    Entry::ToolsCallJson,
    Entry::ToolsRun,
];

/// The entry points with a process for each call.
pub(super) const ONE_CALL: [Entry; 2] = [Entry::ToolsCall, Entry::ToolsCallJson];

/// A decision of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Allowed,
    Denied,
    Asked,
    /// The gate itself failed.
    Fault,
}

impl Outcome {
    pub(super) const ALL: [Self; 4] = [Self::Allowed, Self::Denied, Self::Asked, Self::Fault];
}

/// The reply to a question; if unattended, no reply or `--yes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    No,
    Yes,
}

/// A call: tool and arguments.
pub(super) type Call = (&'static str, Value);

/// The content of the files that calls read.
pub(super) const MARK: &str = "mark-7c1e";

/// The call that creates the file `ran`.
pub(super) fn touch() -> Call {
    bash("touch ran")
}

pub(super) fn bash(command: &str) -> Call {
    ("bash", json!({ "command": command }))
}

pub(super) fn read(path: &str) -> Call {
    ("read", json!({ "path": path }))
}

pub(super) fn write() -> Call {
    ("write", json!({ "path": "ran", "content": "x" }))
}

/// The expected observations of a call at an entry point.
#[derive(Debug, Clone)]
pub(super) struct Expect {
    /// Whether the call had its effect.
    pub(super) ran: bool,
    /// `result` of the audit entry; `None` without an entry.
    pub(super) result: Option<&'static str>,
    /// The category of the failure.
    pub(super) category: Option<&'static str>,
    /// `approved_by` of the audit entry.
    pub(super) approved_by: Option<&'static str>,
    /// The start of `adversarial_policy_decision`.
    pub(super) judged: Option<&'static str>,
    /// The text that `policy_match` contains.
    pub(super) matched: Option<&'static str>,
    /// Texts that the model must read.
    pub(super) model: Vec<&'static str>,
    /// Texts that the model must not read.
    pub(super) hidden: Vec<&'static str>,
    /// Texts that the user must read.
    pub(super) user_text: Vec<&'static str>,
    /// The exit code of a one-shot turn.
    pub(super) turn_code: i32,
    /// The exit code of a refused start, in which no call is made.
    pub(super) no_start: Option<i32>,
}

impl Expect {
    fn of(ran: bool, result: &'static str, category: Option<&'static str>) -> Self {
        Self {
            ran,
            result: Some(result),
            category,
            approved_by: None,
            judged: None,
            matched: None,
            model: Vec::new(),
            hidden: Vec::new(),
            user_text: Vec::new(),
            turn_code: 0,
            no_start: None,
        }
    }

    /// The call runs.
    pub(super) fn runs() -> Self {
        Self::of(true, "success", None)
    }

    /// A gate refuses the call.
    pub(super) fn blocked() -> Self {
        Self::of(false, "blocked", Some("policy_blocked"))
    }

    /// The call does not run, because no user can answer.
    pub(super) fn unasked() -> Self {
        let category = Some("confirmation_required");
        Self::of(false, "blocked", category).model_reads(&["No user can answer here"])
    }

    /// The call is invalid, or fails.
    pub(super) fn fails(category: &'static str) -> Self {
        Self::of(false, "error", Some(category))
    }

    /// The start is refused.
    pub(super) fn no_start(words: &[&'static str]) -> Self {
        Self {
            result: None,
            no_start: Some(2),
            user_text: words.to_vec(),
            ..Self::of(false, "", None)
        }
    }

    pub(super) fn model_reads(mut self, words: &[&'static str]) -> Self {
        self.model.extend(words);
        self
    }

    pub(super) fn hides(mut self, words: &[&'static str]) -> Self {
        self.hidden.extend(words);
        self
    }

    pub(super) fn user_reads(mut self, words: &[&'static str]) -> Self {
        self.user_text.extend(words);
        self
    }

    pub(super) fn by(self, approved_by: &'static str) -> Self {
        Self {
            approved_by: Some(approved_by),
            ..self
        }
    }

    pub(super) fn judged(self, decision: &'static str) -> Self {
        Self {
            judged: Some(decision),
            ..self
        }
    }

    pub(super) fn matched(self, rule: &'static str) -> Self {
        Self {
            matched: Some(rule),
            ..self
        }
    }

    pub(super) fn turn_ends(self, turn_code: i32) -> Self {
        Self { turn_code, ..self }
    }

    pub(super) fn without_entry(self) -> Self {
        Self {
            result: None,
            ..self
        }
    }
}

/// Changes something about a home.
pub(super) type Change = fn(&Home);

/// A row of the table.
pub(super) struct Case {
    /// The name of the gate in the stack.
    pub(super) gate: &'static str,
    pub(super) outcome: Outcome,
    /// The cause of the decision.
    pub(super) what: &'static str,
    /// The user's configuration, without the provider.
    pub(super) config: &'static str,
    /// Arguments of every run.
    pub(super) args: &'static [&'static str],
    /// The preparation before the start.
    pub(super) prepare: Option<Change>,
    /// Calls before the tested call, in the same session.
    pub(super) before: Vec<Call>,
    /// A change between those calls and the tested call.
    pub(super) meanwhile: Option<Change>,
    pub(super) call: Call,
    /// The reply to the question; `None` if there must be no question.
    pub(super) say: Option<Say>,
    /// The response of the judge.
    pub(super) judge: Option<fn() -> Reply>,
    /// The response of the model to a repair request.
    pub(super) reformat: Option<fn() -> Reply>,
    expect: Option<Expect>,
    /// The expectation for a command that the user types.
    typed: Expect,
    exceptions: BTreeMap<Entry, Expect>,
    /// Entry points at which the row is impossible, with the reason.
    pub(super) skipped: BTreeMap<Entry, &'static str>,
}

impl Case {
    pub(super) fn new(gate: &'static str, outcome: Outcome, what: &'static str) -> Self {
        Self {
            gate,
            outcome,
            what,
            config: "",
            args: &[],
            prepare: None,
            before: Vec::new(),
            meanwhile: None,
            call: touch(),
            say: None,
            judge: None,
            reformat: None,
            expect: None,
            typed: Expect::runs().by("user"),
            exceptions: BTreeMap::new(),
            skipped: BTreeMap::new(),
        }
    }

    pub(super) fn config(self, config: &'static str) -> Self {
        Self { config, ..self }
    }

    pub(super) fn args(self, args: &'static [&'static str]) -> Self {
        Self { args, ..self }
    }

    pub(super) fn prepare(self, prepare: Change) -> Self {
        Self {
            prepare: Some(prepare),
            ..self
        }
    }

    pub(super) fn before(mut self, call: Call) -> Self {
        self.before.push(call);
        self
    }

    pub(super) fn meanwhile(self, change: Change) -> Self {
        Self {
            meanwhile: Some(change),
            ..self
        }
    }

    pub(super) fn call(self, call: Call) -> Self {
        Self { call, ..self }
    }

    /// Expects a question and sets the reply.
    pub(super) fn say(self, say: Say) -> Self {
        Self {
            say: Some(say),
            ..self
        }
    }

    pub(super) fn judge(self, judge: fn() -> Reply) -> Self {
        Self {
            judge: Some(judge),
            ..self
        }
    }

    pub(super) fn reformat(self, reformat: fn() -> Reply) -> Self {
        Self {
            reformat: Some(reformat),
            ..self
        }
    }

    /// Sets the default expectation.
    pub(super) fn expect(self, expect: Expect) -> Self {
        Self {
            expect: Some(expect),
            ..self
        }
    }

    /// Sets another expectation at these entry points.
    pub(super) fn at(mut self, entries: &[Entry], expect: &Expect) -> Self {
        let here = entries.iter().map(|entry| (*entry, expect.clone()));
        self.exceptions.extend(here);
        self
    }

    /// Marks the row as impossible at these entry points.
    pub(super) fn not_at(mut self, entries: &[Entry], why: &'static str) -> Self {
        self.skipped
            .extend(entries.iter().map(|entry| (*entry, why)));
        self
    }

    /// Marks the row as impossible at every other entry point.
    pub(super) fn only_at(mut self, entry: Entry, why: &'static str) -> Self {
        let others = Entry::ALL.into_iter().filter(|other| *other != entry);
        self.skipped.extend(others.map(|other| (other, why)));
        self
    }

    /// The reason if the row is impossible at an entry point.
    pub(super) fn why_not(&self, entry: Entry) -> Option<&'static str> {
        if entry == Entry::McpServe && !self.call.1.is_object() {
            return Some("the protocol has no other arguments than objects");
        }
        if entry == Entry::Typed && (self.call.0 != "bash" || !self.call.1.is_object()) {
            return Some("the user types only commands");
        }
        self.skipped.get(&entry).copied()
    }

    /// The expectation at an entry point. No gate judges a command that the user types, unless the program does not start.
    pub(super) fn expected(&self, entry: Entry) -> &Expect {
        let is_gate = !["audit", "reputation", "known", "executors"].contains(&self.gate);
        let is_started = |expect: &Expect| expect.no_start.is_none();
        if entry == Entry::Typed && is_gate && self.expect.as_ref().is_some_and(is_started) {
            return &self.typed;
        }
        // In an editor and on the full screen, the user can be asked as at a terminal.
        let like = match entry {
            Entry::Acp | Entry::Tui if !self.exceptions.contains_key(&entry) => Entry::Terminal,
            entry => entry,
        };
        let expect = self.exceptions.get(&like).or(self.expect.as_ref());
        expect.unwrap_or_else(|| panic!("{} / {} says nothing of {entry:?}", self.gate, self.what))
    }
}
