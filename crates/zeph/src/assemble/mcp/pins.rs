//! The stored approvals of servers' tools.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeph_mcp::{Pin, TrustStore};
use zeph_tools::audit::chain::hex_digest;

/// The most bytes of the pins of a server.
const MAX_PINS: u64 = 64 * 1024 * 1024;

/// The approvals of the user, in the data folder: one file for each server of the configuration, and one for each
/// definition of a server of an editor.
#[derive(Debug)]
pub(crate) struct McpPins {
    folder: PathBuf,
    /// The digest of the definition of an editor's server.
    definition: Option<String>,
}

impl McpPins {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join("mcp-trust"),
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
        self.file(server).is_file()
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder, made if it was missing.
    fn made_folder(&self) -> io::Result<&Path> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        Ok(&self.folder)
    }

    /// Removes the approvals of all servers of this name, and returns whether there was one.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn take_back(&self, server: &str) -> io::Result<bool> {
        let start = hex_digest(server.as_bytes());
        let entries = match fs::read_dir(&self.folder) {
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

    /// The file of a server. Its name starts with a digest of fixed length.
    fn file(&self, server: &str) -> PathBuf {
        let name = hex_digest(server.as_bytes());
        let name = match &self.definition {
            None => name,
            Some(definition) => format!("{name}-{definition}"),
        };
        self.folder.join(name).with_extension("json")
    }
}

impl TrustStore for McpPins {
    fn of(&self, server: &str) -> io::Result<Vec<Pin>> {
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = match options.open(self.file(server)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MAX_PINS).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
    }

    fn put(&self, server: &str, pins: &[Pin]) -> io::Result<()> {
        let folder = self.made_folder()?;
        // Temporary files have mode 0600.
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(&serde_json::to_vec(pins)?)?;
        temporary.as_file().sync_all()?;
        temporary
            .persist(self.file(server))
            .map_err(|error| error.error)?;
        fs::File::open(folder)?.sync_all()
    }
}
