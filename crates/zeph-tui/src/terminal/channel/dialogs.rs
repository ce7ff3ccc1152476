//! The dialogs of the channel: functions that show their parts, and the guard that ends them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::Value;
use zeph_tools::Confirmation;

use super::{Shared, TerminalChannel};
use crate::terminal::call_question::{CallQuestion, REASON};
use crate::terminal::keyboard::{Keyboard, ONE_KEY, Show};
use crate::terminal::restore::{self, LEAVE_PASTES, MARK_PASTES};
use crate::terminal::screen::Screen;

/// The time between two checks whether the screen is shown again after a suspension.
const RESUME_CHECK: Duration = Duration::from_millis(10);
/// The maximum number of such checks. A system may refuse to stop the process.
const MAX_RESUME_CHECKS: usize = 20;

impl TerminalChannel {
    /// Opens a question: notices wait until the returned guard is dropped.
    pub(super) fn open_question(&self) -> Asking {
        self.hold_notices();
        self.set_title("question");
        let waited = self.screen().turn_time();
        self.signal("a question waits for your decision", waited);
        Asking {
            shared: Arc::clone(&self.shared),
            keyboard: self.keyboard.clone(),
            marks_pastes: !self.options.dumb,
            answer: "cancelled",
        }
    }

    /// Ends a question with its answer. The turn continues.
    pub(super) fn close_question(&self, mut asking: Asking, answer: &'static str) {
        asking.answer = answer;
        drop(asking);
        self.set_title("working");
    }

    /// A function that shows the parts of a dialog with the text `text` and the line `keys`.
    pub(super) fn question_view(
        &self,
        text: String,
        keys: &str,
    ) -> impl Fn(Show<'_>) + Send + 'static + use<> {
        let (shared, marks_pastes) = (Arc::clone(&self.shared), !self.options.dumb);
        let keys = format!("\n{keys}");
        move |show| {
            let mut screen = shared.screen();
            match show {
                Show::Question => {
                    mark_pastes(&mut screen, marks_pastes);
                    screen.ask(&text);
                }
                Show::Keys => screen.ask_more(&keys),
                Show::Text(text) => screen.ask_more(text),
                Show::Suspend => {
                    drop(screen);
                    suspend(&shared, marks_pastes);
                    shared.screen().ask(&text);
                }
                // Such a dialog has no answers to select, and no excerpt.
                Show::Select(_) | Show::Ignored | Show::Expand | Show::Reason(..) => {}
            }
        }
    }

    /// A function that shows the parts of the question about a call.
    pub(super) fn call_view(
        &self,
        question: &Confirmation,
        params: &Value,
    ) -> impl Fn(Show<'_>) + Send + 'static + use<> {
        let (shared, plain) = (Arc::clone(&self.shared), self.options.dumb);
        let opened = Mutex::new(Some(CallQuestion::new(question.clone(), params.clone())));
        move |show| {
            let mut screen = shared.screen();
            match show {
                Show::Question => {
                    mark_pastes(&mut screen, !plain);
                    let opened = opened.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if let Some(opened) = opened {
                        screen.ask_call(opened);
                    }
                }
                Show::Keys => screen.return_to_question(),
                Show::Select(at) => screen.change_question(|question| {
                    question.selected = at;
                    question.note = None;
                }),
                Show::Ignored => screen.note_question(ONE_KEY),
                Show::Expand => screen.expand(),
                Show::Reason(..) if plain => screen.ask_line(REASON),
                Show::Reason(text, column) => screen.change_question(|question| {
                    question.note = None;
                    question.reason = Some((text.to_owned(), column));
                }),
                Show::Text(text) => screen.ask_more(text),
                Show::Suspend => {
                    drop(screen);
                    suspend(&shared, !plain);
                    shared.screen().return_to_question();
                }
            }
        }
    }
}

/// Stops the process as the terminal does for Ctrl-Z, in the mode in which the terminal was found.
/// Returns after the process continues and the screen is shown again.
fn suspend(shared: &Shared, marks_pastes: bool) {
    let mut screen = shared.screen();
    if marks_pastes {
        screen.steer(LEAVE_PASTES);
    }
    screen.suspend_dialog();
    drop(screen);
    let stdin = io::stdin();
    let mode = tcgetattr(&stdin).ok();
    if let Some(found) = restore::found() {
        let _ = tcsetattr(&stdin, OptionalActions::Now, found);
    }
    let _ = kill_process(getpid(), Signal::TSTP);
    for _ in 0..MAX_RESUME_CHECKS {
        // A turn that gets SIGCONT shows the screen again.
        if !shared.screen().is_suspended() {
            break;
        }
        std::thread::park_timeout(RESUME_CHECK);
    }
    if let Some(mode) = mode {
        // Keys that were typed meanwhile do not answer.
        let _ = tcsetattr(&stdin, OptionalActions::Flush, &mode);
    }
    let mut screen = shared.screen();
    if screen.is_suspended() {
        screen.resume();
    }
    if marks_pastes {
        screen.steer(MARK_PASTES);
    }
}

/// Makes the terminal mark pastes for a dialog.
fn mark_pastes(screen: &mut Screen, marks_pastes: bool) {
    if marks_pastes {
        restore::note_pastes(true);
        screen.steer(MARK_PASTES);
    }
}

/// Ends the question on the screen, even if the turn is cancelled meanwhile.
pub(super) struct Asking {
    shared: Arc<Shared>,
    keyboard: Keyboard,
    marks_pastes: bool,
    answer: &'static str,
}

impl Drop for Asking {
    fn drop(&mut self) {
        // Wait until an abandoned dialog has restored the mode of the terminal.
        let _held = self.keyboard.hold();
        let mut screen = self.shared.screen();
        if self.marks_pastes {
            screen.steer(LEAVE_PASTES);
            restore::note_pastes(false);
        }
        screen.answered(self.answer);
        drop(screen);
        self.shared.release();
    }
}
