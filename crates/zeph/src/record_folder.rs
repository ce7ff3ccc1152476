//! Folders of private records: JSON files of mode 0600 in a folder of mode 0700.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A folder with one file for each record. Its errors are those of the system; a link instead of a file is an error.
#[derive(Debug, Clone)]
pub(crate) struct RecordFolder {
    path: PathBuf,
}

impl RecordFolder {
    /// The folder at `path`, which the first record creates.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a record. `name` has no dot.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name).with_extension("json")
    }

    /// Creates the folder if it is missing.
    pub(crate) fn create(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
    }

    /// The first `max` bytes of a record; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str, max: u64) -> io::Result<Option<Vec<u8>>> {
        read(&self.file(name), max)
    }

    /// The value of a record; `None` if it does not exist. A damaged record is an error.
    pub(crate) fn read_json<T: DeserializeOwned>(
        &self,
        name: &str,
        max: u64,
    ) -> io::Result<Option<T>> {
        let bytes = self.read(name, max)?;
        bytes.map(|bytes| parse(&bytes)).transpose()
    }

    /// The files that can be read, with their first `max` bytes.
    pub(crate) fn all(&self, max: u64) -> io::Result<impl Iterator<Item = (PathBuf, Vec<u8>)>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => Some(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let entries = entries.into_iter().flatten();
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let files = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
        Ok(files.filter_map(move |file| {
            let bytes = read(&file, max).ok()??;
            Some((file, bytes))
        }))
    }

    /// Replaces a record atomically.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.create()?;
        // Temporary files have mode 0600.
        let mut temporary = tempfile::NamedTempFile::new_in(&self.path)?;
        temporary.write_all(bytes)?;
        temporary.as_file().sync_all()?;
        let persisted = temporary.persist(self.file(name));
        persisted.map_err(|error| error.error)?;
        File::open(&self.path)?.sync_all()
    }

    /// Replaces a record by a value.
    pub(crate) fn write_json<T: Serialize + ?Sized>(
        &self,
        name: &str,
        value: &T,
    ) -> io::Result<()> {
        self.write(name, &serde_json::to_vec(value)?)
    }

    /// Removes a record, and returns whether there was one.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.file(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The value of a record. The error quotes nothing of it.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(|_| damaged())
}

/// The error about a damaged record.
pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged")
}

fn read(file: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = match options.open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
