//! The cacheable tools and the tools that change files. Each built-in tool is in [`CACHEABLE`] or [`NEVER`].
//! An unlisted tool, such as a tool of an MCP server, is not cached and is assumed to change files.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The tools with results that may be cached.
pub static CACHEABLE: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    HashSet::from([
        "read",
        "grep",
        "find_path",
        "list_directory",
        "get_file_tree",
        "search_code",
        "web_scrape",
        "fetch",
        "diagnostics",
    ])
});

/// The tools with results that are never cached: they change something, or their results change without a call.
pub static NEVER: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    HashSet::from([
        "bash",
        "job_output",
        "job_kill",
        "job_list",
        "write",
        "edit",
        "create_directory",
        "delete_path",
        "move_path",
        "copy_path",
        "memory_save",
        "memory_search",
        "scheduler",
        "add_task",
        "list_tasks",
        "update_task",
        "compress_context",
        "load_skill",
        "invoke_skill",
        "get_current_time",
        "read_overflow",
    ])
});

/// The tools that do not change the files of the project. They include read-only tools, except tools that run
/// programs of the project (`diagnostics`: build scripts).
static LEAVE_FILES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    HashSet::from([
        "read",
        "grep",
        "find_path",
        "list_directory",
        "get_file_tree",
        "search_code",
        "web_scrape",
        "fetch",
        "job_output",
        "job_list",
        "memory_save",
        "memory_search",
        "add_task",
        "list_tasks",
        "update_task",
        "compress_context",
        "scheduler",
        "load_skill",
        "invoke_skill",
        "get_current_time",
        "read_overflow",
    ])
});

/// Whether results of `tool` may be cached.
#[must_use]
pub fn is_cacheable(tool: &str) -> bool {
    CACHEABLE.contains(tool) && !NEVER.contains(tool)
}

/// Whether a call of `tool` may change files, which invalidates all results that depend on files.
#[must_use]
pub fn changes_files(tool: &str) -> bool {
    !LEAVE_FILES.contains(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-41 in part.
    #[test]
    fn no_tool_stands_in_both_sets() {
        assert!(CACHEABLE.is_disjoint(&NEVER));
        for tool in LEAVE_FILES.iter() {
            assert!(CACHEABLE.contains(tool) || NEVER.contains(tool), "{tool}");
        }
    }

    /// Proves OUT-41 in part.
    #[test]
    fn what_is_not_known_is_not_kept_and_not_trusted() {
        for tool in ["mcp_files_read", "mcp_x", "", "Read", "anything"] {
            assert!(!is_cacheable(tool) && changes_files(tool), "{tool}");
        }
        for tool in [
            "bash",
            "write",
            "edit",
            "delete_path",
            "diagnostics",
            "job_kill",
        ] {
            assert!(changes_files(tool), "{tool}");
        }
        assert!(!changes_files("read") && is_cacheable("read"));
    }
}
