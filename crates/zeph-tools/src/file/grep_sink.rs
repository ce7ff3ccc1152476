//! Searches one file and collects its matches.

use std::cell::Cell;
use std::io::{self, Read};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};

use crate::error::ToolError;
use crate::file::budget::Budget;
use crate::file::lines::cut;

/// The maximum length of a line in bytes. Files with longer lines are not searched.
const MAX_LINE_BYTES: usize = 8 << 20;
/// The maximum length of a pattern in bytes.
const MAX_PATTERN_BYTES: usize = 32 << 10;
/// The maximum size of a compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 10 << 20;

/// A line of a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) line: u64,
    pub(super) text: String,
    /// True for a match, false for a context line.
    pub(super) matched: bool,
    /// True if lines are omitted before this one.
    pub(super) gap: bool,
}

/// The matches in one file.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    /// The number of matches in `hits`.
    pub(super) matches: usize,
    /// True if the file is binary. Then `hits` is empty.
    pub(super) binary: bool,
    /// True if the budget was spent before the end of the file.
    pub(super) cut: bool,
}

/// Compiles the matcher for `pattern`.
///
/// # Errors
/// [`ToolError::InvalidParameters`] with the fault in the pattern.
pub(super) fn matcher(pattern: &str, case_sensitive: bool) -> Result<RegexMatcher, ToolError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(ToolError::invalid(format!(
            "`/pattern` expects at most {MAX_PATTERN_BYTES} bytes, got {}",
            pattern.len()
        )));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(!case_sensitive)
        .multi_line(true)
        .crlf(true)
        .size_limit(MAX_COMPILED_BYTES)
        .build(pattern)
        .map_err(|error| {
            ToolError::invalid(format!(
                "`pattern` is not a regular expression (Rust syntax, one line at a time): {error}"
            ))
        })
}

/// Creates a searcher that returns `context` lines before and after each match.
pub(super) fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(MAX_LINE_BYTES))
        .build()
}

/// Searches `content`. It stops after more than `most` matches, or when the budget is spent.
///
/// # Errors
/// If the content cannot be read, or a line is too long.
pub(super) fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    content: impl Read,
    budget: &Budget,
    most: usize,
) -> io::Result<Found> {
    let mut gather = Gather {
        found: Found::default(),
        gap: false,
        most,
    };
    let cut = Cell::new(false);
    let reader = Budgeted {
        content,
        budget,
        cut: &cut,
    };
    searcher.search_reader(matcher, reader, &mut gather)?;
    gather.found.cut = cut.get();
    if gather.found.binary {
        gather.found.hits.clear();
        gather.found.matches = 0;
    }
    Ok(gather.found)
}

/// A reader that ends when the budget is spent.
struct Budgeted<'a, R> {
    content: R,
    budget: &'a Budget,
    cut: &'a Cell<bool>,
}

impl<R: Read> Read for Budgeted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.budget.spent().is_some() {
            self.cut.set(true);
            return Ok(0);
        }
        self.content.read(buffer)
    }
}

struct Gather {
    found: Found,
    gap: bool,
    most: usize,
}

impl Gather {
    fn push(&mut self, bytes: &[u8], line: Option<u64>, matched: bool) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let text = String::from_utf8_lossy(bytes);
        let (shown, more) = cut(&text);
        let mut shown = shown.to_owned();
        if more {
            shown.push_str(&format!(" [line cut; it has {} bytes]", bytes.len()));
        }
        self.found.hits.push(Hit {
            line: line.unwrap_or(0),
            text: shown,
            matched,
            gap: std::mem::take(&mut self.gap),
        });
    }
}

impl Sink for Gather {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.push(found.bytes(), found.line_number(), true);
        self.found.matches += 1;
        Ok(self.found.matches <= self.most)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push(context.bytes(), context.line_number(), false);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.gap = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.found.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A reader that cancels the budget with its last byte.
    struct Slow(CancellationToken, &'static [u8]);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.1.read(buffer)?;
            if self.1.is_empty() {
                self.0.cancel();
            }
            Ok(size)
        }
    }

    /// Proves FILE-15a in part.
    #[test]
    fn hits_before_the_end_of_the_budget_are_returned() {
        let cancel = CancellationToken::new();
        let budget = Budget::new(cancel.clone(), Duration::from_secs(60));
        let matcher = matcher("o", true).expect("a pattern");
        let found = search(
            &mut searcher(0),
            &matcher,
            Slow(cancel, b"one\ntwo\n"),
            &budget,
            9,
        )
        .expect("no I/O");
        assert_eq!((found.matches, found.cut), (2, true));
        assert_eq!(found.hits[1].text, "two");
    }

    #[test]
    fn overlong_line_takes_no_memory() {
        let budget = Budget::new(CancellationToken::new(), Duration::from_secs(60));
        let matcher = matcher("o", true).expect("a pattern");
        let endless = io::repeat(b'x').take(1 << 28);
        assert!(search(&mut searcher(0), &matcher, endless, &budget, 9).is_err());
    }
}
