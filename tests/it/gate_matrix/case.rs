//! What a row of the table says: a gate, what it decides, how it is made to, and what has to be
//! seen of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::rig::{Home, Reply};

/// A way to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entry {
    /// A conversation at a terminal; the model calls.
    Terminal,
    /// The same; the person types `!command`.
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
}

impl Entry {
    pub(super) const ALL: [Self; 9] = [
        Self::Terminal,
        Self::Typed,
        Self::Text,
        Self::Json,
        Self::Stream,
        Self::Scheduled,
        Self::ToolsCall,
        Self::ToolsCallJson,
        Self::ToolsRun,
    ];

    /// Whether a model makes the calls.
    pub(super) fn has_model(self) -> bool {
        matches!(
            self,
            Self::Terminal | Self::Text | Self::Json | Self::Stream | Self::Scheduled
        )
    }

    /// Whether it is another one with another form of output. What a form tells is looked at in the
    /// first row of each outcome.
    pub(super) fn is_form(self) -> bool {
        matches!(self, Self::Json | Self::Stream | Self::ToolsCallJson)
    }

    /// Whether each call is a process of its own.
    pub(super) fn is_one_call(self) -> bool {
        matches!(self, Self::ToolsCall | Self::ToolsCallJson)
    }
}

/// The entry points where a person makes the calls.
pub(super) const OWN: [Entry; 4] = [
    Entry::Typed,
    Entry::ToolsCall,
    Entry::ToolsCallJson,
    Entry::ToolsRun,
];

/// Those where each call is a process of its own.
pub(super) const ONE_CALL: [Entry; 2] = [Entry::ToolsCall, Entry::ToolsCallJson];

/// What a gate decides.
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

/// What is said to a question: where nobody can be asked, nothing or `--yes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    No,
    Yes,
}

/// A call: tool and arguments.
pub(super) type Call = (&'static str, Value);

/// What stands in the files that calls read.
pub(super) const MARK: &str = "mark-7c1e";

/// The call that leaves a file `ran`.
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

/// What has to be seen of a call at an entry point.
#[derive(Debug, Clone)]
pub(super) struct Expect {
    /// Whether the call did what it does.
    pub(super) ran: bool,
    /// `result` of the audit entry; `None` where there is no entry.
    pub(super) result: Option<&'static str>,
    /// The category of the failure.
    pub(super) category: Option<&'static str>,
    /// `approved_by` of the audit entry.
    pub(super) approved_by: Option<&'static str>,
    /// What `adversarial_policy_decision` begins with.
    pub(super) judged: Option<&'static str>,
    /// What stands in `policy_match`.
    pub(super) matched: Option<&'static str>,
    /// Words that the model reads.
    pub(super) model: Vec<&'static str>,
    /// Words that it does not read.
    pub(super) hidden: Vec<&'static str>,
    /// Words that the person reads.
    pub(super) person: Vec<&'static str>,
    /// What the program ends with when a turn is one shot.
    pub(super) turn_code: i32,
    /// The start is refused, with this code: nothing is called at all.
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
            person: Vec::new(),
            turn_code: 0,
            no_start: None,
        }
    }

    /// It runs.
    pub(super) fn runs() -> Self {
        Self::of(true, "success", None)
    }

    /// It does not run, and a gate is why.
    pub(super) fn blocked() -> Self {
        Self::of(false, "blocked", Some("policy_blocked"))
    }

    /// It does not run, as nobody can be asked.
    pub(super) fn unasked() -> Self {
        let category = Some("confirmation_required");
        Self::of(false, "blocked", category).tells_model(&["Nobody can be asked here"])
    }

    /// It is no call, or fails.
    pub(super) fn fails(category: &'static str) -> Self {
        Self::of(false, "error", Some(category))
    }

    /// Nothing starts.
    pub(super) fn no_start(words: &[&'static str]) -> Self {
        Self {
            result: None,
            no_start: Some(2),
            person: words.to_vec(),
            ..Self::of(false, "", None)
        }
    }

    pub(super) fn tells_model(mut self, words: &[&'static str]) -> Self {
        self.model.extend(words);
        self
    }

    pub(super) fn hides(mut self, words: &[&'static str]) -> Self {
        self.hidden.extend(words);
        self
    }

    pub(super) fn tells_person(mut self, words: &[&'static str]) -> Self {
        self.person.extend(words);
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

/// A row.
pub(super) struct Case {
    /// The gate's name in the stack.
    pub(super) gate: &'static str,
    pub(super) outcome: Outcome,
    /// What makes it decide so.
    pub(super) what: &'static str,
    /// The user's configuration, beside the provider.
    pub(super) config: &'static str,
    /// Arguments of every run.
    pub(super) args: &'static [&'static str],
    /// What is made before the start.
    pub(super) prepare: Option<Change>,
    /// Calls before the one that is looked at, in the same session.
    pub(super) before: Vec<Call>,
    /// What happens between those and it.
    pub(super) meanwhile: Option<Change>,
    pub(super) call: Call,
    /// What is said when it asks; `None` where it must not ask.
    pub(super) say: Option<Say>,
    /// What a judge answers.
    pub(super) judge: Option<fn() -> Reply>,
    /// What a model answers that is asked for arguments that fit.
    pub(super) reformat: Option<fn() -> Reply>,
    expect: Option<Expect>,
    exceptions: BTreeMap<Entry, Expect>,
    /// Where it cannot be, and why.
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

    /// It asks, and is told so.
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

    /// What has to be seen where nothing else is said.
    pub(super) fn expect(self, expect: Expect) -> Self {
        Self {
            expect: Some(expect),
            ..self
        }
    }

    /// What has to be seen at these entry points instead.
    pub(super) fn at(mut self, entries: &[Entry], expect: &Expect) -> Self {
        let here = entries.iter().map(|entry| (*entry, expect.clone()));
        self.exceptions.extend(here);
        self
    }

    /// It cannot be there.
    pub(super) fn not_at(mut self, entries: &[Entry], why: &'static str) -> Self {
        self.skipped
            .extend(entries.iter().map(|entry| (*entry, why)));
        self
    }

    /// Why it cannot be at an entry point, if so.
    pub(super) fn why_not(&self, entry: Entry) -> Option<&'static str> {
        if entry == Entry::Typed && (self.call.0 != "bash" || !self.call.1.is_object()) {
            return Some("a person types commands alone");
        }
        self.skipped.get(&entry).copied()
    }

    /// What has to be seen at an entry point.
    pub(super) fn expected(&self, entry: Entry) -> &Expect {
        let expect = self.exceptions.get(&entry).or(self.expect.as_ref());
        expect.unwrap_or_else(|| panic!("{} / {} says nothing of {entry:?}", self.gate, self.what))
    }
}
