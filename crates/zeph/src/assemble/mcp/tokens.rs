//! The stored logins to MCP servers: one file of mode 0600 for each server and address.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use zeph_mcp::TokenStore;
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::secrets::SecurityPatterns;

use crate::output::redact;

/// The most bytes of a record.
const MAX_RECORD: u64 = 1024 * 1024;

/// The logins in the data folder.
#[derive(Debug, Clone)]
pub(crate) struct McpTokens {
    folder: PathBuf,
    /// The patterns of the session, in addition to those of the output of the program.
    secrets: Arc<SecurityPatterns>,
}

impl McpTokens {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join("mcp-tokens"),
            secrets: redact::secrets(),
        }
    }

    /// Adds new tokens to `secrets` too.
    pub(super) fn with_redaction(self, secrets: Arc<SecurityPatterns>) -> Self {
        Self { secrets, ..self }
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

    /// The file of a record. Tokens of one address are not used for another.
    fn file(&self, server: &str, url: &str) -> PathBuf {
        let name = hex_digest(format!("{server}\0{url}").as_bytes());
        self.folder.join(name).with_extension("json")
    }
}

impl TokenStore for McpTokens {
    fn load(&self, server: &str, url: &str) -> io::Result<Option<String>> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = match options.open(self.file(server, url)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(MAX_RECORD).read_to_string(&mut text)?;
        Ok(Some(text))
    }

    fn save(&self, server: &str, url: &str, record: &str) -> io::Result<()> {
        let folder = self.made_folder()?;
        // Temporary files have mode 0600.
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(record.as_bytes())?;
        temporary.as_file().sync_all()?;
        let persisted = temporary.persist(self.file(server, url));
        persisted.map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    }

    fn remove(&self, server: &str, url: &str) -> io::Result<bool> {
        match fs::remove_file(self.file(server, url)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn redact(&self, tokens: &[String]) {
        redact::secrets().add(tokens);
        self.secrets.add(tokens);
    }

    fn lock(&self, server: &str, url: &str) -> io::Result<Box<dyn Send>> {
        self.made_folder()?;
        let path = self.file(server, url).with_extension("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        file.lock()?;
        Ok(Box::new(file))
    }
}
