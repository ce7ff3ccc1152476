//! The supervisor itself: plain threads around one table of calls.
//!
//! The main thread reads requests. Each command has a thread that has it started, waits for it and
//! tells how it exited, and when what it left behind has ended. A request to end a call has a thread
//! too, since it takes up to the grace time. One thread reaps adopted processes.

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
use crate::shell::os_sandbox;

/// Between SIGTERM and SIGKILL when the agent has gone.
const LAST_GRACE: Duration = Duration::from_millis(500);
/// How long a reaper waits for a thread to collect its command's exit.
const COLLECT: Duration = Duration::from_millis(50);

/// Is the supervisor: serves the socket that is its standard input, until it closes. A program
/// calls it first of all when it is started with [`super::SUPERVISOR_ARG`], and returns what it
/// returns.
#[must_use]
pub fn supervisor_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the shell supervisor is started by the agent, not by hand: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::net::sockopt::socket_type(&socket)?;
    // Out of the terminal's reach: neither Ctrl-C nor its closing gets here. It fails for the
    // leader of a group, which the agent does not make of it.
    let _ = rustix::process::setsid();
    // While there is one thread.
    let hides = if std::env::args_os().any(|argument| argument == HIDING_ARG) {
        Some(os_sandbox::allow_hiding()?)
    } else {
        None
    };
    tree::adopt_orphans()?;
    // Handlers, since what is ignored would be ignored by the commands as well. The supervisor
    // ends with the agent, never before it.
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGQUIT,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    // A name of its own in lists of processes, and no directory kept busy.
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
    // An unreadable request ends the session like a closed socket: nothing may be left over.
    let _ = server.read_requests(&socket);
    server.end_all();
    Ok(())
}

/// What runs, or has left something running.
#[derive(Debug)]
struct Call {
    /// Its first process, once started; 0 when that pid belongs to another call by now.
    leader: i32,
    start: u64,
    running: bool,
}

#[derive(Debug, Default)]
struct Table {
    calls: HashMap<u64, Call>,
    /// Commands being started.
    starting: usize,
    /// How many were started.
    started: u64,
    /// The agent has gone: nothing is started any more.
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
        // Without an agent there is nobody to tell; the main thread sees that too.
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
                        self.start(run, ends);
                    }
                    Request::Kill { id } => self.kill(id),
                }
            }
        }
    }

    /// Enters a command into the table and starts its thread.
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

    /// The work of a command's thread.
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
        self.reply(&Reply::Started { id });
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
                unconfined: started.unconfined.take(),
                background,
            }),
            Err(error) => self.failed(id, &error),
        }
        // The thread that started it has nothing more to wait for.
        drop(started);
        if let Some(mark) = left_behind {
            tree::wait_until_gone(&mark);
            self.over(id);
            self.reply(&Reply::Quiet { id });
        }
    }

    /// Takes a call of which nothing runs any more from the table.
    fn over(&self, id: u64) {
        self.table().calls.remove(&id);
    }

    /// Notes that a command was started, or could not be.
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

    /// Ends a call on a thread of its own.
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

    /// Ends every process when the agent has gone.
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

    /// Reaps adopted processes, as long as there can be any.
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
                // An exited leader is its thread's to collect, and would be found again at once.
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

/// Reads bytes of the socket into `buffer` and the descriptors beside them into `pipes`.
fn receive(
    socket: &UnixStream,
    buffer: &mut [u8],
    pipes: &mut VecDeque<OwnedFd>,
) -> io::Result<usize> {
    // Without this flag another command that is just being started would inherit them.
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
