//! The history of inputs: in a file of the user alone, without the keys of providers.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

use crate::host::ViewHost;

/// Inputs that are remembered.
const MAX_INPUTS: usize = 2000;

/// A history that does not store known secrets.
pub(crate) struct InputHistory {
    file: FileBackedHistory,
    host: &'static dyn ViewHost,
}

impl InputHistory {
    /// Opens the history, readable by its owner alone.
    ///
    /// # Errors
    /// The error of the file system.
    pub(crate) fn open(file: &Path, host: &'static dyn ViewHost) -> io::Result<Self> {
        if let Some(parent) = file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
        }
        let opened = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(file)?;
        if opened.metadata()?.permissions().mode() & 0o077 != 0 {
            opened.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        let history = FileBackedHistory::with_file(MAX_INPUTS, file.to_owned());
        let history = history.map_err(io::Error::other)?;
        Ok(Self {
            file: history,
            host,
        })
    }
}

impl History for InputHistory {
    fn save(&mut self, mut item: HistoryItem) -> Result<HistoryItem> {
        item.command_line = self.host.without_known(&item.command_line).into_owned();
        self.file.save(item)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.file.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.file.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.file.search(query)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.file.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.file.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.file.delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.file.session()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::BareHost;

    #[test]
    fn history_is_private_and_persistent() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data/history.txt");
        let mut history = InputHistory::open(&file, &BareHost).unwrap();
        history
            .save(HistoryItem::from_command_line("two\nlines"))
            .unwrap();
        history.sync().unwrap();
        drop(history);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let history = InputHistory::open(&file, &BareHost).unwrap();
        assert_eq!(history.count_all().unwrap(), 1);
        assert_eq!(
            history.load(HistoryItemId::new(0)).unwrap().command_line,
            "two\nlines"
        );
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn unusable_history_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(InputHistory::open(dir.path(), &BareHost).is_err());
        let file = dir.path().join("binary");
        fs::write(&file, b"\xff\xfe\n").unwrap();
        assert!(InputHistory::open(&file, &BareHost).is_err());
    }
}
