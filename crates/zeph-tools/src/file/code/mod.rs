//! `search_code`: where symbols are, from an index that is brought in step with the files at each
//! call, and which lines have the text.
//!
//! The index says where to look; what is shown is read from the files themselves, through the
//! sandbox. So nothing is shown that may not be read, whatever the index holds.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, ToolDef};
use crate::error::ToolError;
use crate::file::budget::{Budget, Stop};
use crate::file::edit::decoded;
use crate::file::grep::{Line, lines_with};
use crate::file::lines::cut;
use crate::file::sandbox::Sandbox;
use crate::file::witness::{May, Stamps};
use crate::gate::{About, PathParam};
use crate::output::ToolOutput;
use crate::toolset::Tool;

mod extract;
mod index;
mod language;
mod refresh;
mod symbol;

pub use index::{CodeIndex, CodeIndexError, FileMarks, Located, ReadFile, Wanted, file_name};
pub use symbol::{Kind, Symbol, rank};

use refresh::{Refreshed, opened, refresh};

/// The time after which a call shows what it has.
const TIME: Duration = Duration::from_secs(60);
/// Results that are shown when no number is given.
const DEFAULT_RESULTS: usize = 30;
/// Results that can be asked for.
const MOST_RESULTS: usize = 500;
/// Bytes that a query may have.
const LONGEST_QUERY: usize = 200;
/// Files that are named as places of the result.
const MOST_LOCATIONS: usize = 20;
/// Bytes of a file that are read to show a line.
const MOST_SHOWN: u64 = 2 << 20;

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
    definition: ToolDef,
}

impl SearchCode {
    /// The tool over the files of `sandbox`, which keeps their symbols in `index`.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, index: Arc<dyn CodeIndex>) -> Self {
        Self {
            sandbox,
            index,
            definition: ToolDef::new::<SearchCodeParams>(
                "search_code",
                "Find definitions by name or part of it.",
                Annotations::READ,
            )
            .with_param_aliases(&[
                ("name", "query"),
                ("symbol", "query"),
                ("pattern", "query"),
                ("directory", "path"),
                ("file_path", "path"),
                ("max_results", "limit"),
            ])
            .about(About::Paths(
                const { &[PathParam::read("path").or(".").with_contents()] },
            )),
        }
    }

    /// Brings the index in step with the files, and asks it.
    async fn search(
        &self,
        asked: &Asked,
        budget: &Budget,
        stamps: &Arc<Stamps>,
    ) -> Result<(Refreshed, Vec<Located>), Failure> {
        let known = self.index.files().await?;
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
        // When it fails the threads find nobody to send to, and end.
        let (refreshed, put) = tokio::join!(looking, putting);
        put?;
        let refreshed = refreshed.map_err(Failure::Call)?;
        if !refreshed.gone.is_empty() {
            self.index.forget(refreshed.gone.clone()).await?;
        }
        let found = self.index.find(&asked.wanted).await?;
        Ok((refreshed, found))
    }
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

/// A call that was understood.
struct Asked {
    query: String,
    given: String,
    start: PathBuf,
    wanted: Wanted,
}

impl Asked {
    fn new(params: &SearchCodeParams, sandbox: &Sandbox) -> Result<Self, ToolError> {
        let query = params.query.trim();
        if query.is_empty() || query.len() > LONGEST_QUERY || query.contains(char::is_control) {
            return Err(ToolError::invalid(format!(
                "`query` is a name or a part of one, on one line, of at most {LONGEST_QUERY} bytes"
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
            ToolError::invalid("`path` leads to a name that is not UTF-8; grep searches there")
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
                most: most.min(MOST_RESULTS),
            },
        })
    }
}

/// The kinds that the first word of a query asks for, and the rest: `struct Parser`, `fn parse`.
fn kinds_of(query: &str) -> (Vec<Kind>, &str) {
    let asked = query.split_once(char::is_whitespace);
    let asked = asked.and_then(|(word, rest)| Some((Kind::asked_for(word)?, rest.trim_start())));
    asked.unwrap_or((Vec::new(), query))
}

/// What the name lies in and the name itself: `Parser::parse`, `parser.parse`, `parse config`.
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
        let asked = super::blocking(move || Asked::new(&params, &sandbox)).await?;
        let budget = Budget::new(cx.cancel.clone(), TIME);
        let stamps = Arc::new(Stamps::new(cx.may_be_kept));
        let mut found = self.search(&asked, &budget, &stamps).await;
        if matches!(&found, Err(Failure::Index(error)) if error.lost) {
            found = self.search(&asked, &budget, &stamps).await;
        }
        let (refreshed, found, failed) = match found {
            Ok((refreshed, found)) => (refreshed, found, None),
            Err(Failure::Call(error)) => return Err(error),
            // The text is found without it.
            Err(Failure::Index(error)) => {
                stamps.spoil();
                (Refreshed::default(), Vec::new(), Some(error.to_string()))
            }
        };
        let sandbox = Arc::clone(&self.sandbox);
        super::blocking(move || {
            let mut shown = Shown::new(&sandbox, asked.wanted.most);
            shown.symbols(&found);
            shown.lines(&asked, &budget, &stamps)?;
            shown.notes(&refreshed, failed);
            let mut output = ToolOutput::text(shown.text);
            for (path, line) in shown.places.into_iter().take(MOST_LOCATIONS) {
                output = output.at(path, Some(line));
            }
            let basis = Arc::into_inner(stamps)
                .and_then(|stamps| stamps.basis(&sandbox, &asked.given, &asked.start, May::Search));
            Ok(output.resting_on(basis))
        })
        .await
    }
}

