//! The `create_directory` tool: creates a directory and its parents.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, ToolDef};
use crate::error::ToolError;
use crate::file::blocking;
use crate::file::resolved_path::Place;
use crate::file::sandbox::Sandbox;
use crate::file::undo_recorder::Recorder;
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// Parameters of `create_directory`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateDirectoryParams {
    path: String,
}

/// The tool `create_directory`.
pub(super) struct CreateDirectoryTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

impl CreateDirectoryTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<CreateDirectoryParams>(
                "create_directory",
                "Create an empty directory; write makes parents itself.",
                Annotations {
                    destructive: false,
                    idempotent: true,
                    ..Annotations::MUTATE
                },
            )
            .with_aliases(&["mkdir"])
            .with_param_aliases(&[("directory", "path"), ("dir", "path")])
            .about(ToolTarget::Paths(const { &[PathParam::write("path")] })),
        }
    }
}

#[async_trait]
impl Tool for CreateDirectoryTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: CreateDirectoryParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let recorder = Recorder::new(&sandbox, call);
        let cancel = cx.cancel.clone();
        blocking(move || {
            let place = sandbox.resolve(&params.path)?;
            if cancel.is_cancelled() {
                return Err(ToolError::cancelled());
            }
            let made = make(&sandbox, &place, &recorder)?;
            let shown = sandbox.shown(place.path());
            let said = if made {
                format!("Created the directory {shown}.")
            } else {
                format!("The directory {shown} exists already.")
            };
            Ok(ToolOutput::text(said).at(place.path(), None))
        })
        .await
    }
}

/// Creates the directory at `place` with an undo record. Returns `false` if it exists.
fn make(sandbox: &Sandbox, place: &Place, recorder: &Recorder) -> Result<bool, ToolError> {
    if !place.is_free()? {
        return place.make_dir(sandbox);
    }
    let parents = recorder.parents(place)?;
    let made = recorder.directory(place.path()).and_then(|mark| {
        let made = mark.made(place.make_dir(sandbox))?;
        if !made {
            // Another program created it first.
            mark.withdraw();
        }
        Ok(made)
    });
    parents.remove_parents_on_error(place, made)
}
