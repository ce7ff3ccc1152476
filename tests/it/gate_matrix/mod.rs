//! Every gate, at every entry point, for each of its decisions. A call that a gate denies, asks about or
//! fails at does not run, and leaves its audit entry.
//!
//! [`GATES`] is the table: the rows of a gate are in `outer` and `inner`, and outcomes that a gate never has
//! are listed in it with the reason. A gate of the stack or a command of the program that is missing in the
//! table fails a test.

mod case;
mod entry;
mod inner;
mod outer;
mod skill;

use std::collections::BTreeSet;

use serde_json::json;

use case::{Case, Entry, Expect, MARK, Outcome};
use entry::{Observed, run};

use crate::rig::{CALLER, Home};

/// A gate: its name in the stack, its rows, and its impossible outcomes with the reason.
struct Gate {
    name: &'static str,
    cases: fn() -> Vec<Case>,
    never: &'static [(Outcome, &'static str)],
}

const GATES: [Gate; 14] = [
    Gate {
        name: "audit",
        cases: outer::audit,
        never: &[
            (
                Outcome::Denied,
                "it refuses only calls that it cannot record, which is a fault",
            ),
            (Outcome::Asked, "no decision replaces an entry"),
        ],
    },
    Gate {
        name: "reputation",
        cases: outer::reputation,
        never: &[
            (Outcome::Denied, "it counts; the utility decides"),
            (Outcome::Asked, "it counts"),
            (Outcome::Fault, "it counts in memory, and reads nothing"),
        ],
    },
    Gate {
        name: "known",
        cases: outer::known,
        never: &[(Outcome::Asked, "it asks a model, and not the user")],
    },
    Gate {
        name: "quota",
        cases: outer::quota,
        never: &[(Outcome::Asked, "a limit is not asked about")],
    },
    Gate {
        name: "skill",
        cases: skill::skill,
        never: &[],
    },
    Gate {
        name: "blocklist",
        cases: outer::blocklist,
        never: &[],
    },
    Gate {
        name: "policy",
        cases: outer::policy,
        never: &[(Outcome::Asked, "its rules only allow and deny")],
    },
    Gate {
        name: "dependencies",
        cases: outer::dependencies,
        never: &[(Outcome::Asked, "no decision replaces a required success")],
    },
    Gate {
        name: "adversarial",
        cases: outer::adversarial,
        never: &[(Outcome::Asked, "it asks a model, and not the user")],
    },
    Gate {
        name: "anomaly",
        cases: inner::anomaly,
        never: &[(
            Outcome::Asked,
            "the user unblocks the tool by `/tools unblock`",
        )],
    },
    Gate {
        name: "permission",
        cases: inner::permission,
        never: &[],
    },
    Gate {
        name: "hooks",
        cases: inner::hooks,
        never: &[(Outcome::Asked, "a program decides, and does not ask")],
    },
    Gate {
        name: "utility",
        cases: inner::utility,
        never: &[(Outcome::Asked, "it skips the call, and reports it")],
    },
    Gate {
        name: "executors",
        cases: inner::executors,
        never: &[(
            Outcome::Asked,
            "an undetermined command is a row of the blocklist",
        )],
    },
];

/// The layers that are not gates, with the reason.
const NO_GATES: [(&str, &str); 5] = [
    ("filter", "only shortens results"),
    ("cache", "serves calls that the gates allowed"),
    ("retry", "repeats calls that the gates allowed"),
    ("overflow", "stores the results"),
    ("redact", "removes secrets from the results"),
];

/// The commands of the program that do not call tools.
const NO_CALLS: [&str; 18] = [
    "login",
    "logout",
    "agents",
    "commands",
    "skills",
    "models",
    "memory",
    "sessions",
    "overflow",
    "filter",
    "audit",
    "policy",
    "undo",
    "config",
    "doctor",
    "completions",
    "man",
    "help",
];

/// The commands that call tools. `run` is `-p` (`piped.rs`), `demo` has its own conversation (`demo.rs`).
const CALLS: [&str; 6] = ["acp", "run", "tools", "mcp", "demo", "scheduler"];

