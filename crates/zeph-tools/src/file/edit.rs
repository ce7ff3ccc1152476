//! The `edit` tool: replaces text in a file.

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use encoding_rs_io::DecodeReaderBytes;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use zeph_edit::{
    EditError, Edited, NearestMatch, Replacement, ToleratedDifference, find_nearest, is_too_long,
    unified_diff,
};

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::def::{Annotations, ToolDef};
use crate::error::ToolError;
use crate::file::editor::EditorFile;
use crate::file::lines::cut;
use crate::file::sandbox::Sandbox;
use crate::file::staleness::{EDIT_AGAIN, FileReadGuard, Standing};
use crate::file::undo_recorder::Recorder;
use crate::file::{atomic, blocking, change, locks, syntax_note};
use crate::gate::{PathParam, ToolTarget};
use crate::output::{FileChange, ToolOutput};
use crate::secrets::{added_mark, marks};
use crate::tool_set::Tool;

/// The maximum size of an edited file in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Lines of a similar place that are compared.
const MAX_DIFFED: usize = 100;
/// Characters of a line that are shown for the first difference.
const SHOWN: usize = 200;

/// Parameters of `edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditParams {
    path: String,
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

/// The tool `edit`.
pub(super) struct EditTool {
    sandbox: Arc<Sandbox>,
    definition: ToolDef,
}

impl EditTool {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        Self {
            sandbox,
            definition: ToolDef::new::<EditParams>(
                "edit",
                "Replace text in a file you read. old_string: unique, no line numbers.",
                Annotations::MUTATE,
            )
            .with_aliases(&["edit_file"])
            .with_param_aliases(&[
                ("file_path", "path"),
                ("filename", "path"),
                ("old_str", "old_string"),
                ("new_str", "new_string"),
                ("old_text", "old_string"),
                ("new_text", "new_string"),
            ])
            .with_content_params(&["old_string", "new_string"])
            .about(ToolTarget::Paths(
                const { &[PathParam::write("path").also_read()] },
            )),
        }
    }
}

#[async_trait]
impl Tool for EditTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: EditParams = call.parse()?;
        let sandbox = Arc::clone(&self.sandbox);
        let recorder = Recorder::new(&sandbox, call);
        let cancel = cx.cancel.clone();
        let ledger = FileReadGuard::of(call, &sandbox).agreed(cx.shown);
        blocking(move || edit(&sandbox, &recorder, &params, &cancel, &ledger)).await
    }
}

fn edit(
    sandbox: &Sandbox,
    recorder: &Recorder,
    params: &EditParams,
    cancel: &CancellationToken,
    ledger: &FileReadGuard,
) -> Result<ToolOutput, ToolError> {
    let place = sandbox.resolve(&params.path)?;
    sandbox.check_read(place.path())?;
    let _guard = sandbox.locks().hold(place.path());
    if cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    place.open_file(sandbox, "`edit` changes files")?;
    let target = place.target(sandbox)?;
    let _held = locks::hold_file(&target, cancel)?;
    let (file, stat) = target.open()?;
    let shown = sandbox.shown(&target.path);
    let mut old = Vec::with_capacity(
        usize::try_from(stat.st_size)
            .unwrap_or_default()
            .min(1 << 20),
    );
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut old)
        .map_err(|error| ToolError::io("read", &target.path, error))?;
    if old.len() as u64 > MAX_FILE_BYTES {
        return Err(ToolError::permanent(format!(
            "{shown} has {} bytes; `edit` changes files up to {MAX_FILE_BYTES} bytes",
            stat.st_size
        )));
    }
    let editor = EditorFile::new(sandbox, &target.path, cancel);
    let is_in_editor = editor.is_written(Some(&old));
    let unsaved = editor.text_to_change(&old)?;
    let standing = Standing {
        target: &target,
        stat: unsaved.is_none().then_some(&stat),
        content: unsaved.as_deref().or(Some(&old)),
    };
    ledger.check(sandbox, &standing, EDIT_AGAIN, cancel)?;
    let old = unsaved.unwrap_or(old);
    ledger.check_agreed(Some(Some(&old)), &shown)?;
    check_marks(&shown, &old, params)?;
    let replacement = Replacement {
        old: &params.old_string,
        new: &params.new_string,
        all: params.replace_all.unwrap_or(false),
    };
    let Edited {
        bytes,
        lines,
        ignored,
    } = zeph_edit::edit(&old, replacement)
        .map_err(|refusal| refused(&shown, &old, replacement, refusal))?;
    let mark = recorder.content(&target.path, (&stat, Some(&old)), &bytes)?;
    let _new = match is_in_editor {
        true => editor.write(Some(&mark), &bytes).map(|()| None)?,
        false => mark.made(atomic::replace(&target, &bytes, Some(&stat), cancel).map(Some))?,
    };
    ledger.left(&target.path, &bytes);

    let count = match lines.as_slice() {
        [(first, last)] if first == last => format!("1 replacement, line {first}"),
        [(first, last)] => format!("1 replacement, lines {first}-{last}"),
        several => format!("{} replacements", several.len()),
    };
    let matched = ignored.map_or_else(String::new, |ignored| {
        let again = match ignored {
            ToleratedDifference::Indentation => ", new lines indented as there",
            _ => "",
        };
        format!("; matched ignoring {}{again}", ignored.describe())
    });
    let line = lines
        .first()
        .and_then(|(first, _)| u32::try_from(*first).ok());
    let syntax = syntax_note(&target.path, Some(&old), &bytes);
    let mut said = format!(
        "Edited {shown} ({count}{matched}).\n{}{syntax}",
        change::numbered(&decoded(&bytes), &lines)
    );
    mark.note(&mut said);
    Ok(ToolOutput::text(said)
        .with_display(change::display(&shown, &decoded(&old), &decoded(&bytes)) + &syntax)
        .at(&target.path, line)
        .changing(FileChange::new(
            &target.path,
            Some(&decoded(&old)),
            &decoded(&bytes),
        )))
}

