//! `zeph sessions search`: finds sessions by words of their conversations.

use std::fmt::Write as _;
use std::path::Path;

use zeph_memory::{SessionMatch, Store};

use super::{print, print_as_is};
use crate::output::local_time::date;
use crate::output::redact::redacted;
use crate::output::stored_json;

/// Sessions that a search shows.
const MAX_SHOWN: usize = 50;

/// Prints the sessions of `project`, or of all, with a message or a title that contains all words.
pub(super) async fn search(
    store: &Store,
    words: &str,
    project: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let found = store.search_sessions(words, project, MAX_SHOWN).await?;
    match json {
        true => print_as_is(&stored_json(&found)?),
        false => print(&redacted(&lines(&found, project.is_none()))),
    }
}

/// Two lines for each session: its id, date and title, then the matching line.
fn lines(found: &[SessionMatch], all: bool) -> String {
    if found.is_empty() {
        let wider = if all {
            ""
        } else {
            "; --all searches those of all directories"
        };
        return format!("no session contains all of these words{wider}");
    }
    let mut text = String::new();
    for one in found {
        let session = &one.session;
        let title = session.title.as_deref().unwrap_or("(no title)");
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "{}  {}  {title}",
            session.id,
            date(session.updated_at)
        );
        if all {
            let _ = write!(text, "  [{}]", session.project.display());
        }
        let place = match (&one.role, one.seq) {
            (Some(role), Some(seq)) => format!("{role}, message {seq}"),
            _ => "title".to_owned(),
        };
        let _ = writeln!(text, "\n    {place}: {}", one.line);
    }
    text
}
