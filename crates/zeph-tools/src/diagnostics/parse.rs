//! The parser of the messages of `cargo --message-format=json`, one JSON object per line, as a stream.
//!
//! Format: <https://doc.rust-lang.org/cargo/reference/external-tools.html#json-messages> and
//! <https://doc.rust-lang.org/rustc/json.html>.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

/// The maximum length of a line in bytes; a longer line is dropped. A compiler message has some kilobytes.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The code does not compile, or a lint forbids it.
    Error,
    /// The code compiles.
    Warning,
}

/// A diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The first line of the compiler message.
    pub message: String,
    /// The file, as cargo names it; `None` for a message without a location.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The error code (`E0308`) or the lint (`clippy::needless_return`).
    pub code: Option<String>,
}

impl Serialize for Diagnostic {
    /// Writes the column under both common names: `column` and `col`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Diagnostic", 7)?;
        fields.serialize_field("severity", &self.severity)?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("file", &self.file)?;
        fields.serialize_field("line", &self.line)?;
        fields.serialize_field("column", &self.column)?;
        fields.serialize_field("col", &self.column)?;
        fields.serialize_field("code", &self.code)?;
        fields.end()
    }
}

impl Diagnostic {
    /// Formats the diagnostic: `error[E0308] src/main.rs:3:5: mismatched types`.
    #[must_use]
    pub fn line(&self) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let code = self
            .code
            .as_ref()
            .map(|code| format!("[{code}]"))
            .unwrap_or_default();
        let place = match (&self.file, self.line, self.column) {
            (Some(file), Some(line), Some(column)) => format!(" {file}:{line}:{column}"),
            (Some(file), ..) => format!(" {file}"),
            (None, ..) => String::new(),
        };
        format!("{severity}{code}{place}: {}", self.message)
    }
}

/// The diagnostics of cargo: errors first, each kind in its order, without duplicates.
#[derive(Debug, Default)]
pub struct Collector {
    most: usize,
    partial: Vec<u8>,
    /// Whether the rest of a line that was too long is being skipped.
    skipping: bool,
    seen: HashSet<Diagnostic>,
    /// The manifests of packages with sources only on this disk.
    manifests: HashSet<PathBuf>,
    kept: [Vec<Diagnostic>; 2],
    counts: [usize; 2],
}

impl Collector {
    /// Creates a collector of at most `most` diagnostics; the others are counted.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Processes a part of standard output.
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ended = piece.ends_with(b"\n");
            if !self.skipping {
                if self.partial.len() + piece.len() > MAX_LINE_BYTES {
                    self.skipping = true;
                    self.partial.clear();
                } else {
                    self.partial.extend_from_slice(piece);
                }
            }
            if ended {
                if !self.skipping {
                    let line = std::mem::take(&mut self.partial);
                    self.line(&line);
                }
                self.skipping = false;
            }
        }
    }

    fn line(&mut self, line: &[u8]) {
        let Ok(Message {
            reason,
            message,
            package_id,
            manifest_path,
        }) = serde_json::from_slice(line)
        else {
            return;
        };
        if let (Some(id), Some(manifest)) = (package_id, manifest_path)
            && id.starts_with("path+")
        {
            self.manifests.insert(manifest);
        }
        let Some(message) = message else {
            return;
        };
        if reason != "compiler-message" {
            return;
        }
        let Some(diagnostic) = message.diagnostic() else {
            return;
        };
        // The same source is compiled for several targets. The set of seen diagnostics is bounded, too.
        if self.seen.len() < 100_000 && !self.seen.insert(diagnostic.clone()) {
            return;
        }
        let kind = diagnostic.severity as usize;
        self.counts[kind] += 1;
        if self.kept[kind].len() < self.most {
            self.kept[kind].push(diagnostic);
        }
    }

    /// Returns the manifests of the packages with sources only on this disk.
    pub fn manifests(&self) -> impl Iterator<Item = &Path> {
        self.manifests.iter().map(PathBuf::as_path)
    }

    /// Returns the numbers of errors and warnings.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.counts[0], self.counts[1])
    }

    /// Returns the diagnostics, errors first, up to the limit.
    #[must_use]
    pub fn finish(mut self) -> Vec<Diagnostic> {
        let partial = std::mem::take(&mut self.partial);
        if !self.skipping {
            self.line(&partial);
        }
        let [mut all, warnings] = self.kept;
        all.extend(warnings);
        all.truncate(self.most);
        all
    }
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    message: Option<CompilerMessage>,
    package_id: Option<String>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CompilerMessage {
    message: String,
    level: String,
    code: Option<Code>,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    column_start: u32,
    is_primary: bool,
}

