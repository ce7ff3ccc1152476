//! Limits for globs from calls and ignore files: the glob library recurses into braces, and its compiled form
//! grows with the text.

use crate::error::ToolError;

/// The maximum length of a glob in bytes.
const MAX_GLOB_BYTES: usize = 1024;
/// The maximum number of opening braces in a glob.
const MAX_BRACES: usize = 32;

/// Returns true if `glob` can be compiled in bounded time and memory.
pub(super) fn is_bounded(glob: &str) -> bool {
    glob.len() <= MAX_GLOB_BYTES && glob.bytes().filter(|byte| *byte == b'{').count() <= MAX_BRACES
}

/// Rejects a glob that exceeds the limits. `field`: the name of the argument.
///
/// # Errors
/// [`ToolError::InvalidParameters`].
pub(super) fn check(field: &str, glob: &str) -> Result<(), ToolError> {
    if is_bounded(glob) {
        return Ok(());
    }
    Err(ToolError::invalid(format!(
        "`/{field}` expects a glob of at most {MAX_GLOB_BYTES} bytes and {MAX_BRACES} braces, got {} bytes",
        glob.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_pathological_globs() {
        let check = |glob: String, expect| assert_eq!(is_bounded(&glob), expect, "{glob}");
        check("**/*.{rs,toml}".to_owned(), true);
        check("?".repeat(1024), true);
        check("?".repeat(1025), false);
        check(format!("{}a{}", "{".repeat(32), "}".repeat(32)), true);
        check(format!("{}a{}", "{".repeat(33), "}".repeat(33)), false);
    }
}
