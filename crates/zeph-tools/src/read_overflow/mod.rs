//! `read_overflow`: lines of a stored output, by range or by pattern.
//!
//! A reference is valid only in its own conversation. The output is bounded and is never stored again.

use std::sync::Arc;

use async_trait::async_trait;
use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use self::query::{Found, Query, Selection};
use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::overflow::{OverflowConfig, OverflowEntry, OverflowError, OverflowRef, OverflowStore};
use crate::tool_set::Tool;

mod query;

/// The id of the tool.
pub const READ_OVERFLOW: &str = "read_overflow";
/// The maximum length of a pattern in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// The maximum size of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// The number of characters that are reserved for notes.
const NOTES: usize = 300;

/// The parameters. Signed, since the schema of an unsigned number is larger; `run` checks them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    id: String,
    // A range as in notices: `40-80`.
    lines: Option<String>,
    offset: Option<i64>,
    limit: Option<i64>,
    pattern: Option<String>,
}

/// The tool `read_overflow`.
pub struct ReadOverflow {
    definition: ToolDef,
    store: Arc<dyn OverflowStore>,
    threshold: usize,
}

impl ReadOverflow {
    /// Creates the tool for `store`; its output has at most as many characters as the threshold.
    #[must_use]
    pub fn new(store: Arc<dyn OverflowStore>, config: &OverflowConfig) -> Self {
        Self {
            definition: ToolDef::new::<Params>(
                READ_OVERFLOW,
                "Read more of a shortened output; do not run the call again.",
                Annotations::READ,
            )
            .with_cache(CachePolicy::LEAVES_FILES)
            .with_param_aliases(&[
                ("reference", "id"),
                ("uuid", "id"),
                ("ref", "id"),
                ("regex", "pattern"),
            ]),
            store,
            threshold: config.threshold,
        }
    }
}

#[async_trait]
impl Tool for ReadOverflow {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: Params = call.parse()?;
        let reference: OverflowRef = params
            .id
            .parse()
            .map_err(|error| ToolError::invalid(format!("/id: {error}")))?;
        let query = query(&params)?;
        let (store, conversation) = (&self.store, call.conversation.as_str());
        let missing = || ToolError::Missing {
            message: format!("there is no {reference} in this conversation"),
        };
        let found = store.find(conversation, reference).await.map_err(failed)?;
        let entry = found.ok_or_else(missing)?;
        if query.offset > entry.lines.max(1) {
            return Err(ToolError::invalid(format!(
                "/offset: line {} is past the end: {reference} has {} line{}{}",
                query.offset,
                entry.lines,
                if entry.lines == 1 { "" } else { "s" },
                entry
                    .cut()
                    .map_or_else(String::new, |cut| format!("; it was {cut}")),
            )));
        }
        let room = self.threshold.saturating_sub(NOTES).max(self.threshold / 2);
        let first = entry.block_of(query.offset);
        let line = entry.blocks.get(first).copied().unwrap_or(1);
        let by_pattern = query.pattern.is_some();
        let mut selection = Selection::new(query, room, line);
        for number in first..entry.blocks.len() {
            if cx.cancel.is_cancelled() {
                return Err(ToolError::cancelled());
            }
            let block = store.block(conversation, reference, number).await;
            let block = block.map_err(failed)?.ok_or_else(missing)?;
            if !selection.push(&block.text().map_err(failed)?) {
                break;
            }
        }
        Ok(output(selection.finish(), &entry, by_pattern))
    }
}

/// Parses the requested lines and the pattern.
fn query(params: &Params) -> Result<Query, ToolError> {
    let at_least_one = |name: &str, value: Option<i64>, default: u64| match value {
        None => Ok(default),
        Some(value) => match u64::try_from(value) {
            Ok(value) if value > 0 => Ok(value),
            _ => Err(ToolError::invalid(format!(
                "/{name}: expected a number from 1, got {value}"
            ))),
        },
    };
    let pattern = params.pattern.as_ref().map(|pattern| {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(ToolError::invalid(format!(
                "/pattern: expected at most {MAX_PATTERN_BYTES} bytes, got {}",
                pattern.len()
            )));
        }
        RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|error| {
                ToolError::invalid(format!(
                    "/pattern: not a regular expression (Rust syntax, one line at a time): {error}"
                ))
            })
    });
    let (offset, limit) = match &params.lines {
        None => (
            at_least_one("offset", params.offset, 1)?,
            at_least_one("limit", params.limit, u64::MAX)?,
        ),
        Some(_) if params.offset.is_some() || params.limit.is_some() => {
            return Err(ToolError::invalid(
                "/lines: set either lines, or offset and limit",
            ));
        }
        Some(lines) => range(lines)?,
    };
    Ok(Query {
        offset,
        limit,
        pattern: pattern.transpose()?,
    })
}

/// Returns the first line of `40-80`, `40` or `40-`, and the number of lines.
fn range(lines: &str) -> Result<(u64, u64), ToolError> {
    let (first, last) = match lines.split_once('-') {
        None => (lines, lines),
        Some((first, "")) => (first, "18446744073709551615"),
        Some(range) => range,
    };
    match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if (1..=last).contains(&first) => {
            Ok((first, (last - first).saturating_add(1)))
        }
        _ => Err(ToolError::invalid(format!(
            "/lines: expected a range such as 40-80, got {lines:?}"
        ))),
    }
}

/// Formats the lines with notes.
fn output(found: Found, entry: &OverflowEntry, by_pattern: bool) -> ToolOutput {
    let mut notes = Vec::new();
    if found.lines == 0 && by_pattern {
        notes.push("no line matches".to_owned());
    }
    if let Some(line) = found.cut_line {
        notes.push(format!(
            "line {line} is too long to be shown completely; pattern shows the text around a match"
        ));
    }
    match found.next.filter(|next| *next <= entry.lines) {
        Some(next) if by_pattern => notes.push(format!(
            "lines from {next} of {} were not searched; continue with offset={next}",
            entry.lines
        )),
        Some(next) => notes.push(format!(
            "{} more lines; continue with offset={next}",
            entry.lines + 1 - next
        )),
        None => notes.extend(entry.cut().map(|cut| format!("it was {cut}"))),
    }
    let raw = json!({
        "id": entry.reference.to_string(),
        "lines": entry.lines,
        "bytes": entry.bytes,
        "total_bytes": entry.total_bytes,
        "shown_lines": found.lines,
        "next_offset": found.next.filter(|next| *next <= entry.lines),
    });
    let mut text = found.text;
    if notes.is_empty() {
        text.pop();
    } else {
        text.push_str(&format!("({})", notes.join("; ")));
    }
    ToolOutput::text(text).with_raw(raw)
}

fn failed(error: OverflowError) -> ToolError {
    ToolError::Failed {
        category: ToolErrorCategory::PermanentFailure,
        message: format!("the stored output cannot be read: {error}"),
    }
}
