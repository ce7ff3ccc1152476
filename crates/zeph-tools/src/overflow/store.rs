//! The port to what keeps stored output.

use async_trait::async_trait;

use super::reference::OverflowRef;
use super::spill::{self, Spilled};

/// An output to store.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// How it will be called.
    pub reference: OverflowRef,
    /// The conversation it belongs to; it is deleted with it.
    pub conversation: String,
    /// The tool that yielded it.
    pub tool: String,
    /// The text.
    pub text: Spilled,
}

/// What is known of a stored output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverflowEntry {
    /// How it is called.
    pub reference: OverflowRef,
    /// The conversation it belongs to.
    pub conversation: String,
    /// The tool that yielded it.
    pub tool: String,
    /// When it was stored: milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Bytes that are stored.
    pub bytes: u64,
    /// Lines that are stored.
    pub lines: u64,
    /// Bytes of the whole output; more than `bytes` where it was cut.
    pub total_bytes: u64,
    /// For each block the number of the line (from 1) on which it begins.
    pub blocks: Vec<u64>,
}

impl OverflowEntry {
    /// What is missing at its end, in a sentence without a full stop.
    #[must_use]
    pub fn cut(&self) -> Option<String> {
        (self.total_bytes > self.bytes).then(|| {
            format!(
                "cut before it was stored: the first {} of {} bytes ([tools.overflow] max_overflow_bytes)",
                self.bytes, self.total_bytes
            )
        })
    }

    /// The block in which line `line` (from 1) begins, or the one that ends before it.
    #[must_use]
    pub fn block_of(&self, line: u64) -> usize {
        self.blocks
            .partition_point(|first| *first < line)
            .saturating_sub(1)
    }
}

/// One block of a stored output, compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlock {
    /// Bytes of its text.
    pub bytes: usize,
    /// The text, compressed.
    pub packed: Vec<u8>,
}

impl StoredBlock {
    /// Its text.
    ///
    /// # Errors
    /// [`OverflowError::Failed`] when it is damaged.
    pub fn text(&self) -> Result<String, OverflowError> {
        spill::unpack(&self.packed, self.bytes)
            .map_err(|reason| OverflowError::Failed(format!("a stored block is damaged: {reason}")))
    }
}

/// Why an output was not stored, or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverflowError {
    /// There is no such conversation to keep it for.
    #[error("the conversation is not stored, so nothing can be stored for it")]
    NoConversation,
    /// The store failed; the text is for the person.
    #[error("{0}")]
    Failed(String),
}

/// Keeps outputs, each for the conversation it belongs to.
#[async_trait]
pub trait OverflowStore: Send + Sync {
    /// Stores an output. It survives the death of the process when this returns.
    ///
    /// # Errors
    /// [`OverflowError`] when it is not stored; then nothing of it is.
    async fn put(&self, entry: NewEntry) -> Result<(), OverflowError>;

    /// What is known of an output of this conversation; `None` for every other, as for one that
    /// never was.
    ///
    /// # Errors
    /// [`OverflowError::Failed`].
    async fn find(
        &self,
        conversation: &str,
        reference: OverflowRef,
    ) -> Result<Option<OverflowEntry>, OverflowError>;

    /// The block `number` (from 0) of an output of this conversation.
    ///
    /// # Errors
    /// [`OverflowError::Failed`].
    async fn block(
        &self,
        conversation: &str,
        reference: OverflowRef,
        number: usize,
    ) -> Result<Option<StoredBlock>, OverflowError>;
}
