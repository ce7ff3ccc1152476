//! Whether the results of a tool may be cached, and whether it changes files: `ToolDef::with_cache` declares it.

use serde::Serialize;

/// The effect of a call on cached results. The default is that of an unknown tool: not cached, changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CachePolicy {
    /// Whether its results may be cached.
    pub is_cacheable: bool,
    /// Whether it may change files of the project, which invalidates all results that depend on files.
    pub changes_files: bool,
}

impl CachePolicy {
    /// The policy of a tool that only reads, and whose result depends on files or on time.
    pub const CACHED: Self = Self {
        is_cacheable: true,
        changes_files: false,
    };
    /// The policy of a tool that leaves files unchanged, but has other effects or results that change without a call.
    pub const LEAVES_FILES: Self = Self {
        is_cacheable: false,
        changes_files: false,
    };
    /// The policy of a tool with cacheable results that runs programs of the project.
    pub const CACHED_PROGRAM: Self = Self {
        is_cacheable: true,
        changes_files: true,
    };
    /// The policy of a tool that may change files.
    pub const CHANGES_FILES: Self = Self {
        is_cacheable: false,
        changes_files: true,
    };
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self::CHANGES_FILES
    }
}
