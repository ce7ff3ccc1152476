//! `zeph audit …`: queries the audit trail, and verifies its integrity.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use zeph_memory::{
    AuditFilter, Heads, Store, StoredAudit, Verdict, Writer, verify_database, verify_file,
    verify_other_chains,
};
use zeph_tools::audit::Link;
use zeph_tools::layers::now_ms;
use zeph_tools::plural::counted_as;

use super::args::{AuditCommand, GlobalArgs};
use super::{Exit, load_config, print, print_as_is, usage};
use crate::assemble::open_store;
use crate::config::Loaded;
use crate::output::redact::without_known;
use crate::output::sanitize::{clean, visible};
use crate::output::{for_terminal, stderr_line};

/// The interval of checks with `--follow`.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The longest text of a column, in characters.
const MAX_COLUMN_CHARS: usize = 24;
/// The characters that a line shows of the name of a chain.
const CHAIN_CHARS: usize = 12;
/// The longest arguments that a line shows, in characters.
const MAX_ARGUMENT_CHARS: usize = 100;

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: AuditCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let store = open_store(&loaded).await?;
    let heads = Heads::beside(store.path());
    let exit = match command {
        AuditCommand::Verify { file, head } => {
            verify(
                &loaded,
                &store,
                &heads,
                file.map(|file| env.cwd.join(file)),
                head,
            )
            .await?
        }
        AuditCommand::Head { file } => {
            let kept = match file.map(|file| env.cwd.join(file)) {
                Some(file) => heads.of_file(&file),
                None if only_file(&loaded) => heads.of_file(&loaded.paths.audit_log),
                None => store.audit_head(),
            };
            let place = kept.path().display();
            let head = kept
                .read()
                .with_context(|| format!("the head {place} cannot be read"))?;
            let head = head.with_context(|| {
                format!("{place} contains no head, because no call has an entry yet")
            })?;
            print(&head.last.to_string())?;
            Exit::Done
        }
        AuditCommand::Tail {
            lines,
            follow,
            json,
        } => {
            say_where(&loaded, global);
            tail(&store, lines, follow, json).await?;
            Exit::Done
        }
        AuditCommand::Query {
            tool,
            since,
            result,
            session,
            limit,
            json,
        } => {
            say_where(&loaded, global);
            let filter = AuditFilter {
                tool,
                session,
                result,
                since: since
                    .as_deref()
                    .map(|text| moment(text, now_ms()))
                    .transpose()?,
                after: 0,
            };
            let entries = store.audit_entries(&filter, limit).await?;
            if !entries.is_empty() {
                show(&entries, json)?;
            }
            Exit::Done
        }
    };
    store.close().await?;
    Ok(exit)
}

/// Whether the trail is in the file and not in the database.
fn only_file(loaded: &Loaded) -> bool {
    let audit = &loaded.config.tools.audit;
    audit.jsonl && !audit.sqlite
}

/// Reports the location of entries outside the database.
fn say_where(loaded: &Loaded, global: &GlobalArgs) {
    let audit = &loaded.config.tools.audit;
    if audit.sqlite || global.quiet {
        return;
    }
    stderr_line(&match audit.jsonl {
        true => format!(
            "note: `[tools.audit] sqlite` is false: new entries are only in {}",
            clean(&loaded.paths.audit_log.display().to_string())
        ),
        false => "note: `[tools.audit] sqlite` is false: new entries are not stored".to_owned(),
    });
}

async fn verify(
    loaded: &Loaded,
    store: &Store,
    heads: &Heads,
    file: Option<PathBuf>,
    head: Option<Link>,
) -> anyhow::Result<Exit> {
    let log = &loaded.paths.audit_log;
    let file = file.or_else(|| only_file(loaded).then(|| log.clone()));
    let verdicts = match &file {
        Some(file) => {
            let verdict = verify_file(file, heads, head, file == log);
            let place = file.display().to_string();
            let verdict = verdict.with_context(|| format!("{place} cannot be read"))?;
            vec![(place, verdict)]
        }
        None => {
            let mut verdicts = vec![(store.name(), verify_database(store, head).await?)];
            let others = verify_other_chains(store).await?;
            verdicts.extend(others.into_iter().map(|(writer, verdict)| {
                (
                    format!("{}: {}", store.name(), chain_name(&writer)),
                    verdict,
                )
            }));
            verdicts
        }
    };
    for (place, verdict) in &verdicts {
        print(&describe_verdict(place, verdict))?;
    }
    Ok(
        match verdicts.iter().all(|(_, verdict)| verdict.wrong.is_none()) {
            true => Exit::Done,
            false => Exit::Failed,
        },
    )
}

/// The name of the chain of another writer.
fn chain_name(writer: &Writer) -> String {
    let chain: String = writer.chain.chars().take(CHAIN_CHARS).collect();
    match writer.owner.is_empty() {
        true => format!("chain {chain}"),
        false => format!("chain {chain} of {} on {}", writer.owner, writer.host),
    }
}

