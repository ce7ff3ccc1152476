//! The content of a skill's folder, read once, so that the hashed content is the used content.
//!
//! Every entry is opened relative to its directory's handle, and no link is followed. An entry that is neither a
//! plain file nor a directory refuses the whole skill, and so does too much content.

use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use zeph_tools::audit::chain::hex_digest;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// Bytes of that file.
pub(super) const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Bytes of all files of a skill.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Entries of a skill.
const MAX_ENTRIES: usize = 256;
/// Nested directories.
const MAX_DEPTH: usize = 4;

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path in the folder.
    pub path: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// Whether it may be executed.
    pub executable: bool,
    sha256: String,
}

/// The content of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contents {
    /// `SKILL.md`.
    pub(super) text: Vec<u8>,
    /// All files, by path.
    pub(super) files: Vec<SkillFile>,
    /// SHA-256 of the paths, kinds and contents of all, in hex.
    pub(super) sha256: String,
}

/// Opens the directory `name` of `at`, without following a link.
///
/// # Errors
/// The error of the system.
pub(crate) fn open_directory(at: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(at, name, flags, Mode::empty())
}

/// The names and kinds of the entries of a directory, sorted; a name that is not UTF-8 is `None`.
///
/// # Errors
/// The error of the system.
pub(crate) fn entries(
    directory: &OwnedFd,
    most: usize,
) -> Result<Vec<(Option<String>, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        found.push((name.to_str().ok().map(str::to_owned), kind));
        if found.len() > most {
            break;
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

/// Reads the folder `name` of `at`.
///
/// # Errors
/// The reason why the skill is refused.
pub(super) fn read(at: &OwnedFd, name: &str) -> Result<Contents, String> {
    let folder = open_directory(at, name)
        .map_err(|error| format!("its folder cannot be opened: {error}"))?;
    let mut reader = Reader {
        text: None,
        files: Vec::new(),
        entries: 0,
        bytes: 0,
    };
    reader.directory(&folder, "", 0)?;
    let text = reader
        .text
        .ok_or_else(|| format!("it has no {SKILL_FILE}"))?;
    let manifest: String = reader
        .files
        .iter()
        .map(|file| {
            let kind = if file.executable { "x" } else { "-" };
            format!("{} {kind} {} {}\n", file.sha256, file.bytes, file.path)
        })
        .collect();
    Ok(Contents {
        text,
        sha256: hex_digest(manifest.as_bytes()),
        files: reader.files,
    })
}

struct Reader {
    text: Option<Vec<u8>>,
    files: Vec<SkillFile>,
    entries: usize,
    bytes: usize,
}

impl Reader {
    fn directory(&mut self, directory: &OwnedFd, path: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("it has more than {MAX_DEPTH} nested directories"));
        }
        let shown = |name: &str| format!("{path}{name}");
        let found = entries(directory, MAX_ENTRIES);
        let found = found.map_err(|error| format!("{path:?} cannot be listed: {error}"))?;
        for (name, kind) in found {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(format!(
                    "it has more than {MAX_ENTRIES} files and directories"
                ));
            }
            let Some(name) = name.filter(|name| !name.contains(super::hides)) else {
                return Err("the name of a file in it is not UTF-8 or contains control \
                     characters"
                    .to_owned());
            };
            match kind {
                FileType::Directory => {
                    let inner = open_directory(directory, &name);
                    let inner = inner
                        .map_err(|error| format!("{} cannot be opened: {error}", shown(&name)))?;
                    self.directory(&inner, &format!("{path}{name}/"), depth + 1)?;
                }
                FileType::RegularFile => self.file(directory, &name, shown(&name))?,
                FileType::Symlink => {
                    return Err(format!(
                        "{} is a link: copy the file into the folder of the skill",
                        shown(&name)
                    ));
                }
                _ => {
                    return Err(format!(
                        "{} is neither a file nor a directory",
                        shown(&name)
                    ));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, directory: &OwnedFd, name: &str, path: String) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{path} cannot be read: {error}");
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = fs::openat(directory, name, flags, Mode::empty());
        let opened = std::fs::File::from(opened.map_err(|error| failed(error.into()))?);
        let found = opened.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(format!("{path} is neither a file nor a directory"));
        }
        let is_skill = path == SKILL_FILE;
        let left = MAX_BYTES.saturating_sub(self.bytes);
        let room = if is_skill { MAX_TEXT_BYTES } else { left };
        let mut bytes = Vec::new();
        opened
            .take(room as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if is_skill && bytes.len() > room {
            let most = MAX_TEXT_BYTES / 1024;
            return Err(format!("{SKILL_FILE} has more than {most} KiB"));
        }
        if bytes.len() > left {
            let most = MAX_BYTES / 1024 / 1024;
            return Err(format!("its files have more than {most} MiB"));
        }
        self.bytes += bytes.len();
        let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
        self.files.push(SkillFile {
            bytes: bytes.len(),
            executable: mode & 0o111 != 0,
            sha256: hex_digest(&bytes),
            path,
        });
        if is_skill {
            self.text = Some(bytes);
        }
        Ok(())
    }
}
