//! The keyring of the system: the Keychain of macOS; on Linux the Secret Service, in a build with the feature
//! `secret-service`.
//!
//! The kernel's keyring of Linux is not used: it loses keys at a reboot, and every command of the session can read it.

use std::fmt;
use std::io;
use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};
use secrecy::{ExposeSecret as _, SecretString};

/// The name of this program in the keyring.
const SERVICE: &str = "zeph";

/// A keyring that responds, or may respond.
pub(super) struct Keyring {
    open: fn() -> keyring_core::Result<Arc<CredentialStore>>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

impl Keyring {
    /// The keyring that this build supports. It is opened by its first use.
    #[cfg(any(
        target_os = "macos",
        all(target_os = "linux", feature = "secret-service")
    ))]
    pub(super) fn of_system() -> Option<Self> {
        Some(Self { open: open_system })
    }

    /// This build supports no keyring.
    #[cfg(not(any(
        target_os = "macos",
        all(target_os = "linux", feature = "secret-service")
    )))]
    pub(super) fn of_system() -> Option<Self> {
        None
    }

    pub(super) fn load(&self, server: &str) -> io::Result<SecretString> {
        let key = self.with_entry(server, |entry| entry.get_password())?;
        Ok(SecretString::from(key))
    }

    pub(super) fn save(&self, server: &str, key: &SecretString) -> io::Result<()> {
        self.with_entry(server, |entry| entry.set_password(key.expose_secret()))
    }

    pub(super) fn remove(&self, server: &str) -> io::Result<()> {
        self.with_entry(server, |entry| match entry.delete_credential() {
            Err(Error::NoEntry) => Ok(()),
            done => done,
        })
    }

    /// Uses the entry of a server on a thread of its own: a keyring may block, and may start a runtime.
    fn with_entry<T: Send>(
        &self,
        server: &str,
        then: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send,
    ) -> io::Result<T> {
        let open = self.open;
        let done = std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let store = open()?;
                then(&Entry::new_in_store(&store, SERVICE, server)?)
            });
            thread.join()
        });
        let done = done.map_err(|_| io::Error::other("the keyring of the system failed"))?;
        done.map_err(|error| {
            io::Error::other(format!("the keyring of the system: {}", text_of(&error)))
        })
    }
}

#[cfg(target_os = "macos")]
fn open_system() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(all(target_os = "linux", feature = "secret-service"))]
fn open_system() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

/// An error without the bytes of an entry, which may be a key.
fn text_of(error: &Error) -> String {
    match error {
        Error::BadEncoding(_) | Error::BadDataFormat(..) => "the entry is not a key".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
impl Keyring {
    /// A keyring in memory. All tests of a process share it.
    pub(super) fn for_test() -> Self {
        use std::sync::OnceLock;
        static STORE: OnceLock<Arc<CredentialStore>> = OnceLock::new();
        Self {
            open: || {
                let store = STORE.get_or_init(|| keyring_core::mock::Store::new().unwrap());
                Ok(Arc::clone(store))
            },
        }
    }
}
