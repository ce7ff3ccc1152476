//! The `read` tool: a window of lines of a text file, or an image.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use encoding_rs_io::DecodeReaderBytesBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::file::blocking;
use crate::file::budget::Budget;
use crate::file::cache_validation::{DependencyTracker, PermittedBy};
use crate::file::editor::EditorFile;
use crate::file::image;
use crate::file::lines::{Endings, Remaining, Window, window};
use crate::file::sandbox::Sandbox;
use crate::file::sniff::{Content, SNIFF, sniff};
use crate::file::staleness::{FileReadGuard, HashingReader};
use crate::gate::{PathParam, ToolTarget};
use crate::output::ToolOutput;
use crate::plural::pluralize;
use crate::tool_set::Tool;

/// The number of lines without a given limit.
const DEFAULT_LIMIT: u64 = 2000;
/// The size in bytes from which `offset` or `limit` is mandatory.
const LARGE: u64 = 10 << 20;
/// The time limit of a read. The lines of a longer file are not counted.
const TIME: Duration = Duration::from_secs(10);

/// Parameters of `read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadParams {
    path: String,
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// The tool `read`.
pub(super) struct ReadTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

impl ReadTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<ReadParams>(
                "read",
                "Read numbered lines of a text file (2000 from offset), before an edit.",
                Annotations::READ,
            )
            .with_cache(CachePolicy::CACHED)
            .with_aliases(&["read_file"])
            .with_param_aliases(&[
                ("file_path", "path"),
                ("filename", "path"),
                ("file", "path"),
            ])
            .about(ToolTarget::Paths(const { &[PathParam::read("path")] })),
        }
    }
}

#[async_trait]
impl Tool for ReadTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: ReadParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let budget = Budget::new(cx.cancel.clone(), TIME);
        let ledger = FileReadGuard::of(call, &sandbox);
        let takes_images = cx.takes_images;
        let stamps = DependencyTracker::new(cx.may_be_kept);
        blocking(move || {
            let mut output = read(&sandbox, &params, takes_images, &budget, &ledger, &stamps)?;
            if let Some(place) = output.locations.first() {
                let path = place.path.clone();
                output.basis = stamps.basis(&sandbox, &params.path, &path, PermittedBy::Read);
            }
            Ok(output)
        })
        .await
    }
}

fn read(
    sandbox: &Sandbox,
    params: &ReadParams,
    takes_images: bool,
    budget: &Budget,
    ledger: &FileReadGuard,
    stamps: &DependencyTracker,
) -> Result<ToolOutput, ToolError> {
    let offset = params.offset.unwrap_or(1);
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if offset == 0 || limit == 0 {
        return Err(ToolError::invalid("`offset` and `limit` begin at 1"));
    }
    let place = sandbox.resolve(&params.path)?;
    sandbox.check_read(place.path())?;
    let shown = sandbox.shown(place.path());
    let editor = EditorFile::new(sandbox, place.path(), budget.cancel());
    let file = Lines {
        path: place.path(),
        shown: &shown,
        offset,
        limit,
    };
    let opened = place.open_file(sandbox, "use `list_directory` to list its entries");
    let (mut handle, stat) = match opened {
        Ok(opened) => opened,
        Err(error) if error.is_missing() => {
            let text = editor.unsaved_text()?.ok_or(error)?;
            stamps.spoil();
            check_size(&shown, text.len() as u64, params)?;
            return file.output(file.read(&mut text.as_bytes(), budget)?, false);
        }
        Err(error) => return Err(error),
    };
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let mut head = read_head(&mut handle).map_err(|error| file.failed(error))?;
    let mut unsaved = None;
    let utf16 = match sniff(&head) {
        Content::Text => {
            unsaved = editor.text_instead_of(&mut handle, &mut head)?;
            false
        }
        Content::Utf16 => true,
        Content::Image(media) => {
            // No diff of binary content is possible, so the content is not stored.
            let whole = Cursor::new(head).chain(handle);
            let mut whole = HashingReader::new(whole, u64::MAX, ledger.is_on());
            let output =
                image::answer(place.path(), &shown, media, size, takes_images, &mut whole)?;
            ledger.read(sandbox, &place.target(sandbox)?, &stat, whole);
            // The result depends on the model.
            stamps.spoil();
            return Ok(output.at(place.path(), None));
        }
        Content::Binary(kind) => {
            return Err(ToolError::permanent(format!(
                "{shown} is binary: {kind}, {size} bytes"
            )));
        }
    };
    if unsaved.is_some() {
        // The state of the file on the disk does not identify the text.
        stamps.spoil();
    }
    let size = unsaved.as_ref().map_or(size, |text| text.len() as u64);
    check_size(&shown, size, params)?;
    let on = ledger.is_on() || stamps.is_on();
    let content: Box<dyn Read + '_> = match unsaved {
        Some(text) => Box::new(Cursor::new(text.into_bytes())),
        None => Box::new(Cursor::new(head).chain(&handle)),
    };
    let mut content = HashingReader::new(content, size, on);
    let stream = DecodeReaderBytesBuilder::new()
        .utf8_passthru(true)
        .strip_bom(true)
        .build(&mut content);
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let window = file.read(&mut stream, budget)?;
    drop(stream);
    stamps.only_content(&handle, place.path(), &stat, content.digest());
    if window.is_ok() || size == 0 {
        ledger.read(sandbox, &place.target(sandbox)?, &stat, content);
    }
    file.output(window, utf16)
}