/// Runs every cell of a gate's rows.
#[track_caller]
fn holds(name: &str) {
    let gate = GATES.iter().find(|gate| gate.name == name).unwrap();
    let mut wrong = Vec::new();
    let mut cells = 0;
    let mut outcomes = BTreeSet::new();
    for case in (gate.cases)() {
        let forms = outcomes.insert(case.outcome);
        for entry in Entry::ALL {
            if case.why_not(entry).is_some() || (entry.is_form() && !forms) {
                continue;
            }
            cells += 1;
            let expect = case.expected(entry);
            let observed = run(&case, entry);
            if let Err(fault) = check(&case, entry, expect, &observed) {
                let Observed {
                    entries,
                    model,
                    user_text,
                    code,
                    ..
                } = &observed;
                wrong.push(format!(
                    "{name}, {:?}, {}, at {entry:?}: {fault}\n  exit {code:?}, model {model:?}\n  user text {user_text:?}\n  {entries:#?}",
                    case.outcome, case.what
                ));
            }
        }
    }
    eprintln!("{name}: {cells} cells");
    assert!(
        wrong.is_empty(),
        "{} of {cells} cells:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Compares the observations with the expectation.
fn check(case: &Case, entry: Entry, expect: &Expect, observed: &Observed) -> Result<(), String> {
    let is = |what: &str, found: bool| match found {
        true => Ok(()),
        false => Err(what.to_owned()),
    };
    let model_text = observed.model.as_deref().unwrap_or_default();
    is("a panic", !observed.user_text.contains("panicked"))?;
    if let Some(code) = expect.no_start {
        is("it started", observed.code == Some(code))?;
        is("it ran", !observed.file)?;
        let made = if entry.is_one_call() {
            case.before.len()
        } else {
            0
        };
        is("there is an entry", observed.entries.len() == made)?;
        return has(&observed.user_text, &expect.user_text);
    }
    let (tool, params) = &case.call;
    match *tool {
        "read" => is(
            "the read content",
            !entry.has_model() && observed.model.is_none()
                || model_text.contains(MARK) == expect.ran,
        )?,
        "fetch" => {}
        _ => is("the execution", observed.file == expect.ran)?,
    }
    if entry.has_model() || entry.is_one_call() || is_script(entry) {
        has(model_text, &expect.model)?;
        for word in &expect.hidden {
            is(
                &format!("{word:?} was sent to the model"),
                !model_text.contains(word),
            )?;
        }
        if let (Some(category), false) = (expect.category, model_text.is_empty()) {
            has(model_text, &[category])?;
        }
    }
    has(&observed.user_text, &expect.user_text)?;
    if let Some(category) = &observed.category {
        is(
            "the category that a program reads",
            category.as_deref() == expect.category,
        )?;
    }
    let code = match entry {
        Entry::Terminal
        | Entry::Tui
        | Entry::Acp
        | Entry::Typed
        | Entry::ToolsRun
        | Entry::McpServe
        | Entry::SubAgent => 0,
        Entry::Text | Entry::Json | Entry::Stream | Entry::Scheduled => expect.turn_code,
        Entry::ToolsCall | Entry::ToolsCallJson => match expect.category {
            None => 0,
            // A usage error of the command line.
            Some("invalid_parameters") if !params.is_object() && entry == Entry::ToolsCall => 2,
            Some("policy_blocked" | "confirmation_required") => 3,
            Some(_) => 1,
        },
    };
    is("the exit code", observed.code == Some(code))?;
    let Some(result) = expect.result else {
        return is(
            "there is an entry",
            observed.entries.len() == case.before.len(),
        );
    };
    is(
        "one entry for each call",
        observed.entries.len() == case.before.len() + 1,
    )?;
    let last = observed.entries.last().ok_or("no entry")?;
    is("the entry's tool", last.tool == *tool)?;
    let is_named = entry != Entry::McpServe || last.caller_id.as_deref() == Some(CALLER);
    is("the entry's caller", is_named)?;
    let is_whole = last.repairs == json!([]) && params.is_object();
    if is_whole && case.gate != "audit" && *tool != "write" {
        is("the entry's arguments", last.call == *params)?;
    }
    is("the entry's result", last.result == result)?;
    is(
        "the entry's category",
        last.error_category.as_deref() == expect.category,
    )?;
    if case.gate != "executors" && case.outcome != Outcome::Asked {
        is(
            "the number of executions",
            (last.attempts > 0) == expect.ran,
        )?;
    }
    if let Some(by) = expect.approved_by {
        is("the approval", last.approved_by == by)?;
    }
    let judged = last.adversarial_policy_decision.as_deref();
    is("the judgement", judged == expect.judged)?;
    if let Some(rule) = expect.matched {
        let found = last.policy_match.as_deref().unwrap_or_default();
        is(&format!("{rule:?} is not the rule"), found.contains(rule))?;
    }
    Ok(())
}

/// Whether a program makes the calls of a session in one process.
fn is_script(entry: Entry) -> bool {
    matches!(entry, Entry::ToolsRun | Entry::McpServe)
}

fn has(text: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !text.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("{word:?} is not reported")),
    }
}

