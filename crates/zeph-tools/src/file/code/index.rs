//! The interface of the symbol index, which stores the symbols of files between calls.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use zeph_symbols::{Symbol, SymbolKind};

/// A failure of the symbol index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the index of symbols {}: {reason}", if *.lost { "was damaged and is \
    rebuilt" } else { "does not answer" })]
pub struct CodeIndexError {
    /// True if the contents are lost. The next call begins with an empty index.
    pub lost: bool,
    /// The cause.
    pub reason: String,
}

/// The state of a file when its symbols were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMarks {
    /// A digest of device, inode, size and times; 0 if a later change could leave them equal.
    pub marks: i64,
    /// The shortened SHA-256 of the content.
    pub content: i64,
    /// True if all symbols of the file are known.
    pub whole: bool,
}

/// A file that was read for the index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadFile {
    /// The canonical path.
    pub path: String,
    /// The state of the file.
    pub marks: FileMarks,
    /// The symbols; `None` if the index already has them.
    pub symbols: Option<Vec<Symbol>>,
}

/// A query of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// A name or a part of a name.
    pub name: String,
    /// A part of the name of the symbol's container; empty for any container.
    pub container: String,
    /// The accepted kinds of symbols; empty for any kind.
    pub kinds: Vec<SymbolKind>,
    /// The canonical path of the searched directory or file.
    pub below: String,
    /// The maximum number of shown results. The index returns one more if it has more.
    pub most: usize,
}

/// A symbol and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The canonical path of the file.
    pub path: String,
    /// The symbol.
    pub symbol: Symbol,
}

/// An index that stores the symbols of files. Several processes may share one.
#[async_trait]
pub trait CodeIndex: Send + Sync {
    /// Returns all files in the index by their canonical paths, and the version of the index. The version changes if
    /// another process, or another index of this process, changes the contents.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn files(&self) -> Result<(HashMap<String, FileMarks>, i64), CodeIndexError>;

    /// Stores the results for files, all or none. A file without symbols is left unchanged if the index by now has
    /// symbols of another content.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn put(&self, files: Vec<ReadFile>) -> Result<(), CodeIndexError>;

    /// Removes files, all or none.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn forget(&self, paths: Vec<String>) -> Result<(), CodeIndexError>;

    /// Returns the best matches in the order of [`rank`](zeph_symbols::rank), and the version of the index.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn find(&self, wanted: &Wanted) -> Result<(Vec<Located>, i64), CodeIndexError>;
}

/// Returns the file name of the index for the project at the canonical path `project`.
#[must_use]
pub fn file_name(project: &Path) -> String {
    let digest = Sha256::digest(project.as_os_str().as_bytes());
    let digits: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{digits}.db")
}
