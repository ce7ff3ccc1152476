//! The `delete_path` tool: deletes a file, a link or a directory tree.

use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, ToolDef};
use crate::error::ToolError;
use crate::file::resolved_path::{Place, Target};
use crate::file::sandbox::Sandbox;
use crate::file::staleness::FileReadGuard;
use crate::file::tree_walk::{self, Node};
use crate::file::undo_recorder::Recorder;
use crate::file::{blocking, locks};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// Parameters of `delete_path`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeletePathParams {
    path: String,
}

/// The tool `delete_path`.
pub(super) struct DeletePathTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

impl DeletePathTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<DeletePathParams>(
                "delete_path",
                "Delete a file or directory; not by bash: this can be undone.",
                Annotations {
                    idempotent: true,
                    ..Annotations::MUTATE
                },
            )
            .with_param_aliases(&[("file_path", "path"), ("directory", "path")])
            .about(ToolTarget::Paths(
                const { &[PathParam::write("path").itself().with_contents()] },
            )),
        }
    }
}

#[async_trait]
impl Tool for DeletePathTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: DeletePathParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let recorder = Recorder::new(&sandbox, call);
        let cancel = cx.cancel.clone();
        let ledger = FileReadGuard::of(call, &sandbox);
        blocking(move || delete(&sandbox, &recorder, &params, &cancel, &ledger)).await
    }
}

/// The entry at `place`, if it may be moved or deleted.
///
/// It must not be an allowed directory, and must not contain the working directory or the program's own files.
///
/// # Errors
/// [`ToolError::PolicyBlocked`] otherwise, with `verb` in its message; [`ToolError::Missing`].
pub(super) fn movable(sandbox: &Sandbox, place: &Place, verb: &str) -> Result<Target, ToolError> {
    let shown = || sandbox.shown(place.path());
    if place.is_root() {
        return Err(ToolError::blocked(format!(
            "{} is a directory of the sandbox itself; it is not {verb}",
            place.path().display()
        )));
    }
    if sandbox.cwd().starts_with(place.path()) {
        return Err(ToolError::blocked(format!(
            "the working directory is in {}; it is not {verb}",
            place.path().display()
        )));
    }
    if sandbox.holds_reserved(place.path()) {
        return Err(ToolError::blocked(format!(
            "the database of Zeph is in {}; it is not {verb}",
            shown()
        )));
    }
    let target = place.target(sandbox)?;
    match target.stat()? {
        None => Err(place.missing(sandbox)),
        Some((_, FileType::Directory)) if is_repository(target.path.as_path()) => {
            Err(ToolError::blocked(format!(
                "{} is a part of a git repository; it is not {verb}",
                shown()
            )))
        }
        Some(_) => Ok(target),
    }
}

/// Returns true if `path` is a `.git` directory or is inside one.
fn is_repository(path: &std::path::Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// Refuses `.git` directories.
fn no_repository(node: &Node<'_>) -> Result<(), ToolError> {
    if node.kind == FileType::Directory && node.name == ".git" {
        return Err(ToolError::blocked(format!(
            "{} is a git repository; neither it nor a directory that contains it is deleted",
            node.path.display()
        )));
    }
    Ok(())
}

fn delete(
    sandbox: &Sandbox,
    recorder: &Recorder,
    params: &DeletePathParams,
    cancel: &CancellationToken,
    ledger: &FileReadGuard,
) -> Result<ToolOutput, ToolError> {
    let place = sandbox.resolve_entry("path", &params.path)?;
    let _guard = sandbox.locks().hold(place.path());
    let target = movable(sandbox, &place, "deleted")?;
    let shown = sandbox.shown(place.path());
    let Some((_, kind)) = target.stat()? else {
        return Err(place.missing(sandbox));
    };
    let _held = if kind == FileType::RegularFile {
        locks::hold_file(&target, cancel)?
    } else {
        None
    };
    tree_walk::scan(&target, cancel, &mut |node| no_repository(node))?;
    let mark = recorder.deletion(&target, cancel)?;
    let mut removed = 0;
    if let Err(error) = tree_walk::remove(&target, cancel, &mut removed, &no_repository) {
        return Err(if removed == 0 {
            mark.withdraw();
            error
        } else {
            ToolError::Failed {
                category: error.category(),
                message: format!("{error}; {removed} entries of {shown} were deleted before that"),
            }
        });
    }
    ledger.gone(&target.path);
    let mut said = match kind {
        FileType::Directory => {
            let entries = match removed.saturating_sub(1) {
                0 => "it was empty".to_owned(),
                1 => "with 1 entry".to_owned(),
                many => format!("with {many} entries"),
            };
            format!("Deleted the directory {shown} ({entries}).")
        }
        FileType::Symlink => format!("Deleted the link {shown}; the link target was not changed."),
        _ => format!("Deleted {shown}."),
    };
    mark.note(&mut said);
    Ok(ToolOutput::text(said).at(&target.path, None))
}
