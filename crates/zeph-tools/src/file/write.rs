//! The `write` tool: creates or replaces a file.

use std::io::{self, Read};
use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::Stat;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, ToolDef};
use crate::error::ToolError;
use crate::file::edit::{decoded, marked};
use crate::file::editor::{EditorFile, disk_content};
use crate::file::resolved_path::Target;
use crate::file::sandbox::Sandbox;
use crate::file::staleness::{FileReadGuard, Standing, WRITE_AGAIN};
use crate::file::undo_recorder::Recorder;
use crate::file::{atomic, blocking, change, locks, syntax_note};
use crate::gate::{PathParam, ToolTarget};
use crate::output::{FileChange, ToolOutput};
use crate::secrets::{added_mark, marks};
use crate::tool_set::Tool;

/// The size of the old content in bytes from which it is not compared.
const LARGE: i64 = 1 << 20;
/// Bytes of a large old content that are searched for masks of secrets.
const MAX_COMPARED_BYTES: u64 = 64 << 20;
/// Lines of a new file that are shown.
const SHOWN: usize = 3;

/// Parameters of `write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteParams {
    path: String,
    content: String,
}

/// The tool `write`.
pub(super) struct WriteTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

impl WriteTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<WriteParams>(
                "write",
                "Create or overwrite a file. To change a part use edit.",
                Annotations {
                    idempotent: true,
                    ..Annotations::MUTATE
                },
            )
            .with_aliases(&["write_file"])
            .with_param_aliases(&[
                ("file_path", "path"),
                ("filename", "path"),
                ("text", "content"),
                ("contents", "content"),
            ])
            .about(ToolTarget::Paths(const { &[PathParam::write("path")] }))
            .with_content_params(&["content"]),
        }
    }
}

#[async_trait]
impl Tool for WriteTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: WriteParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let recorder = Recorder::new(&sandbox, call);
        let cancel = cx.cancel.clone();
        let ledger = FileReadGuard::of(call, &sandbox).agreed(cx.shown);
        blocking(move || write(&sandbox, &recorder, &params, &cancel, &ledger)).await
    }
}

fn write(
    sandbox: &Sandbox,
    recorder: &Recorder,
    params: &WriteParams,
    cancel: &CancellationToken,
    ledger: &FileReadGuard,
) -> Result<ToolOutput, ToolError> {
    let place = sandbox.resolve(&params.path)?;
    if params.path.ends_with('/') {
        return Err(ToolError::invalid(
            "`path` ends with `/`: a directory cannot be written; name a file",
        ));
    }
    let _guard = sandbox.locks().hold(place.path());
    if cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    let parents = recorder.parents(&place)?;
    let written = place.target_with_parents(sandbox).and_then(|target| {
        loop {
            match put(sandbox, recorder, &target, &params.content, cancel, ledger) {
                // Another process created the file, so the next attempt replaces it.
                Err(ToolError::Io { source, .. })
                    if source.kind() == io::ErrorKind::AlreadyExists && !cancel.is_cancelled() => {}
                done => return done,
            }
        }
    });
    parents.remove_parents_on_error(&place, written)
}

