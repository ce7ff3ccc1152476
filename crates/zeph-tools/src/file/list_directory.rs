//! The `list_directory` tool: lists the entries of a directory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{AtFlags, FileType, fstat, readlinkat, statat};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::file::blocking;
use crate::file::budget::{Budget, Stop};
use crate::file::cache_validation::{DependencyTracker, PermittedBy};
use crate::file::resolved_path::entries_with_types;
use crate::file::sandbox::{Sandbox, printable};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// The maximum number of listed entries.
const MAX_ENTRIES: usize = 1000;
/// The time limit for counting the remaining entries.
const TIME: Duration = Duration::from_secs(10);

/// Parameters of `list_directory`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListDirectoryParams {
    path: String,
}

/// The tool `list_directory`.
pub(super) struct ListDirectoryTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

impl ListDirectoryTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<ListDirectoryParams>(
                "list_directory",
                "List one directory; to find files find_path.",
                Annotations::READ,
            )
            .with_cache(CachePolicy::CACHED)
            .with_param_aliases(&[("directory", "path"), ("dir", "path")])
            .about(ToolTarget::Paths(const { &[PathParam::read("path")] })),
        }
    }
}

#[async_trait]
impl Tool for ListDirectoryTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: ListDirectoryParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let budget = Budget::new(cx.cancel.clone(), TIME);
        let stamps = DependencyTracker::new(cx.may_be_kept);
        blocking(move || {
            let mut output = list(&sandbox, &params.path, &budget, &stamps)?;
            if let Some(place) = output.locations.first() {
                let path = place.path.clone();
                output.basis = stamps.basis(&sandbox, &params.path, &path, PermittedBy::Read);
            }
            Ok(output)
        })
        .await
    }
}

fn list(
    sandbox: &Sandbox,
    path: &str,
    budget: &Budget,
    stamps: &DependencyTracker,
) -> Result<ToolOutput, ToolError> {
    let place = sandbox.resolve(path)?;
    sandbox.check_read(place.path())?;
    let dir = place.open_dir(sandbox)?;
    match fstat(&dir) {
        Ok(stat) => stamps.content(&dir, place.path(), &stat),
        Err(_) => stamps.spoil(),
    }
    let names = entries_with_types(&dir)
        .map_err(|error| ToolError::io("list", place.path(), error))?
        .map(|(name, _)| name);
    // The first names in sorted order, in bounded memory.
    let mut first = BTreeSet::new();
    let mut total: usize = 0;
    let mut left_out: usize = 0;
    let mut partial = false;
    for name in names {
        match budget.spent() {
            Some(Stop::Cancelled) => return Err(ToolError::cancelled()),
            Some(Stop::Time) => {
                partial = true;
                stamps.spoil();
                break;
            }
            None => {}
        }
        if sandbox.rules().refusal(&place.path().join(&name)).is_some() {
            left_out += 1;
            continue;
        }
        total += 1;
        first.insert(name);
        if first.len() > MAX_ENTRIES {
            first.pop_last();
        }
    }
    let output = |text| ToolOutput::text(text).at(place.path(), None);
    if total == 0 && left_out == 0 && !partial {
        return Ok(output(format!("{} is empty.", sandbox.shown(place.path()))));
    }
    let mut lines: Vec<String> = first
        .iter()
        .map(|name| line(&dir, name, &place.path().join(name), stamps))
        .collect();
    if total > first.len() {
        lines.push(format!(
            "({} more entries are not listed; use find_path with a pattern)",
            total - first.len()
        ));
    }
    if left_out > 0 {
        let entries = if left_out == 1 { "entry" } else { "entries" };
        lines.push(format!(
            "({left_out} {entries} omitted: rules of `[tools.file]` deny to read them)"
        ));
    }
    if partial {
        lines.push("(partial: the time limit was reached)".to_owned());
    }
    Ok(output(lines.join("\n")))
}

/// Formats one entry by its own metadata. Links are not followed.
fn line(dir: &OwnedFd, name: &OsString, path: &Path, stamps: &DependencyTracker) -> String {
    let shown = printable(name);
    let Ok(stat) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
        stamps.spoil();
        return format!("[gone] {shown}");
    };
    stamps.entry(path, &stat);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => format!("[dir] {shown}/"),
        FileType::RegularFile => format!("[file] {shown} ({} bytes)", stat.st_size),
        FileType::Symlink => {
            let target = readlinkat(dir, name, Vec::new()).map_or_else(
                |_| "?".to_owned(),
                |target| printable(String::from_utf8_lossy(target.as_bytes()).as_ref()),
            );
            format!("[symlink] {shown} -> {target}")
        }
        FileType::Fifo => format!("[fifo] {shown}"),
        FileType::Socket => format!("[socket] {shown}"),
        FileType::CharacterDevice | FileType::BlockDevice => format!("[device] {shown}"),
        _ => format!("[other] {shown}"),
    }
}
