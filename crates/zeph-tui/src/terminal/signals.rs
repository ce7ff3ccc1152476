//! Signals: those that end the work, and SIGXFSZ, which must not.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::put_back;

/// The exit code of a program that a signal has interrupted.
pub const INTERRUPTED: u8 = 130;

/// How many parts of the program handle signals themselves.
static HANDLERS: AtomicUsize = AtomicUsize::new(0);

/// A guard: while it exists, another part of the program handles the signals.
#[derive(Debug)]
pub struct Handles(());

impl Handles {
    /// Creates the guard.
    pub fn signals() -> Self {
        HANDLERS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        HANDLERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Stops the signal task when dropped.
pub struct SignalTask {
    task: tokio::task::JoinHandle<()>,
    _handles: Handles,
}

impl Drop for SignalTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends the program on SIGINT, SIGTERM and SIGHUP with the exit code of an interruption, unless another part handles
/// them. It uses a thread, since a command may block.
pub fn end_on_signals() {
    let ready = Arc::new(Barrier::new(2));
    let told = Arc::clone(&ready);
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let thread = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build();
        let Ok(runtime) = runtime else {
            told.wait();
            return;
        };
        runtime.block_on(async {
            let listened = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
                signal(SignalKind::hangup()),
            );
            told.wait();
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = listened else {
                return;
            };
            loop {
                let is_interrupt = tokio::select! {
                    _ = interrupt.recv() => true,
                    _ = terminate.recv() => false,
                    _ = hangup.recv() => false,
                };
                if is_interrupt && HANDLERS.load(Ordering::SeqCst) == 0 {
                    end_line();
                }
                leave_unless_handled();
            }
        });
    });
    // Without the thread, a signal does its default.
    if thread.is_ok() {
        ready.wait();
    }
}

/// Ends the line of an open question, which may contain `^C`.
fn end_line() {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        // A terminal that is gone shows nothing.
        let _ = io::stderr().write_all(b"\n");
    }
}

/// Ends the program immediately. The supervisor ends the commands when our end of its socket closes.
fn leave() -> ! {
    put_back();
    std::process::exit(i32::from(INTERRUPTED));
}

/// Ends the program, unless another part of it handles signals. A caller that waits for a signal itself uses it to get the
/// exit code of an interruption.
pub(super) fn leave_unless_handled() {
    if HANDLERS.load(Ordering::SeqCst) == 0 {
        leave();
    }
}

/// Makes a write beyond the limit of file sizes fail with an error. By default, the signal would end the program
/// without a message. Commands get the default action back.
pub fn outlive_file_size_limit() {
    // The handler stays installed for the life of the process.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// Cancels the work at the first SIGINT, SIGTERM or SIGHUP, and exits immediately at the second. After the function
/// returns, the default actions of these signals are off.
pub fn cancel_on_signals(cancel: CancellationToken) -> SignalTask {
    // Before the task is first polled, which may be late: until then a signal would do its default.
    let listened = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    );
    let handles = Handles::signals();
    let task = tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = listened else {
            return;
        };
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if cancel.is_cancelled() {
                leave();
            }
            cancel.cancel();
        }
    });
    SignalTask {
        task,
        _handles: handles,
    }
}
