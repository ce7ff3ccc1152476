//! The `search_code` tool: symbols from an index, and lines that contain the query. Each call first synchronizes the
//! index with the files.
//!
//! The index contains only locations. The shown lines are read from the files through the sandbox. So the tool shows no
//! file that may not be read, regardless of the contents of the index.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{Mutex, mpsc};

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::file::budget::Budget;
use crate::file::cache_validation::{DependencyTracker, PermittedBy};
use crate::file::sandbox::Sandbox;
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::tool_set::Tool;

mod index;
mod index_sync;
mod render;

pub use index::{CodeIndex, CodeIndexError, FileMarks, Located, ReadFile, Wanted, file_name};
pub use zeph_symbols::{Symbol, SymbolKind, rank};

use index_sync::{Refreshed, refresh};
use render::ResultWriter;

/// The time limit of a call. After it, the call shows its partial result.
const TIME: Duration = Duration::from_secs(60);
/// The number of results without `limit`.
const DEFAULT_RESULTS: usize = 30;
/// The maximum of `limit`.
const MAX_RESULTS: usize = 500;
/// The maximum size of a query in bytes.
const MAX_QUERY_BYTES: usize = 200;
/// The maximum number of locations that are attached to the result.
const MAX_LOCATIONS: usize = 20;
/// The maximum number of searches per call if other processes change the index meanwhile.
const ROUNDS: usize = 4;

/// Parameters of `search_code`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchCodeParams {
    query: String,
    path: Option<String>,
    limit: Option<usize>,
}

/// The tool `search_code`.
pub struct SearchCode {
    sandbox: Arc<Sandbox>,
    index: Arc<dyn CodeIndex>,
    /// Serializes calls, so that a call does not read again the files that the previous one read.
    turn: Mutex<()>,
    definition: ToolDef,
}

impl SearchCode {
    /// Creates the tool for the files of `sandbox`. It stores their symbols in `index`.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, index: Arc<dyn CodeIndex>) -> Self {
        Self {
            sandbox,
            index,
            turn: Mutex::new(()),
            definition: ToolDef::new::<SearchCodeParams>(
                "search_code",
                "Find definitions by name; other text by grep.",
                Annotations::READ,
            )
            .with_cache(CachePolicy::CACHED)
            .with_param_aliases(&[
                ("name", "query"),
                ("symbol", "query"),
                ("pattern", "query"),
                ("directory", "path"),
                ("file_path", "path"),
                ("max_results", "limit"),
            ])
            .about(ToolTarget::Paths(
                const { &[PathParam::read("path").or(".").with_contents()] },
            )),
        }
    }

    /// Synchronizes the index with the files, and searches it. If another process changed the index meanwhile, both are
    /// repeated, because that process may have read older versions of the files.
    async fn search(
        &self,
        asked: &SearchQuery,
        budget: &Budget,
        stamps: &Arc<DependencyTracker>,
    ) -> Result<Answer, Failure> {
        let mut round = 0;
        loop {
            round += 1;
            let answer = self.round(asked, budget, stamps).await?;
            if !answer.meanwhile || round == ROUNDS || budget.spent().is_some() {
                return Ok(answer);
            }
        }
    }

    async fn round(
        &self,
        asked: &SearchQuery,
        budget: &Budget,
        stamps: &Arc<DependencyTracker>,
    ) -> Result<Answer, Failure> {
        let (known, before) = self.index.files().await?;
        let (sender, mut read) = mpsc::channel(2);
        let (sandbox, given) = (Arc::clone(&self.sandbox), asked.given.clone());
        let (budget, stamps) = (budget.clone(), Arc::clone(stamps));
        let looking = super::blocking(move || {
            let start = sandbox.resolve(&given)?;
            refresh(&sandbox, &start, known, &budget, &stamps, &sender)
        });
        let putting = async move {
            while let Some(files) = read.recv().await {
                self.index.put(files).await?;
            }
            Ok::<(), CodeIndexError>(())
        };
        // If `putting` fails, the channel is closed, and the threads end.
        let (refreshed, put) = tokio::join!(looking, putting);
        put?;
        let mut refreshed = refreshed.map_err(Failure::Call)?;
        if !refreshed.gone.is_empty() {
            self.index
                .forget(std::mem::take(&mut refreshed.gone))
                .await?;
        }
        let (found, after) = self.index.find(&asked.wanted).await?;
        Ok(Answer {
            refreshed,
            found,
            meanwhile: before != after,
        })
    }
}

/// The result of a synchronization and a search.
#[derive(Default)]
struct Answer {
    refreshed: Refreshed,
    found: Vec<Located>,
    /// True if another process changed the index during the search.
    meanwhile: bool,
}

/// Why a search failed.
enum Failure {
    Index(CodeIndexError),
    Call(ToolError),
}

impl From<CodeIndexError> for Failure {
    fn from(error: CodeIndexError) -> Self {
        Self::Index(error)
    }
}

/// The parsed parameters of a call.
struct SearchQuery {
    query: String,
    given: String,
    start: PathBuf,
    wanted: Wanted,
}

