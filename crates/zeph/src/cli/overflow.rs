//! `zeph overflow …`: stored outputs that are too long for one message to the model.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use zeph_memory::{Store, StoreError};
use zeph_tools::overflow::{OverflowEntry, OverflowRef};

use super::args::GlobalArgs;
use super::{Exit, load_config, print};
use crate::assemble::open_store;
use crate::output::local_time::date;
use crate::output::sanitize::Sanitizer;
use crate::output::stderr_line;

/// How many outputs `list` shows.
const LISTED: u32 = 100;

/// `zeph overflow …`
#[derive(Debug, Subcommand)]
pub(crate) enum OverflowCommand {
    /// Print a stored output completely
    Get {
        /// Reference overflow:UUID from the result, or the UUID alone
        reference: OverflowRef,
        /// Session that must own the output (ID or unique prefix)
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// List stored outputs, latest first
    List {
        /// List only the outputs of this session (ID or unique prefix)
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
}

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: OverflowCommand) -> anyhow::Result<Exit> {
    let (loaded, _) = load_config(global)?;
    let store = open_store(&loaded).await?;
    match command {
        OverflowCommand::Get { reference, session } => {
            let session = full_id(&store, session).await?;
            let Some(entry) = store.overflow(session.as_deref(), reference).await? else {
                let place = session.map_or_else(String::new, |id| format!(" in session {id}"));
                bail!(
                    "there is no {reference}{place}: `zeph overflow list` shows all stored \
                    outputs"
                );
            };
            write_all(&store, &entry).await?;
            if let Some(cut) = entry.cut() {
                stderr_line(&format!("note: it was {cut}"));
            }
        }
        OverflowCommand::List { session } => {
            let session = full_id(&store, session).await?;
            let entries = store.list_overflow(session.as_deref(), LISTED).await?;
            print(&list(&entries))?;
        }
    }
    store.close().await?;
    Ok(Exit::Done)
}

/// The id of the session that is meant.
async fn full_id(store: &Store, session: Option<String>) -> Result<Option<String>, StoreError> {
    match session {
        None => Ok(None),
        Some(id) => Ok(Some(store.find_session(&id).await?.id)),
    }
}

/// Prints an output byte by byte; on a terminal, control sequences are removed.
async fn write_all(store: &Store, entry: &OverflowEntry) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    let mut sanitizer = out.is_terminal().then(Sanitizer::default);
    for number in 0..entry.blocks.len() {
        let block = store
            .overflow_block(&entry.conversation, entry.reference, number)
            .await?
            .context("it was removed during the read")?;
        let text = block.text()?;
        let text = match &mut sanitizer {
            None => text,
            Some(sanitizer) => {
                let mut clean = String::with_capacity(text.len());
                sanitizer.push(&text, &mut clean);
                clean
            }
        };
        out.write_all(text.as_bytes())
            .context("standard output cannot be written")?;
    }
    out.flush().context("standard output cannot be written")
}

fn list(entries: &[OverflowEntry]) -> String {
    if entries.is_empty() {
        return "nothing is stored".to_owned();
    }
    let mut text = String::new();
    for entry in entries {
        let cut = if entry.cut().is_some() { "  cut" } else { "" };
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{}  {}  {:>10} bytes  {:>8} lines  {}  session {}{cut}",
            entry.reference,
            date(entry.created_at),
            entry.bytes,
            entry.lines,
            entry.tool,
            entry.conversation,
        );
    }
    text
}

/// The hint for the user below a result that is printed in part, as head and tail.
pub(crate) fn hint(reference: OverflowRef, session: &str) -> String {
    format!("complete output: zeph overflow get {reference} (session {session})")
}
