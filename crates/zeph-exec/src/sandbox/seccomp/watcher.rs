//! The filter with reports: it detects the accesses that the sandbox refuses, from the system calls themselves.
//!
//! It reports the system calls that create sockets, and those that change files, to a thread of the
//! supervisor (`seccomp_unotify(2)`). The thread refuses sockets. It lets the other calls continue, because Landlock
//! decides about them; it only records the paths that the plan does not allow. A path that changes after it was read
//! thus affects the record alone.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::AddressFamily;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, sock_filter};

use super::system_calls::{self, ARCH, Access, IO_URING_SETUP, SOCKETS, VARIANTS};
use crate::sandbox::denial::{Denial, Denials};
use crate::sandbox::plan::{Plan, Sockets, can_user_write, resolve};
use crate::sys::{self, Response};

/// The maximum length of a path in bytes, with its final NUL (`PATH_MAX`).
const MAX_PATH_BYTES: usize = 4096;
/// The return instruction of a classic BPF program.
const RETURN: u16 = 0x06;
/// The action that the filter is built with, and the one that replaces it: the library does not know the second one.
const TRACE: u32 = 0x7ff0_0000;
const NOTIFY: u32 = 0x7fc0_0000;
/// The action for programs of another architecture, and the one that replaces it if the network is allowed.
const KILL: u32 = 0x8000_0000;
const ALLOW: u32 = 0x7fff_0000;

/// The receiving end of the reports of a restricted thread.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

