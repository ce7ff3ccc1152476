//! The agent's end of the socket: it starts the supervisor and ends with it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::protocol::{Frames, Reply, Request, Run, encode};
use super::{CALL_TAG, HIDING_ARG, SupervisorCommand, tree};
use crate::runner::CommandSpec;
use crate::sandbox::Plan;

/// The time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// The time that a supervisor may take to end after it has closed its socket.
const LAST_BREATH: Duration = Duration::from_secs(5);

/// An outgoing message.
enum Outgoing {
    Frame(Vec<u8>, Vec<OwnedFd>),
    Close,
}

/// The receivers of replies, by call; `None` when the supervisor has ended.
type Calls = Arc<Mutex<Option<HashMap<u64, UnboundedSender<Reply>>>>>;

/// A running supervisor. When this is dropped, the supervisor ends with all processes below it.
pub(crate) struct Connection {
    outgoing: UnboundedSender<Outgoing>,
    calls: Calls,
    ended: CancellationToken,
    hides: watch::Receiver<Option<bool>>,
}

impl Connection {
    /// Starts a supervisor. `tag` is the tag of the call that this process belongs to, if it runs below another
    /// supervisor. `hiding` is whether the supervisor must hide files from commands.
    pub(crate) fn start(
        supervisor: &SupervisorCommand,
        tag: Option<&OsString>,
        hiding: bool,
    ) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = Arc::new(UnixStream::from_std(ours)?);
        #[allow(
            clippy::disallowed_methods,
            reason = "the supervisor is the one process that is not its own child"
        )]
        let mut command = Command::new(&supervisor.program);
        // The agent's environment holds secrets, and commands can read the environment of their parent.
        command
            .args(&supervisor.args)
            .args(hiding.then_some(HIDING_ARG))
            .env_clear()
            .envs(tag.map(|tag| (CALL_TAG, tag)))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn()?;
        // `command` holds the other end of the socket.
        drop(command);
        let (outgoing, queue) = unbounded_channel();
        let calls: Calls = Arc::new(Mutex::new(Some(HashMap::new())));
        let ended = CancellationToken::new();
        let (told, hides) = watch::channel(None);
        tokio::spawn(write(Arc::clone(&stream), queue));
        let end = End {
            calls: Arc::clone(&calls),
            ended: ended.clone(),
            hides: told,
        };
        tokio::spawn(read(stream, child, end));
        Ok(Self {
            outgoing,
            calls,
            ended,
            hides,
        })
    }

    /// Whether the supervisor can hide files from commands, if it was started for that.
    pub(crate) async fn enforces_deny_read(&self) -> bool {
        let mut hides = self.hides.clone();
        // An error means that the supervisor ended before it reported this.
        let told = hides.wait_for(Option::is_some).await;
        told.is_ok_and(|told| *told == Some(true))
    }

    /// Whether the supervisor has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Requests the start of a command. `pipes` receive its output. Its standard input is `input`, or closed. Returns
    /// `None` if the supervisor has ended. The replies end when it ends.
    pub(crate) fn run(
        &self,
        id: u64,
        command: &CommandSpec,
        plan: Option<&Plan>,
        pipes: [OwnedFd; 2],
        input: Option<OwnedFd>,
    ) -> io::Result<Option<UnboundedReceiver<Reply>>> {
        let mut run = Run::new(id, command, plan);
        run.input = input.is_some();
        self.request(run, pipes.into_iter().chain(input).collect())
    }

    /// Requests the start of a command in a session of its own at the terminal `side`. As [`Connection::run`].
    pub(crate) fn run_at_terminal(
        &self,
        id: u64,
        command: &CommandSpec,
        side: OwnedFd,
    ) -> io::Result<Option<UnboundedReceiver<Reply>>> {
        let mut run = Run::new(id, command, None);
        (run.input, run.terminal) = (true, true);
        self.request(run, vec![side.try_clone()?, side.try_clone()?, side])
    }

    fn request(
        &self,
        run: Run,
        pipes: Vec<OwnedFd>,
    ) -> io::Result<Option<UnboundedReceiver<Reply>>> {
        let id = run.id;
        let frame = encode(&Request::Run(Box::new(run)))?;
        let (sender, replies) = unbounded_channel();
        match &mut *lock(&self.calls) {
            Some(calls) => calls.insert(id, sender),
            None => return Ok(None),
        };
        let _ = self.outgoing.send(Outgoing::Frame(frame, pipes));
        Ok(Some(replies))
    }

    /// Requests the end of a call.
    pub(crate) fn kill(&self, id: u64) {
        if let Ok(frame) = encode(&Request::Kill { id }) {
            let _ = self.outgoing.send(Outgoing::Frame(frame, Vec::new()));
        }
    }

    /// Discards further replies for a call.
    pub(crate) fn forget(&self, id: u64) {
        if let Some(calls) = &mut *lock(&self.calls) {
            calls.remove(&id);
        }
    }

    /// Requests the end of the supervisor, and waits for it.
    pub(crate) async fn close(&self) {
        let _ = self.outgoing.send(Outgoing::Close);
        self.ended.cancelled().await;
    }
}

