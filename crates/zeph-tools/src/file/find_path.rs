//! The `find_path` tool: finds files and directories by a glob.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::{AtFlags, FileType, statat};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::file::budget::{Budget, Stop};
use crate::file::cache_validation::{DependencyTracker, PermittedBy};
use crate::file::sandbox::Sandbox;
use crate::file::walk::{Entry, Visitor, walk};
use crate::file::{blocking, glob};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// The maximum number of paths in the result.
const MAX_PATHS: usize = 1000;

/// Parameters of `find_path`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindPathParams {
    path: String,
    pattern: String,
}

/// The tool `find_path`.
pub(super) struct FindPathTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
    time: Duration,
}

impl FindPathTool {
    /// Creates the tool. A search ends after `time` with a partial result.
    pub(super) fn new(sandbox: Arc<Sandbox>, time: Duration) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<FindPathParams>(
                "find_path",
                "Find paths by glob (**/*.rs); for contents grep.",
                Annotations::READ,
            )
            .with_cache(CachePolicy::CACHED)
            .with_aliases(&["glob"])
            .with_alias_defaults(&[("glob", "path", ".")])
            .with_param_aliases(&[("glob", "pattern"), ("directory", "path")])
            .about(ToolTarget::Paths(
                const { &[PathParam::read("path").with_contents()] },
            )),
            time,
        }
    }
}

#[async_trait]
impl Tool for FindPathTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: FindPathParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let budget = Budget::new(cx.cancel.clone(), self.time);
        let stamps = DependencyTracker::new(cx.may_be_kept);
        blocking(move || find(&sandbox, &params, &budget, stamps)).await
    }
}

/// A path that matches, in the order of the result.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    /// Seconds and nanoseconds of the last modification.
    changed: Reverse<(i64, i64)>,
    path: PathBuf,
    is_dir: bool,
}

/// The newest paths, and the number of all matches.
#[derive(Default)]
struct Kept {
    hits: BTreeSet<Hit>,
    total: usize,
}

struct Worker<'a> {
    glob: &'a GlobMatcher,
    /// The directory to which the pattern is relative; `None` for an absolute pattern.
    start: Option<&'a Path>,
    /// True if only directories match.
    dirs_only: bool,
    kept: &'a Mutex<Kept>,
    stamps: &'a DependencyTracker,
}

impl Visitor for Worker<'_> {
    fn enters(&mut self, _: &Path) -> bool {
        true
    }

    fn visit(&mut self, entry: &Entry<'_>) {
        let name = match self.start {
            Some(start) => entry.path.strip_prefix(start).unwrap_or(entry.path),
            None => entry.path,
        };
        if self.dirs_only && entry.kind != FileType::Directory || !self.glob.is_match(name) {
            return;
        }
        // An entry that does not exist any longer is not a result.
        let Ok(stat) = statat(entry.dir, entry.name, AtFlags::SYMLINK_NOFOLLOW) else {
            self.stamps.spoil();
            return;
        };
        // The result is sorted by modification time.
        self.stamps.entry(entry.path, &stat);
        let hit = Hit {
            changed: Reverse((
                stat.st_mtime,
                i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
            )),
            path: entry.path.to_owned(),
            is_dir: FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.total += 1;
        kept.hits.insert(hit);
        if kept.hits.len() > MAX_PATHS {
            kept.hits.pop_last();
        }
    }
}

fn find(
    sandbox: &Arc<Sandbox>,
    params: &FindPathParams,
    budget: &Budget,
    stamps: DependencyTracker,
) -> Result<ToolOutput, ToolError> {
    let pattern = params.pattern.trim_start_matches("./");
    if pattern.is_empty() {
        return Err(ToolError::invalid("`pattern` is empty"));
    }
    if Path::new(pattern)
        .components()
        .any(|part| part == std::path::Component::ParentDir)
    {
        return Err(ToolError::invalid(
            "`pattern` matches below `path`: set the directory in `path` instead of `..`",
        ));
    }
    glob::check("pattern", pattern)?;
    // As in ignore files, a pattern with a trailing slash matches only directories.
    let (pattern, dirs_only) = match pattern.strip_suffix('/') {
        Some(directory) if !directory.is_empty() => (directory, true),
        _ => (pattern, false),
    };
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| ToolError::invalid(format!("`pattern` is not a valid glob: {error}")))?
        .compile_matcher();
    let place = sandbox.resolve(&params.path)?;
    sandbox.check_search(place.path())?;
    let dir = place.open_dir(sandbox)?;
    let kept = Mutex::new(Kept::default());
    let start = (!pattern.starts_with('/')).then_some(place.path());
    let walked = walk(sandbox, dir, place.path(), budget, &stamps, || Worker {
        glob: &glob,
        start,
        dirs_only,
        kept: &kept,
        stamps: &stamps,
    });
    if walked.stopped == Some(Stop::Cancelled) {
        return Err(ToolError::cancelled());
    }
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut lines: Vec<String> = kept
        .hits
        .iter()
        .map(|hit| {
            let slash = if hit.is_dir { "/" } else { "" };
            format!("{}{slash}", sandbox.shown(&hit.path))
        })
        .collect();
    if lines.is_empty() {
        let hint = if pattern.contains('/') {
            ""
        } else {
            " `*` does not match `/`: `**/` at the start matches every directory below."
        };
        lines.push(format!("No paths match.{hint}{}", walked.left_out()));
    }
    if kept.total > kept.hits.len() {
        lines.push(format!(
            "(the newest {} of {} paths; narrow the pattern)",
            kept.hits.len(),
            kept.total
        ));
    }
    if walked.stopped.is_some() {
        lines.push("(partial: the time limit was reached; narrow `path`)".to_owned());
    }
    let basis = stamps.basis(sandbox, &params.path, place.path(), PermittedBy::Search);
    Ok(ToolOutput::text(lines.join("\n")).with_cache_validity(basis))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves FILE-15a in part.
    #[tokio::test]
    async fn expired_search_is_reported_as_partial() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("f"), "x").expect("a file");
        let sandbox = Arc::new(Sandbox::new(&[], dir.path()).expect("a sandbox"));
        let tool = FindPathTool::new(sandbox, Duration::ZERO);
        let call = ToolCall::new(
            "1",
            "find_path",
            json!({"path": ".", "pattern": "*"}),
            "test",
        );
        let output = tool
            .run(&call, &CallContext::headless())
            .await
            .expect("a result");
        assert!(
            output
                .summary
                .contains("(partial: the time limit was reached"),
            "{}",
            output.summary
        );
    }
}
