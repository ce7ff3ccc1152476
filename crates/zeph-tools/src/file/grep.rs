//! The `grep` tool: searches the contents of files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::overrides::{Override, OverrideBuilder};
use rustix::fs::{FileType, Mode, fstat, openat};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::file::budget::{Budget, Stop};
use crate::file::cache_validation::{DependencyTracker, PermittedBy};
use crate::file::grep_sink::{Found, matcher, search, searcher};
use crate::file::resolved_path::{self, READ};
use crate::file::sandbox::Sandbox;
use crate::file::walk::{Entry, Visitor, WalkReport, walk};
use crate::file::{blocking, glob};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

/// Matches in the result without an explicit number.
const DEFAULT_RESULTS: usize = 1000;
/// The maximum number of requested matches.
const MAX_RESULTS: usize = 10_000;
/// The maximum number of requested context lines.
const MAX_CONTEXT_LINES: usize = 50;
/// Files that are listed as locations of the result.
const MAX_LOCATIONS: usize = 20;

/// Parameters of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepParams {
    pattern: String,
    path: Option<String>,
    case_sensitive: Option<bool>,
    glob: Option<String>,
    context: Option<usize>,
    #[schemars(range(min = 1))]
    max_results: Option<usize>,
}

/// The tool `grep`.
pub(super) struct GrepTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
    time: Duration,
}

impl GrepTool {
    /// Creates the tool. A search ends after `time` with a partial result.
    pub(super) fn new(sandbox: Arc<Sandbox>, time: Duration) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<GrepParams>(
                "grep",
                "Search file contents by Rust regex; skips ignored, hidden, binary files. For names find_path.",
                Annotations::READ,
            )
            .with_cache(CachePolicy::CACHED)
            .with_param_aliases(&[
                ("regex", "pattern"),
                ("query", "pattern"),
                ("file_path", "path"),
                ("directory", "path"),
                ("include", "glob"),
                ("limit", "max_results"),
            ])
            .about(ToolTarget::Paths(
                const { &[PathParam::read("path").or(".").with_contents()] },
            )),
            time,
        }
    }
}

#[async_trait]
impl Tool for GrepTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: GrepParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let budget = Budget::new(cx.cancel.clone(), self.time);
        let stamps = DependencyTracker::new(cx.may_be_kept);
        blocking(move || grep(&sandbox, &params, &budget, stamps)).await
    }
}

/// The first matches in the order of paths. One more than the limit is stored, to detect further matches.
struct Kept {
    files: BTreeMap<PathBuf, Found>,
    matches: usize,
    most: usize,
}

impl Kept {
    fn add(&mut self, path: PathBuf, found: Found) {
        self.matches += found.matches;
        self.files.insert(path, found);
        while let Some(last) = self.files.last_entry()
            && self.matches - last.get().matches > self.most
        {
            self.matches -= last.remove().matches;
        }
    }

    /// Returns true if further matches at or below `path` are not needed.
    fn is_past(&self, path: &Path) -> bool {
        self.matches > self.most
            && self
                .files
                .last_key_value()
                .is_some_and(|(last, _)| path > last.as_path())
    }
}

/// State that all threads share.
struct Search<'a> {
    matcher: &'a RegexMatcher,
    globs: Option<Override>,
    budget: &'a Budget,
    stamps: &'a DependencyTracker,
    most: usize,
    kept: Mutex<Kept>,
    searched: AtomicUsize,
    binary: AtomicUsize,
    failed: AtomicUsize,
    /// True if a file was not searched completely.
    cut: AtomicBool,
}

impl<'a> Search<'a> {
    fn new(
        matcher: &'a RegexMatcher,
        budget: &'a Budget,
        stamps: &'a DependencyTracker,
        most: usize,
    ) -> Self {
        Self {
            matcher,
            globs: None,
            budget,
            stamps,
            most,
            kept: Mutex::new(Kept {
                files: BTreeMap::new(),
                matches: 0,
                most,
            }),
            searched: AtomicUsize::new(0),
            binary: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            cut: AtomicBool::new(false),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches one file and counts it.
    fn file(&self, searcher: &mut Searcher, path: &Path, file: File) {
        let count = |counter: &AtomicUsize| counter.fetch_add(1, Ordering::Relaxed);
        match search(searcher, self.matcher, file, self.budget, self.most) {
            Ok(found) if found.binary => count(&self.binary),
            Ok(found) => {
                self.cut.fetch_or(found.cut, Ordering::Relaxed);
                if found.matches > 0 {
                    self.kept().add(path.to_owned(), found);
                }
                count(&self.searched)
            }
            Err(_) => count(&self.failed),
        };
    }
}

/// State of one thread.
struct Worker<'a> {
    search: &'a Search<'a>,
    searcher: Searcher,
}

impl Visitor for Worker<'_> {
    fn enters(&mut self, path: &Path) -> bool {
        let left_out = |globs: &Override| globs.matched(path, true).is_ignore();
        !self.search.globs.as_ref().is_some_and(left_out) && !self.search.kept().is_past(path)
    }

