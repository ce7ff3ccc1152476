//! The `get_file_tree` tool: the paths of a tree as a JSON array.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::file::blocking;
use crate::file::budget::{Budget, Stop};
use crate::file::cache_validation::{DependencyTracker, PermittedBy};
use crate::file::sandbox::{Sandbox, printable};
use crate::file::walk::{Entry, Visitor, walk};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// The maximum number of paths in the result.
const MAX_PATHS: usize = 1000;

/// Parameters of `get_file_tree`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetFileTreeParams {
    path: Option<String>,
    #[schemars(range(min = 1))]
    depth: Option<usize>,
}

/// The tool `get_file_tree`.
pub(super) struct GetFileTreeTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
    time: Duration,
}

impl GetFileTreeTool {
    /// Creates the tool. A walk ends after `time` with a partial result.
    pub(super) fn new(sandbox: Arc<Sandbox>, time: Duration) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<GetFileTreeParams>(
                "get_file_tree",
                "Paths below a directory, for an overview of a project.",
                Annotations::READ,
            )
            .with_cache(CachePolicy::CACHED)
            .with_param_aliases(&[("directory", "path"), ("max_depth", "depth")])
            .about(ToolTarget::Paths(
                const { &[PathParam::read("path").or(".").with_contents()] },
            )),
            time,
        }
    }
}

#[async_trait]
impl Tool for GetFileTreeTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: GetFileTreeParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let budget = Budget::new(cx.cancel.clone(), self.time);
        let stamps = DependencyTracker::new(cx.may_be_kept);
        blocking(move || tree(&sandbox, &params, &budget, stamps)).await
    }
}

/// The paths that are nearest to the top with their depth, and the number of all paths.
#[derive(Default)]
struct Kept {
    paths: BTreeSet<(usize, String)>,
    total: usize,
}

struct Worker<'a> {
    start: &'a Path,
    depth: usize,
    kept: &'a Mutex<Kept>,
}

impl Worker<'_> {
    /// The path relative to the start, and its number of components.
    fn below<'p>(&self, path: &'p Path) -> (&'p Path, usize) {
        let below = path.strip_prefix(self.start).unwrap_or(path);
        (below, below.components().count())
    }
}

impl Visitor for Worker<'_> {
    fn enters(&mut self, path: &Path) -> bool {
        self.below(path).1 < self.depth
    }

    fn visit(&mut self, entry: &Entry<'_>) {
        let (path, depth) = self.below(entry.path);
        let slash = if entry.kind == FileType::Directory {
            "/"
        } else {
            ""
        };
        let path = format!("{}{slash}", printable(path));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.total += 1;
        kept.paths.insert((depth, path));
        if kept.paths.len() > MAX_PATHS {
            kept.paths.pop_last();
        }
    }
}

fn tree(
    sandbox: &Arc<Sandbox>,
    params: &GetFileTreeParams,
    budget: &Budget,
    stamps: DependencyTracker,
) -> Result<ToolOutput, ToolError> {
    let depth = params.depth.unwrap_or(usize::MAX);
    if depth == 0 {
        return Err(ToolError::invalid("`depth` begins at 1"));
    }
    let given = params.path.as_deref().unwrap_or(".");
    let place = sandbox.resolve(given)?;
    sandbox.check_search(place.path())?;
    let dir = place.open_dir(sandbox)?;
    let kept = Mutex::new(Kept::default());
    let walked = walk(sandbox, dir, place.path(), budget, &stamps, || Worker {
        start: place.path(),
        depth,
        kept: &kept,
    });
    if walked.stopped == Some(Stop::Cancelled) {
        return Err(ToolError::cancelled());
    }
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let shown = kept.paths.len();
    let mut paths: Vec<String> = kept.paths.into_iter().map(|(_, path)| path).collect();
    paths.sort();
    let mut text = serde_json::to_string(&paths).map_err(|error| {
        ToolError::permanent(format!(
            "the paths cannot be written as JSON: \
            {error}"
        ))
    })?;
    if kept.total > shown {
        text.push_str(&format!(
            "\n(the {shown} topmost of {} paths; narrow `path` or set `depth`)",
            kept.total
        ));
    }
    if paths.is_empty() {
        let left_out = walked.left_out();
        if !left_out.is_empty() {
            text.push_str(&format!("\n({})", left_out.trim()));
        }
    }
    if walked.stopped.is_some() {
        text.push_str("\n(partial: the time limit was reached; narrow `path` or set `depth`)");
    }
    let basis = stamps.basis(sandbox, given, place.path(), PermittedBy::Search);
    Ok(ToolOutput::text(text)
        .at(place.path(), None)
        .with_cache_validity(basis))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves FILE-15a in part.
    #[tokio::test]
    async fn expired_walk_is_reported_as_partial() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("f"), "x").expect("a file");
        let sandbox = Arc::new(Sandbox::new(&[], dir.path()).expect("a sandbox"));
        let tool = GetFileTreeTool::new(sandbox, Duration::ZERO);
        let call = ToolCall::new("1", "get_file_tree", json!({}), "test");
        let cx = CallContext::headless();
        let output = tool.run(&call, &cx).await.expect("a result");
        assert!(
            output
                .summary
                .contains("(partial: the time limit was reached"),
            "{}",
            output.summary
        );
    }
}