/// Installs the filter for the calling thread and all processes that it starts. Sockets are refused from now on, unless
/// the plan allows them. Returns `None` if the kernel cannot report system calls, or if another filter reports them.
///
/// # Errors
/// If the kernel refuses for another reason, for example for lack of memory.
pub(in crate::sandbox) fn install(plan: &Plan) -> io::Result<Option<Listener>> {
    let program = program(plan.sockets).map_err(io::Error::other)?;
    match sys::install_notifying_filter(&program) {
        Ok(listener) => Ok(Some(Listener(listener))),
        Err(Errno::NOSYS | Errno::INVAL | Errno::BUSY | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Listener {
    /// Starts the thread that decides about the reported system calls and records denials. It ends with the last
    /// process that the filter applies to.
    ///
    /// # Errors
    /// If the thread cannot be started. All reported system calls then fail with ENOSYS.
    pub(crate) fn watch(self, plan: Plan) -> io::Result<Denials> {
        let denials = Denials::default();
        let watcher = Watcher {
            listener: self.0,
            plan,
            denials: denials.clone(),
        };
        thread::Builder::new()
            .stack_size(256 * 1024)
            .spawn(move || watcher.run())?;
        Ok(denials)
    }
}

/// The filter as a BPF program.
fn program(sockets: Sockets) -> Result<BpfProgram, BackendError> {
    let mut rules = system_calls::write_rules()?;
    rules.extend(system_calls::socket_rules(sockets)?);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), ARCH)?;
    let mut program: BpfProgram = filter.try_into()?;
    for instruction in program.iter_mut().filter(|it| it.code == RETURN) {
        match instruction {
            sock_filter { k: k @ TRACE, .. } => *k = NOTIFY,
            // Landlock also applies to programs of another architecture.
            sock_filter { k: k @ KILL, .. } if sockets == Sockets::All => *k = ALLOW,
            _ => {}
        }
    }
    Ok(program)
}

struct Watcher {
    listener: OwnedFd,
    plan: Plan,
    denials: Denials,
}

impl Watcher {
    fn run(&self) {
        loop {
            let mut polled = [PollFd::new(&self.listener, PollFlags::IN)];
            match poll(&mut polled, None) {
                Ok(_) if polled[0].revents().contains(PollFlags::IN) => {}
                Err(Errno::INTR) => continue,
                // No process is left.
                _ => return,
            }
            // The process may have died since.
            let Ok(call) = sys::next_system_call(&self.listener) else {
                continue;
            };
            // A process sees the response only after the lock is taken, so no report after its exit lacks its denials.
            let mut denials = self.denials.lock();
            let number = call.number & !VARIANTS.iter().fold(0, |all, bit| all | bit);
            if SOCKETS.contains(&number) || number == IO_URING_SETUP {
                if number == SOCKETS[0] && is_internet(call.arguments[0]) {
                    denials.record(Denial::Network);
                }
                let refused = Response::Fail(Errno::ACCESS);
                let _ = sys::respond(&self.listener, &call, refused);
                continue;
            }
            let changed = changed_paths(&call, number);
            let _ = sys::respond(&self.listener, &call, Response::Continue);
            for (path, access) in changed {
                if let Some(denial) = self.refused_write(&path, access) {
                    denials.record(denial);
                }
            }
        }
    }

    /// The denial of a change of `path`, if the plan does not allow it and the user could make it.
    fn refused_write(&self, path: &Path, access: Access) -> Option<Denial> {
        let real = resolve(path);
        let exists = || rustix::fs::access(&real, rustix::fs::Access::EXISTS).is_ok();
        let has_effect = match access {
            Access::Changes => exists(),
            Access::CreatesDirectory => !exists(),
            _ => true,
        };
        // The sandbox also refuses files of other processes below /proc.
        if self.plan.allows(&real)
            || real.starts_with("/proc")
            || !has_effect
            || !can_user_write(&real)
        {
            return None;
        }
        Some(match access {
            Access::CreatesDirectory => Denial::CreateDirectory(real),
            _ => Denial::Write(real),
        })
    }
}

fn is_internet(family: u64) -> bool {
    [AddressFamily::INET, AddressFamily::INET6]
        .iter()
        .any(|internet| u64::from(internet.as_raw()) == family)
}

/// The paths that a system call changes, each with the kind of the change.
fn changed_paths(call: &sys::SystemCall, number: i64) -> Vec<(PathBuf, Access)> {
    let paths = system_calls::changed_paths(number);
    let found = paths.iter().filter_map(|argument| {
        let text = read_path(call.thread, *call.arguments.get(argument.path)?)?;
        let directory = match argument.directory {
            Some(at) => Some(*call.arguments.get(at)?),
            None => None,
        };
        let access = match argument.access {
            Access::ByFlags(at) if system_calls::creates(*call.arguments.get(at)?) => {
                Access::Creates
            }
            Access::ByFlags(_) => Access::Changes,
            access => access,
        };
        Some((absolute(call.thread, directory, text)?, access))
    });
    found.collect()
}

/// The text at an address in the memory of a thread.
fn read_path(thread: u32, address: u64) -> Option<PathBuf> {
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut bytes = vec![0; MAX_PATH_BYTES];
    let mut length = 0;
    // The memory after the text may not be readable, so each read ends at a page.
    while length < MAX_PATH_BYTES {
        let from = address + length as u64;
        let page = 4096 - usize::try_from(from % 4096).ok()?;
        let end = MAX_PATH_BYTES.min(length + page);
        let count = memory.read_at(&mut bytes[length..end], from).ok()?;
        if let Some(at) = bytes[length..length + count]
            .iter()
            .position(|byte| *byte == 0)
        {
            bytes.truncate(length + at);
            return (!bytes.is_empty()).then(|| std::ffi::OsString::from_vec(bytes).into());
        }
        if count == 0 {
            return None;
        }
        length += count;
    }
    None
}

/// The path from the root. `directory` is the descriptor that a relative path starts from; `None` is the working
/// directory.
fn absolute(thread: u32, directory: Option<u64>, path: PathBuf) -> Option<PathBuf> {
    if path.is_absolute() {
        return Some(path);
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "a descriptor is the lower half of the argument, with a sign"
    )]
    let descriptor = directory.map_or(libc::AT_FDCWD, |directory| directory as i32);
    let base = match descriptor {
        libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
        descriptor => format!("/proc/{thread}/fd/{descriptor}"),
    };
    Some(std::fs::read_link(base).ok()?.join(path))
}