impl SearchQuery {
    fn new(params: &SearchCodeParams, sandbox: &Sandbox) -> Result<Self, ToolError> {
        let query = params.query.trim();
        if query.is_empty() || query.len() > MAX_QUERY_BYTES || query.contains(char::is_control) {
            return Err(ToolError::invalid(format!(
                "`query` must be a name or a part of a name, on one line, with at most \
                 {MAX_QUERY_BYTES} bytes"
            )));
        }
        let most = params.limit.unwrap_or(DEFAULT_RESULTS);
        if most == 0 {
            return Err(ToolError::invalid("`limit` begins at 1"));
        }
        let given = params.path.as_deref().filter(|path| !path.is_empty());
        let given = given.unwrap_or(".");
        let start = sandbox.resolve(given)?;
        sandbox.check_search(start.path())?;
        let below = start.path().to_str().ok_or_else(|| {
            ToolError::invalid("`path` resolves to a name that is not UTF-8; use grep there")
        })?;
        let (kinds, named) = kinds_of(query);
        let (container, name) = parts(named);
        Ok(Self {
            query: query.to_owned(),
            given: given.to_owned(),
            start: start.path().to_owned(),
            wanted: Wanted {
                name,
                container,
                kinds,
                below: below.to_owned(),
                most: most.min(MAX_RESULTS),
            },
        })
    }
}

/// Splits a query into the kinds that its first word means, and the rest: `struct Parser`, `fn parse`.
fn kinds_of(query: &str) -> (Vec<SymbolKind>, &str) {
    let asked = query.split_once(char::is_whitespace);
    let asked =
        asked.and_then(|(word, rest)| Some((SymbolKind::asked_for(word)?, rest.trim_start())));
    asked.unwrap_or((Vec::new(), query))
}

/// Splits a query into container and name: `Parser::parse`, `parser.parse`, `parse config`.
fn parts(query: &str) -> (String, String) {
    let query = query.trim_end_matches("()");
    let at = ["::", "->", ".", "#"]
        .iter()
        .filter_map(|mark| query.rfind(mark).map(|at| (at, at + mark.len())))
        .max_by_key(|(_, end)| *end);
    let (container, name) = match at {
        Some((start, end)) if end < query.len() && start > 0 => (&query[..start], &query[end..]),
        _ => ("", query),
    };
    let container = container
        .rsplit([':', '.', '>', '#'])
        .next()
        .unwrap_or_default();
    let name: String = name.split_whitespace().collect();
    (container.trim().to_owned(), name)
}

#[async_trait]
impl Tool for SearchCode {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: SearchCodeParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let asked = super::blocking(move || SearchQuery::new(&params, &sandbox)).await?;
        let turn = tokio::select! {
            turn = self.turn.lock() => turn,
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
        };
        let budget = Budget::new(cx.cancel.clone(), TIME);
        let stamps = Arc::new(DependencyTracker::new(cx.may_be_kept));
        let mut answer = self.search(&asked, &budget, &stamps).await;
        if matches!(&answer, Err(Failure::Index(error)) if error.lost) {
            answer = self.search(&asked, &budget, &stamps).await;
        }
        drop(turn);
        let (answer, failed) = match answer {
            Ok(answer) => (answer, None),
            Err(Failure::Call(error)) => return Err(error),
            // The search for lines does not need the index.
            Err(Failure::Index(error)) => (Answer::default(), Some(error.to_string())),
        };
        if failed.is_some() || answer.meanwhile {
            stamps.spoil();
        }
        let sandbox = Arc::clone(&self.sandbox);
        super::blocking(move || {
            let mut shown = ResultWriter::new(&sandbox, asked.wanted.most);
            shown.symbols(&answer.found);
            shown.lines(&asked, &budget, &stamps)?;
            shown.notes(&answer.refreshed, answer.meanwhile, failed);
            let mut output = ToolOutput::text(shown.text);
            for (path, line) in shown.places.into_iter().take(MAX_LOCATIONS) {
                output = output.at(path, Some(line));
            }
            let basis = Arc::into_inner(stamps).and_then(|stamps| {
                stamps.basis(&sandbox, &asked.given, &asked.start, PermittedBy::Search)
            });
            Ok(output.with_cache_validity(basis))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_can_begin_with_a_kind() {
        let check = |query: &str, kinds: &[SymbolKind], rest: &str| {
            assert_eq!(kinds_of(query), (kinds.to_vec(), rest), "{query}");
        };
        check("struct  Parser", &[SymbolKind::Struct], "Parser");
        check(
            "fn parse",
            &[SymbolKind::Function, SymbolKind::Method],
            "parse",
        );
        check("parse config", &[], "parse config");
        check("struct", &[], "struct");
    }

    /// Proves NAT-5 in part.
    #[test]
    fn query_can_name_the_container() {
        let check = |query: &str, container: &str, name: &str| {
            assert_eq!(
                parts(query),
                (container.to_owned(), name.to_owned()),
                "{query}"
            );
        };
        check("parse", "", "parse");
        check("Parser::parse", "Parser", "parse");
        check("a::b::Parser::parse()", "Parser", "parse");
        check("parser.parse", "parser", "parse");
        check("A->b", "A", "b");
        check("Class#method", "Class", "method");
        check("parse config", "", "parseconfig");
        check("::x", "", "::x");
        check("x::", "", "x::");
        check(".", "", ".");
    }
}
