//! `zeph policy replay`: evaluates calls of the audit trail with the current rules.

use std::fmt::Write as _;

use serde_json::{Value, json};
use zeph_memory::{AuditFilter, StoredAudit};
use zeph_tools::gate::Effect;
use zeph_tools::layers::now_ms;
use zeph_tools::{Phase, TrustLevel};

use super::fitting;
use super::gates::{Gates, named};
use crate::assemble::open_store_for_reading;
use crate::cli::audit::{moment, short, time};
use crate::cli::{Exit, print, print_as_is};
use crate::output::redact::redacted;
use crate::output::stored_json;

/// The prefix of the text that replaces a secret in the trail.
const REDACTED: &str = "[redacted:";
/// The longest arguments that a line shows, in characters.
const ARGUMENTS: usize = 100;

/// The tools of entries that record no tool call: hooks, undone changes, and notes about the trail itself.
const OTHER_ENTRIES: [&str; 3] = ["hook", "undo", "audit"];

/// The past outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PastOutcome {
    /// It ran without a question.
    Allowed,
    /// The user approved it, or no user was present.
    Asked,
    /// A rule denied it.
    Denied,
    /// A rule or the user refused it: the trail does not distinguish them.
    Refused,
}

/// A call that would now be decided otherwise.
struct Changed {
    entry: StoredAudit,
    then: PastOutcome,
    now: Effect,
    by: String,
    doubts: Vec<&'static str>,
}

#[derive(Default)]
struct Counts {
    calls: usize,
    same: usize,
    other_directories: usize,
    other_entries: usize,
    unknown_tools: usize,
    unfit: usize,
    refused: usize,
    redacted: usize,
}

/// Decides the calls of the trail again.
///
/// # Errors
/// The database cannot be read, or a time or session is invalid.
pub(super) async fn run(
    gates: &Gates,
    since: Option<&str>,
    session: Option<&str>,
    as_json: bool,
) -> anyhow::Result<Exit> {
    let filter = AuditFilter {
        session: session.map(str::to_owned),
        since: since.map(|text| moment(text, now_ms())).transpose()?,
        ..AuditFilter::default()
    };
    let mut counts = Counts::default();
    let mut changed = Vec::new();
    if let Some(store) = open_store_for_reading(&gates.loaded).await? {
        let directories = store.session_projects().await?;
        for entry in store.audit_entries(&filter, u32::MAX).await? {
            // Its paths began elsewhere.
            let here = directories.get(&entry.session) == Some(&gates.env.cwd);
            if !here && session.is_none() {
                counts.other_directories += 1;
                continue;
            }
            changed.extend(again(gates, entry, &mut counts));
        }
        store.close().await?;
    }
    match as_json {
        true => print_as_is(&stored_json(&as_value(&changed, &counts))?)?,
        false => print(&redacted(&as_text(&changed, &counts)))?,
    }
    Ok(Exit::Done)
}

/// Decides a call again; `None` if the decision is the same or cannot be made.
fn again(gates: &Gates, entry: StoredAudit, counts: &mut Counts) -> Option<Changed> {
    if OTHER_ENTRIES.contains(&entry.tool.as_str()) {
        counts.other_entries += 1;
        return None;
    }
    let then = then(&entry)?;
    counts.calls += 1;
    let Some(def) = gates.find(&entry.tool) else {
        counts.unknown_tools += 1;
        return None;
    };
    let params: Option<Value> = serde_json::from_str(&entry.call).ok();
    let Some(params) = params.and_then(|params| fitting(gates, def, &entry.tool, params).ok())
    else {
        counts.unfit += 1;
        return None;
    };
    let phase: Phase = serde_json::from_value(json!(entry.phase)).unwrap_or_default();
    let trust: TrustLevel = serde_json::from_value(json!(entry.trust)).unwrap_or_default();
    let call = Gates::call(def, params, phase);
    let subject = gates.subject(&call, def);
    let judgement = gates.judge(&call, &subject, trust);
    let now = judgement.effect();
    let same = match then {
        PastOutcome::Allowed => now == Effect::Allow,
        PastOutcome::Asked => now == Effect::Ask,
        PastOutcome::Denied => now == Effect::Deny,
        PastOutcome::Refused => now != Effect::Allow,
    };
    if same {
        counts.same += 1;
        return None;
    }
    let mut doubts = Vec::new();
    if entry.call.contains(REDACTED) {
        counts.redacted += 1;
        doubts.push("its arguments are redacted in the audit log");
    }
    if then == PastOutcome::Refused {
        counts.refused += 1;
        doubts.push("the log does not show whether a rule or the user refused it");
    }
    Some(Changed {
        by: judgement.by(&subject),
        then,
        now,
        doubts,
        entry,
    })
}

