//! Globs over paths, as `deny_read` and the words of commands have them.

use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder};

/// Compiles a glob over paths: `*` and `?` do not match `/`.
pub(crate) fn compile(glob: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
}

/// Returns the directories that a glob begins with, up to the first component that is not a plain name.
pub(crate) fn plain_base(glob: &Path) -> PathBuf {
    let is_plain = |part: &Component<'_>| match part {
        Component::Normal(name) => name
            .to_str()
            .is_some_and(|name| !name.contains(['*', '?', '[', ']', '{', '}', ',', '\\'])),
        _ => true,
    };
    glob.components().take_while(is_plain).collect()
}
