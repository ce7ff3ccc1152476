//! The output of a successful call.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::cache_validity::CacheValidity;
use crate::overflow::Overflow;

/// A place in a file that a call read or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLocation {
    /// Absolute path.
    pub path: PathBuf,
    /// Line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// The text of a file before and after a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Absolute path.
    pub path: PathBuf,
    /// The text before; `None` for a new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The text after.
    pub after: String,
}

impl FileChange {
    /// The maximum size of both texts together. Of a larger file, the changed lines and some lines around them are
    /// shown.
    const MAX_WHOLE_BYTES: usize = 32 * 1024;
    /// The maximum size of both parts together. A larger change is not shown as texts.
    const MAX_BYTES: usize = 256 * 1024;
    /// The unchanged lines that a part has before and after the change.
    const CONTEXT_LINES: usize = 3;

    /// Creates the change of the file at `path`; `None` if the texts are equal or the change is too large.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, before: Option<&[u8]>, after: &[u8]) -> Option<Self> {
        if before == Some(after) {
            return None;
        }
        let size =
            |before: Option<&[u8]>, after: &[u8]| before.map_or(0, <[u8]>::len) + after.len();
        let (before, after) = match before {
            Some(old) if size(before, after) > Self::MAX_WHOLE_BYTES => {
                let (old, new) = changed_part(old, after, Self::CONTEXT_LINES);
                (Some(old), new)
            }
            before => (before, after),
        };
        (size(before, after) <= Self::MAX_BYTES).then(|| Self {
            path: path.into(),
            before: before.map(|text| String::from_utf8_lossy(text).into_owned()),
            after: String::from_utf8_lossy(after).into_owned(),
        })
    }
}

/// The lines of both texts from the first to the last difference, with up to `context` equal lines around them.
fn changed_part<'t>(old: &'t [u8], new: &'t [u8], context: usize) -> (&'t [u8], &'t [u8]) {
    let lines = |text: &'t [u8]| {
        text.split_inclusive(|byte| *byte == b'\n')
            .collect::<Vec<_>>()
    };
    let (old_lines, new_lines) = (lines(old), lines(new));
    let equal = |pairs: &mut dyn Iterator<Item = (&&[u8], &&[u8])>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let start = equal(&mut old_lines.iter().zip(&new_lines));
    let (old_rest, new_rest) = (&old_lines[start..], &new_lines[start..]);
    let end = equal(&mut old_rest.iter().rev().zip(new_rest.iter().rev()));
    let bytes = |lines: &[&[u8]]| lines.iter().map(|line| line.len()).sum::<usize>();
    let first = bytes(&old_lines[..start.saturating_sub(context)]);
    let changed = |text: &'t [u8], lines: &[&[u8]]| {
        let unchanged = end.saturating_sub(context).min(lines.len());
        let last = text.len() - bytes(&lines[lines.len() - unchanged..]);
        &text[first..last]
    };
    (changed(old, &old_lines), changed(new, &new_lines))
}

/// An image in a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageContent {
    /// MIME type, `image/png` for one.
    pub media_type: String,
    /// The bytes in standard base64.
    pub data: String,
}

/// The statistics of a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilterStats {
    /// The rule that was used.
    pub rule: String,
    /// Lines before.
    pub lines_before: usize,
    /// Lines after.
    pub lines_after: usize,
    /// Bytes before.
    pub bytes_before: usize,
    /// Bytes after.
    pub bytes_after: usize,
    /// How well the output was understood: `full`, `partial` or `fallback`.
    pub confidence: String,
}

impl FilterStats {
    /// Returns a note for the user if lines were removed: `[shell] 342 lines -> 28 lines, 91.8% filtered`.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let (before, after) = (self.lines_before, self.lines_after);
        let gone = before.checked_sub(after).filter(|gone| *gone > 0)?;
        // Rounded down, so that the note never claims 100 % while lines remain.
        let tenths = gone as u128 * 1000 / before as u128;
        Some(format!(
            "[shell] {before} lines -> {after} lines, {}.{}% filtered",
            tenths / 10,
            tenths % 10
        ))
    }
}

