//! The port to the files that commands may not read.

use std::fmt::Debug;
use std::path::PathBuf;

/// The denied files that a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Real paths of files and directories, sorted. No path is inside another one.
    pub paths: Vec<PathBuf>,
    /// The part of the search that exceeded its bounds, as a sentence without a full stop.
    pub missed: Option<String>,
}

/// The files that commands may not read.
pub trait DeniedFiles: Debug + Send + Sync {
    /// Whether rules deny any files.
    fn has_rules(&self) -> bool;

    /// The globs of all denied paths.
    fn globs(&self) -> Vec<String>;

    /// Finds the existing files that the rules deny. Blocks while it reads directories.
    fn find(&self) -> FoundFiles;

    /// Files and directories of the program itself that no command may read.
    fn private(&self) -> &[PathBuf];

    /// The existing paths of [`DeniedFiles::private`]. A directory that contains a readable path is replaced by its
    /// other entries.
    fn private_entries(&self) -> Vec<PathBuf>;
}
