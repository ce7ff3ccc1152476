//! Previews of `write` and `edit` calls: the diff in an approval question.

use std::io::Read as _;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_edit::{Replacement, unified_diff};

use crate::call::ToolCall;
use crate::error::ToolError;
use crate::file::blocking;
use crate::file::edit::decoded;
use crate::file::editor::EditorFile;
use crate::file::resolved_path::Found;
use crate::file::sandbox::Sandbox;
use crate::preview::{Preview, PreviewProvider, basis};

/// The size of a file in bytes from which no diff is computed.
const LARGE: u64 = 1 << 20;

/// Computes previews for the file tools of a sandbox.
pub struct FilePreviews {
    sandbox: Arc<Sandbox>,
}

impl FilePreviews {
    /// Creates previews for the tools of `sandbox`.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox }
    }
}

impl std::fmt::Debug for FilePreviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilePreviews").finish_non_exhaustive()
    }
}

#[async_trait]
impl PreviewProvider for FilePreviews {
    async fn preview(&self, call: &ToolCall) -> Option<Preview> {
        let text = |name: &str| call.params.get(name)?.as_str().map(str::to_owned);
        let all = call.params.get("replace_all").and_then(Value::as_bool);
        let change = match call.tool.as_str() {
            "write" => Change::Whole(text("content")?),
            "edit" => Change::Part {
                old: text("old_string")?,
                new: text("new_string")?,
                all: all.unwrap_or(false),
            },
            _ => return None,
        };
        let (sandbox, path) = (Arc::clone(&self.sandbox), text("path")?);
        // The call itself reports an error again.
        let made = blocking(move || preview(&sandbox, &path, &change)).await;
        made.ok().flatten()
    }
}

enum Change {
    Whole(String),
    Part { old: String, new: String, all: bool },
}

fn preview(sandbox: &Sandbox, path: &str, change: &Change) -> Result<Option<Preview>, ToolError> {
    let place = sandbox.resolve(path)?;
    sandbox.check_read(place.path())?;
    let old = match place.open(sandbox) {
        Ok(Found::File(file, _)) => {
            let mut old = Vec::new();
            file.take(LARGE + 1)
                .read_to_end(&mut old)
                .map_err(|error| ToolError::io("read", place.path(), error))?;
            if old.len() as u64 > LARGE {
                return Ok(None);
            }
            let go_on = CancellationToken::new();
            let editor = EditorFile::new(sandbox, place.path(), &go_on);
            Some(editor.text_to_change(&old)?.unwrap_or(old))
        }
        Ok(Found::Dir(_)) => return Ok(None),
        Err(error) if error.is_missing() => None,
        Err(error) => return Err(error),
    };
    let before = old.as_deref().unwrap_or_default();
    let after = match change {
        Change::Whole(content) => content.clone().into_bytes(),
        Change::Part { .. } if old.is_none() => return Ok(None),
        Change::Part { old, new, all } => {
            let all = *all;
            match zeph_edit::edit(before, Replacement { old, new, all }) {
                Ok(edited) => edited.bytes,
                Err(_) => return Ok(None),
            }
        }
    };
    let shown = sandbox.shown(place.path());
    let diff = unified_diff(&shown, &decoded(before), &decoded(&after));
    Ok(diff.map(|diff| Preview {
        diff,
        basis: basis(old.as_deref()),
    }))
}
