//! The approvals of tools in a session of an editor. Those of the editor's own servers count for one definition.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeph_mcp::{Pin, TrustStore};

use crate::assemble::McpPins;

/// The approvals in one session.
pub(super) struct ClientPins {
    data_dir: PathBuf,
    /// The approvals of servers of the configuration.
    configured: McpPins,
    /// The approvals of approved servers of the editor, by name.
    clients: Mutex<HashMap<String, PinStore>>,
}

/// The place of the approvals of one server.
enum PinStore {
    /// They count for later sessions too.
    File(McpPins),
    /// They count for this session.
    Session(Vec<Pin>),
}

impl ClientPins {
    /// The approvals in the data folder.
    pub(super) fn new(data_dir: PathBuf) -> Self {
        Self {
            configured: McpPins::in_folder(&data_dir),
            data_dir,
            clients: Mutex::default(),
        }
    }

    /// Uses the stored approval of a server with the definition of this digest. Returns whether there is one.
    pub(super) fn recall(&self, server: &str, definition: String) -> bool {
        let pins = McpPins::of_definition(&self.data_dir, definition);
        let has = pins.has(server);
        if has {
            let pins = PinStore::File(pins);
            self.clients().insert(server.to_owned(), pins);
        }
        has
    }

    /// Approves a server with the definition of this digest, also for later sessions if `is_kept`. No tool is approved yet.
    ///
    /// # Errors
    /// If the approval cannot be stored; then it holds for this session.
    pub(super) fn approve(
        &self,
        server: &str,
        definition: String,
        is_kept: bool,
    ) -> io::Result<()> {
        let mut stored = Ok(());
        let mut pins = PinStore::Session(Vec::new());
        if is_kept {
            let file = McpPins::of_definition(&self.data_dir, definition);
            stored = file.put(server, &[]);
            if stored.is_ok() {
                pins = PinStore::File(file);
            }
        }
        self.clients().insert(server.to_owned(), pins);
        stored
    }

    /// Whether a server is approved, and none of its tools is yet. After `zeph mcp forget` it is not approved.
    pub(super) fn lacks_tools(&self, server: &str) -> bool {
        match self.clients().get(server) {
            Some(PinStore::File(pins)) => {
                pins.has(server) && pins.of(server).is_ok_and(|pins| pins.is_empty())
            }
            Some(PinStore::Session(pins)) => pins.is_empty(),
            None => false,
        }
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<String, PinStore>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrustStore for ClientPins {
    fn of(&self, server: &str) -> io::Result<Vec<Pin>> {
        match self.clients().get(server) {
            Some(PinStore::File(pins)) => pins.of(server),
            Some(PinStore::Session(pins)) => Ok(pins.clone()),
            None => self.configured.of(server),
        }
    }

    fn put(&self, server: &str, pins: &[Pin]) -> io::Result<()> {
        match self.clients().get_mut(server) {
            Some(PinStore::File(file)) => file.put(server, pins),
            Some(PinStore::Session(held)) => {
                *held = pins.to_vec();
                Ok(())
            }
            None => self.configured.put(server, pins),
        }
    }
}