fn lock(calls: &Calls) -> MutexGuard<'_, Option<HashMap<u64, UnboundedSender<Reply>>>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports the end of the supervisor to all waiting tasks when it is dropped.
struct End {
    calls: Calls,
    ended: CancellationToken,
    /// Whether the supervisor can hide files, once it has reported that.
    hides: watch::Sender<Option<bool>>,
}

impl Drop for End {
    fn drop(&mut self) {
        *lock(&self.calls) = None;
        self.ended.cancel();
    }
}

async fn write(stream: Arc<UnixStream>, mut queue: UnboundedReceiver<Outgoing>) {
    while let Some(Outgoing::Frame(frame, pipes)) = queue.recv().await {
        if send(&stream, &frame, &pipes).await.is_err() {
            break;
        }
    }
    let _ = rustix::net::shutdown(&*stream, rustix::net::Shutdown::Write);
}

/// Sends a frame. The descriptors accompany its first byte.
async fn send(stream: &UnixStream, frame: &[u8], pipes: &[OwnedFd]) -> io::Result<()> {
    #[cfg(not(target_vendor = "apple"))]
    const FLAGS: SendFlags = SendFlags::NOSIGNAL;
    #[cfg(target_vendor = "apple")]
    const FLAGS: SendFlags = SendFlags::empty();
    let mut sent = 0;
    while sent < frame.len() {
        sent += stream
            .async_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let descriptors: Vec<_> = pipes.iter().map(AsFd::as_fd).collect();
                if !descriptors.is_empty()
                    && sent == 0
                    && !control.push(SendAncillaryMessage::ScmRights(&descriptors))
                {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                Ok(sendmsg(
                    stream,
                    &[IoSlice::new(&frame[sent..])],
                    &mut control,
                    FLAGS,
                )?)
            })
            .await?;
    }
    Ok(())
}

/// Forwards replies until the supervisor ends. Then reaps it, and kills the processes that it left behind.
async fn read(stream: Arc<UnixStream>, mut child: Child, end: End) {
    let pid = child.id();
    let mut frames = Frames::default();
    let mut buffer = vec![0; 16 * 1024];
    let mut children = signal(SignalKind::child()).ok();
    loop {
        let count = tokio::select! {
            received = receive(&stream, &mut buffer) => match received {
                Ok(count @ 1..) => count,
                _ => break,
            },
            () = changed(&mut children) => {
                // A command may have stopped the supervisor, which all other calls need.
                wake(pid);
                continue;
            }
        };
        frames.push(&buffer[..count]);
        while let Ok(Some(reply)) = frames.next::<Reply>() {
            if let Reply::Hides { can } = reply {
                let _ = end.hides.send(Some(can));
            } else if let Some(calls) = &*lock(&end.calls)
                && let Some(call) = reply.id().and_then(|id| calls.get(&id))
            {
                let _ = call.send(reply);
            }
        }
    }
    if tokio::time::timeout(LAST_BREATH, child.wait())
        .await
        .is_err()
    {
        let _ = child.kill().await;
    }
    if let Some(pid) = pid {
        let _ = tokio::task::spawn_blocking(move || tree::sweep(pid)).await;
    }
    drop(end);
}

/// Waits until a child may have changed its state.
async fn changed(children: &mut Option<tokio::signal::unix::Signal>) {
    let told = match children {
        Some(children) => children.recv().await,
        None => None,
    };
    if told.is_none() {
        std::future::pending().await
    }
}

/// Resumes the supervisor if it was stopped. It must not be reaped yet.
fn wake(pid: Option<u32>) {
    if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        let _ = kill_process(pid, Signal::CONT);
    }
}

async fn receive(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}
