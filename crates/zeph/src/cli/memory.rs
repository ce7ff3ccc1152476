//! `zeph memory …`: facts that outlive their session.

use std::fmt::Write as _;

use anyhow::bail;
use clap::Subcommand;
use zeph_memory::{Memory, Store};

use super::args::GlobalArgs;
use super::{Exit, load_config, print, print_as_is};
use crate::output::local_time::date;
use crate::output::redact::redacted;
use crate::output::stored_json;

/// The default number of listed facts.
const LISTED: u64 = 100;

/// `zeph memory …`
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// The facts, the latest first
    List {
        /// So many at most
        #[arg(long, value_name = "N", default_value_t = LISTED)]
        limit: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Those that fit these words, the best first
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
        /// So many at most
        #[arg(long, value_name = "N", default_value_t = LISTED)]
        limit: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove facts for good
    Rm {
        /// Their ids, such as memory_3
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: MemoryCommand) -> anyhow::Result<Exit> {
    let (loaded, _) = load_config(global)?;
    let store = Store::open(&loaded.paths.database, loaded.config.memory.synchronous).await?;
    match command {
        MemoryCommand::List { limit, json } => {
            tell(&store.list_memories(limit).await?, json, "nothing is kept")?;
        }
        MemoryCommand::Search { words, limit, json } => {
            let found = store.search_memory(&words.join(" "), limit).await?;
            tell(&found, json, "nothing that is kept fits these words")?;
        }
        MemoryCommand::Rm { ids } => {
            for id in ids {
                let Some(memory) = store.remove_memory(&id).await? else {
                    bail!("there is no fact {id}: `zeph memory list` shows what there is");
                };
                print(&redacted(&format!(
                    "removed {}: {}",
                    memory.id, memory.content
                )))?;
            }
        }
    }
    store.close().await?;
    Ok(Exit::Done)
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
