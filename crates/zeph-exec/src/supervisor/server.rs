//! The supervisor process: plain threads around one table of calls.
//!
//! The main thread reads requests. Each command has a thread that starts it, waits for it, and reports its exit and the
//! end of the processes that it left behind. A request to end a call has its own thread, because it takes up to the
//! grace time. One thread reaps adopted processes.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitCode};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::HIDING_ARG;
use super::client::GRACE;
use super::protocol::{Frames, Reply, Request, Run, encode};
use super::spawn::{ChildStdio, SpawnError, exit, spawn};
use super::tree::{self, Mark};
use crate::sandbox;

/// The time between SIGTERM and SIGKILL after the agent has ended.
const LAST_GRACE: Duration = Duration::from_millis(500);
/// The time that the reaper waits for a thread to collect the exit of its command.
const COLLECT: Duration = Duration::from_millis(50);

/// Runs the supervisor: serves the socket on standard input until it closes. If a program is started with
/// [`super::SUPERVISOR_ARG`], it calls this function before any other work, and returns its result.
#[must_use]
pub fn supervisor_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("only Zeph starts the shell supervisor, do not run it directly: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::net::sockopt::socket_type(&socket)?;
    // A new session, so that neither Ctrl-C nor the end of the terminal affects the supervisor. `setsid` fails only for
    // the leader of a process group, which the supervisor is not.
    let _ = rustix::process::setsid();
    // The process must still have one thread.
    let hides = if std::env::args_os().any(|argument| argument == HIDING_ARG) {
        Some(sandbox::allow_hiding()?)
    } else {
        None
    };
    tree::adopt_orphans()?;
    // The signals have handlers, because commands would inherit ignored signals. The supervisor ends after the agent,
    // never before it.
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGQUIT,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    // A distinct name in process lists, and no directory in use.
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/comm", "shell-supervise");
    let _ = std::env::set_current_dir("/");

    let server = Arc::new(Server {
        replies: Mutex::new(socket.try_clone()?),
        table: Mutex::default(),
        changed: Condvar::new(),
    });
    if let Some(can) = hides {
        server.reply(&Reply::Hides { can });
    }
    let reaper = Arc::clone(&server);
    thread::Builder::new().spawn(move || reaper.reap())?;
    // An unreadable request ends the session like a closed socket, so that no process is left.
    let _ = server.read_requests(&socket);
    server.end_all();
    Ok(())
}

/// A call that runs, or that has left processes running.
#[derive(Debug)]
struct Call {
    /// The first process, once it is started; 0 if another call has this pid now.
    leader: i32,
    start: u64,
    running: bool,
}

#[derive(Debug, Default)]
struct Table {
    calls: HashMap<u64, Call>,
    /// The number of commands that are being started.
    starting: usize,
    /// The number of commands that were started.
    started: u64,
    /// Whether the agent has ended. No command is started then.
    closing: bool,
}

impl Table {
    fn leaders(&self) -> Vec<i32> {
        let running = self.calls.values().filter(|call| call.running);
        running.map(|call| call.leader).collect()
    }

    fn mark(&self, id: u64) -> Option<Mark> {
        let call = self.calls.get(&id).filter(|call| call.leader != 0)?;
        let others = self.calls.iter().filter(|(other, _)| **other != id);
        let rivals = |other: &Call| other.running || other.start >= call.start;
        Some(Mark {
            id,
            leader: call.leader,
            start: call.start,
            alone: !others.map(|(_, call)| call).any(rivals),
        })
    }
}

struct Server {
    table: Mutex<Table>,
    /// Notified whenever the table changes.
    changed: Condvar,
    replies: Mutex<UnixStream>,
}

