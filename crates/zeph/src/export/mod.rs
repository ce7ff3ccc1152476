//! A stored conversation as a file: JSON, Markdown or HTML.
//!
//! JSON holds everything that the store has. Markdown and HTML show the conversation as the user knows it: without
//! messages that were rewound. No format contains the value of a secret.

mod document;
mod html;
mod markdown;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use zeph_memory::{SessionInfo, Store, StoredMessage, StoredSpending, StoredSummary};

use crate::output::redact::secrets;
use document::Document;
pub(crate) use document::parts;

/// The characters of a session's id in the name of a file.
const ID_CHARS: usize = 8;

/// The format of an exported conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExportFormat {
    /// All stored data.
    #[default]
    Json,
    /// Text for reading.
    Markdown,
    /// One page without scripts and without other files.
    Html,
}

impl ExportFormat {
    /// The format of a file by its extension.
    fn of_file(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "json" => Some(Self::Json),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

/// Everything that the store has of a conversation.
pub(crate) struct StoredConversation {
    pub(crate) session: SessionInfo,
    pub(crate) messages: Vec<StoredMessage>,
    pub(crate) summaries: Vec<StoredSummary>,
    pub(crate) spending: Vec<StoredSpending>,
}

impl StoredConversation {
    /// Reads the conversation of the session with this id.
    ///
    /// # Errors
    /// An unknown session, or a failure of the database.
    pub(crate) async fn read(store: &Store, id: &str) -> anyhow::Result<Self> {
        Ok(Self {
            session: store.session(id).await?,
            messages: store.all_messages(id).await?,
            summaries: store.all_summaries(id).await?,
            spending: store.spending(id).await?,
        })
    }

    /// The conversation in this format, without the values of secrets.
    ///
    /// # Errors
    /// A damaged message.
    pub(crate) fn render(&self, format: ExportFormat) -> anyhow::Result<String> {
        Ok(match format {
            ExportFormat::Json => {
                let mut value = self.json()?;
                secrets().redact_json(&mut value);
                let mut text = serde_json::to_string_pretty(&value)?;
                text.push('\n');
                text
            }
            ExportFormat::Markdown => markdown::render(&Document::new(self)?),
            ExportFormat::Html => html::render(&Document::new(self)?),
        })
    }

    /// The stored data, with secrets.
    fn json(&self) -> anyhow::Result<Value> {
        let message = |message: &StoredMessage| {
            let mut value = json!({
                "seq": message.seq,
                "role": message.role,
                "created_at": message.created_at,
                "parts": document::parts(&self.session, message)?,
                "usage": message.usage,
            });
            if message.rewound {
                value["rewound"] = true.into();
            }
            anyhow::Ok(value)
        };
        let messages = self.messages.iter().map(message);
        let messages = messages.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(json!({
            "session": self.session,
            "messages": messages,
            "summaries": self.summaries,
            "spending": self.spending,
        }))
    }
}

/// Writes the conversation of a session to a new file that only the user can read, and returns its path. The extension
/// of `file` selects the format. A relative path begins at `cwd`.
///
/// # Errors
/// An extension without a format, an existing file, or a failure to read or write.
pub(crate) async fn to_file(
    store: &Store,
    session: &str,
    file: Option<&str>,
    cwd: &Path,
) -> anyhow::Result<PathBuf> {
    let path = match file {
        Some(file) => cwd.join(file),
        None => {
            let id: String = session.chars().take(ID_CHARS).collect();
            cwd.join(format!("zeph-{id}.md"))
        }
    };
    let Some(format) = ExportFormat::of_file(&path) else {
        bail!(
            "{}: the extension selects the format: use .md, .html or .json",
            path.display()
        );
    };
    let conversation = StoredConversation::read(store, session).await?;
    if conversation.messages.is_empty() {
        bail!("there is nothing to export yet");
    }
    let text = conversation.render(format)?;
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut opened = opened.with_context(|| {
        format!(
            "{} cannot be created; choose another file, an existing one is not replaced",
            path.display()
        )
    })?;
    let written = opened.write_all(text.as_bytes());
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-6.
    #[test]
    fn extension_selects_the_format() {
        let check = |name: &str, expect| assert_eq!(ExportFormat::of_file(Path::new(name)), expect);
        check("a.json", Some(ExportFormat::Json));
        check("a.md", Some(ExportFormat::Markdown));
        check("a.b.Markdown", Some(ExportFormat::Markdown));
        check("/x/a.HTML", Some(ExportFormat::Html));
        check("a.htm", Some(ExportFormat::Html));
        check("a", None);
        check("a.txt", None);
        check(".md", None);
    }
}