/// Writes `content` to `target`, which may exist.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the file was created concurrently.
fn put(
    sandbox: &Sandbox,
    recorder: &Recorder,
    target: &Target,
    content: &str,
    cancel: &CancellationToken,
    ledger: &FileReadGuard,
) -> Result<ToolOutput, ToolError> {
    let _held = locks::hold_file(target, cancel)?;
    let existing = target.existing()?;
    if existing.is_some() {
        // The result reveals a part of the old content, and the content is replaced.
        sandbox.check_read(&target.path)?;
    }
    let editor = EditorFile::new(sandbox, &target.path, cancel);
    let (is_in_editor, unsaved) = text_in_editor(sandbox, &editor, target, existing.is_some())?;
    let is_unsaved = unsaved.is_some();
    let old = match &existing {
        Some(_) if is_unsaved => unsaved,
        Some(stat) => old_content(target, stat)?,
        None => Some(Vec::new()),
    };
    if let Some(stat) = &existing {
        let standing = Standing {
            target,
            stat: (!is_unsaved).then_some(stat),
            content: old.as_deref(),
        };
        ledger.check(sandbox, &standing, WRITE_AGAIN, cancel)?;
    }
    ledger.check_agreed(
        existing.is_some().then_some(old.as_deref()),
        &sandbox.shown(&target.path),
    )?;
    let new = content.as_bytes();
    check_marks(sandbox, target, old.as_deref(), content)?;
    let mark = match &existing {
        None => recorder.new_file(&target.path, new)?,
        Some(stat) => {
            let large = match &old {
                None if recorder.wants(stat) => read(target, recorder.max_bytes())?,
                _ => None,
            };
            let whole = old.as_deref().or(large.as_deref());
            recorder.content(&target.path, (stat, whole), new)?
        }
    };
    let _new = match is_in_editor {
        true => editor.write(Some(&mark), new).map(|()| None)?,
        false => mark.made(atomic::replace(target, new, existing.as_ref(), cancel).map(Some))?,
    };
    ledger.left(&target.path, new);

    let shown = sandbox.shown(&target.path);
    let size = match content.lines().count() {
        1 => format!("1 line, {} bytes", new.len()),
        lines => format!("{lines} lines, {} bytes", new.len()),
    };
    let (said, changed) = match (&existing, &old) {
        (None, _) => (format!("Created {shown} ({size})."), Some((1, SHOWN))),
        (Some(_), Some(old)) => match zeph_edit::changed_lines(old, new) {
            Some(changed) => (format!("Overwrote {shown} ({size})."), Some(changed)),
            None => (format!("{shown} had this content already ({size})."), None),
        },
        (Some(stat), None) => (
            format!("Overwrote {shown} ({size}; it had {} bytes).", stat.st_size),
            None,
        ),
    };
    let syntax = match &old {
        Some(old) => syntax_note(&target.path, existing.map(|_| old.as_slice()), new),
        None => String::new(),
    };
    let mut summary = match changed {
        Some(changed) if !new.is_empty() => {
            format!("{said}\n{}{syntax}", change::numbered(new, &[changed]))
        }
        _ => said,
    };
    mark.note(&mut summary);
    let display = match (&old, &existing) {
        (Some(old), _) => change::display(&shown, old, new) + &syntax,
        (None, Some(stat)) => format!(
            "{shown}: {} bytes before, {} bytes now; too long to show a diff",
            stat.st_size,
            new.len()
        ),
        (None, None) => String::new(),
    };
    let line = changed.and_then(|(first, _)| u32::try_from(first).ok());
    let change = match (&existing, &old) {
        (Some(_), None) => None,
        (None, _) => FileChange::new(&target.path, None, new),
        (Some(_), Some(old)) => FileChange::new(&target.path, Some(&decoded(old)), new),
    };
    let output = ToolOutput::text(summary)
        .at(&target.path, line)
        .changing(change);
    Ok(if display.is_empty() {
        output
    } else {
        output.with_display(display)
    })
}

/// Whether the editor writes the file at `target`, and its text there, if it is the one to change.
fn text_in_editor(
    sandbox: &Sandbox,
    editor: &EditorFile<'_>,
    target: &Target,
    exists: bool,
) -> Result<(bool, Option<Vec<u8>>), ToolError> {
    if sandbox.editor().writer.is_none() {
        return Ok((false, None));
    }
    if !exists {
        // The text of a denied file is not read. Without it, nothing is replaced in the editor.
        if sandbox.check_read(&target.path).is_err() {
            return Ok((false, None));
        }
        editor.refuse_unsaved()?;
        return Ok((editor.is_written(None), None));
    }
    match disk_content(target)? {
        Some(disk) => Ok((
            editor.is_written(Some(&disk)),
            editor.text_to_change(&disk)?,
        )),
        None => Ok((false, None)),
    }
}

/// Rejects a text with the mask of a secret value in the file: the value would be lost.
fn check_marks(
    sandbox: &Sandbox,
    target: &Target,
    old: Option<&[u8]>,
    new: &str,
) -> Result<(), ToolError> {
    if marks(new).next().is_none() {
        return Ok(());
    }
    let large = match old {
        None => read(target, MAX_COMPARED_BYTES)?,
        Some(_) => None,
    };
    let old = String::from_utf8_lossy(old.or(large.as_deref()).unwrap_or_default());
    match added_mark(&old, new) {
        Some(mark) => Err(marked(&sandbox.shown(&target.path), "content", mark)),
        None => Ok(()),
    }
}

/// The old content; `None` if it is too long to be compared, or is not readable.
fn old_content(target: &Target, stat: &Stat) -> Result<Option<Vec<u8>>, ToolError> {
    if stat.st_size > LARGE {
        return Ok(None);
    }
    read(target, LARGE.unsigned_abs() + 1)
}

/// Reads up to `most` bytes of the content; `None` if it is not readable.
fn read(target: &Target, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
    let (file, _) = match target.open() {
        Ok(opened) => opened,
        Err(ToolError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut old = Vec::new();
    file.take(most)
        .read_to_end(&mut old)
        .map_err(|error| ToolError::io("read", &target.path, error))?;
    Ok(Some(old))
}
