//! The two pipes for the output of a command.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};

use super::runner::OutputFn;
use super::runner::StdStream;

/// The number of bytes per read: the capacity of a pipe.
const PIECE: usize = 64 * 1024;

/// The read ends of a command's two pipes.
pub(super) struct Pipes {
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    buffer: Box<[u8]>,
}

impl Pipes {
    /// Creates the pipes, and returns them with their write ends.
    pub(super) fn new() -> io::Result<(Self, [OwnedFd; 2])> {
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        let pipes = Self {
            stdout: Some(Receiver::from_owned_fd(stdout.into())?),
            stderr: Some(Receiver::from_owned_fd(stderr.into())?),
            buffer: vec![0; PIECE].into_boxed_slice(),
        };
        Ok((pipes, [stdout_end.into(), stderr_end.into()]))
    }

    fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Waits until a pipe is readable, and reads each pipe once. Never returns if both have ended. It loses no output
    /// when it is dropped.
    pub(super) async fn read(&mut self, output: OutputFn<'_>) {
        tokio::select! {
            () = readable(self.stdout.as_ref()) => {}
            () = readable(self.stderr.as_ref()) => {}
        }
        self.read_each(Receiver::try_read, output);
    }

    /// Reads each pipe once with `read`. Returns whether there was output.
    fn read_each(
        &mut self,
        read: impl Fn(&Receiver, &mut [u8]) -> io::Result<usize>,
        output: OutputFn<'_>,
    ) -> bool {
        let mut progress = false;
        for (stream, pipe) in [
            (StdStream::Stdout, &mut self.stdout),
            (StdStream::Stderr, &mut self.stderr),
        ] {
            let Some(open) = pipe else { continue };
            match read(open, &mut self.buffer) {
                Ok(count @ 1..) => {
                    output(stream, &self.buffer[..count]);
                    progress = true;
                }
                Err(error) if is_passing(&error) => {}
                Ok(_) | Err(_) => *pipe = None,
            }
        }
        progress
    }

    /// Reads the available output, and waits up to `patience` for more.
    pub(super) async fn drain(&mut self, patience: Duration, output: OutputFn<'_>) {
        let deadline = Instant::now() + patience;
        let mut left = 2 * 1024 * 1024 / PIECE;
        loop {
            // A process that never stops printing must not prevent the return.
            while left > 0 && self.read_each(read_now, output) {
                left -= 1;
            }
            if left == 0 || !self.is_open() {
                return;
            }
            tokio::select! {
                biased;
                () = readable(self.stdout.as_ref()) => {}
                () = readable(self.stderr.as_ref()) => {}
                () = sleep_until(deadline) => return,
            }
            self.read_each(Receiver::try_read, output);
        }
    }
}

/// Reads the available bytes directly, without the readiness state of the runtime.
fn read_now(pipe: &Receiver, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(pipe, buffer)?)
}

/// Waits until the pipe is readable or has ended; without one, waits forever.
async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        Some(pipe) => {
            // The next read returns the error.
            let _ = pipe.readable().await;
        }
        None => pending().await,
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