/// Converts UTF-16 to UTF-8. Other content is unchanged.
pub(super) fn decoded(content: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !content.starts_with(b"\xff\xfe") && !content.starts_with(b"\xfe\xff") {
        return content.into();
    }
    let mut text = Vec::with_capacity(content.len());
    match DecodeReaderBytes::new(content).read_to_end(&mut text) {
        Ok(_) => text.into(),
        Err(_) => content.into(),
    }
}

/// Rejects masks of secret values in the arguments: the file contains the value, and would lose it.
fn check_marks(shown: &str, content: &[u8], params: &EditParams) -> Result<(), ToolError> {
    let unknown = marks(&params.old_string)
        .find(|mark| memchr::memmem::find(content, mark.as_bytes()).is_none());
    if let Some(mark) = unknown {
        return Err(marked(shown, "old_string", mark));
    }
    match added_mark(&params.old_string, &params.new_string) {
        Some(mark) => Err(marked(shown, "new_string", mark)),
        None => Ok(()),
    }
}

/// The error for a text that would replace a secret value by its mask.
pub(super) fn marked(shown: &str, parameter: &str, mark: &str) -> ToolError {
    ToolError::invalid(format!(
        "`{parameter}` contains {mark}, which replaced the value of a secret in the text that you \
         read; the edit would write it into {shown}. Nothing was changed. Omit the line with the value from the edit, or ask the user to change that line"
    ))
}

/// The error with the reason why nothing was replaced.
fn refused(
    shown: &str,
    content: &[u8],
    replacement: Replacement<'_>,
    refusal: EditError,
) -> ToolError {
    match refusal {
        EditError::Equal => {
            ToolError::invalid("`old_string` and `new_string` are equal: nothing would change")
        }
        EditError::EmptyOld => ToolError::invalid(format!(
            "`old_string` is empty, and {shown} is not; set the text to replace, or use `write` to \
             replace all"
        )),
        EditError::Ambiguous(lines) => {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let on = if lines.len() == 1 { "line" } else { "lines" };
            ToolError::invalid(format!(
                "`old_string` occurs several times in {shown}, on {on} {}; add surrounding lines until it is unique, or set `replace_all`",
                lines.join(", ")
            ))
        }
        EditError::AmbiguousFuzzy(ignored, lines) => {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            ToolError::invalid(format!(
                "`old_string` does not occur in {shown}; without {} it matches in several places, \
                 on lines {}: copy the text exactly from the file",
                ignored.describe(),
                lines.join(", ")
            ))
        }
        EditError::AlreadyApplied(line) => ToolError::invalid(format!(
            "this edit is already applied: `new_string` is at line {line} of {shown}; nothing was \
             changed"
        )),
        EditError::NotFound => {
            let text = decoded(content);
            let text = String::from_utf8_lossy(&text);
            let text = text.replace("\r\n", "\n");
            let wanted = replacement.old.replace("\r\n", "\n");
            if let Some(slip) = slip(&text, &wanted) {
                return ToolError::invalid(format!(
                    "`old_string` does not occur in {shown}: {slip}"
                ));
            }
            match find_nearest(&text, &wanted) {
                Some(place) => missed(shown, content, &text, &wanted, &place),
                None if is_too_long(&text) => ToolError::invalid(format!(
                    "`old_string` does not occur in {shown}, which is too long to search for \
                     similar lines; find the lines with `grep`, and read them again with `offset`"
                )),
                None => ToolError::invalid(format!(
                    "neither `old_string` nor a similar text occurs in {shown}; read the file again"
                )),
            }
        }
    }
}

