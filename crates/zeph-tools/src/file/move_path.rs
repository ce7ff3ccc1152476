//! The `move_path` tool: moves or renames a file, a link or a directory tree.

use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::FileType;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, ToolDef};
use crate::error::ToolError;
use crate::file::copy_path::{ENDS, destination};
use crate::file::copy_tree::{TreeCopier, into_itself, rename_new, sync_dir, taken};
use crate::file::delete_path::movable;
use crate::file::resolved_path::Target;
use crate::file::sandbox::{Sandbox, printable};
use crate::file::staleness::FileReadGuard;
use crate::file::undo_recorder::{Mark, Recorder};
use crate::file::{blocking, locks, tree_walk};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// Parameters of `move_path`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MovePathParams {
    source: String,
    destination: String,
}

/// The tool `move_path`.
pub(super) struct MovePathTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

impl MovePathTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<MovePathParams>(
                "move_path",
                "Move or rename a file or directory; not by bash: this can be undone.",
                Annotations::MUTATE,
            )
            .with_aliases(&["rename_path"])
            .with_param_aliases(ENDS)
            .about(ToolTarget::Paths(
                const {
                    &[
                        PathParam::write("source")
                            .itself()
                            .with_contents()
                            .also_read(),
                        PathParam::write("destination").itself(),
                    ]
                },
            )),
        }
    }
}

#[async_trait]
impl Tool for MovePathTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: MovePathParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let recorder = Recorder::new(&sandbox, call);
        let cancel = cx.cancel.clone();
        let ledger = FileReadGuard::of(call, &sandbox);
        blocking(move || relocate(&sandbox, &recorder, &params, &cancel, &ledger)).await
    }
}

fn relocate(
    sandbox: &Sandbox,
    recorder: &Recorder,
    params: &MovePathParams,
    cancel: &CancellationToken,
    ledger: &FileReadGuard,
) -> Result<ToolOutput, ToolError> {
    let place = sandbox.resolve_entry("source", &params.source)?;
    // The lock orders the move and concurrent edits of the file.
    let _guard = sandbox.locks().hold(place.path());
    sandbox.check_read(place.path())?;
    let source = movable(sandbox, &place, "moved")?;
    if !sandbox.rules().is_empty() {
        // A rule may not apply to the new name.
        tree_walk::scan(&source, cancel, &mut |node| sandbox.check_read(node.path))?;
    }
    let destination = destination(sandbox, recorder, &source, &params.destination)?;
    let to = &destination.target;
    let moved = carry_recorded(sandbox, recorder, &source, to, cancel, ledger);
    let mark = destination.remove_parents_on_error(moved)?;
    let mut said = format!(
        "Moved {} to {}.",
        sandbox.shown(&source.path),
        sandbox.shown(&to.path)
    );
    mark.note(&mut said);
    Ok(ToolOutput::text(said).at(&to.path, None))
}

/// Moves the entry at `source` to `to` with an undo record.
fn carry_recorded(
    sandbox: &Sandbox,
    recorder: &Recorder,
    source: &Target,
    to: &Target,
    cancel: &CancellationToken,
    ledger: &FileReadGuard,
) -> Result<Mark, ToolError> {
    let _held = match source.stat()? {
        Some((_, FileType::RegularFile)) => locks::hold_file(source, cancel)?,
        _ => None,
    };
    if cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    let mark = recorder.renaming(source, &to.path, cancel)?;
    let carried = carry(sandbox, source, to, cancel);
    if carried.is_err() && matches!(to.stat(), Ok(None)) {
        mark.withdraw();
    }
    carried?;
    ledger.carried(&source.path, &to.path, true);
    Ok(mark)
}

/// Renames the entry at `source` to `to`, which must not exist.
///
/// # Errors
/// If `to` exists, or the file system reports an error.
pub(super) fn carry(
    sandbox: &Sandbox,
    source: &Target,
    to: &Target,
    cancel: &CancellationToken,
) -> Result<(), ToolError> {
    match rename_new((&source.dir, &source.name), (&to.dir, &to.name)) {
        Ok(()) => {
            sync_dir(&to.dir);
            sync_dir(&source.dir);
            Ok(())
        }
        Err(Errno::XDEV) => across(sandbox, source, to, cancel),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(taken(sandbox, &to.path)),
        Err(Errno::INVAL) => Err(into_itself()),
        Err(error) => Err(ToolError::io("move", &source.path, error.into())),
    }
}

/// Moves an entry to another file system.
///
/// The complete copy is synchronized to the disk before anything is deleted. An entry of the source that
/// changed after its copy is not deleted.
fn across(
    sandbox: &Sandbox,
    source: &Target,
    to: &Target,
    cancel: &CancellationToken,
) -> Result<(), ToolError> {
    let mut copier = TreeCopier::new(sandbox, cancel, true);
    copier.copy(source, to, &mut |_| Ok(()))?;
    clear(sandbox, source, to, &copier)
}