impl CompilerMessage {
    /// Converts the message; `None` for notes, and for summaries of the compiler without a location.
    fn diagnostic(self) -> Option<Diagnostic> {
        let severity = match self.level.as_str() {
            "error" | "error: internal compiler error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => return None,
        };
        let summary = self.spans.is_empty()
            && self.code.is_none()
            && (self.message.starts_with("aborting due to")
                || self.message.ends_with("warning emitted")
                || self.message.ends_with("warnings emitted"));
        if summary {
            return None;
        }
        let span = self
            .spans
            .iter()
            .position(|span| span.is_primary)
            .or((!self.spans.is_empty()).then_some(0));
        let span = span.and_then(|at| self.spans.into_iter().nth(at));
        Some(Diagnostic {
            severity,
            message: self.message.lines().next().unwrap_or_default().to_owned(),
            line: span.as_ref().map(|span| span.line_start),
            column: span.as_ref().map(|span| span.column_start),
            file: span.map(|span| span.file_name),
            code: self.code.map(|code| code.code),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn message(level: &str, text: &str, code: Option<&str>, place: Option<(&str, u32)>) -> String {
        let spans: Vec<_> = place
            .iter()
            .map(|(file, line)| {
                json!({"file_name": file, "line_start": line, "column_start": 5, "is_primary": true})
            })
            .collect();
        let code = code.map(|code| json!({"code": code, "explanation": null}));
        let line = json!({"reason": "compiler-message", "package_id": "p",
            "message": {"message": text, "level": level, "code": code, "spans": spans}});
        format!("{line}\n")
    }

    fn sample() -> String {
        [
            "{\"reason\":\"compiler-artifact\"}\n".to_owned(),
            message(
                "warning",
                "unused variable",
                Some("unused_variables"),
                Some(("src/a.rs", 3)),
            ),
            message(
                "error",
                "mismatched types\nmore",
                Some("E0308"),
                Some(("src/b.rs", 7)),
            ),
            message(
                "error",
                "mismatched types\nmore",
                Some("E0308"),
                Some(("src/b.rs", 7)),
            ),
            message("note", "see here", None, Some(("src/c.rs", 1))),
            message("error", "aborting due to 1 previous error", None, None),
            message("warning", "1 warning emitted", None, None),
            "not json\n".to_owned(),
            "{\"reason\":\"build-finished\",\"success\":false}\n".to_owned(),
        ]
        .concat()
    }

    /// Proves EXE-30.
    #[test]
    fn errors_come_first_with_place_and_code() {
        let mut collector = Collector::new(50);
        collector.push(sample().as_bytes());
        assert_eq!(collector.counts(), (1, 1));
        let lines: Vec<_> = collector.finish().iter().map(Diagnostic::line).collect();
        assert_eq!(
            lines,
            [
                "error[E0308] src/b.rs:7:5: mismatched types",
                "warning[unused_variables] src/a.rs:3:5: unused variable",
            ]
        );
    }

    #[test]
    fn cap_retains_errors_and_counts_all() {
        let mut collector = Collector::new(2);
        for line in 0..5 {
            collector.push(message("warning", "w", None, Some(("a", line))).as_bytes());
        }
        for line in 0..2 {
            collector.push(message("error", "e", None, Some(("a", line))).as_bytes());
        }
        assert_eq!(collector.counts(), (2, 5));
        let kept = collector.finish();
        assert!(
            kept.iter().all(|one| one.severity == Severity::Error),
            "{kept:?}"
        );
    }

    #[test]
    fn endless_line_is_dropped_and_the_next_one_is_parsed() {
        let mut collector = Collector::new(5);
        for _ in 0..6 {
            collector.push(&vec![b'x'; 1024 * 1024]);
        }
        collector.push(b"\n");
        collector.push(sample().as_bytes());
        assert_eq!(collector.counts(), (1, 1));
    }

    proptest! {
        #[test]
        fn chunking_has_no_effect(cuts in proptest::collection::vec(1usize..400, 0..20)) {
            let text = sample();
            let mut collector = Collector::new(50);
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                collector.push(piece);
                rest = after;
            }
            collector.push(rest);
            let mut whole = Collector::new(50);
            whole.push(text.as_bytes());
            prop_assert_eq!(collector.finish(), whole.finish());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut collector = Collector::new(3);
            collector.push(&bytes);
            let _ = collector.finish();
        }
    }
}
