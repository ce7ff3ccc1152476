//! File tools in a path sandbox.
//!
//! Every path of a model passes [`Sandbox`]. It returns directory handles and names, and all I/O is relative to
//! them (`resolved_path`, `walk`, `atomic`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::ToolError;
use crate::tool_set::{Tool, ToolGroup, ToolSet};

mod atomic;
mod budget;
mod cache_validation;
mod change;
#[cfg(feature = "syntax")]
pub mod code;
pub mod config;
mod copy_path;
mod copy_tree;
mod create_directory;
mod delete_path;
pub mod deny_list_scan;
mod edit;
mod editor;
mod find_path;
pub(crate) mod fingerprint;
mod get_file_tree;
mod glob;
mod grep;
mod grep_sink;
mod ignored;
mod image;
mod lines;
mod list_directory;
mod locks;
mod move_path;
mod preview;
mod read;
mod resolve;
mod resolved_path;
pub(crate) mod rules;
mod sandbox;
mod snapshot;
mod sniff;
mod staleness;
mod suggestions;
mod tree_walk;
mod undo;
mod undo_recorder;
mod walk;
mod write;

pub use config::FileConfig;
pub use editor::{EditorError, EditorFiles, EditorReader, EditorWriter};
pub use preview::FilePreviews;
pub use rules::{ReadRules, RuleError, literal};
pub use sandbox::{Sandbox, SandboxError};
pub use undo::FileUndo;
pub use zeph_edit::unified_diff;

/// The time after which a search ends with a partial result.
const SEARCH_TIME: Duration = Duration::from_secs(20);

/// The executor of the file tools.
#[derive(Clone)]
pub struct FileExecutor {
    tools: ToolSet,
}

impl FileExecutor {
    /// Creates file tools that have access only to `sandbox`.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>) -> Self {
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(read::ReadTool::new(Arc::clone(&sandbox))),
            Arc::new(write::WriteTool::new(Arc::clone(&sandbox))),
            Arc::new(edit::EditTool::new(Arc::clone(&sandbox))),
            Arc::new(grep::GrepTool::new(Arc::clone(&sandbox), SEARCH_TIME)),
            Arc::new(find_path::FindPathTool::new(
                Arc::clone(&sandbox),
                SEARCH_TIME,
            )),
            Arc::new(list_directory::ListDirectoryTool::new(Arc::clone(&sandbox))),
            Arc::new(get_file_tree::GetFileTreeTool::new(
                Arc::clone(&sandbox),
                SEARCH_TIME,
            )),
            Arc::new(create_directory::CreateDirectoryTool::new(Arc::clone(
                &sandbox,
            ))),
            Arc::new(delete_path::DeletePathTool::new(Arc::clone(&sandbox))),
            Arc::new(move_path::MovePathTool::new(Arc::clone(&sandbox))),
            Arc::new(copy_path::CopyPathTool::new(sandbox)),
        ];
        Self {
            tools: ToolSet::new(tools),
        }
    }
}

impl ToolGroup for FileExecutor {
    fn tools(&self) -> &ToolSet {
        &self.tools
    }
}

/// The note about syntax errors that a change of the file at `path` introduced. `old` is `None` for a created
/// file.
#[cfg(feature = "syntax")]
fn syntax_note(path: &Path, old: Option<&[u8]>, new: &[u8]) -> String {
    let language = zeph_symbols::Language::from_path(path);
    let (old, new) = (edit::decoded(old.unwrap_or_default()), edit::decoded(new));
    let errors =
        language.and_then(|language| zeph_symbols::new_syntax_errors(language, &old, &new));
    errors.map_or_else(String::new, |errors| format!("\n{errors}"))
}

/// Returns an empty note, because no grammar is built in.
#[cfg(not(feature = "syntax"))]
fn syntax_note(_: &Path, _: Option<&[u8]>, _: &[u8]) -> String {
    String::new()
}

/// Runs file I/O on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::permanent(format!(
            "the tool failed because of a bug in Zeph: {error}"
        ))),
    }
}

#[cfg(all(test, feature = "syntax"))]
mod tests {
    use super::*;

    /// Proves FILE-23a in part.
    #[test]
    fn syntax_errors_of_utf16_files_are_reported() {
        let utf16 = |text: &str| -> Vec<u8> {
            let units = [0xfeff].into_iter().chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        let path = Path::new("a.rs");
        let old = utf16("fn a() {}");
        assert_eq!(syntax_note(path, Some(&old), &utf16("fn b() {}")), "");
        let note = syntax_note(path, Some(&old), &utf16("fn b( {}"));
        assert!(note.starts_with("\nSyntax (Rust): "), "{note}");
    }
}
