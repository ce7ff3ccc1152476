//! The port to the store of long outputs.

use async_trait::async_trait;

use super::reference::OverflowRef;
use super::spill::{self, Spilled};

/// An output to store.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// The id.
    pub reference: OverflowRef,
    /// The conversation of the output; both are deleted together.
    pub conversation: String,
    /// The tool that produced it.
    pub tool: String,
    /// The text.
    pub text: Spilled,
}

/// The metadata of a stored output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverflowEntry {
    /// The id.
    pub reference: OverflowRef,
    /// The conversation of the output.
    pub conversation: String,
    /// The tool that produced it.
    pub tool: String,
    /// The time of storage in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// The number of stored bytes.
    pub bytes: u64,
    /// The number of stored lines.
    pub lines: u64,
    /// The number of bytes of the complete output; more than `bytes` if it was cut.
    pub total_bytes: u64,
    /// The number (from 1) of the first line of each block.
    pub blocks: Vec<u64>,
}

impl OverflowEntry {
    /// Describes the missing end, in a sentence without a full stop.
    #[must_use]
    pub fn cut(&self) -> Option<String> {
        (self.total_bytes > self.bytes).then(|| {
            format!(
                "cut before it was stored: the first {} of {} bytes ([tools.overflow] max_overflow_bytes)",
                self.bytes, self.total_bytes
            )
        })
    }

    /// Returns the block in which line `line` (from 1) begins, or the one that ends before it.
    #[must_use]
    pub fn block_of(&self, line: u64) -> usize {
        self.blocks
            .partition_point(|first| *first < line)
            .saturating_sub(1)
    }
}

/// A compressed block of a stored output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlock {
    /// The size of its text in bytes.
    pub bytes: usize,
    /// The compressed text.
    pub packed: Vec<u8>,
}

impl StoredBlock {
    /// Returns the text.
    ///
    /// # Errors
    /// [`OverflowError::Failed`] if it is damaged.
    pub fn text(&self) -> Result<String, OverflowError> {
        spill::unpack(&self.packed, self.bytes)
            .map_err(|reason| OverflowError::Failed(format!("a stored block is damaged: {reason}")))
    }
}

/// The reason why an output was not stored or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverflowError {
    /// The conversation does not exist.
    #[error("the conversation is not stored, so its output cannot be stored")]
    NoConversation,
    /// The store failed; the text is for the user.
    #[error("{0}")]
    Failed(String),
}

/// A store of outputs, each for its conversation.
#[async_trait]
pub trait OverflowStore: Send + Sync {
    /// Stores an output. When this returns, the output is durable.
    ///
    /// # Errors
    /// [`OverflowError`] if it is not stored; then no part of it is.
    async fn put(&self, entry: NewEntry) -> Result<(), OverflowError>;

    /// Returns the metadata of an output of this conversation; `None` for an output of another conversation and
    /// for an unknown one.
    ///
    /// # Errors
    /// [`OverflowError::Failed`].
    async fn find(
        &self,
        conversation: &str,
        reference: OverflowRef,
    ) -> Result<Option<OverflowEntry>, OverflowError>;

    /// Returns the block `number` (from 0) of an output of this conversation.
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