    fn visit(&mut self, entry: &Entry<'_>) {
        let left_out = |globs: &Override| globs.matched(entry.path, false).is_ignore();
        if entry.kind != FileType::RegularFile
            || self.search.globs.as_ref().is_some_and(left_out)
            || self.search.kept().is_past(entry.path)
        {
            return;
        }
        match open_listed(entry, self.search.stamps) {
            Ok(file) => self.search.file(&mut self.searcher, entry.path, file),
            Err(_) => {
                self.search.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Opens an entry that its directory lists as a regular file, without another check before.
///
/// A search opens many files, so the check is after the opening. The opening neither blocks nor follows a link.
fn open_listed(entry: &Entry<'_>, stamps: &DependencyTracker) -> Result<File, Errno> {
    let file = openat(entry.dir, entry.name, READ, Mode::empty())?;
    let stat = fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            stamps.content(&file, entry.path, &stat);
            Ok(File::from(file))
        }
        _ => Err(Errno::INVAL),
    }
}

fn grep(
    sandbox: &Arc<Sandbox>,
    params: &GrepParams,
    budget: &Budget,
    stamps: DependencyTracker,
) -> Result<ToolOutput, ToolError> {
    let most = params
        .max_results
        .unwrap_or(DEFAULT_RESULTS)
        .min(MAX_RESULTS);
    if most == 0 {
        return Err(ToolError::invalid("`max_results` begins at 1"));
    }
    let context = params.context.unwrap_or(0).min(MAX_CONTEXT_LINES);
    let matcher = matcher(&params.pattern, params.case_sensitive.unwrap_or(true))?;
    let given = params.path.as_deref().unwrap_or(".");
    let start = sandbox.resolve(given)?;
    sandbox.check_search(start.path())?;
    let globs = params
        .glob
        .as_deref()
        .filter(|glob| !glob.is_empty())
        .map(|glob| globs(start.path(), glob))
        .transpose()?;
    let mut state = Search::new(&matcher, budget, &stamps, most);
    state.globs = globs;
    let mut may = PermittedBy::Search;
    let mut walked = match start.open(sandbox)? {
        resolved_path::Found::Dir(dir) => {
            walk(sandbox, dir, start.path(), budget, &stamps, || Worker {
                search: &state,
                searcher: searcher(context),
            })
        }
        resolved_path::Found::File(file, stat) => {
            sandbox.check_read(start.path())?;
            may = PermittedBy::Read;
            stamps.content(&file, start.path(), &stat);
            state.file(&mut searcher(context), start.path(), file);
            WalkReport::default()
        }
    };
    if *state.cut.get_mut() {
        walked.stopped = walked.stopped.or(budget.spent());
    }
    if walked.stopped == Some(Stop::Cancelled) {
        return Err(ToolError::cancelled());
    }
    let failed = *state.failed.get_mut();
    if walked.stopped.is_some() || failed > 0 {
        stamps.spoil();
    }
    walked.unreadable += failed;
    let summary = report(sandbox, &mut state, &walked, most, context);
    let kept = state
        .kept
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let basis = stamps.basis(sandbox, given, start.path(), may);
    let mut output = ToolOutput::text(summary).with_cache_validity(basis);
    let mut before = 0;
    let shown = kept.files.into_iter().take_while(|(_, found)| {
        let is_shown = before < most;
        before += found.matches;
        is_shown
    });
    for (path, found) in shown.take(MAX_LOCATIONS) {
        let first = found.hits.iter().find(|hit| hit.matched);
        output = output.at(path, first.and_then(|hit| u32::try_from(hit.line).ok()));
    }
    Ok(output)
}

/// A line that contains a text.
#[cfg(feature = "syntax")]
pub(super) struct Line {
    pub(super) path: PathBuf,
    pub(super) number: u32,
    pub(super) text: String,
}

/// Finds the first `most` lines at or below `start` that contain `text`. Letter case is ignored unless `text`
/// has capitals. Also returns why the search ended early, and whether there are more lines.
///
/// # Errors
/// If `start` cannot be opened.
#[cfg(feature = "syntax")]
pub(super) fn lines_with(
    sandbox: &Sandbox,
    start: &resolved_path::Place,
    text: &str,
    most: usize,
    budget: &Budget,
    stamps: &DependencyTracker,
) -> Result<(Vec<Line>, Option<Stop>, bool), ToolError> {
    let sensitive = text.contains(char::is_uppercase);
    let matcher = matcher(&regex::escape(text), sensitive)?;
    let state = Search::new(&matcher, budget, stamps, most);
    let walked = match start.open(sandbox)? {
        resolved_path::Found::Dir(dir) => {
            walk(sandbox, dir, start.path(), budget, stamps, || Worker {
                search: &state,
                searcher: searcher(0),
            })
        }
        resolved_path::Found::File(file, stat) => {
            sandbox.check_read(start.path())?;
            stamps.content(&file, start.path(), &stat);
            state.file(&mut searcher(0), start.path(), file);
            WalkReport::default()
        }
    };
    let cut = state.cut.load(Ordering::Relaxed);
    let kept = state
        .kept
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let more = kept.matches > most;
    let lines = kept.files.into_iter().flat_map(|(path, found)| {
        found.hits.into_iter().map(move |hit| Line {
            path: path.clone(),
            number: u32::try_from(hit.line).unwrap_or(u32::MAX),
            text: hit.text,
        })
    });
    let stopped = walked.stopped.or(budget.spent().filter(|_| cut));
    Ok((lines.take(most).collect(), stopped, more))
}

/// Compiles the globs for the searched files below `start`, with the syntax of `.gitignore`: a glob without a
/// slash applies in every directory, `!` excludes files.
fn globs(start: &Path, text: &str) -> Result<Override, ToolError> {
    glob::check("glob", text)?;
    let mut builder = OverrideBuilder::new(start);
    builder
        .add(text)
        .and_then(|builder| builder.build())
        .map_err(|error| ToolError::invalid(format!("`glob` is not a valid glob: {error}")))
}

/// Formats the text of the result.
fn report(
    sandbox: &Sandbox,
    state: &mut Search<'_>,
    walked: &WalkReport,
    most: usize,
    context: usize,
) -> String {
    let mut notes = Vec::new();
    if walked.stopped.is_some() {
        notes.push("partial: the time limit was reached; narrow `path` or `glob`".to_owned());
    }
    let (searched, binary) = (*state.searched.get_mut(), *state.binary.get_mut());
    let kept = state.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
    if kept.files.is_empty() {
        let binary = if binary > 0 {
            format!(", {binary} binary skipped")
        } else {
            String::new()
        };
        let files = if searched == 1 { "file" } else { "files" };
        let mut text = format!(
            "No matches in {searched} {files}{binary}.{}",
            walked.left_out()
        );
        if let Some(note) = notes.pop() {
            text.push_str(&format!("\n({note})"));
        }
        return text;
    }
    if kept.matches > most {
        let help = if most < MAX_RESULTS {
            "narrow the pattern, or set `max_results`"
        } else {
            "narrow the pattern"
        };
        notes.insert(
            0,
            format!("the first {most} matches; there are more: {help}"),
        );
    }
    let mut text = String::new();
    let mut left = most;
    'files: for (path, found) in &kept.files {
        // The last file is kept as the proof of more matches.
        if left == 0 {
            break;
        }
        let path = sandbox.shown(path);
        let mut first = true;
        for hit in &found.hits {
            if hit.matched {
                if left == 0 {
                    break 'files;
                }
                left -= 1;
            } else if left == 0 && !hit.matched && hit.gap {
                break 'files;
            }
            if context > 0 && (hit.gap || first) && !text.is_empty() {
                text.push_str("--\n");
            }
            first = false;
            let mark = if hit.matched { ':' } else { '-' };
            text.push_str(&format!("{path}{mark}{}{mark}{}\n", hit.line, hit.text));
        }
    }
    if notes.is_empty() {
        text.pop();
    } else {
        text.push_str(&format!("({})", notes.join("; ")));
    }
    text
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
        let tool = GrepTool::new(sandbox, Duration::ZERO);
        let call = ToolCall::new("1", "grep", json!({"pattern": "x"}), "test");
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
