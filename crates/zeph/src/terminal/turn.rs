//! One turn at the terminal: it runs while keys and signals are handled.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use zeph_core::{Agent, Channel as _, LoopbackEvent, Reply, next_mode};
use zeph_tools::Permissions;

use super::channel::TerminalChannel;
use super::interactive::SessionEnd;
use super::keyboard::{Keyboard, Mode};
use super::type_ahead::{TurnKey, TypeAhead};

/// The time to wait for the signal that continues the process. A system may refuse to stop it.
const RESUME: Duration = Duration::from_millis(200);

/// Runs one input; `None` if the user exits during it. `pressed` is the time when a key cancelled it: the turn may
/// end before the second one arrives.
pub(super) async fn turn(
    agent: &mut Agent,
    (channel, permissions): (&TerminalChannel, &Permissions),
    text: &str,
    signals: &mut Signals,
    pressed: &mut Option<Pressed>,
) -> Option<Reply> {
    // Keys can be shown only where the screen is painted in place.
    let reads_keys = channel.screen().style().animate;
    let mut keys = match reads_keys {
        true => TypeAhead::start(Arc::clone(channel.shared()), channel.keyboard().clone()).ok(),
        false => None,
    };
    let _echo = match keys {
        Some(_) => None,
        None => Mode::without_echo(std::io::stdin()).ok(),
    };
    // An abandoned question restores its mode before the mode of the turn is restored.
    let _settled = Settled(channel.keyboard());
    channel.begin_turn(keys.is_some());
    let cancel = CancellationToken::new();
    // Ctrl-C at the prompt does not count for this turn.
    while signals.interrupted() {}
    let mut turn = pin!(agent.handle(text, &cancel));
    loop {
        let key = tokio::select! {
            biased;
            reply = &mut turn => {
                let leaves = cancel.is_cancelled() && keys.as_mut().is_some_and(TypeAhead::is_interrupted);
                return (!leaves).then_some(reply);
            }
            _ = signals.interrupt.recv() => TurnKey::Interrupt,
            _ = signals.terminate.recv() => return None,
            _ = signals.hangup.recv() => return None,
            _ = signals.resume.recv() => {
                resume(channel, &mut keys);
                continue;
            }
            key = next(&mut keys) => key,
        };
        match key {
            TurnKey::Interrupt if cancel.is_cancelled() => return None,
            TurnKey::Interrupt | TurnKey::Escape => {
                cancel.cancel();
                channel.screen().cancel_turn();
                *pressed = Some(Pressed {
                    at: Instant::now(),
                    leaves: SessionEnd::Interrupted,
                });
            }
            TurnKey::NextMode => {
                let mode = next_mode(permissions.mode.get());
                permissions.mode.set(mode);
                channel.emit(LoopbackEvent::Mode(mode));
            }
            TurnKey::Suspend => {
                channel.screen().suspend();
                if let Some(keys) = &mut keys {
                    keys.suspend();
                }
                suspend(signals).await;
                resume(channel, &mut keys);
            }
        }
    }
}

/// Waits for a key that acts on the turn.
async fn next(keys: &mut Option<TypeAhead>) -> TurnKey {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// Stops the process as the terminal does for Ctrl-Z, and returns after it continues.
pub(super) async fn suspend(signals: &mut Signals) {
    let _ = kill_process(getpid(), rustix::process::Signal::TSTP);
    let _ = tokio::time::timeout(RESUME, signals.resume.recv()).await;
}

/// Continues to read keys and to show the turn after the process was stopped.
fn resume(channel: &TerminalChannel, keys: &mut Option<TypeAhead>) {
    if let Some(keys) = keys {
        keys.resume();
    }
    channel.screen().resume();
}

/// Waits on drop until no dialog reads keys.
struct Settled<'k>(&'k Keyboard);

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        drop(self.0.hold());
    }
}

/// The last key that interrupts, and the end of the session if another one follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pressed {
    pub(super) at: Instant,
    pub(super) leaves: SessionEnd,
}

/// The signals that the session handles.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// SIGCONT.
    resume: Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resume: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    /// Takes a pending interrupt, and returns whether there was one.
    pub(super) fn interrupted(&mut self) -> bool {
        self.interrupt.recv().now_or_never().flatten().is_some()
    }

    /// Waits for a signal at the prompt, and returns whether it ends the process. Ctrl-C is a signal there
    /// only if the terminal edits the line itself (`plain`).
    pub(super) async fn at_prompt(&mut self, plain: bool) -> bool {
        tokio::select! {
            _ = self.interrupt.recv(), if plain => false,
            _ = self.terminate.recv() => true,
            _ = self.hangup.recv() => true,
        }
    }
}
