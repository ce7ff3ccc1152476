//! The sandbox of the operating system around commands.
//!
//! [`config`] is what the user sets, [`plan`] what follows from it for the commands of a session.
//! The supervisor applies a plan to the thread that starts a command: what a thread is not allowed,
//! nothing that it starts is allowed, and there is no way back. On Linux, Landlock confines where is
//! written (`landlock`) and seccomp cuts the network (`seccomp`); other systems have `disabled`.
//! `refusal` finds in what a failed command printed that it was the sandbox that refused, `told` says
//! what is told of it.

pub mod config;
#[cfg(not(target_os = "linux"))]
mod disabled;
mod enforcement;
#[cfg(target_os = "linux")]
mod landlock;
pub mod plan;
mod refusal;
#[cfg(target_os = "linux")]
mod seccomp;
pub(super) mod told;

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
    judge(found, plan)
}

/// What a plan wants and was not found, or that it must not lack it.
fn judge(found: Enforcement, plan: &Plan) -> Result<Option<String>, ApplyError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-20.
    #[test]
    fn what_is_required_must_be_there() {
        let check = |landlock, required, expect: Result<bool, ()>| {
            let plan = Plan {
                writable: Vec::new(),
                network: true,
                required,
            };
            let found = Enforcement {
                landlock,
                seccomp: false,
            };
            let judged = judge(found, &plan);
            if let Err(error) = &judged {
                let text = error.to_string();
                assert!(
                    text.contains("no Landlock") && text.contains("`[tools.shell.sandbox] mode`"),
                    "{text}"
                );
            }
            assert_eq!(judged.map(|lack| lack.is_some()).map_err(|_| ()), expect);
        };
        check(Some(7), true, Ok(false));
        check(Some(7), false, Ok(false));
        check(None, false, Ok(true));
        check(None, true, Err(()));
    }
}