/// Proves EXE-20: the table has each gate of the full stack, and each outcome of a gate has rows or a reason.
#[test]
fn gate_table_is_complete() {
    let home = Home::new();
    home.config(
        "[tools]\nmax_tool_calls_per_session = 9\n[tools.policy]\nenabled = true\n[tools.utility]\nenabled = true\n\
         [tools.dependencies]\nenabled = true\n[tools.adversarial_policy]\nenabled = true\npolicies = [\"None.\"]\n\
         [[hooks]]\nevent = \"before_call\"\ncommand = \"true\"\n",
    );
    home.write(
        ".zeph/skills/s/SKILL.md",
        "---\nname: s\ndescription: D.\n---\n",
    );
    let output = home.zeph(["doctor"]).run().stdout;
    let layers = output
        .lines()
        .find_map(|line| line.split("layers: ").nth(1))
        .unwrap();
    let found: Vec<&str> = layers.split(" → ").collect();
    let known = GATES
        .iter()
        .map(|gate| gate.name)
        .filter(|name| *name != "executors");
    let known: Vec<&str> = known.chain(NO_GATES.map(|(name, _)| name)).collect();
    assert_eq!(found, known, "the stack, from the outside in");
    for gate in &GATES {
        let cases = (gate.cases)();
        assert!(cases.iter().all(|case| case.gate == gate.name));
        for outcome in Outcome::ALL {
            let rows = cases.iter().filter(|case| case.outcome == outcome).count();
            let why = gate
                .never
                .iter()
                .filter(|(never, _)| *never == outcome)
                .count();
            assert_eq!(usize::from(rows > 0) + why, 1, "{}: {outcome:?}", gate.name);
        }
        // At each entry point, a gate allows some call.
        let allowed = || cases.iter().filter(|case| case.outcome == Outcome::Allowed);
        for entry in Entry::ALL {
            let reached = allowed().any(|case| case.why_not(entry).is_none());
            let is_only_bash = entry == Entry::Typed && allowed().all(|case| case.call.0 != "bash");
            assert!(reached || is_only_bash, "{}: {entry:?}", gate.name);
        }
    }
}

/// Proves EXE-20: the table has each command that reaches a tool.
#[test]
fn command_table_is_complete() {
    let help = Home::new().zeph(["--help"]).code(0).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap();
    let commands = commands.lines().take_while(|line| !line.trim().is_empty());
    let found: BTreeSet<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known: BTreeSet<&str> = NO_CALLS.iter().chain(&CALLS).copied().collect();
    assert_eq!(found, known);
}

/// Proves EXE-20, EXE-21, OUT-51.
#[test]
fn audit_gate_matches_its_rows() {
    holds("audit");
}

/// Proves EXE-20, EXE-21.
#[test]
fn reputation_gate_matches_its_rows() {
    holds("reputation");
}

/// Proves EXE-20, EXE-21, ERR-21.
#[test]
fn known_gate_matches_its_rows() {
    holds("known");
}

/// Proves EXE-20, EXE-21, PERM-40, CLI-3.
#[test]
fn quota_gate_matches_its_rows() {
    holds("quota");
}

/// Proves EXE-20, EXE-21, NAT-2, PERM-30.
#[test]
fn skill_gate_matches_its_rows() {
    holds("skill");
}

/// Proves EXE-20, EXE-21, PERM-2.
#[test]
fn blocklist_gate_matches_its_rows() {
    holds("blocklist");
}

/// Proves EXE-20, EXE-21, PERM-10, PERM-11, PERM-12.
#[test]
fn policy_gate_matches_its_rows() {
    holds("policy");
}

/// Proves EXE-20, EXE-21, PERM-20.
#[test]
fn dependencies_gate_matches_its_rows() {
    holds("dependencies");
}

/// Proves EXE-20, EXE-21, PERM-20.
#[test]
fn adversarial_gate_matches_its_rows() {
    holds("adversarial");
}

/// Proves EXE-20, EXE-21, PERM-41.
#[test]
fn anomaly_gate_matches_its_rows() {
    holds("anomaly");
}

/// Proves EXE-20, EXE-21, PERM-1, PERM-2, PERM-6, PERM-7, PERM-8.
#[test]
fn permission_gate_matches_its_rows() {
    holds("permission");
}

/// Proves EXE-20, EXE-21, CLI-11.
#[test]
fn hooks_gate_matches_its_rows() {
    holds("hooks");
}

/// Proves EXE-20, EXE-21, PERM-42.
#[test]
fn utility_gate_matches_its_rows() {
    holds("utility");
}

/// Proves EXE-20, EXE-21.
#[test]
fn executors_match_their_rows() {
    holds("executors");
}
