//! Folders of Markdown files with front matter. Each file is read once, so that the approved text is the used text.
//!
//! Every entry is opened relative to its directory's handle, and no link is followed.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;
use zeph_tools::audit::chain::hex_digest;

use crate::native::skills::package::{entries, open_directory};

/// Bytes of one file.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Entries of the folder.
const MAX_ENTRIES: usize = 256;
/// Nested folders.
const MAX_DEPTH: usize = 4;
/// Bytes of a name.
const MAX_NAME_BYTES: usize = 64;

/// The items of a folder, one for each usable file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkdownFolder<T> {
    /// The items, by name.
    pub items: Vec<T>,
    /// The refused files.
    pub refused: Vec<RefusedFile>,
    /// SHA-256 of the names and contents of all Markdown files, in hex.
    pub sha256: String,
}

impl<T> Default for MarkdownFolder<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            refused: Vec::new(),
            sha256: String::new(),
        }
    }
}

/// A file that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedFile {
    /// The file.
    pub file: PathBuf,
    /// The reason, and how to fix it.
    pub reason: String,
}

/// Interprets a file: its name without `.md`, its content, its path, and whether it belongs to the project.
type ReadFn<T> = fn(String, Vec<u8>, PathBuf, bool) -> Result<T, String>;

/// Reads the files of `folder`, each with `read`. A folder that does not exist has none.
#[must_use]
pub(crate) fn read_markdown_folder<T>(
    folder: &Path,
    of_project: bool,
    read: ReadFn<T>,
) -> MarkdownFolder<T> {
    let mut reader = Reader {
        folder,
        of_project,
        read,
        entries: 0,
        digests: String::new(),
        found: MarkdownFolder::default(),
    };
    // The user's own folder may be a link; that of a project may not.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let flags = match of_project {
        true => flags | OFlags::NOFOLLOW,
        false => flags,
    };
    match fs::open(folder, flags, Mode::empty()) {
        Ok(directory) => reader.directory(&directory, "", 0),
        Err(Errno::NOENT) => {}
        Err(error) => reader.refuse("", format!("the folder cannot be opened: {error}")),
    }
    let Reader {
        digests, mut found, ..
    } = reader;
    found.sha256 = hex_digest(digests.as_bytes());
    found
}

struct Reader<'f, T> {
    folder: &'f Path,
    of_project: bool,
    read: ReadFn<T>,
    entries: usize,
    /// The digest and the path of each file.
    digests: String,
    found: MarkdownFolder<T>,
}

impl<T> Reader<'_, T> {
    fn directory(&mut self, directory: &OwnedFd, path: &str, depth: usize) {
        let found = match entries(directory, MAX_ENTRIES) {
            Ok(found) => found,
            Err(error) => return self.refuse(path, format!("it cannot be listed: {error}")),
        };
        for (name, kind) in found {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let most = format!("the folder has more than {MAX_ENTRIES} entries");
                return self.refuse(path, most);
            }
            let Some(name) = name else {
                self.refuse(path, "a name in it is not UTF-8".to_owned());
                continue;
            };
            let inner = format!("{path}{name}");
            match kind {
                FileType::Directory if depth >= MAX_DEPTH => {
                    self.refuse(&inner, format!("more than {MAX_DEPTH} nested folders"));
                }
                FileType::Directory => match open_directory(directory, &name) {
                    Ok(opened) => self.directory(&opened, &format!("{inner}/"), depth + 1),
                    Err(error) => self.refuse(&inner, format!("it cannot be opened: {error}")),
                },
                FileType::RegularFile => {
                    let Some(stem) = inner.strip_suffix(".md") else {
                        continue;
                    };
                    if let Err(reason) = self.file(directory, &name, stem) {
                        self.refuse(&inner, reason);
                    }
                }
                FileType::Symlink => self.refuse(&inner, "it is a link: copy the file".to_owned()),
                _ => self.refuse(&inner, "it is neither a file nor a folder".to_owned()),
            }
        }
    }

    fn file(&mut self, directory: &OwnedFd, name: &str, stem: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("it cannot be read: {error}");
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = fs::openat(directory, name, flags, Mode::empty());
        let opened = std::fs::File::from(opened.map_err(|error| failed(error.into()))?);
        if !opened.metadata().map_err(failed)?.is_file() {
            return Err("it is neither a file nor a folder".to_owned());
        }
        let mut bytes = Vec::new();
        let mut limited = opened.take(MAX_FILE_BYTES + 1);
        limited.read_to_end(&mut bytes).map_err(failed)?;
        let digest = hex_digest(&bytes);
        self.digests.push_str(&format!("{digest} {stem}\n"));
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("it has more than {} KiB", MAX_FILE_BYTES / 1024));
        }
        if stem.len() > MAX_NAME_BYTES {
            return Err(format!(
                "its name has more than {MAX_NAME_BYTES} bytes, with its folders and without `.md`"
            ));
        }
        if !stem.split('/').all(is_name) {
            return Err("its name may only have letters, digits, `-` and `_`".to_owned());
        }
        let file = self.folder.join(format!("{stem}.md"));
        let item = (self.read)(stem.replace('/', ":"), bytes, file, self.of_project)?;
        self.found.items.push(item);
        Ok(())
    }

    fn refuse(&mut self, path: &str, reason: String) {
        self.found.refused.push(RefusedFile {
            file: self.folder.join(path),
            reason,
        });
    }
}

fn is_name(part: &str) -> bool {
    let is_name_char = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    part.starts_with(|char: char| char.is_ascii_alphanumeric()) && part.chars().all(is_name_char)
}

#[cfg(test)]
mod tests {
    use crate::custom_commands::read_folder;

    /// Proves CLI-8.
    #[test]
    fn path_of_a_file_is_its_name() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = temp.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("fix.md", "Fix it.");
        write("git/commit.md", "Commit.");
        write("notes.txt", "No command.");
        write("bad name.md", "x");
        write("long.md", &"x".repeat(65 * 1024));
        std::os::unix::fs::symlink("fix.md", temp.path().join("link.md")).unwrap();
        let read = || read_folder(temp.path(), true);
        let found = read();
        let names: Vec<_> = found.items.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["fix", "git:commit"]);
        let refused: Vec<_> = found
            .refused
            .iter()
            .map(|it| it.file.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(refused, ["bad name.md", "link.md", "long.md"]);
        assert_eq!(found, read());
        write("git/commit.md", "Commit and push.");
        assert_ne!(found.sha256, read().sha256);
        assert_eq!(read_folder(&temp.path().join("none"), true).items, []);
    }
}
