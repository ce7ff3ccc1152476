//! The records of stored keys: one file of mode 0600 for each server.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use zeph_tools::audit::chain::hex_digest;

/// The maximum number of bytes of a record.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// The record of one server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// The server, as `https://HOST[:PORT]`.
    pub(super) server: String,
    /// The key; without one, the keyring of the system holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

/// The folder with the records.
#[derive(Debug, Clone)]
pub(super) struct KeyFiles {
    folder: PathBuf,
}

impl KeyFiles {
    /// The records in the data folder.
    pub(super) fn in_folder(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join("provider-keys"),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a server.
    pub(super) fn file(&self, server: &str) -> PathBuf {
        let name = hex_digest(server.as_bytes());
        self.folder.join(name).with_extension("json")
    }

    /// The record of a server.
    pub(super) fn load(&self, server: &str) -> io::Result<Option<Record>> {
        let path = self.file(server);
        match read(&path)? {
            Some(record) if record.server != server => Err(damaged(&path)),
            record => Ok(record),
        }
    }

    /// All records that can be read, ordered by server.
    pub(super) fn all(&self) -> io::Result<Vec<Record>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let records = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let records = records.filter_map(|path| {
            let record = read(&path).ok().flatten()?;
            (self.file(&record.server) == path).then_some(record)
        });
        let mut records: Vec<Record> = records.collect();
        records.sort_by(|a, b| a.server.cmp(&b.server));
        Ok(records)
    }

    /// Replaces the record of its server atomically, and returns its file.
    pub(super) fn save(&self, record: &Record) -> io::Result<PathBuf> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let path = self.file(&record.server);
        // Temporary files have mode 0600.
        let mut temporary = tempfile::NamedTempFile::new_in(&self.folder)?;
        temporary.write_all(&serde_json::to_vec(record)?)?;
        temporary.as_file().sync_all()?;
        temporary.persist(&path).map_err(|error| error.error)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(path)
    }

    /// Removes the record of a server. Returns false if it does not exist.
    pub(super) fn remove(&self, server: &str) -> io::Result<bool> {
        match fs::remove_file(self.file(server)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Record>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes)?;
    // The error of the parser may quote the key.
    let record = serde_json::from_slice(&bytes).map_err(|_| damaged(path))?;
    Ok(Some(record))
}

fn damaged(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "{} is not the record of this server: remove it and log in again",
            path.display()
        ),
    )
}
