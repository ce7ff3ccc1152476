//! `zeph memory …`: facts that outlive their session.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;
use clap::Subcommand;
use zeph_memory::{Memory, Store};
use zeph_tools::plural::counted_as;

use super::args::GlobalArgs;
use super::{Exit, load_config, print, print_as_is};
use crate::assemble::{open_other_store, open_store};
use crate::config::Loaded;
use crate::output::local_time::date;
use crate::output::redact::redacted;
use crate::output::sanitize::clean;
use crate::output::stored_json;

/// The default number of listed facts.
const LISTED: u64 = 100;

/// `zeph memory …`
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the facts, the latest first
    List {
        /// Maximum number of facts
        #[arg(long, value_name = "N", default_value_t = LISTED)]
        limit: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the facts, and print the best matches first
    Search {
        /// Words to search for
        #[arg(required = true)]
        words: Vec<String>,
        /// Maximum number of facts
        #[arg(long, value_name = "N", default_value_t = LISTED)]
        limit: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy sessions, facts, scheduled tasks and the audit trail to another store
    Copy {
        /// Target: a server, postgres://USER@HOST/DATABASE, or the path of a database file
        #[arg(long, value_name = "URL|FILE")]
        to: String,
    },
    /// Show and change the users that can read your rows of a shared store
    Access {
        /// Command
        #[command(subcommand)]
        command: AccessCommand,
    },
    /// Remove facts permanently
    Rm {
        /// IDs of the facts, such as memory_3
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// `zeph memory access …`
#[derive(Debug, Subcommand)]
pub(crate) enum AccessCommand {
    /// List the users with access
    List,
    /// Let a user read your sessions, facts, tasks and audit entries
    Grant {
        /// Role of the user on the server
        user: String,
    },
    /// End the access of a user
    Revoke {
        /// Role of the user on the server
        user: String,
    },
}

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: MemoryCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let store = open_store(&loaded).await?;
    let mut exit = Exit::Done;
    match command {
        MemoryCommand::Copy { to } => exit = copy(&loaded, &env.cwd, &store, &to).await?,
        MemoryCommand::Access { command } => access(&store, command).await?,
        MemoryCommand::List { limit, json } => {
            tell(
                &store.list_memories(limit).await?,
                json,
                "no facts are stored",
            )?;
        }
        MemoryCommand::Search { words, limit, json } => {
            let found = store.search_memory(&words.join(" "), limit).await?;
            tell(&found, json, "no stored fact matches these words")?;
        }
        MemoryCommand::Rm { ids } => {
            for id in ids {
                let Some(memory) = store.remove_memory(&id).await? else {
                    bail!("there is no fact {id}: `zeph memory list` shows all facts");
                };
                print(&redacted(&format!(
                    "removed {}: {}",
                    memory.id, memory.content
                )))?;
            }
        }
    }
    store.close().await?;
    Ok(exit)
}

/// Copies `from` into another store, and reports what differs.
async fn copy(loaded: &Loaded, cwd: &Path, from: &Store, to: &str) -> anyhow::Result<Exit> {
    let to = open_other_store(loaded, cwd, to).await?;
    if to.name() == from.name() {
        bail!(
            "{} is the source of the copy: name another store",
            to.name()
        );
    }
    let report = from.copy_into(&to).await?;
    let mut text = format!(
        "{} -> {}: {} copied, {} updated, {} already there; {}, {} and {} copied\n",
        from.name(),
        to.name(),
        counted_as(report.copied, "session", "sessions"),
        report.updated,
        report.present,
        counted_as(report.entries, "audit entry", "audit entries"),
        counted_as(report.facts, "fact", "facts"),
        counted_as(report.tasks, "scheduled task", "scheduled tasks"),
    );
    // Writing into a string cannot fail.
    if report.unchained > 0 {
        let entries = counted_as(report.unchained, "audit entry", "audit entries");
        let _ = writeln!(
            text,
            "note: {entries} from before the chain stay where they are"
        );
    }
    for id in &report.different {
        let _ = writeln!(
            text,
            "WRONG: the session {id} differs: another session has its ID there, its copy changed or is in use there, or it changed during the copy"
        );
    }
    for chain in &report.broken_chains {
        let _ = writeln!(text, "WRONG: the audit chain {chain} is not intact there");
    }
    print(&redacted(text.trim_end()))?;
    to.close().await?;
    Ok(match report.is_complete() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

async fn access(store: &Store, command: AccessCommand) -> anyhow::Result<()> {
    match command {
        AccessCommand::List => {
            let users = store.granted_access().await?;
            match users.is_empty() {
                true => print("no user has access"),
                false => print(&clean(&users.join("\n"))),
            }
        }
        AccessCommand::Grant { user } => {
            store.grant_access(&user).await?;
            print(&clean(&format!(
                "{user} can read your sessions, facts, tasks and audit entries"
            )))
        }
        AccessCommand::Revoke { user } => {
            if !store.revoke_access(&user).await? {
                bail!(
                    "{user} has no access: `zeph memory access list` shows the users with \
                    access"
                );
            }
            print(&clean(&format!("{user} no longer has access")))
        }
    }
}

fn tell(memories: &[Memory], json: bool, none: &str) -> anyhow::Result<()> {
    if json {
        return print_as_is(&stored_json(&memories)?);
    }
    if memories.is_empty() {
        return print(none);
    }
    let mut text = String::new();
    for memory in memories {
        let Memory { id, content, .. } = memory;
        let date = date(memory.saved_at);
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{id:<10}  {date}  {content}  [{}]", memory.project);
    }
    print(&redacted(&text))
}
