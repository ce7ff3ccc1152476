//! Previews of the changes of a call, before it runs.

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use crate::call::ToolCall;
#[cfg(feature = "file")]
use crate::error::ToolError;

/// A preview of the changes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// A unified diff.
    pub diff: String,
    /// The digest of the file content before the diff, from [`basis`]: the call runs only if the content is
    /// unchanged.
    pub basis: [u8; 32],
}

/// A provider of previews.
#[async_trait]
pub trait PreviewProvider: std::fmt::Debug + Send + Sync {
    /// Returns the changes of `call`; `None` if they cannot be shown.
    async fn preview(&self, call: &ToolCall) -> Option<Preview>;
}

/// Returns the digest of the content of a file; `None` for a missing file.
#[must_use]
pub fn basis(content: Option<&[u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    if let Some(content) = content {
        hash.update([1]);
        hash.update(content);
    }
    hash.finalize().into()
}

/// Refuses a change of the file `shown` if its content differs from the preview that the user saw: `agreed` is
/// the digest in the preview, `now` the current content (`None`: content that was not read).
///
/// # Errors
/// A refusal; the call can be made again.
#[cfg(feature = "file")]
pub(crate) fn check_basis(
    agreed: Option<[u8; 32]>,
    now: Option<Option<&[u8]>>,
    shown: &str,
) -> Result<(), ToolError> {
    match (agreed, now) {
        (None, _) => Ok(()),
        (Some(agreed), Some(now)) if basis(now) == agreed => Ok(()),
        _ => Err(ToolError::blocked(format!(
            "{shown} changed after the user saw the preview of this call, so nothing was written: \
             read the file again and repeat the call; the user then decides again"
        ))),
    }
}
