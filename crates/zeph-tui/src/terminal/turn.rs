//! One turn at the terminal: it runs while keys and signals are handled.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use rustix::process::{getpid, kill_process};
use rustix::termios::OptionalActions;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use zeph_core::{Agent, Channel as _, LoopbackEvent, Reply, next_mode};

use super::channel::TerminalChannel;
use super::external_editor::{Editing, NO_EDITOR, edit, failure, finished};
use super::interactive::{InteractiveOptions, SessionEnd};
use super::keyboard::{Keyboard, Mode, is_connected};
use super::restore;
use super::type_ahead::{TurnKey, TypeAhead};

/// The time to wait for the signal that continues the process. A system may refuse to stop it.
const RESUME: Duration = Duration::from_millis(200);
/// The time between two checks whether the terminal is still there.
const LOOK: Duration = Duration::from_secs(1);

/// Runs one input; `None` if the user exits during it. `pressed` is the time when a key cancelled it: the turn may
/// end before the second one arrives.
pub(super) async fn turn(
    agent: &mut Agent,
    (channel, options): (&TerminalChannel, &InteractiveOptions),
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
    let mut editing: Option<Editing> = None;
    let mut turn = pin!(agent.handle(text, &cancel));
    let mut reply = None;
    loop {
        if editing.is_none()
            && let Some(reply) = reply
        {
            let leaves =
                cancel.is_cancelled() && keys.as_mut().is_some_and(TypeAhead::is_interrupted);
            return (!leaves).then_some(reply);
        }
        let key = tokio::select! {
            biased;
            ended = &mut turn, if reply.is_none() => {
                reply = Some(ended);
                continue;
            }
            // In the user's editor, Ctrl-C belongs to it.
            _ = signals.interrupt.recv(), if editing.is_none() => TurnKey::Interrupt,
            _ = signals.terminate.recv() => return None,
            _ = signals.hangup.recv() => return None,
            edited = finished(&mut editing) => {
                editing = None;
                resume(channel, &mut keys);
                accept(channel, options, edited);
                continue;
            }
            _ = signals.resume.recv(), if editing.is_none() => {
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
            TurnKey::Edit => editing = start_editor(channel, options),
            TurnKey::NextMode => {
                let mode = next_mode(options.permissions.mode.get());
                options.permissions.mode.set(mode);
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

/// Opens the typed text in the user's editor, which has the keyboard and the screen until it ends.
fn start_editor(channel: &TerminalChannel, options: &InteractiveOptions) -> Option<Editing> {
    let Some(command) = options.external_editor.clone() else {
        channel.screen().notice(NO_EDITOR);
        return None;
    };
    let (shared, keyboard) = (Arc::clone(channel.shared()), channel.keyboard().clone());
    let editing = Editing::start(move || {
        let _held = keyboard.hold();
        let text = shared.begin_editing();
        let _mode = Mode::change(io::stdin(), OptionalActions::Now, |mode| {
            if let Some(found) = restore::found() {
                mode.clone_from(found);
            }
        });
        edit(&command, &text)
    });
    editing
        .map_err(|error| channel.screen().error(&error.to_string()))
        .ok()
}

/// Puts the text of the user's editor into the input line.
fn accept(channel: &TerminalChannel, options: &InteractiveOptions, edited: io::Result<String>) {
    match edited {
        Ok(text) => channel.shared().end_editing(&text),
        Err(error) => {
            let command = options.external_editor.as_deref().unwrap_or_default();
            channel.screen().error(&failure(command, &error));
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

/// Waits for the end of the terminal. Its signal does not arrive if the process was started with the signal blocked, and
/// the line editor would then read for ever.
async fn disconnected() {
    loop {
        tokio::time::sleep(LOOK).await;
        if !is_connected() {
            return;
        }
    }
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
            () = disconnected() => true,
        }
    }
}
