//! The sandbox of the operating system around commands.
//!
//! [`plan`] holds the limits for the commands of a session. The supervisor applies a plan to the thread that starts a command;
//! all descendants inherit the limits and cannot remove them.
//!
//! On Linux, mounts hide denied files (`mount_mask`), Landlock limits writes and hides private files (`landlock`), and
//! `seccomp` blocks the network and reports refused accesses (`denial`). macOS uses `seatbelt`, other systems `disabled`.

mod denial;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod disabled;
mod enforcement;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mount_mask;
pub mod plan;
pub(super) mod seatbelt;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod seccomp;

#[cfg(not(target_os = "linux"))]
use disabled as landlock;
#[cfg(not(target_os = "linux"))]
use disabled as mount_mask;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use disabled as seccomp;

use std::io;
use std::thread;

pub use denial::Denial;
pub(crate) use denial::Denials;
pub use enforcement::Enforcement;
pub use plan::{Plan, PlanOptions, Sockets};
pub(crate) use seccomp::watcher::Listener;

/// The notice that denied files cannot be hidden.
pub const NOT_HIDDEN: &str = "this system does not hide the paths in `[tools.file] deny_read` from \
    commands (this user cannot create a mount namespace), and only commands that name it are refused";

/// The reason why a command must not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
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

/// The effect of [`apply`].
#[derive(Debug)]
pub(crate) struct Applied {
    /// The part of the plan that this machine does not enforce.
    pub(crate) unconfined: Option<String>,
    /// Receives the reports of refused accesses, if the kernel sends them. Another thread has to watch it: the restricted
    /// one waits for its reports.
    pub(crate) listener: Option<Listener>,
}

/// Restricts the calling thread and all processes that it starts from now on. This cannot be undone.
///
/// # Errors
/// [`ApplyError`]; the thread may be restricted in part then.
pub(crate) fn apply(plan: &Plan) -> Result<Applied, ApplyError> {
    // Mounts come first, because a thread that Landlock restricts cannot mount.
    let hides = match &plan.hidden {
        Some(paths) => mount_mask::cover(paths)?,
        None => true,
    };
    let landlock = landlock::confine(plan)?;
    let listener = seccomp::watcher::install(plan)?;
    let cuts_network = plan.sockets != Sockets::All;
    let found = Enforcement {
        landlock,
        seccomp: cuts_network
            && (listener.is_some() || seccomp::sockets::refuse_sockets(plan.sockets)?),
        seatbelt: false,
    };
    Ok(Applied {
        unconfined: judge(found, hides, plan)?,
        listener,
    })
}

/// Restricts this process, which has one thread, and the program that it becomes. Refused accesses are not reported.
///
/// # Errors
/// [`ApplyError`], also if this machine does not enforce a part of the plan; the process may be restricted in part then.
pub(crate) fn apply_to_process(plan: &Plan) -> Result<(), ApplyError> {
    let hides = match &plan.hidden {
        Some(paths) => {
            mount_mask::allow()?;
            mount_mask::cover(paths)?
        }
        None => true,
    };
    let found = Enforcement {
        landlock: landlock::confine(plan)?,
        seccomp: plan.sockets != Sockets::All && seccomp::sockets::refuse_sockets(plan.sockets)?,
        seatbelt: false,
    };
    let plan = Plan {
        required: true,
        ..plan.clone()
    };
    judge(found, hides, &plan).map(drop)
}

/// The missing part of a plan, or an error if the plan requires it.
fn judge(found: Enforcement, hides: bool, plan: &Plan) -> Result<Option<String>, ApplyError> {
    let lacks: Vec<String> = found
        .lacks(plan.sockets == Sockets::All)
        .into_iter()
        .chain((!hides).then(|| NOT_HIDDEN.to_owned()))
        .collect();
    match lacks.join("; ") {
        none if none.is_empty() => Ok(None),
        lacks if plan.required => Err(ApplyError::Lacking(lacks)),
        lacks => Ok(Some(lacks)),
    }
}

/// Lets the threads of this process hide files from commands, with a user namespace if necessary. The process must have
/// one thread. Returns whether threads can hide files.
///
/// # Errors
/// If the process has become unusable.
pub(crate) fn allow_hiding() -> io::Result<bool> {
    mount_mask::allow()?;
    let thread = thread::Builder::new().spawn(|| mount_mask::cover(&[]).unwrap_or(false))?;
    Ok(thread.join().unwrap_or(false))
}

/// Detects the restrictions that this machine enforces, by enforcing them on a thread that then ends.
///
/// # Errors
/// If the system refuses a restriction that it has.
pub fn probe() -> io::Result<Enforcement> {
    let thread = thread::Builder::new().spawn(|| {
        Ok(Enforcement {
            landlock: landlock::confine(&Plan::nothing())?,
            seccomp: seccomp::sockets::refuse_sockets(Sockets::Local)?,
            seatbelt: seatbelt::is_there(),
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
    fn required_enforcement_must_be_available() {
        let check = |landlock, required, expect: Result<bool, ()>| {
            let plan = Plan {
                writable: Vec::new(),
                sockets: Sockets::All,
                required,
                ..Plan::nothing()
            };
            let found = Enforcement {
                landlock,
                seccomp: false,
                seatbelt: false,
            };
            let judged = judge(found, true, &plan);
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