/// The verdict as text.
fn describe_verdict(place: &str, verdict: &Verdict) -> String {
    let mut text = String::new();
    let entries = counted_as(verdict.entries, "entry", "entries");
    // Writing into a string cannot fail.
    let _ = match (&verdict.wrong, &verdict.last) {
        (Some(wrong), _) => writeln!(
            text,
            "{place}: WRONG: {wrong}\nnote: the {entries} before that are intact"
        ),
        (None, Some(last)) => writeln!(text, "{place}: intact: {entries}, the last is {last}"),
        (None, None) => writeln!(text, "{place}: intact: no entries"),
    };
    if verdict.unchained > 0 {
        let _ = writeln!(
            text,
            "note: {} from before the chain; changes of them after its start are detected",
            counted_as(verdict.unchained, "entry is", "entries are")
        );
    }
    for note in &verdict.notes {
        let _ = writeln!(text, "note: {note}");
    }
    clean(&text)
}

/// Prints the last entries and, with `follow`, the new entries as they arrive.
async fn tail(store: &Store, lines: u32, follow: bool, json: bool) -> anyhow::Result<()> {
    let mut filter = AuditFilter::default();
    let mut limit = lines;
    loop {
        let entries = store.audit_entries(&filter, limit).await?;
        if let Some(last) = entries.last() {
            filter.after = last.id;
            show(&entries, json)?;
        }
        if !follow {
            return Ok(());
        }
        if filter.after == 0 && lines == 0 {
            let newest = store.audit_entries(&filter, 1).await?;
            filter.after = newest.last().map_or(0, |last| last.id);
        }
        limit = u32::MAX;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn show(entries: &[StoredAudit], json: bool) -> anyhow::Result<()> {
    let lines = entries.iter().map(|entry| match json {
        true => entry.line(),
        false => line(entry),
    });
    let text = lines.fold(String::new(), |text, line| text + &line + "\n");
    match json {
        true => print_as_is(&for_terminal(without_known(&text).into_owned())),
        false => print(&text),
    }
}

/// Formats one entry for the user.
fn line(entry: &StoredAudit) -> String {
    let seq = entry
        .link
        .as_ref()
        .map_or_else(|| "-".to_owned(), |link| link.seq.to_string());
    let mut text = format!(
        "{:>6}  {}  {:<9}  {:<14}  {:>6} ms",
        seq,
        time(entry.ts),
        short(&entry.result, MAX_COLUMN_CHARS),
        short(&entry.tool, MAX_COLUMN_CHARS),
        entry.duration_ms,
    );
    let mut add = |words: String| {
        text.push_str("  ");
        text.push_str(&words);
    };
    if let Some(code) = entry.exit_code.filter(|code| *code != 0) {
        add(format!("exit {code}"));
    }
    if let Some(category) = &entry.error_category {
        add(short(category, MAX_COLUMN_CHARS));
    }
    add(short(&entry.call, MAX_ARGUMENT_CHARS));
    add(format!("({})", short(&entry.session, 40)));
    text
}

/// At most `max` characters, without control sequences for the terminal.
pub(super) fn short(text: &str, max: usize) -> String {
    // Escaped characters are longer: `max + 1` characters are always enough.
    let begin: String = text.chars().take(max + 1).collect();
    let begin = visible(&begin).replace(['\n', '\t'], " ");
    if begin.chars().count() <= max {
        return begin;
    }
    begin
        .chars()
        .take(max.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// Local date and second.
pub(super) fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| "?".to_owned(),
        |time| {
            let local = time.to_zoned(TimeZone::system());
            local.strftime("%Y-%m-%d %H:%M:%S").to_string()
        },
    )
}

/// The time that `--since` means: `90s`, `30m`, `1h`, `2d`, `1w` before `now`, or a date, with or without a time, in
/// the local time zone.
pub(super) fn moment(text: &str, now: i64) -> anyhow::Result<i64> {
    let text = text.trim();
    let units = [
        ("s", 1),
        ("m", 60),
        ("h", 3600),
        ("d", 86_400),
        ("w", 604_800),
    ];
    for (unit, seconds) in units {
        if let Some(Ok(count)) = text.strip_suffix(unit).map(str::parse::<u32>) {
            return Ok(now - i64::from(count) * seconds * 1000);
        }
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let local = text
        .parse::<DateTime>()
        .ok()
        .and_then(|time| time.to_zoned(TimeZone::system()).ok());
    match local {
        Some(time) => Ok(time.timestamp().as_millisecond()),
        None => Err(usage(format!(
            "--since {text:?} is not a time: expected one like 90s, 30m, 1h, 2d, 1w, 2026-11-01 or \
             2026-11-01T09:30"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_dates_are_parsed() {
        let check = |text: &str, expect: Option<i64>| {
            assert_eq!(moment(text, 10_000_000_000).ok(), expect, "{text}");
        };
        check("90s", Some(9_999_910_000));
        check("1h", Some(9_996_400_000));
        check(" 2d ", Some(9_827_200_000));
        check("1w", Some(9_395_200_000));
        check("1970-01-02T00:00:00Z", Some(86_400_000));
        for wrong in [
            "",
            "h",
            "-1h",
            "1x",
            "yesterday",
            "2026-13-01",
            "99999999999d",
        ] {
            check(wrong, None);
        }
        let day = moment("2026-11-01", 0).unwrap();
        assert_eq!(moment("2026-11-01T01:00", 0).unwrap() - day, 3_600_000);
    }

    #[test]
    fn shortened_text_has_no_control_characters() {
        assert_eq!(short("plain", 5), "plain");
        assert_eq!(short("longer", 5), "long…");
        let hostile = short("\x1b]0;x\x07\u{202e}\nb", 80);
        assert!(
            !hostile.contains(['\x1b', '\x07', '\n', '\u{202e}']),
            "{hostile:?}"
        );
    }
}
