//! The sandbox of the operating system around commands.
//!
//! [`config`] is what the user sets, [`plan`] what follows from it for the commands of a session.
//! The supervisor applies a plan to the thread that starts a command: what a thread is not allowed,
//! nothing that it starts is allowed, and there is no way back. On Linux, Landlock confines where is
//! written (`landlock`) and seccomp cuts the network (`seccomp`); other systems have `disabled`.
//! [`refusal`] finds in what a failed command printed that it was the sandbox that refused.

pub mod config;
#[cfg(not(target_os = "linux"))]
mod disabled;
mod enforcement;
#[cfg(target_os = "linux")]
mod landlock;
pub mod plan;
pub mod refusal;
#[cfg(target_os = "linux")]
mod seccomp;

#[cfg(not(target_os = "linux"))]
use disabled as landlock;
#[cfg(not(target_os = "linux"))]
use disabled as seccomp;

use std::io;
use std::thread;

pub use config::{SandboxConfig, SandboxMode};
pub use enforcement::Enforcement;
pub use plan::Plan;

/// Why a command must not be started.
#[derive(Debug, thiserror::Error)]
pub(in crate::shell) enum ApplyError {
    /// The plan requires what this machine lacks.
    #[error(
        "{0}, and `[tools.shell.sandbox] mode` is \"required\"; \"best-effort\" runs commands \
         without it"
    )]
    Lacking(String),
    /// The system refused a restriction that it has.
    #[error(
        "the OS sandbox could not be set up: {0}; `[tools.shell.sandbox] mode = \"off\"` runs \
         commands without it"
    )]
    System(#[from] io::Error),
}

/// Restricts the calling thread, for good, and everything that it starts from now on. Says what of
/// the plan this machine does not enforce.
///
/// # Errors
/// [`ApplyError`]; the thread may be restricted in part then.
pub(in crate::shell) fn apply(plan: &Plan) -> Result<Option<String>, ApplyError> {
    let found = Enforcement {
        landlock: landlock::confine_writes(&plan.writable)?,
        seccomp: !plan.network && seccomp::cut_network()?,
    };
    match found.lacks(plan.network) {
        Some(lack) if plan.required => Err(ApplyError::Lacking(lack)),
        lack => Ok(lack),
    }
}

/// What this machine enforces, found by enforcing it on a thread that ends thereafter.
///
/// # Errors
/// When the system refuses a restriction that it has.
pub fn probe() -> io::Result<Enforcement> {
    let thread = thread::Builder::new().spawn(|| {
        Ok(Enforcement {
            landlock: landlock::confine_writes(&[])?,
            seccomp: seccomp::cut_network()?,
        })
    })?;
    thread
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the probe ended unexpectedly")))
}
