//! Keys of providers that `zeph login` stores: in the keyring of the system if it responds, otherwise in a file of
//! mode 0600.
//!
//! A key belongs to one server (`https://HOST[:PORT]`), so that no configuration sends it to another one. The record
//! of a server is a file in either case: it holds the key, or states that the keyring holds it. Without a record, the
//! keyring is not asked.

mod files;
mod keyring;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use files::{KeyFiles, Record};
use keyring::Keyring;

/// The stored keys.
#[derive(Debug)]
pub(crate) struct KeyStore {
    files: KeyFiles,
    /// The keyring of the system; `None` if this build has none.
    keyring: Option<Keyring>,
}

/// The place of a stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// The keyring of the system.
    Keyring,
    /// This file.
    File(PathBuf),
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyring => f.write_str("the keyring of the system"),
            Self::File(path) => write!(f, "the file {} (mode 0600)", path.display()),
        }
    }
}

/// A stored key and its place.
#[derive(Debug)]
pub(crate) struct StoredKey {
    pub(crate) key: SecretString,
    pub(crate) place: KeyPlace,
}

impl KeyStore {
    /// The keys in the data folder and in the keyring.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            files: KeyFiles::in_folder(data_dir),
            keyring: Keyring::of_system(),
        }
    }

    /// The folder of the files, which tools must not read.
    pub(crate) fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// The key of a server; `None` if none is stored.
    ///
    /// # Errors
    /// The file or the keyring cannot be read.
    pub(crate) fn load(&self, server: &str) -> io::Result<Option<StoredKey>> {
        match self.files.load(server)? {
            None => Ok(None),
            Some(record) => self.key_of(record).map(Some),
        }
    }

    /// Every server with a stored key.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn servers(&self) -> io::Result<Vec<String>> {
        let records = self.files.all()?;
        Ok(records.into_iter().map(|record| record.server).collect())
    }

    /// Every stored key that can be read. A key in a keyring that does not respond is missing.
    pub(crate) fn all(&self) -> Vec<StoredKey> {
        let records = self.files.all().unwrap_or_default().into_iter();
        records
            .filter_map(|record| self.key_of(record).ok())
            .collect()
    }

    /// Stores the key of a server, and returns the place.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(&self, server: &str, key: &SecretString) -> io::Result<KeyPlace> {
        let in_keyring = self.keyring.as_ref().is_some_and(|keyring| {
            match keyring.save(server, key) {
                Ok(()) => true,
                Err(error) => {
                    tracing::info!(%error, "the keyring does not respond; the key is in a file");
                    false
                }
            }
        });
        let record = Record {
            server: server.to_owned(),
            key: (!in_keyring).then(|| key.expose_secret().to_owned()),
        };
        let path = self.files.save(&record)?;
        Ok(match in_keyring {
            true => KeyPlace::Keyring,
            false => KeyPlace::File(path),
        })
    }

    /// Removes the key of a server. Returns false if none is stored.
    ///
    /// # Errors
    /// The keyring does not respond, or the file cannot be removed.
    pub(crate) fn remove(&self, server: &str) -> io::Result<bool> {
        let Some(record) = self.files.load(server)? else {
            return Ok(false);
        };
        if record.key.is_none() {
            self.responding()?.remove(server)?;
        }
        self.files.remove(server)
    }

    fn key_of(&self, record: Record) -> io::Result<StoredKey> {
        Ok(match record.key {
            Some(key) => StoredKey {
                place: KeyPlace::File(self.files.file(&record.server)),
                key: SecretString::from(key),
            },
            None => StoredKey {
                key: self.responding()?.load(&record.server)?,
                place: KeyPlace::Keyring,
            },
        })
    }

    fn responding(&self) -> io::Result<&Keyring> {
        let lack = || {
            io::Error::other(
                "the key is in the keyring of the system, and this build has no keyring",
            )
        };
        self.keyring.as_ref().ok_or_else(lack)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SERVER: &str = "https://api.example.org";

    fn store(folder: &Path, keyring: Option<Keyring>) -> KeyStore {
        KeyStore {
            files: KeyFiles::in_folder(folder),
            keyring,
        }
    }

    fn key() -> SecretString {
        SecretString::from("sk-0123456789abcdef".to_owned())
    }

    /// Proves CLI-9: without a keyring, a file of mode 0600 in a folder of mode 0700 holds the key.
    #[test]
    fn key_without_a_keyring_is_in_a_private_file() {
        let temp = tempfile::tempdir().unwrap();
        let keys = store(temp.path(), None);
        assert!(keys.load(SERVER).unwrap().is_none());
        let KeyPlace::File(path) = keys.save(SERVER, &key()).unwrap() else {
            panic!("no keyring is there");
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(keys.folder()), 0o700);
        let found = keys.load(SERVER).unwrap().unwrap();
        assert_eq!(found.key.expose_secret(), key().expose_secret());
        assert_eq!(found.place, KeyPlace::File(path));
        assert!(keys.load("https://other.example.org").unwrap().is_none());
        assert_eq!(keys.servers().unwrap(), [SERVER]);
        assert!(!format!("{:?}", keys.all()).contains("sk-0123"));
        assert!(keys.remove(SERVER).unwrap());
        assert!(!keys.remove(SERVER).unwrap());
        assert!(keys.load(SERVER).unwrap().is_none());
    }

    /// Proves CLI-9: with a keyring, no file holds the key.
    #[test]
    fn key_in_a_keyring_is_in_no_file() {
        let temp = tempfile::tempdir().unwrap();
        let keys = store(temp.path(), Some(Keyring::for_test()));
        assert_eq!(keys.save(SERVER, &key()).unwrap(), KeyPlace::Keyring);
        for entry in fs::read_dir(keys.folder()).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.contains("sk-0123"), "{text}");
        }
        let found = keys.load(SERVER).unwrap().unwrap();
        assert_eq!(found.key.expose_secret(), key().expose_secret());
        // A build without the keyring reports the reason, and finds no key.
        let other = store(temp.path(), None);
        let error = other.load(SERVER).unwrap_err().to_string();
        assert!(error.contains("this build has no keyring"), "{error}");
        assert!(other.all().is_empty());
        assert!(keys.remove(SERVER).unwrap());
        assert!(keys.load(SERVER).unwrap().is_none());
    }

    /// Proves CLI-9: a record that another program damaged is an error, not a key.
    #[test]
    fn damaged_record_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let keys = store(temp.path(), None);
        let KeyPlace::File(path) = keys.save(SERVER, &key()).unwrap() else {
            panic!("no keyring is there");
        };
        fs::write(
            &path,
            "{\"server\": \"https://evil.example\", \"key\": \"x\"}",
        )
        .unwrap();
        assert!(
            keys.load(SERVER).is_err(),
            "the record is for another server"
        );
        fs::write(&path, "no JSON").unwrap();
        assert!(keys.load(SERVER).is_err());
        assert!(keys.all().is_empty());
    }
}
