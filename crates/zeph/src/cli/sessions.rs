//! `zeph sessions …`

use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::{Value, json};
use zeph_core::Spending;
use zeph_llm::MessagePart;
use zeph_memory::{SessionInfo, Store, StoredMessage, StoredSpending, StoredSummary};

use super::args::{GlobalArgs, SessionsCommand};
use super::{Exit, load_config, print, print_as_is};
use crate::output::redact::redacted;
use crate::output::stored_json;

/// How many sessions `list` shows.
const LISTED: u32 = 100;

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: SessionsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let store = Store::open(&loaded.paths.database, loaded.config.memory.synchronous).await?;
    match command {
        SessionsCommand::List { all, json } => {
            let project = (!all).then_some(env.cwd.as_path());
            let mut sessions = store.list_sessions(project, LISTED).await?;
            sessions.retain(|session| all || session.messages > 0);
            match json {
                true => print_as_is(&stored_json(&sessions)?)?,
                false => print(&redacted(&list(&sessions, all)))?,
            }
        }
        SessionsCommand::Show { id } => {
            let session = store.find_session(&id).await?;
            let messages = store.all_messages(&session.id).await?;
            let spending = Spending::of_stored(store.spending(&session.id).await?);
            let summaries = store.all_summaries(&session.id).await?;
            print(&redacted(&show(
                &session, &messages, &summaries, &spending,
            )?))?;
        }
        SessionsCommand::Export { id } => {
            let session = store.find_session(&id).await?;
            let messages = store.all_messages(&session.id).await?;
            let spending = store.spending(&session.id).await?;
            let summaries = store.all_summaries(&session.id).await?;
            let exported = export(&session, &messages, &summaries, &spending)?;
            print_as_is(&stored_json(&exported)?)?;
        }
        SessionsCommand::Rm { ids } => {
            for id in ids {
                let session = store.find_session(&id).await?;
                store.delete_session(&session.id).await?;
                print(&format!("removed {}", session.id))?;
            }
        }
    }
    store.close().await?;
    Ok(Exit::Done)
}

fn list(sessions: &[SessionInfo], all: bool) -> String {
    if sessions.is_empty() {
        return "no sessions; `zeph sessions list --all` shows those of all directories".to_owned();
    }
    let mut text = String::new();
    for session in sessions {
        let title = session.title.as_deref().unwrap_or("(no title)");
        let _ = write!(
            text,
            "{}  {}  {:>4} {:<8}  {:>4} {:<5}  {title}",
            session.id,
            date(session.updated_at),
            session.messages,
            if session.messages == 1 {
                "message"
            } else {
                "messages"
            },
            session.calls,
            if session.calls == 1 { "call" } else { "calls" },
        );
        if all {
            let _ = write!(text, "  [{}]", session.project.display());
        }
        text.push('\n');
    }
    text
}

/// Local date and minute.
pub(super) fn date(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| "?".to_owned(),
        |time| {
            time.to_zoned(jiff::tz::TimeZone::system())
                .strftime("%Y-%m-%d %H:%M")
                .to_string()
        },
    )
}

fn parts(session: &SessionInfo, message: &StoredMessage) -> anyhow::Result<Vec<MessagePart>> {
    serde_json::from_str(&message.content).with_context(|| {
        format!(
            "message {} of session {} is damaged",
            message.seq, session.id
        )
    })
}

fn show(
    session: &SessionInfo,
    messages: &[StoredMessage],
    summaries: &[StoredSummary],
    spending: &Spending,
) -> anyhow::Result<String> {
    let mut text = format!(
        "session {}\ndirectory {}\nbegun {}, last used {}\n{}\n",
        session.id,
        session.project.display(),
        date(session.created_at),
        date(session.updated_at),
        spending.report(),
    );
    for message in messages {
        for summary in summaries.iter().filter(|it| it.last_seq + 1 == message.seq) {
            text.push_str(&told(summary));
        }
        for part in parts(session, message)? {
            match part {
                MessagePart::Text { text: words } => {
                    let _ = write!(text, "\n── {}\n{words}\n", message.role);
                }
                MessagePart::ToolUse(request) => {
                    let _ = write!(text, "\n── call {} {}\n", request.name, request.input);
                }
                MessagePart::ToolResult {
                    content, is_error, ..
                } => {
                    let kind = if is_error { "failure" } else { "result" };
                    let _ = write!(text, "\n── {kind}\n{content}\n");
                }
                MessagePart::Reasoning { text: words, .. } => {
                    let _ = write!(text, "\n── reasoning\n{words}\n");
                }
                MessagePart::Image { media_type, .. } => {
                    let _ = write!(text, "\n── image {media_type}\n");
                }
            }
        }
    }
    let end = messages.last().map_or(0, |message| message.seq);
    for summary in summaries.iter().filter(|it| it.last_seq >= end) {
        text.push_str(&told(summary));
    }
    Ok(text)
}

/// Formats a summary, which follows the last message that it replaces.
fn told(summary: &StoredSummary) -> String {
    format!(
        "\n── summary of {} of the messages {}-{} ({}, by {})\n{}\n",
        summary.messages,
        summary.first_seq,
        summary.last_seq,
        summary.compaction_method,
        summary.model,
        summary.content
    )
}

fn export(
    session: &SessionInfo,
    messages: &[StoredMessage],
    summaries: &[StoredSummary],
    spending: &[StoredSpending],
) -> anyhow::Result<Value> {
    let messages = messages
        .iter()
        .map(|message| {
            Ok(json!({
                "seq": message.seq,
                "role": message.role,
                "created_at": message.created_at,
                "parts": parts(session, message)?,
                "usage": message.usage,
            }))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(
        json!({ "session": session, "messages": messages, "summaries": summaries, "spending": spending }),
    )
}
