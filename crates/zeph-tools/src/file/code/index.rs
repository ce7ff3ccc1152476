//! The port of the index: what keeps the symbols of files from call to call.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use zeph_symbols::{Symbol, SymbolKind};

/// Why the index did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the index of symbols {}: {reason}", if *.lost { "was damaged and is made anew" } else { "does not answer" })]
pub struct CodeIndexError {
    /// What it held is gone; the next call begins with an empty one.
    pub lost: bool,
    /// Why.
    pub reason: String,
}

/// How a file stood when its symbols were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMarks {
    /// What is left of device, inode, size and times; 0 where they cannot be trusted.
    pub marks: i64,
    /// What is left of the content's SHA-256.
    pub content: i64,
    /// Whether all of its symbols are known.
    pub whole: bool,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// Its canonical path.
    pub path: String,
    /// How it stood.
    pub marks: FileMarks,
    /// Its symbols; `None` where they are those that the index has.
    pub symbols: Option<Vec<Symbol>>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// A name, or a part of one.
    pub name: String,
    /// A piece of what it lies in; empty for anything.
    pub container: String,
    /// What it may name; empty for anything.
    pub kinds: Vec<SymbolKind>,
    /// The canonical path of the directory or file that it lies in.
    pub below: String,
    /// How many of them.
    pub most: usize,
}

/// A symbol, and the canonical path of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The file.
    pub path: String,
    /// The symbol.
    pub symbol: Symbol,
}

/// Keeps the symbols of files. Several processes may share one.
#[async_trait]
pub trait CodeIndex: Send + Sync {
    /// All files that it knows, by their canonical paths, and the version of what it holds: another one
    /// where another process, or another index of this one, changed it since.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn files(&self) -> Result<(HashMap<String, FileMarks>, i64), CodeIndexError>;

    /// Takes in what was read of files, all or none. Where the symbols of a file are said to be those that it
    /// has, and it has those of another content by now, it leaves that file as it is.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn put(&self, files: Vec<ReadFile>) -> Result<(), CodeIndexError>;

    /// Forgets files, all or none.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn forget(&self, paths: Vec<String>) -> Result<(), CodeIndexError>;

    /// The symbols that fit best, those first, as [`rank`](zeph_symbols::rank) orders them, and the version
    /// that they are of.
    ///
    /// # Errors
    /// [`CodeIndexError`].
    async fn find(&self, wanted: &Wanted) -> Result<(Vec<Located>, i64), CodeIndexError>;
}

/// The name of the file of the index of the project at `project` (canonical).
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
