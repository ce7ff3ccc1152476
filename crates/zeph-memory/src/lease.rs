//! Leases that allow one process at a time on a session of a shared store.
//!
//! The holder renews its lease; the lease of a dead holder expires, and passes to another process. All times are those of the
//! server, so clocks of other machines do not matter. A process that lost its lease can no longer append messages.

use std::time::Duration;

use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::conversation::{integer, unknown};
use crate::database::{Row, query};
use crate::error::StoreError;
use crate::store::Store;

/// How long a lease is valid without a renewal.
const LEASE_LENGTH: Duration = Duration::from_secs(15);
/// The time between two renewals.
const RENEWAL_PERIOD: Duration = Duration::from_secs(5);

/// The right to work on a session. It ends when this is dropped, or some time after the death of the process.
#[derive(Debug)]
pub(crate) struct Lease {
    store: Store,
    /// The random name of this grant.
    grant: String,
    renewal: AbortHandle,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
        self.store.holder().end(std::mem::take(&mut self.grant));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = self.store.clone();
            runtime.spawn(async move { store.return_leases().await });
        }
    }
}

impl Lease {
    /// Ends the lease on the server.
    pub(crate) async fn release(self) {
        let store = self.store.clone();
        drop(self);
        store.return_leases().await;
    }
}

/// The holder of a lease, as the server knows it.
struct LeaseHolder {
    holder: String,
    pid: i64,
    machine: String,
    host: String,
}

fn holder_of(row: &Row) -> Result<LeaseHolder, sqlx::Error> {
    Ok(LeaseHolder {
        holder: row.try_get(0)?,
        pid: row.try_get(1)?,
        machine: row.try_get(2)?,
        host: row.try_get(3)?,
    })
}

impl Store {
    /// Takes the lease of a session. It passes from a holder that did not renew it, or whose process on this machine has
    /// ended.
    pub(crate) async fn take_lease(&self, id: &str) -> Result<Lease, StoreError> {
        self.return_leases().await;
        let machine = machine();
        let grant = Uuid::new_v4().to_string();
        let mut dead = None;
        loop {
            if self.acquire(id, &grant, &machine, dead.as_deref()).await? {
                return Ok(self.lease(grant));
            }
            let Some(other) = self.lease_holder(id).await? else {
                // The session exists only if the lease ended meanwhile.
                self.session(id).await?;
                continue;
            };
            let is_here = !machine.is_empty() && other.machine == machine;
            if is_here && !is_running(other.pid) && dead.as_ref() != Some(&other.holder) {
                dead = Some(other.holder);
                continue;
            }
            return Err(in_use(id, &other));
        }
    }

    /// Inserts or takes over the lease; whether it did. The lease of the holder `dead` is taken even if it is valid.
    async fn acquire(
        &self,
        id: &str,
        grant: &str,
        machine: &str,
        dead: Option<&str>,
    ) -> Result<bool, StoreError> {
        let insert = query(
            "INSERT INTO session_lease AS l (session, holder, grant_id, pid, machine, until)
             SELECT number, ?2, ?3, ?4, ?5, clock_timestamp() + ?6 * interval '1 millisecond'
             FROM session WHERE id = ?1
             ON CONFLICT (session) DO UPDATE
                 SET holder = excluded.holder, grant_id = excluded.grant_id, pid = excluded.pid,
                     machine = excluded.machine, until = excluded.until, host = excluded.host
                 WHERE l.until < clock_timestamp() OR l.holder = ?7 OR l.grant_id = ?3
             RETURNING session",
        );
        let insert = insert.bind(id).bind(self.holder().name()).bind(grant);
        let insert = insert.bind(i64::from(std::process::id())).bind(machine);
        let insert = insert.bind(millis(LEASE_LENGTH)).bind(dead).repeatable();
        Ok(!self.write(insert, 0).await?.is_empty())
    }

    async fn lease_holder(&self, id: &str) -> Result<Option<LeaseHolder>, StoreError> {
        let select = query(
            "SELECT l.holder, l.pid, l.machine, l.host FROM session s
             JOIN session_lease l ON l.session = s.number WHERE s.id = ?1",
        );
        let found = self
            .fetch_as(select.bind(id), |row| holder_of(&row))
            .await?;
        Ok(found.into_iter().next())
    }

    fn lease(&self, grant: String) -> Lease {
        let (store, name) = (self.clone(), grant.clone());
        let renewal = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEWAL_PERIOD).await;
                match store.renew_lease(&name).await {
                    Ok(true) => {}
                    Ok(false) => {
                        tracing::warn!("another process took over the session");
                        return;
                    }
                    Err(error) => tracing::warn!(%error, "the lease of the session is not renewed"),
                }
            }
        });
        Lease {
            store: self.clone(),
            grant,
            renewal: renewal.abort_handle(),
        }
    }

    async fn renew_lease(&self, grant: &str) -> Result<bool, StoreError> {
        let update = query(
            "UPDATE session_lease SET until = clock_timestamp() + ?2 * interval '1 millisecond'
             WHERE grant_id = ?1 RETURNING session",
        );
        let update = update.bind(grant).bind(millis(LEASE_LENGTH)).repeatable();
        Ok(!self.write(update, 0).await?.is_empty())
    }

    /// Deletes the leases that ended in this process. One that remains expires by itself.
    pub(crate) async fn return_leases(&self) {
        for grant in self.holder().take_ended() {
            let delete = query("DELETE FROM session_lease WHERE grant_id = ?1").repeatable();
            if let Err(error) = self.write(delete.bind(grant), 0).await {
                tracing::warn!(%error, "the lease of a session is not returned; it expires soon");
            }
        }
    }

    /// Deletes all leases of this process.
    pub(crate) async fn return_all_leases(&self) -> Result<(), StoreError> {
        let delete = query("DELETE FROM session_lease WHERE holder = ?1").repeatable();
        self.write(delete.bind(self.holder().name()), 0)
            .await
            .map(drop)
    }

    /// Why no message could be appended to a session: it does not exist, or another process works on it.
    pub(crate) async fn refused_append(&self, id: &str) -> StoreError {
        match self.lease_holder(id).await {
            Ok(Some(other)) if other.holder != self.holder().name() => StoreError::LeaseLost {
                id: id.to_owned(),
                host: other.host,
                pid: other.pid.unsigned_abs(),
            },
            Ok(_) => unknown(id),
            Err(error) => error,
        }
    }
}

fn in_use(id: &str, other: &LeaseHolder) -> StoreError {
    StoreError::SessionInUse {
        id: id.to_owned(),
        pid: u32::try_from(other.pid).ok(),
        host: (other.machine != machine()).then(|| other.host.clone()),
    }
}

fn millis(time: Duration) -> i64 {
    integer(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The identity of the running system and of its process ids; empty if it is not known. Process ids of another container or of
/// an earlier start of the machine are not comparable.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        _ => String::new(),
    }
}

/// Whether a process of this machine exists.
fn is_running(pid: i64) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
