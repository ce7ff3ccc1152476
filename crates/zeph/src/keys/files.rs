//! The records of stored keys: one file of mode 0600 for each server.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeph_tools::audit::chain::hex_digest;

use crate::record_folder::RecordFolder;

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
    records: RecordFolder,
}

impl KeyFiles {
    /// The records in the data folder.
    pub(super) fn in_folder(data_dir: &Path) -> Self {
        Self {
            records: RecordFolder::new(data_dir.join("provider-keys")),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.records.path()
    }

    /// The file of a server.
    pub(super) fn file(&self, server: &str) -> PathBuf {
        self.records.file(&record_name(server))
    }

    /// The record of a server.
    pub(super) fn load(&self, server: &str) -> io::Result<Option<Record>> {
        let Some(bytes) = self.records.read(&record_name(server), MAX_RECORD_BYTES)? else {
            return Ok(None);
        };
        // The error of the parser may quote the key.
        match serde_json::from_slice::<Record>(&bytes) {
            Ok(record) if record.server == server => Ok(Some(record)),
            Ok(_) | Err(_) => Err(damaged(&self.file(server))),
        }
    }

    /// All records that can be read, ordered by server.
    pub(super) fn all(&self) -> io::Result<Vec<Record>> {
        let files = self.records.all(MAX_RECORD_BYTES)?;
        let records = files.filter_map(|(path, bytes)| {
            let record: Record = serde_json::from_slice(&bytes).ok()?;
            (self.file(&record.server) == path).then_some(record)
        });
        let mut records: Vec<Record> = records.collect();
        records.sort_by(|a, b| a.server.cmp(&b.server));
        Ok(records)
    }

    /// Replaces the record of its server atomically, and returns its file.
    pub(super) fn save(&self, record: &Record) -> io::Result<PathBuf> {
        let name = record_name(&record.server);
        self.records.write_json(&name, record)?;
        Ok(self.records.file(&name))
    }

    /// Removes the record of a server. Returns false if it does not exist.
    pub(super) fn remove(&self, server: &str) -> io::Result<bool> {
        self.records.remove(&record_name(server))
    }
}

fn record_name(server: &str) -> String {
    hex_digest(server.as_bytes())
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