/// The result while it is written.
struct Shown<'a> {
    sandbox: &'a Arc<Sandbox>,
    most: usize,
    text: String,
    places: Vec<(PathBuf, u32)>,
    stale: usize,
    more: bool,
    partial: bool,
}

impl<'a> Shown<'a> {
    fn new(sandbox: &'a Arc<Sandbox>, most: usize) -> Self {
        Self {
            sandbox,
            most,
            text: String::new(),
            places: Vec::new(),
            stale: 0,
            more: false,
            partial: false,
        }
    }

    /// Shows symbols, each with its line as it stands in the file now.
    fn symbols(&mut self, found: &[Located]) {
        let mut files: HashMap<&str, Option<Vec<u8>>> = HashMap::new();
        for located in found {
            if self.places.len() == self.most {
                self.more = true;
                return;
            }
            let content = files.entry(&located.path).or_insert_with(|| {
                let (file, _) = opened(self.sandbox, &located.path)?;
                let mut text = Vec::new();
                file.take(MOST_SHOWN).read_to_end(&mut text).ok()?;
                Some(decoded(&text).into_owned())
            });
            // What is gone or may not be read is not named either.
            let Some(content) = content else { continue };
            let symbol = &located.symbol;
            let line = content
                .split(|byte| *byte == b'\n')
                .nth(usize::try_from(symbol.line).unwrap_or(usize::MAX) - 1);
            let line = String::from_utf8_lossy(line.unwrap_or_default());
            let line = line.trim();
            let mut stale = "";
            if !line.contains(&symbol.name) {
                self.stale += 1;
                stale = " (stale)";
            }
            let within = if symbol.container.is_empty() {
                String::new()
            } else {
                format!(" in {}", symbol.container)
            };
            self.text.push_str(&format!(
                "{}:{}: {} {}{within}{stale}: {}\n",
                self.sandbox.shown(Path::new(&located.path)),
                symbol.line,
                symbol.kind.word(),
                symbol.name,
                cut(line).0
            ));
            self.places.push((located.path.clone().into(), symbol.line));
        }
    }

    /// Shows lines that have the text of the query, as far as there is room.
    fn lines(&mut self, asked: &Asked, budget: &Budget, stamps: &Stamps) -> Result<(), ToolError> {
        let room = self.most - self.places.len();
        if room == 0 {
            return Ok(());
        }
        let start = self.sandbox.resolve(&asked.given)?;
        // Those of the symbols are found once more.
        let wanted = room + self.places.len();
        let (lines, stopped, more) =
            lines_with(self.sandbox, &start, &asked.query, wanted, budget, stamps)?;
        if stopped == Some(Stop::Cancelled) {
            return Err(ToolError::cancelled());
        }
        self.partial = stopped.is_some();
        let mut known: Vec<(PathBuf, u32)> = self.places.clone();
        known.sort();
        let mut lines = lines.into_iter().filter(|line: &Line| {
            let place = (line.path.clone(), line.number);
            known.binary_search(&place).is_err()
        });
        let mut heading = "Lines with the text:\n";
        for line in lines.by_ref().take(room) {
            self.text.push_str(heading);
            heading = "";
            let path = self.sandbox.shown(&line.path);
            self.text
                .push_str(&format!("{path}:{}: {}\n", line.number, line.text.trim()));
            self.places.push((line.path, line.number));
        }
        self.more |= more || lines.next().is_some();
        Ok(())
    }

    /// Says what the result lacks.
    fn notes(&mut self, refreshed: &Refreshed, failed: Option<String>) {
        let mut notes = Vec::new();
        if self.places.is_empty() {
            self.text = format!(
                "Nothing found; {} files of known languages.{}\n",
                refreshed.files,
                refreshed.walked.left_out()
            );
        }
        if self.more {
            notes.push(format!(
                "the first {}; there are more: narrow `query` or `path`, or set `limit`",
                self.most
            ));
        }
        if refreshed.walked.stopped.is_some() {
            notes
                .push("partial: not all directories were looked at in time; call again".to_owned());
        }
        if refreshed.left > 0 {
            notes.push(format!(
                "partial: {} of {} files changed or are new and are not indexed yet; call again",
                refreshed.left, refreshed.files
            ));
        }
        if self.partial {
            notes.push("partial: not all text was searched in time".to_owned());
        }
        if self.stale > 0 {
            notes.push(format!(
                "{} stale: their files changed meanwhile",
                self.stale
            ));
        }
        notes.extend(failed.map(|failed| format!("no symbols: {failed}")));
        if notes.is_empty() {
            self.text.pop();
        } else {
            self.text.push_str(&format!("({})", notes.join("; ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_may_begin_with_a_kind() {
        let check = |query: &str, kinds: &[Kind], rest: &str| {
            assert_eq!(kinds_of(query), (kinds.to_vec(), rest), "{query}");
        };
        check("struct  Parser", &[Kind::Struct], "Parser");
        check("fn parse", &[Kind::Function, Kind::Method], "parse");
        check("parse config", &[], "parse config");
        check("struct", &[], "struct");
    }

    /// Proves NAT-5 in part.
    #[test]
    fn a_query_names_what_it_lies_in() {
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
