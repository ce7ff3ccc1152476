//! The `read` tool: a window of lines of a text file, or an image.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
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
    let (mut file, stat) = place.open_file(sandbox, "use `list_directory` to see what is in it")?;
    let shown = sandbox.shown(place.path());
    let size = u64::try_from(stat.st_size).unwrap_or_default();

    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => ToolError::Timeout {
            what: format!("reading {shown} up to line {offset}"),
            limit: TIME,
        },
        io::ErrorKind::Other => ToolError::cancelled(),
        _ => ToolError::io("read", place.path(), error),
    };
    let head = read_head(&mut file).map_err(failed)?;
    let utf16 = match sniff(&head) {
        Content::Text => false,
        Content::Utf16 => true,
        Content::Image(media) => {
            // No diff of binary content is possible, so the content is not stored.
            let whole = Cursor::new(head).chain(file);
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
    if size > LARGE && params.offset.is_none() && params.limit.is_none() {
        return Err(ToolError::invalid(format!(
            "{shown} has {size} bytes; files over {LARGE} bytes need `offset` or `limit`, or use `grep` to find the lines"
        )));
    }
    let on = ledger.is_on() || stamps.is_on();
    let handle = &file;
    let mut file = HashingReader::new(Cursor::new(head).chain(handle), size, on);
    let stream = DecodeReaderBytesBuilder::new()
        .utf8_passthru(true)
        .strip_bom(true)
        .build(&mut file);
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let window = window(&mut stream, offset, limit, budget).map_err(failed)?;
    drop(stream);
    stamps.only_content(handle, place.path(), &stat, file.digest());
    if window.is_ok() || size == 0 {
        ledger.read(sandbox, &place.target(sandbox)?, &stat, file);
    }
    let window = match window {
        Ok(window) => window,
        Err(0) if offset == 1 => {
            return Ok(ToolOutput::text(format!("{shown} is empty.")).at(place.path(), None));
        }
        Err(count) => {
            return Err(ToolError::invalid(format!(
                "`offset` {offset} is past the end: {shown} has {}",
                pluralize(count, "line")
            )));
        }
    };
    let first = u32::try_from(offset).ok();
    Ok(ToolOutput::text(with_notes(window, offset, utf16)).at(place.path(), first))
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
