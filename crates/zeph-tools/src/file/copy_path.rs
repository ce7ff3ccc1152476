//! `copy_path`: copies a file, a link or a directory tree.

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
use crate::file::blocking;
use crate::file::copy_tree::{TreeCopier, into_itself, taken};
use crate::file::resolved_path::{Place, Target};
use crate::file::sandbox::Sandbox;
use crate::file::staleness::FileReadGuard;
use crate::file::undo_recorder::{Mark, Recorder};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// Parameters of `copy_path`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CopyPathParams {
    source: String,
    destination: String,
}

/// The tool `copy_path`.
pub(super) struct CopyPathTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

/// Alternative names of `source` and `destination`.
pub(super) const ENDS: &[(&str, &str)] = &[
    ("from", "source"),
    ("src", "source"),
    ("source_path", "source"),
    ("to", "destination"),
    ("dst", "destination"),
    ("destination_path", "destination"),
];

impl CopyPathTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<CopyPathParams>(
                "copy_path",
                "Copy a file or directory; not by bash.",
                Annotations {
                    destructive: false,
                    ..Annotations::MUTATE
                },
            )
            .with_param_aliases(ENDS)
            .about(ToolTarget::Paths(
                const {
                    &[
                        PathParam::read("source").itself().with_contents(),
                        PathParam::write("destination").itself(),
                    ]
                },
            )),
        }
    }
}

#[async_trait]
impl Tool for CopyPathTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: CopyPathParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let recorder = Recorder::new(&sandbox, call);
        let cancel = cx.cancel.clone();
        let ledger = FileReadGuard::of(call, &sandbox);
        blocking(move || copy(&sandbox, &recorder, &params, &cancel, &ledger)).await
    }
}

/// A free destination, and the record of its new parent directories.
pub(super) struct Destination {
    pub(super) target: Target,
    place: Place,
    parents: Mark,
}

impl Destination {
    /// Removes the new parent directories if the copy or the move failed.
    pub(super) fn remove_parents_on_error<T>(
        &self,
        result: Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        self.parents.remove_parents_on_error(&self.place, result)
    }
}

/// Resolves the destination `given` for a copy of `source`, and creates its parent directories.
///
/// # Errors
/// If the destination exists, or is inside `source`.
pub(super) fn destination(
    sandbox: &Sandbox,
    recorder: &Recorder,
    source: &Target,
    given: &str,
) -> Result<Destination, ToolError> {
    let place = sandbox.resolve_entry("destination", given)?;
    if place.is_root() || place.path() == source.path {
        return Err(taken(sandbox, place.path()));
    }
    if place.path().starts_with(&source.path) {
        return Err(into_itself());
    }
    if !place.is_free()? {
        return Err(taken(sandbox, place.path()));
    }
    let parents = recorder.parents(&place)?;
    let target = place
        .target_with_parents(sandbox)
        .and_then(|target| match target.stat()? {
            None => Ok(target),
            Some(_) => Err(taken(sandbox, place.path())),
        });
    Ok(Destination {
        target: parents.remove_parents_on_error(&place, target)?,
        place,
        parents,
    })
}

fn copy(
    sandbox: &Sandbox,
    recorder: &Recorder,
    params: &CopyPathParams,
    cancel: &CancellationToken,
    ledger: &FileReadGuard,
) -> Result<ToolOutput, ToolError> {
    let place = sandbox.resolve_entry("source", &params.source)?;
    if place.is_root() {
        return Err(ToolError::blocked(format!(
            "{} is a directory of the sandbox itself; it is not copied",
            place.path().display()
        )));
    }
    if sandbox.holds_reserved(place.path()) {
        return Err(ToolError::blocked(format!(
            "the database of Zeph is in {}; it is not copied",
            sandbox.shown(place.path())
        )));
    }
    sandbox.check_read(place.path())?;
    let source = place.target(sandbox)?;
    let Some((_, kind)) = source.stat()? else {
        return Err(place.missing(sandbox));
    };
    let destination = destination(sandbox, recorder, &source, &params.destination)?;
    let target = &destination.target;
    let mut copier = TreeCopier::new(sandbox, cancel, false);
    let mut mark = None;
    let copied = copier.copy(&source, target, &mut |made| {
        mark = Some(recorder.copy(made, &target.path, cancel)?);
        Ok(())
    });
    if let (Err(_), Some(mark)) = (&copied, &mark) {
        mark.withdraw();
    }
    destination.remove_parents_on_error(copied)?;
    ledger.carried(&source.path, &target.path, false);
    let (from, to) = (sandbox.shown(&source.path), sandbox.shown(&target.path));
    let mut said = match kind {
        FileType::Directory => {
            let entries = match copier.entries - 1 {
                1 => "1 entry".to_owned(),
                many => format!("{many} entries"),
            };
            format!(
                "Copied the directory {from} to {to} ({entries}, {} bytes).",
                copier.bytes
            )
        }
        FileType::Symlink => format!("Copied the link {from} to {to}, as a link."),
        _ => format!("Copied {from} to {to} ({} bytes).", copier.bytes),
    };
    if let Some(mark) = mark {
        mark.note(&mut said);
    }
    Ok(ToolOutput::text(said).at(&target.path, None))
}
