//! The checks of a store after a run: nothing is lost, and nothing is there twice.

use anyhow::{Context as _, Result};

use super::workers::{Pool, Run};
use super::{CALLS, SharedStore, model};

/// The parts of the messages with calls and results, by session.
const PARTS: &str = "SELECT s.id, s.project, p.part ->> 'type' AS type, coalesce(p.part ->> 'id', p.part ->> 'tool_use_id') AS call,
        p.part ->> 'content' AS content
    FROM session s JOIN message m ON m.session = s.number
    CROSS JOIN LATERAL jsonb_array_elements(m.content::jsonb) AS p (part)
    WHERE p.part ->> 'type' IN ('tool_use', 'tool_result')";

/// The results of interrupted calls.
const INTERRUPTED: &str = "interrupted: the program ended";

/// The problems of the store after `run`.
pub(super) fn findings(store: &SharedStore, pool: &Pool<'_>, run: &Run) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut check = |what: &str, found: &str, expect: &str| {
        if found != expect {
            findings.push(format!("{what}: {found}, not {expect}"));
        }
    };
    let one = |sql: &str| -> Result<String> {
        let rows = store.server.query("zeph", sql)?;
        Ok(rows.join(" "))
    };
    let sessions = run.sessions.to_string();
    let calls = u64::from(run.sessions) * CALLS as u64;
    // A process that was killed before its first message leaves an empty session.
    let used = "SELECT count(DISTINCT session) FROM message";
    check("sessions with messages", &one(used)?, &sessions);
    check(
        "projects",
        &one("SELECT count(DISTINCT project) FROM session")?,
        &sessions,
    );
    let gaps = "SELECT count(*) FROM (SELECT session FROM message GROUP BY session
        HAVING min(seq) <> 1 OR max(seq) <> count(*)) gaps";
    check("sessions with gaps", &one(gaps)?, "0");
    for kind in ["tool_use", "tool_result"] {
        let wrong = format!(
            "SELECT count(*) FROM session s JOIN message first ON first.session = s.number AND first.seq = 1 LEFT JOIN (
                 SELECT id, count(*) AS parts, count(DISTINCT call) AS calls
                 FROM ({PARTS}) AS parts WHERE type = '{kind}' GROUP BY id) AS found ON found.id = s.id
             WHERE found.parts IS DISTINCT FROM {CALLS} OR found.calls IS DISTINCT FROM {CALLS}"
        );
        check(
            &format!("sessions with a wrong number of {kind}"),
            &one(&wrong)?,
            "0",
        );
    }
    // A process that was killed after the last response adds another one.
    let ended = "SELECT count(*) FROM session s JOIN message first ON first.session = s.number AND first.seq = 1
        WHERE NOT EXISTS (SELECT FROM message m WHERE m.session = s.number AND m.content LIKE '%All is done.%')";
    check("sessions without their end", &one(ended)?, "0");
    let twice = "SELECT count(*) FROM (SELECT 1 FROM tool_audit GROUP BY session, call_id HAVING count(*) > 1) twice";
    check("audit entries that are there twice", &one(twice)?, "0");
    let interrupted: u64 = one(&format!(
        "SELECT count(*) FROM ({PARTS}) AS parts WHERE content LIKE '%{INTERRUPTED}%'"
    ))?
    .parse()
    .context("the number of interrupted calls")?;
    // A call that was interrupted has an entry if it ended, and its result was not stored.
    let entries: u64 = one("SELECT count(*) FROM tool_audit")?.parse()?;
    if entries > calls || entries + interrupted < calls {
        findings.push(format!(
            "{entries} audit entries and {interrupted} interrupted calls, of {calls} calls"
        ));
    }
    findings.extend(effects(store, pool, run)?);
    let verified = pool.command(0).args(["audit", "verify"]).output()?;
    if !verified.status.success() {
        findings.push(format!(
            "audit verify: {}",
            String::from_utf8_lossy(&verified.stderr)
        ));
    }
    println!(
        "{sessions} sessions, {calls} calls, {entries} audit entries, {interrupted} interrupted, {} processes killed",
        run.killed
    );
    Ok(findings)
}

/// Checks the effects of the commands: each ran once, or at most once if it was interrupted.
fn effects(store: &SharedStore, pool: &Pool<'_>, run: &Run) -> Result<Vec<String>> {
    let interrupted = store.server.query(
        "zeph",
        &format!(
            "SELECT project || ' ' || call FROM ({PARTS}) AS parts
             WHERE type = 'tool_result' AND content LIKE '%{INTERRUPTED}%'"
        ),
    )?;
    let mut findings = Vec::new();
    for number in 1..=run.sessions {
        let project = pool.project(number);
        let done = std::fs::read_to_string(project.join(model::DONE)).unwrap_or_default();
        for nth in (0..CALLS).filter(|&nth| model::is_command(nth)) {
            let ran = done.lines().filter(|line| *line == nth.to_string()).count();
            let call = format!("{} call_{nth}", project.display());
            if ran != 1 && !(ran == 0 && interrupted.contains(&call)) {
                findings.push(format!("{call} ran {ran} times"));
            }
        }
    }
    Ok(findings)
}
