//! Summaries of over-long output: the port to a model, and the part of the output that it reads.

use async_trait::async_trait;

use super::spill::{Spilled, unpack};

/// The part of an over-long output that is summarized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The tool.
    pub tool: String,
    /// The start and the end of the output, or all of it.
    pub text: String,
    /// Bytes of the whole output.
    pub total_bytes: u64,
}

/// Summarizes over-long output, usually by a model.
#[async_trait]
pub trait OutputSummarizer: Send + Sync {
    /// The name of the model.
    fn name(&self) -> String;

    /// Bytes of output that one request can have.
    fn max_bytes(&self) -> usize;

    /// The summary. Dropping the future cancels the request.
    ///
    /// # Errors
    /// The reason for a missing summary.
    async fn summarize(&self, excerpt: &Excerpt) -> Result<String, String>;
}

impl Excerpt {
    /// Reads at most about `max_bytes` of a stored text: all of it, or its start and its end.
    ///
    /// # Errors
    /// The text cannot be read.
    pub fn read(tool: &str, spilled: &Spilled, max_bytes: usize) -> Result<Self, String> {
        let blocks = spilled.blocks();
        let block_text = |at: usize| {
            let block = blocks[at];
            let packed = spilled.packed(block).map_err(|error| error.to_string())?;
            unpack(&packed, block.bytes)
        };
        let mut text = String::new();
        let is_whole = usize::try_from(spilled.bytes()).is_ok_and(|bytes| bytes <= max_bytes);
        if is_whole {
            for at in 0..blocks.len() {
                text.push_str(&block_text(at)?);
            }
        } else {
            let half = max_bytes / 2;
            let mut at = 0;
            while at < blocks.len() && text.len() < half {
                text.push_str(&block_text(at)?);
                at += 1;
            }
            text.truncate(text.floor_char_boundary(half));
            let mut tail = String::new();
            let mut end = blocks.len();
            while end > 0 && tail.len() < half {
                end -= 1;
                tail.insert_str(0, &block_text(end)?);
            }
            let from = tail.ceil_char_boundary(tail.len().saturating_sub(half));
            text.push_str("\n[… the middle is omitted …]\n");
            text.push_str(&tail[from..]);
        }
        Ok(Self {
            tool: tool.to_owned(),
            text,
            total_bytes: spilled.total_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::spill::SpillBuffer;
    use super::*;

    fn read(text: &str, max_bytes: usize) -> String {
        let mut spill = SpillBuffer::new(u64::MAX);
        spill.push(text);
        let excerpt = Excerpt::read("bash", &spill.finish(), max_bytes).unwrap();
        assert_eq!(excerpt.total_bytes, text.len() as u64);
        excerpt.text
    }

    #[test]
    fn excerpt_of_a_long_text_has_its_start_and_its_end() {
        let cut = |head: &str, tail: &str| format!("{head}\n[… the middle is omitted …]\n{tail}");
        let check = |text: &str, max_bytes: usize, expect: &str| {
            assert_eq!(read(text, max_bytes), expect, "{max_bytes}");
        };
        check("", 10, "");
        check("abc", 10, "abc");
        check("abcdef", 6, "abcdef");
        check("abcdefg", 6, &cut("abc", "efg"));
        check("äöüß", 6, &cut("ä", "ß"));
        check("abcdefg", 0, &cut("", ""));
        // A text of several blocks.
        let long: String = (0..100_000).map(|n| format!("{n}\n")).collect();
        let found = read(&long, 40);
        assert!(
            found.starts_with("0\n1\n2\n") && found.ends_with("99998\n99999\n"),
            "{found}"
        );
        assert!(found.len() < 100, "{found}");
    }
}