/// Describes a mistake in `wanted`, if it is in `text` except for a change in the copy from `read`.
fn slip(text: &str, wanted: &str) -> Option<&'static str> {
    if wanted.contains('\u{fffd}') && text.contains(wanted) {
        return Some(
            "the file has invalid UTF-8 there, which `read` shows as U+FFFD; choose text that does not include those bytes",
        );
    }
    let body = wanted.trim_end_matches('\n');
    if body.is_empty() {
        return None;
    }
    if !text.ends_with(wanted) && text.trim_end_matches('\n').ends_with(body) {
        return Some(
            "the file ends there with fewer line endings; remove the line endings at the end of \
             the text",
        );
    }
    let mut bare = String::with_capacity(body.len());
    for line in body.split('\n') {
        let (mark, rest) = line.split_once('\t')?;
        mark.trim_start_matches(' ').parse::<u64>().ok()?;
        bare.push_str(rest);
        bare.push('\n');
    }
    let bare = bare.trim_end_matches('\n');
    (!bare.is_empty() && text.contains(bare)).then_some(
        "its lines begin with the line numbers that `read` shows; remove them, in `new_string` too",
    )
}

/// Returns `lines` lines of `text` after the first `skipped`, at most [`MAX_DIFFED`]. Long lines are truncated,
/// and each line has a line break.
fn excerpt(text: &str, skipped: usize, lines: usize) -> String {
    let mut excerpt = String::new();
    for line in text.lines().skip(skipped).take(lines.min(MAX_DIFFED)) {
        let (line, more) = cut(line);
        excerpt.push_str(line);
        excerpt.push_str(if more { "…\n" } else { "\n" });
    }
    excerpt
}

/// The error with the most similar place, and a diff from this place to the given text.
fn missed(
    shown: &str,
    content: &[u8],
    text: &str,
    wanted: &str,
    place: &NearestMatch,
) -> ToolError {
    let quote = |line: &Option<String>| match line {
        Some(line) if line.chars().count() > SHOWN => {
            format!("{:?}…", line.chars().take(SHOWN).collect::<String>())
        }
        Some(line) => format!("{line:?}"),
        None => "nothing".to_owned(),
    };
    let difference = if place.wanted == place.found {
        if content.contains(&b'\r') {
            "the text is the same and the line endings differ: the file has CRLF".to_owned()
        } else {
            "the text differs after these lines".to_owned()
        }
    } else {
        let blank = if place.is_blank_difference() {
            " (only white space)"
        } else {
            ""
        };
        format!(
            "first difference{blank} at line {}: expected {}, found {}",
            place.line,
            quote(&place.wanted),
            quote(&place.found)
        )
    };
    let region = excerpt(text, place.first - 1, place.last + 1 - place.first);
    let wanted = excerpt(wanted, 0, usize::MAX);
    let name = format!("{shown} lines {}-{}", place.first, place.last);
    let diff = unified_diff(&name, region.as_bytes(), wanted.as_bytes()).unwrap_or_default();
    ToolError::Explained {
        category: ToolErrorCategory::InvalidParameters,
        message: format!(
            "`old_string` does not occur in {shown}. Closest: lines {}-{}, {}% alike{}; {difference}",
            place.first,
            place.last,
            place.percent,
            if place.is_far() {
                ", so read the file again"
            } else {
                ""
            },
        ),
        output: Box::new(ToolOutput::text(format!(
            "The closest lines (-), and `old_string` (+):\n{diff}"
        ))),
    }
}
