//! The stored approvals of servers' tools.

use std::fs;
use std::io;
use std::path::Path;

use zeph_mcp::{Pin, TrustStore};
use zeph_tools::audit::chain::hex_digest;

use crate::record_folder::RecordFolder;

/// The most bytes of the pins of a server.
const MAX_PINS: u64 = 64 * 1024 * 1024;

/// The approvals of the user, in the data folder: one file for each server of the configuration, and one for each
/// definition of a server of an editor.
#[derive(Debug)]
pub(crate) struct McpPins {
    records: RecordFolder,
    /// The digest of the definition of an editor's server.
    definition: Option<String>,
}

impl McpPins {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            records: RecordFolder::new(data_dir.join("mcp-trust")),
            definition: None,
        }
    }

    /// The approvals of the servers of an editor that have the definition with this digest.
    pub(crate) fn of_definition(data_dir: &Path, digest: String) -> Self {
        Self {
            definition: Some(digest),
            ..Self::in_folder(data_dir)
        }
    }

    /// Whether there is an approval of a server. It may include no tool yet.
    pub(crate) fn has(&self, server: &str) -> bool {
        self.records.file(&self.record_name(server)).is_file()
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        self.records.path()
    }

    /// Removes the approvals of all servers of this name, and returns whether there was one.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn take_back(&self, server: &str) -> io::Result<bool> {
        let start = hex_digest(server.as_bytes());
        let entries = match fs::read_dir(self.folder()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut was = false;
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&start) {
                fs::remove_file(entry.path())?;
                was = true;
            }
        }
        Ok(was)
    }

    /// The name of the record of a server. It starts with a digest of fixed length.
    fn record_name(&self, server: &str) -> String {
        let name = hex_digest(server.as_bytes());
        match &self.definition {
            None => name,
            Some(definition) => format!("{name}-{definition}"),
        }
    }
}

impl TrustStore for McpPins {
    fn of(&self, server: &str) -> io::Result<Vec<Pin>> {
        let pins = self
            .records
            .read_json(&self.record_name(server), MAX_PINS)?;
        Ok(pins.unwrap_or_default())
    }

    fn put(&self, server: &str, pins: &[Pin]) -> io::Result<()> {
        self.records.write_json(&self.record_name(server), pins)
    }
}
