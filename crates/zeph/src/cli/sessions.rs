//! `zeph sessions …`: lists, shows, exports and removes stored conversations.

use std::fmt::Write as _;

use clap::Subcommand;
use zeph_core::Spending;
use zeph_llm::MessagePart;
use zeph_memory::{SessionInfo, StoredSummary};

use super::args::GlobalArgs;
use super::session_search::search;
use super::{Exit, load_config, print, print_as_is};
use crate::assemble::open_store;
use crate::export::{ExportFormat, StoredConversation, parts};
use crate::output::local_time::date;
use crate::output::redact::redacted;
use crate::output::{for_terminal, stored_json};

/// How many sessions `list` shows.
const LISTED: u32 = 100;

/// `zeph sessions …`
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions of this directory, the latest first
    List {
        /// Include the sessions of all directories and sessions without messages
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a conversation for reading
    Show {
        /// ID of the session, or a unique prefix of it
        id: String,
    },
    /// Search prompts, responses and titles; a match contains all words
    Search {
        /// Words to search for
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// Search the sessions of all directories
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Export a conversation as JSON, Markdown or HTML
    Export {
        /// ID of the session, or a unique prefix of it
        id: String,
        /// Format of the export
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ExportFormat::Json)]
        format: ExportFormat,
    },
    /// Remove conversations; their audit entries remain
    Rm {
        /// IDs of the sessions, or unique prefixes of them
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: SessionsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let store = open_store(&loaded).await?;
    match command {
        SessionsCommand::List { all, json } => {
            let sessions = match all {
                true => store.list_sessions(None, LISTED).await?,
                false => store.list_conversations(Some(&env.cwd), LISTED).await?,
            };
            match json {
                true => print_as_is(&stored_json(&sessions)?)?,
                false => print(&redacted(&list(&sessions, all)))?,
            }
        }
        SessionsCommand::Show { id } => {
            let session = store.find_session(&id).await?;
            let conversation = StoredConversation::read(&store, &session.id).await?;
            print(&redacted(&show(&conversation)?))?;
        }
        SessionsCommand::Search { words, all, json } => {
            let project = (!all).then_some(env.cwd.as_path());
            search(&store, &words.join(" "), project, json).await?;
        }
        SessionsCommand::Export { id, format } => {
            let session = store.find_session(&id).await?;
            let conversation = StoredConversation::read(&store, &session.id).await?;
            let text = conversation.render(format)?;
            match format {
                ExportFormat::Json => print_as_is(&for_terminal(text))?,
                ExportFormat::Markdown | ExportFormat::Html => print(&text)?,
            }
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

fn show(conversation: &StoredConversation) -> anyhow::Result<String> {
    let StoredConversation {
        session,
        messages,
        summaries,
        spending,
    } = conversation;
    let spending = Spending::of_stored(spending.clone());
    let mut text = format!(
        "session {}\ndirectory {}\nstarted {}, last used {}\n{}\n",
        session.id,
        session.project.display(),
        date(session.created_at),
        date(session.updated_at),
        spending.report(),
    );
    let mut is_rewound = false;
    for message in messages {
        for summary in summaries.iter().filter(|it| it.last_seq + 1 == message.seq) {
            text.push_str(&told(summary));
        }
        if message.rewound && !is_rewound {
            text.push_str("\n── rewound: the following is no longer part of the conversation\n");
        } else if !message.rewound && is_rewound {
            text.push_str("\n── the conversation continues\n");
        }
        is_rewound = message.rewound;
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
