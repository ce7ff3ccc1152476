//! What a call would change, shown before it does.

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use crate::call::ToolCall;
#[cfg(feature = "file")]
use crate::error::ToolError;

/// What a call would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// A unified diff.
    pub diff: String,
    /// What the diff was made from, as [`basis`] says: the call is made only if that still stands.
    pub basis: [u8; 32],
}

/// Finds out what calls would change.
#[async_trait]
pub trait PreviewProvider: std::fmt::Debug + Send + Sync {
    /// What `call` would change; `None` where that cannot be shown.
    async fn preview(&self, call: &ToolCall) -> Option<Preview>;
}

/// What stands for the content of a file; `None` is no file.
#[must_use]
pub fn basis(content: Option<&[u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    if let Some(content) = content {
        hash.update([1]);
        hash.update(content);
    }
    hash.finalize().into()
}

/// Refuses a change of the file that `shown` names where a person was shown another one: `agreed` is
/// what they saw, `now` what stands there (`None`: something that was not read).
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
            "{shown} was changed after the user was shown what this call would change; nothing was written: read it again, and the user is asked again"
        ))),
    }
}
