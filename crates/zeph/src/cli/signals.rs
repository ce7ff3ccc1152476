//! Signals: those that end the work, and the one that must not.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Exit;

/// Ends the task that waits for signals when it is dropped.
pub(crate) struct SignalTask(tokio::task::JoinHandle<()>);

impl Drop for SignalTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Lets a write beyond the shell's limit of file sizes fail with its error, where the signal's
/// default would end the program without a word. Commands that we run get the default back.
pub(crate) fn outlive_file_size_limit() {
    // Once listened to, it stays so for the life of the process.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// The first SIGINT, SIGTERM or SIGHUP cancels the work; a second one leaves at once. From its return on
/// none of them ends the program by itself.
pub(crate) fn cancel_on_signals(cancel: CancellationToken) -> SignalTask {
    // Before the task is first polled, which may be late: until then a signal would do its default.
    let listened = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    );
    SignalTask(tokio::spawn(async move {
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
                // Commands are ended by their supervisor, which sees our end of the socket close.
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            cancel.cancel();
        }
    }))
}
