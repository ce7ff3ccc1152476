//! The stored logins to MCP servers: one file of mode 0600 for each server and address.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use zeph_mcp::TokenStore;
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::secrets::SecurityPatterns;

use crate::output::redact;
use crate::record_folder::RecordFolder;

/// The most bytes of a record.
const MAX_RECORD: u64 = 1024 * 1024;

/// The logins in the data folder.
#[derive(Debug, Clone)]
pub(crate) struct McpTokens {
    records: RecordFolder,
    /// The patterns of the session, in addition to those of the output of the program.
    secrets: Arc<SecurityPatterns>,
}

impl McpTokens {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            records: RecordFolder::new(data_dir.join("mcp-tokens")),
            secrets: redact::secrets(),
        }
    }

    /// Adds new tokens to `secrets` too.
    pub(super) fn with_redaction(self, secrets: Arc<SecurityPatterns>) -> Self {
        Self { secrets, ..self }
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        self.records.path()
    }
}

/// The name of a record. Tokens of one address are not used for another.
fn record_name(server: &str, url: &str) -> String {
    hex_digest(format!("{server}\0{url}").as_bytes())
}

impl TokenStore for McpTokens {
    fn load(&self, server: &str, url: &str) -> io::Result<Option<String>> {
        let bytes = self.records.read(&record_name(server, url), MAX_RECORD)?;
        bytes.map(|bytes| io::read_to_string(&*bytes)).transpose()
    }

    fn save(&self, server: &str, url: &str, record: &str) -> io::Result<()> {
        let name = record_name(server, url);
        self.records.write(&name, record.as_bytes())
    }

    fn remove(&self, server: &str, url: &str) -> io::Result<bool> {
        self.records.remove(&record_name(server, url))
    }

    fn redact(&self, tokens: &[String]) {
        redact::secrets().add(tokens);
        self.secrets.add(tokens);
    }

    fn lock(&self, server: &str, url: &str) -> io::Result<Box<dyn Send>> {
        self.records.create()?;
        let file = self.records.file(&record_name(server, url));
        let path = file.with_extension("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        file.lock()?;
        Ok(Box::new(file))
    }
}