/// The earlier decision about a call; `None` if no rule decided it, or if it never ran.
fn then(entry: &StoredAudit) -> Option<PastOutcome> {
    let category = entry.error_category.as_deref();
    let rule = entry.policy_match.as_deref().unwrap_or_default();
    let never_ran = entry.attempts == 0 && !entry.cached;
    match (entry.result.as_str(), category) {
        ("blocked", Some("confirmation_required")) => Some(PastOutcome::Asked),
        ("blocked", Some("policy_blocked"))
            if rule.contains("deny by ") || rule.contains(") deny ") =>
        {
            Some(PastOutcome::Denied)
        }
        ("blocked", Some("policy_blocked")) if rule.contains(") ask ") => Some(PastOutcome::Asked),
        // The blocklist, a limit or a skill, before any rule.
        ("blocked", Some("policy_blocked")) if rule.is_empty() => None,
        ("blocked", Some("policy_blocked")) => Some(PastOutcome::Refused),
        // A quota, or arguments that did not fit.
        ("blocked", _) => None,
        (_, Some("tool_not_found" | "invalid_parameters" | "type_mismatch")) => None,
        // Cancelled or failed before it reached its tool.
        _ if never_ran => None,
        _ if entry.approved_by == "user" || entry.approved_by == "remembered" => {
            Some(PastOutcome::Asked)
        }
        _ => Some(PastOutcome::Allowed),
    }
}

impl PastOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allow",
            Self::Asked => "ask",
            Self::Denied => "deny",
            Self::Refused => "refused",
        }
    }
}

/// The unknowns as text.
fn notes(counts: &Counts) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: usize, words: &str| {
        if count > 0 {
            notes.push(format!("{count} {words}"));
        }
    };
    note(
        counts.other_directories,
        "of other directories or of removed sessions are skipped, because their relative paths have another base",
    );
    note(
        counts.other_entries,
        "entries of hooks, undone changes and the audit log itself are not tool calls, and are skipped",
    );
    note(
        counts.unknown_tools,
        "of tools that no longer exist are skipped",
    );
    note(
        counts.unfit,
        "with arguments that did not match the tool, or no longer match it, are skipped",
    );
    note(
        counts.redacted,
        "have redacted arguments: the decision about the real ones can differ",
    );
    note(counts.refused, "were refused by a rule or by the user");
    notes.push(
        "links in paths are resolved as they are now; the log does not contain contents of files"
            .to_owned(),
    );
    notes
}

fn as_value(changed: &[Changed], counts: &Counts) -> Value {
    let changed: Vec<Value> = changed
        .iter()
        .map(|changed| {
            let entry = &changed.entry;
            json!({
                "seq": entry.link.as_ref().map(|link| link.seq),
                "ts": entry.ts,
                "session": entry.session,
                "call_id": entry.call_id,
                "tool": entry.tool,
                "call": serde_json::from_str(&entry.call).unwrap_or(Value::Null),
                "then": changed.then.as_str(),
                "then_by": entry.policy_match,
                "now": named(changed.now),
                "now_by": changed.by,
                "doubts": changed.doubts,
            })
        })
        .collect();
    json!({
        "calls": counts.calls,
        "same": counts.same,
        "changed": changed,
        "notes": notes(counts),
    })
}

fn as_text(changed: &[Changed], counts: &Counts) -> String {
    let mut text = String::new();
    for changed in changed {
        let entry = &changed.entry;
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{}  {}  {} → {}  {}\n    {}",
            time(entry.ts),
            short(&entry.tool, 24),
            changed.then.as_str(),
            named(changed.now),
            short(&entry.call, ARGUMENTS),
            changed.by,
        );
        for doubt in &changed.doubts {
            let _ = writeln!(text, "    but {doubt}");
        }
    }
    let _ = writeln!(
        text,
        "{} calls: {} with a different decision, {} with the same",
        counts.calls,
        changed.len(),
        counts.same
    );
    for note in notes(counts) {
        let _ = writeln!(text, "note: {note}");
    }
    text
}
