//! The open sessions of the connection. Each has one holder, and at most one running prompt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::SessionConfigOption;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::channel::AcpChannel;
use super::error::{of_host, unavailable};
use crate::{HostError, HostedSession};

/// An open session.
pub(super) struct OpenSession {
    pub(super) hosted: Arc<dyn HostedSession>,
    pub(super) channel: Arc<AcpChannel>,
    /// The configuration options that the client has.
    pub(super) known_options: Mutex<Vec<SessionConfigOption>>,
    /// Held while a prompt runs.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Cancels the running prompt.
    cancel: Mutex<CancellationToken>,
}

/// The right to run a prompt.
pub(super) struct Turn {
    pub(super) cancel: CancellationToken,
    _running: OwnedMutexGuard<()>,
}

impl OpenSession {
    pub(super) fn new(hosted: Arc<dyn HostedSession>, channel: Arc<AcpChannel>) -> Self {
        Self {
            hosted,
            channel,
            known_options: Mutex::default(),
            turn: Arc::default(),
            cancel: Mutex::default(),
        }
    }

    /// Begins a prompt.
    ///
    /// # Errors
    /// If another prompt runs.
    pub(super) fn begin_turn(&self) -> Result<Turn, Error> {
        let running = Arc::clone(&self.turn).try_lock_owned().map_err(|_| {
            unavailable("a prompt of this session is running; cancel it or wait until it ends")
        })?;
        let cancel = CancellationToken::new();
        *lock(&self.cancel) = cancel.clone();
        Ok(Turn {
            cancel,
            _running: running,
        })
    }

    /// Cancels the running prompt, if there is one.
    pub(super) fn cancel(&self) {
        lock(&self.cancel).cancel();
    }

    /// Cancels the running prompt, waits for its end, and releases the session.
    async fn close(&self) {
        self.cancel();
        let _running = self.turn.lock().await;
        self.hosted.close().await;
    }
}

/// The state of a session id in this connection.
enum Slot {
    /// The session is being opened or closed.
    Busy,
    Open(Arc<OpenSession>),
}

/// The sessions of the connection by id.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Slot>>);

impl Sessions {
    /// Reserves an id for a session that is opened.
    ///
    /// # Errors
    /// If the connection holds the session already.
    pub(super) fn reserve(&self, id: &str) -> Result<(), Error> {
        let mut slots = self.slots();
        if slots.contains_key(id) {
            return Err(unavailable(format!(
                "session {id} is already open; close it first, or use the open one"
            )));
        }
        slots.insert(id.to_owned(), Slot::Busy);
        Ok(())
    }

    /// Stores the session of a reserved id.
    pub(super) fn insert(&self, id: &str, session: Arc<OpenSession>) {
        self.slots().insert(id.to_owned(), Slot::Open(session));
    }

    /// Releases a reserved id.
    pub(super) fn release(&self, id: &str) {
        self.slots().remove(id);
    }

    /// The open session with this id.
    ///
    /// # Errors
    /// If the connection has not opened the session.
    pub(super) fn get(&self, id: &str) -> Result<Arc<OpenSession>, Error> {
        match self.slots().get(id) {
            Some(Slot::Open(session)) => Ok(Arc::clone(session)),
            Some(Slot::Busy) => Err(unavailable(format!(
                "session {id} is being opened or closed; try again after the response"
            ))),
            None => Err(of_host(HostError::UnknownSession(id.to_owned()))),
        }
    }

    /// Closes an open session.
    ///
    /// # Errors
    /// As [`Sessions::get`].
    pub(super) async fn close(&self, id: &str) -> Result<(), Error> {
        let session = self.get(id)?;
        self.slots().insert(id.to_owned(), Slot::Busy);
        session.close().await;
        self.release(id);
        Ok(())
    }

    /// Whether the connection holds the session.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.slots().contains_key(id)
    }

    /// Closes all sessions.
    pub(super) async fn close_all(&self) {
        let slots = std::mem::take(&mut *self.slots());
        let open = slots.into_values().filter_map(|slot| match slot {
            Slot::Open(session) => Some(session),
            Slot::Busy => None,
        });
        let open: Vec<_> = open.collect();
        futures_util::future::join_all(open.iter().map(|session| session.close())).await;
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        lock(&self.0)
    }
}

/// Locks a mutex that guards plain data.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
