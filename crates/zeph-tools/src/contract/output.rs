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

    /// Returns the text for the user.
    #[must_use]
    pub fn display(&self) -> &str {
        self.display.as_deref().unwrap_or(&self.summary)
    }
}