/// Deletes the entries of `source` that `copier` copied to `to`, if they did not change since.
fn clear(
    sandbox: &Sandbox,
    source: &Target,
    to: &Target,
    copier: &TreeCopier<'_>,
) -> Result<(), ToolError> {
    // The copy exists, so cancellation is ignored from here on.
    let go_on = CancellationToken::new();
    tree_walk::remove(source, &go_on, &mut 0, &|node| {
        if node.kind == FileType::Directory || copier.has(node.stat) {
            return Ok(());
        }
        Err(ToolError::permanent(format!(
            "{} was changed or created in the meantime",
            printable(node.path)
        )))
    })
    .map_err(|error| ToolError::Failed {
        category: error.category(),
        message: format!(
            "{} was copied completely to {}, but the source could not be deleted completely: \
             {error}; compare the two, then delete the rest of the source",
            sandbox.shown(&source.path),
            sandbox.shown(&to.path)
        ),
    })?;
    sync_dir(&source.dir);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn target(sandbox: &Sandbox, path: &str) -> Target {
        let place = sandbox.resolve_entry("path", path).expect("a path");
        place.target(sandbox).expect("a target")
    }

    /// Proves FILE-27 across file systems: whole, with mode and times.
    #[test]
    fn tree_is_copied_then_deleted() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        let sandbox = Sandbox::new(&[], root).expect("a sandbox");
        fs::create_dir_all(root.join("tree/.git/objects")).expect("directories");
        fs::write(root.join("tree/.git/objects/f"), "one").expect("a file");
        std::os::unix::fs::symlink("f", root.join("tree/.git/objects/link")).expect("a link");
        let mode = PermissionsExt::from_mode(0o4711);
        fs::set_permissions(root.join("tree/.git/objects/f"), mode).expect("a mode");
        let before = fs::metadata(root.join("tree/.git/objects/f")).expect("metadata");
        let (from, to) = (target(&sandbox, "tree"), target(&sandbox, "moved"));
        across(&sandbox, &from, &to, &CancellationToken::new()).expect("moved");
        assert!(!root.join("tree").exists());
        let after = fs::metadata(root.join("moved/.git/objects/f")).expect("metadata");
        assert_eq!(after.mode(), before.mode());
        assert_eq!(after.modified().ok(), before.modified().ok());
        let link = fs::read_link(root.join("moved/.git/objects/link")).expect("a link");
        assert_eq!(link.to_str(), Some("f"));
    }

    /// Proves FILE-27: entries that another program adds to the source during the move are not lost.
    #[test]
    fn source_changed_during_the_move_is_not_deleted() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        let sandbox = Sandbox::new(&[], root).expect("a sandbox");
        fs::create_dir(root.join("tree")).expect("a directory");
        fs::write(root.join("tree/a"), "old").expect("a file");
        let (from, to) = (target(&sandbox, "tree"), target(&sandbox, "moved"));
        let go_on = CancellationToken::new();
        let mut copier = TreeCopier::new(&sandbox, &go_on, true);
        copier.copy(&from, &to, &mut |_| Ok(())).expect("copied");
        fs::write(root.join("tree/a"), "newer").expect("a file");
        let error = clear(&sandbox, &from, &to, &copier).expect_err("changed");
        assert!(error.to_string().contains("tree/a was changed"), "{error}");
        fs::write(root.join("tree/b"), "new").expect("a file");
        fs::remove_file(root.join("tree/a")).expect("removed");
        clear(&sandbox, &from, &to, &copier).expect_err("created");
        assert_eq!(fs::read(root.join("tree/b")).expect("a file"), b"new");
        assert_eq!(fs::read(root.join("moved/a")).expect("a file"), b"old");
    }

    /// Proves FILE-27: a copy that fails leaves the source, and nothing at the destination.
    #[test]
    fn failed_move_loses_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        let sandbox = Sandbox::new(&[], root).expect("a sandbox");
        fs::create_dir(root.join("tree")).expect("a directory");
        fs::write(root.join("tree/a"), "old").expect("a file");
        let socket = std::os::unix::net::UnixListener::bind(root.join("tree/z"));
        let (from, to) = (target(&sandbox, "tree"), target(&sandbox, "moved"));
        let go_on = CancellationToken::new();
        across(&sandbox, &from, &to, &go_on).expect_err("a socket");
        drop(socket);
        fs::remove_file(root.join("tree/z")).expect("removed");
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        across(&sandbox, &from, &to, &cancelled).expect_err("cancelled");
        // The destination was created during the copy.
        fs::create_dir(root.join("moved")).expect("a directory");
        across(&sandbox, &from, &to, &go_on).expect_err("taken");
        fs::remove_dir(root.join("moved")).expect("still empty");
        assert_eq!(fs::read(root.join("tree/a")).expect("a file"), b"old");
        assert_eq!(fs::read_dir(root).expect("a directory").count(), 1);
    }
}