/// The lines of a file that are read.
struct Lines<'a> {
    path: &'a Path,
    shown: &'a str,
    offset: u64,
    limit: u64,
}

impl Lines<'_> {
    /// Reads the window, or the number of lines if it begins after the last one.
    fn read(
        &self,
        stream: &mut impl BufRead,
        budget: &Budget,
    ) -> Result<Result<Window, u64>, ToolError> {
        window(stream, self.offset, self.limit, budget).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> ToolError {
        match error.kind() {
            io::ErrorKind::TimedOut => ToolError::Timeout {
                what: format!("reading {} up to line {}", self.shown, self.offset),
                limit: TIME,
            },
            io::ErrorKind::Other => ToolError::cancelled(),
            _ => ToolError::io("read", self.path, error),
        }
    }

    fn output(&self, window: Result<Window, u64>, utf16: bool) -> Result<ToolOutput, ToolError> {
        let Self { shown, offset, .. } = *self;
        let window = match window {
            Ok(window) => window,
            Err(0) if offset == 1 => {
                return Ok(ToolOutput::text(format!("{shown} is empty.")).at(self.path, None));
            }
            Err(count) => {
                return Err(ToolError::invalid(format!(
                    "`offset` {offset} is past the end: {shown} has {}",
                    pluralize(count, "line")
                )));
            }
        };
        let first = u32::try_from(offset).ok();
        Ok(ToolOutput::text(with_notes(window, offset, utf16)).at(self.path, first))
    }
}

/// Refuses a large content if neither `offset` nor `limit` is set.
fn check_size(shown: &str, size: u64, params: &ReadParams) -> Result<(), ToolError> {
    if size > LARGE && params.offset.is_none() && params.limit.is_none() {
        return Err(ToolError::invalid(format!(
            "{shown} has {size} bytes; files over {LARGE} bytes need `offset` or `limit`, or use \
             `grep` to find the lines"
        )));
    }
    Ok(())
}

/// Reads the first [`SNIFF`] bytes of `file`.
fn read_head(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(SNIFF);
    file.take(SNIFF as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The text of the window with notes about it.
fn with_notes(window: Window, offset: u64, utf16: bool) -> String {
    let next = offset + window.shown;
    let mut notes = Vec::new();
    match window.remaining {
        Remaining::Lines(0) => {}
        Remaining::Lines(count) => {
            let lines = if count == 1 { "line" } else { "lines" };
            notes.push(format!("{count} more {lines}; continue with offset={next}"));
        }
        Remaining::Uncounted => {
            notes.push(format!(
                "more lines, not counted; continue with offset={next}"
            ));
        }
    }
    match window.endings {
        Endings::Lf => {}
        Endings::CrLf => notes.push("line endings: CRLF".to_owned()),
        Endings::Mixed => notes.push("line endings: some CRLF, some LF".to_owned()),
    }
    if utf16 {
        notes.push("decoded from UTF-16".to_owned());
    }
    if window.lossy {
        notes.push("not valid UTF-8: bad bytes are shown as \u{FFFD}".to_owned());
    }
    let mut text = window.text;
    if notes.is_empty() {
        text.pop();
    } else {
        text.push_str(&format!("({})", notes.join("; ")));
    }
    text
}
