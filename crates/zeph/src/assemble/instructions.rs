//! Instructions of a project for agents: `ZEPH.md`, `AGENTS.md` and `CLAUDE.md`, from its root down to the working
//! directory.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use zeph_tools::file::ReadRules;

use crate::config::{Environment, project_directories};

/// The names, in the order in which they are read of one directory.
const NAMES: [&str; 3] = ["ZEPH.md", "AGENTS.md", "CLAUDE.md"];

/// The most bytes of one file.
const MAX_FILE_BYTES: usize = 64 * 1024;

/// The most bytes of all.
const MAX_TOTAL_BYTES: usize = 128 * 1024;

/// The instructions of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instructions {
    /// The text for the model; empty if there are no instructions.
    pub(crate) text: String,
    /// The files, the outermost first, with the bytes that are read of each.
    pub(crate) files: Vec<(PathBuf, usize)>,
    /// The skipped files or parts, with the reasons.
    pub(crate) notices: Vec<String>,
}

impl Instructions {
    /// Reads the files from the project's root down to the working directory, the outermost first.
    ///
    /// Files with equal text count once, such as a link from one name to another. A file that `rules`
    /// deny is not read, and neither is a link to one: the model would see its content.
    pub(crate) fn read(env: &Environment, rules: &ReadRules) -> Self {
        let mut found = Self::default();
        let mut texts: Vec<String> = Vec::new();
        let (directories, bounded) = project_directories(env);
        let Some(outermost) = directories.last() else {
            return found;
        };
        for directory in directories.iter().rev() {
            for name in NAMES {
                let file = directory.join(name);
                match read(&file, outermost, bounded, rules) {
                    Ok(None) => {}
                    Ok(Some((text, _))) if text.trim().is_empty() || texts.contains(&text) => {}
                    Ok(Some((text, bytes))) => {
                        found.add(&file, &text, bytes);
                        texts.push(text);
                    }
                    Err(error) => {
                        let file = file.display();
                        let notice = format!("{file} was not read as instructions: {error}");
                        found.notices.push(notice);
                    }
                }
            }
        }
        found
    }

    /// Adds the start of `text`. The file has `bytes` bytes.
    fn add(&mut self, file: &Path, text: &str, bytes: u64) {
        let room = MAX_TOTAL_BYTES
            .saturating_sub(self.text.len())
            .min(MAX_FILE_BYTES);
        let kept = &text[..text.floor_char_boundary(room)];
        let name = file.display();
        if (kept.len() as u64) < bytes {
            self.notices.push(format!(
                "{name} is too long for instructions: only {} of {bytes} bytes are read",
                kept.len()
            ));
        }
        if kept.is_empty() {
            return;
        }
        let end = if kept.ends_with('\n') { "" } else { "\n" };
        let _ = write!(self.text, "\nInstructions of {name}:\n\n{kept}{end}");
        self.files.push((file.to_owned(), kept.len()));
    }

    /// A line of `/status`.
    pub(crate) fn summary(&self) -> String {
        if self.files.is_empty() {
            return "none (ZEPH.md, AGENTS.md, CLAUDE.md)".to_owned();
        }
        let files = self.files.iter();
        let files = files.map(|(file, bytes)| format!("{} ({bytes} bytes)", file.display()));
        files.collect::<Vec<_>>().join(", ")
    }
}

/// The text of a file, up to a little more than [`MAX_FILE_BYTES`], and its size; `None` if it does not exist.
///
/// A link has to resolve to a file below `root`. If no repository bounds the project, only files of the user or of
/// root count: another user could have put theirs into a directory above.
#[allow(
    clippy::disallowed_methods,
    reason = "the target of a link is resolved, and exactly this file is opened"
)]
fn read(
    file: &Path,
    root: &Path,
    bounded: bool,
    rules: &ReadRules,
) -> io::Result<Option<(String, u64)>> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why.to_owned()));
    let target = match fs::canonicalize(file) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !target.starts_with(fs::canonicalize(root)?) {
        return refused("it is a link to a file outside the project");
    }
    // The rules match real paths: the name `AGENTS.md` must not hide `.env`.
    if let Some(rule) = rules.refusal(&target).or_else(|| rules.refusal(file)) {
        return refused(&format!("it may not be read: {rule}"));
    }
    // Opening a pipe would wait for its writer.
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(&target)?;
    let metadata = opened.metadata()?;
    if !metadata.is_file() {
        return refused("it is not a regular file");
    }
    let owner = metadata.uid();
    if !bounded && owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return refused(
            "it belongs to another user, and no repository of this project contains it",
        );
    }
    let mut bytes = Vec::new();
    opened
        .take(MAX_FILE_BYTES as u64 + 4)
        .read_to_end(&mut bytes)?;
    // The size limit may have split a character.
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() && bytes.len() > MAX_FILE_BYTES => {
            error.valid_up_to()
        }
        Err(_) => return refused("it is not UTF-8"),
    };
    bytes.truncate(whole);
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => refused("it is not text"),
        Ok(text) => Ok(Some((text, metadata.len()))),
        Err(_) => refused("it is not UTF-8"),
    }
}
