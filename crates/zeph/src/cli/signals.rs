//! Signals that end the work.

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

/// The first SIGINT, SIGTERM or SIGHUP cancels the work; a second one leaves at once.
pub(crate) fn cancel_on_signals(cancel: CancellationToken) -> SignalTask {
    SignalTask(tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) else {
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