impl Server {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, reply: &Reply) {
        let Ok(frame) = encode(reply) else { return };
        let mut socket = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        // Without an agent, no one receives the reply. The main thread notices that too.
        let _ = socket.write_all(&frame);
    }

    fn failed(&self, id: u64, error: &io::Error) {
        self.reply(&Reply::Failed {
            id,
            errno: error.raw_os_error(),
            message: error.to_string(),
        });
    }

    fn read_requests(self: &Arc<Self>, socket: &UnixStream) -> io::Result<()> {
        let mut frames = Frames::default();
        let mut pipes = VecDeque::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match receive(socket, &mut buffer, &mut pipes) {
                Ok(0) => return Ok(()),
                Ok(count) => frames.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            while let Some(request) = frames.next()? {
                match request {
                    Request::Run(run) => {
                        let (Some(stdout), Some(stderr)) = (pipes.pop_front(), pipes.pop_front())
                        else {
                            return Err(io::ErrorKind::InvalidData.into());
                        };
                        let stdin = match run.input {
                            true => Some(pipes.pop_front().ok_or(io::ErrorKind::InvalidData)?),
                            false => None,
                        };
                        let ends = ChildStdio {
                            stdin,
                            stdout,
                            stderr,
                        };
                        self.start(*run, ends);
                    }
                    Request::Kill { id } => self.kill(id),
                }
            }
        }
    }

    /// Adds a command to the table, and starts its thread.
    fn start(self: &Arc<Self>, run: Run, ends: ChildStdio) {
        let id = run.id;
        {
            let mut table = self.table();
            table.starting += 1;
            let call = Call {
                leader: 0,
                start: u64::MAX,
                running: true,
            };
            table.calls.insert(id, call);
        }
        let server = Arc::clone(self);
        let thread = thread::Builder::new()
            .stack_size(256 * 1024)
            .spawn(move || server.run(run, ends));
        if let Err(error) = thread {
            self.started(id, None);
            self.failed(id, &error);
        }
    }

    /// Runs on the thread of a command.
    fn run(&self, run: Run, ends: ChildStdio) {
        let id = run.id;
        let spawned = if self.table().closing {
            Err(SpawnError::System(io::ErrorKind::BrokenPipe.into()))
        } else {
            spawn(run, ends)
        };
        let mut started = match spawned {
            Ok(started) => started,
            Err(error) => {
                self.started(id, None);
                return match error {
                    SpawnError::System(error) => self.failed(id, &error),
                    SpawnError::Unconfined(error) => self.reply(&Reply::Unconfined {
                        id,
                        message: error.to_string(),
                    }),
                };
            }
        };
        self.started(id, Some(&started.child));
        self.reply(&Reply::Started {
            id,
            unconfined: started.unconfined.take(),
        });
        let status = started.child.wait();
        let (mark, leaders) = {
            let mut table = self.table();
            if let Some(call) = table.calls.get_mut(&id) {
                call.running = false;
            }
            (table.mark(id), table.leaders())
        };
        self.changed.notify_all();
        let survivors = |mark: &Mark| tree::survivors(mark, &leaders);
        let background = mark.as_ref().map_or_else(Vec::new, survivors);
        let left_behind = mark.filter(|_| !background.is_empty());
        if left_behind.is_none() {
            self.over(id);
        }
        match status {
            Ok(status) => self.reply(&Reply::Exited {
                id,
                exit: exit(status),
                denials: started.denials.all(),
                background,
            }),
            Err(error) => self.failed(id, &error),
        }
        // The thread that started the command can end.
        drop(started);
        if let Some(mark) = left_behind {
            tree::wait_until_gone(&mark);
            self.over(id);
            self.reply(&Reply::Quiet { id });
        }
    }

    /// Removes a call without running processes from the table.
    fn over(&self, id: u64) {
        self.table().calls.remove(&id);
    }

    /// Records that a command was started, or that its start failed.
    fn started(&self, id: u64, child: Option<&Child>) {
        let leader = child.and_then(|child| i32::try_from(child.id()).ok());
        let start = leader.map(tree::started);
        let mut table = self.table();
        table.starting -= 1;
        table.started += 1;
        match leader.zip(start) {
            Some((leader, start)) => {
                for call in table.calls.values_mut() {
                    if call.leader == leader {
                        call.leader = 0;
                    }
                }
                if let Some(call) = table.calls.get_mut(&id) {
                    (call.leader, call.start) = (leader, start);
                }
            }
            None => {
                table.calls.remove(&id);
            }
        }
        drop(table);
        self.changed.notify_all();
    }

    /// Ends a call on a separate thread.
    fn kill(self: &Arc<Self>, id: u64) {
        let server = Arc::clone(self);
        let thread = thread::Builder::new().spawn(move || {
            let clean = server.end(id);
            server.reply(&Reply::Gone { id, clean });
        });
        if thread.is_err() {
            let clean = self.end(id);
            self.reply(&Reply::Gone { id, clean });
        }
    }

    fn end(&self, id: u64) -> bool {
        let being_started = |table: &mut Table| {
            table
                .calls
                .get(&id)
                .is_some_and(|call| call.running && call.leader == 0)
        };
        let (table, _) = self
            .changed
            .wait_timeout_while(self.table(), GRACE, being_started)
            .unwrap_or_else(PoisonError::into_inner);
        let mark = table.mark(id);
        drop(table);
        mark.is_none_or(|mark| {
            let clean = tree::end_call(&mark, GRACE);
            let mut table = self.table();
            if clean && table.calls.get(&id).is_some_and(|call| !call.running) {
                table.calls.remove(&id);
            }
            clean
        })
    }

    /// Ends every process after the agent has ended.
    fn end_all(&self) {
        let mut table = self.table();
        table.closing = true;
        let (table, _) = self
            .changed
            .wait_timeout_while(table, LAST_GRACE, |table| table.starting > 0)
            .unwrap_or_else(PoisonError::into_inner);
        let marks: Vec<_> = table
            .calls
            .keys()
            .filter_map(|id| table.mark(*id))
            .collect();
        drop(table);
        tree::end_all(&marks, LAST_GRACE);
    }

    /// Reaps adopted processes whenever there can be some.
    fn reap(&self) {
        let mut table = self.table();
        loop {
            let before = table.started;
            drop(table);
            let children = tree::reap(|child| {
                let table = self.table();
                table.starting > 0 || table.leaders().contains(&child)
            });
            let unchanged = |table: &mut Table| table.started == before;
            table = if children {
                // The thread of an exited leader collects it. Until then, `tree::reap` would find it immediately again.
                let table = self.table();
                let waited = self.changed.wait_timeout(table, COLLECT);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let waited = self.changed.wait_while(self.table(), unchanged);
                waited.unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

/// Reads bytes of the socket into `buffer`, and the accompanying descriptors into `pipes`.
fn receive(
    socket: &UnixStream,
    buffer: &mut [u8],
    pipes: &mut VecDeque<OwnedFd>,
) -> io::Result<usize> {
    // Without this flag, a command that starts concurrently would inherit the descriptors.
    #[cfg(target_os = "linux")]
    const FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    const FLAGS: RecvFlags = RecvFlags::empty();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, FLAGS)?;
    for ancillary in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = ancillary {
            for descriptor in descriptors {
                #[cfg(not(target_os = "linux"))]
                rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
                pipes.push_back(descriptor);
            }
        }
    }
    Ok(message.bytes)
}