/// Time, size and date of a result. Filled in by the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutputMetadata {
    /// The duration of the call, without the time to wait for the user.
    pub execution_time_ms: u64,
    /// Bytes of [`ToolOutput::summary`].
    pub data_size_bytes: u64,
    /// The end of the call in milliseconds since the Unix epoch.
    pub timestamp: i64,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The text for the model.
    pub summary: String,
    /// The text for the user, if it differs: a diff, a live list.
    pub display: Option<String>,
    /// A stable JSON result: the shell envelope for `bash`.
    pub raw_response: Option<Value>,
    /// An image for a model that accepts images; the summary describes it.
    pub image: Option<ImageContent>,
    /// Files read or changed.
    pub locations: Vec<FileLocation>,
    /// The texts of changed files.
    pub changes: Vec<FileChange>,
    /// The statistics of the filter, if one ran.
    pub filter: Option<FilterStats>,
    /// The state of a text that was too long: `summary` begins with its start and end.
    pub overflow: Option<Overflow>,
    /// The validity, if the cache requested it; the cache removes it.
    pub basis: Option<CacheValidity>,
    /// The age of the cached result in seconds, if it is from the cache.
    pub cached_secs: Option<u64>,
    /// Time, size, date.
    pub metadata: OutputMetadata,
}

impl ToolOutput {
    /// Creates a result with the same text for model and user.
    #[must_use]
    pub fn text(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            ..Self::default()
        }
    }

    /// Sets the text for the user.
    #[must_use]
    pub fn with_display(mut self, display: impl Into<String>) -> Self {
        self.display = Some(display.into());
        self
    }

    /// Sets the JSON result.
    #[must_use]
    pub fn with_raw(mut self, raw: Value) -> Self {
        self.raw_response = Some(raw);
        self
    }

    /// Adds an image.
    #[must_use]
    pub fn with_image(mut self, image: ImageContent) -> Self {
        self.image = Some(image);
        self
    }

    /// Sets the validity for the cache.
    #[must_use]
    pub fn with_cache_validity(mut self, basis: Option<CacheValidity>) -> Self {
        self.basis = basis;
        self
    }

    /// Adds a place in a file.
    #[must_use]
    pub fn at(mut self, path: impl Into<PathBuf>, line: Option<u32>) -> Self {
        self.locations.push(FileLocation {
            path: path.into(),
            line,
        });
        self
    }

    /// Adds the text of a file before and after the call, if it changed.
    #[must_use]
    pub fn changing(mut self, change: Option<FileChange>) -> Self {
        self.changes.extend(change);
        self
    }

    /// Returns the text for the user.
    #[must_use]
    pub fn display(&self) -> &str {
        self.display.as_deref().unwrap_or(&self.summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves ACP-2: the change of a large file is shown by its changed lines.
    #[test]
    fn large_change_has_the_changed_lines_only() {
        let check = |old: &str, new: &str, expect: (&str, &str)| {
            let (old, new) = changed_part(old.as_bytes(), new.as_bytes(), 1);
            let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
            assert_eq!(
                (text(old), text(new)),
                (expect.0.to_owned(), expect.1.to_owned())
            );
        };
        check(
            "1\n2\n3\n4\n5\n",
            "1\n2\nx\n4\n5\n",
            ("2\n3\n4\n", "2\nx\n4\n"),
        );
        check("1\n1\n1\n", "1\n1\n1\n1\n", ("1\n", "1\n1\n"));
        check("a\nb", "a", ("a\nb", "a"));
        check("", "a\n", ("", "a\n"));
        let line = "a line of a file\n".repeat(4000);
        let new = line.replacen("file", "book", 1);
        let change = FileChange::new("/a", Some(line.as_bytes()), new.as_bytes()).unwrap();
        assert_eq!(
            change.after,
            format!("a line of a book\n{}", &line[..17 * 3])
        );
        assert_eq!(FileChange::new("/a", Some(b"a"), b"a"), None);
        let whole = FileChange::new("/a", Some(b"1\n2\n3\n4\n5\n"), b"1\n").unwrap();
        assert_eq!(whole.before.as_deref(), Some("1\n2\n3\n4\n5\n"));
        assert_eq!(FileChange::new("/a", None, &[b'a'; 300_000]), None);
    }
}
