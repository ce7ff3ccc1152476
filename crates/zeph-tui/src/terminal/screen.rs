//! The screen of a conversation: printed text, and the live region below it.
//!
//! Events change the [`Transcript`]. [`Screen::refresh`] prints the parts of it that are final, and paints
//! the rest in place. A stream that is not animated gets only the printed text.

mod dialogs;

use std::io::Write;
use std::time::{Duration, Instant};

use zeph_core::LoopbackEvent;
use zeph_memory::Task;

use super::call_question::CallQuestion;
use super::commit::{Commit, Target};
use super::key_press::KeyPress;
use super::live_region::{LiveRegion, LiveRows, Size};
use super::live_rows::LiveView;
use super::style::Style;
use super::typed_input::TypedInput;
use crate::view::render::{Detail, block_lines, fit, task_lines};
use crate::view::{Block, SessionStatus, Severity, Transcript};

/// Erases the row of the cursor.
pub(super) const ERASE: &str = "\r\x1b[2K";
/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(17);
/// Columns of a line in a file or a pipe.
const UNBOUNDED: usize = 100_000;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisplayMode {
    /// Everything, the model's text as it streams.
    All,
    /// The model's text after it is clear that it is not the response.
    Aside,
    /// Errors and questions.
    Quiet,
}

/// The turn that runs.
#[derive(Debug)]
struct Turn {
    began: Instant,
    /// Typed keys reach the input line.
    reads_keys: bool,
    is_cancelling: bool,
    last_event: Instant,
    /// The time in which the user was asked.
    asked: Duration,
}

/// An output stream that the user reads.
pub(super) struct Screen {
    out: Box<dyn Write + Send>,
    is_broken: bool,
    style: Style,
    mode: DisplayMode,
    transcript: Transcript,
    commit: Commit,
    region: LiveRegion,
    typed: TypedInput,
    turn: Option<Turn>,
    /// The question about a call that is painted in place.
    question: Option<CallQuestion>,
    /// The start of the open question.
    asked_at: Option<Instant>,
    /// A dialog or a command has the screen: nothing else is printed.
    is_exclusive: bool,
    /// While the process is suspended: whether the screen was exclusive before.
    suspended: Option<bool>,
    /// The dialog has printed text without a line break.
    is_midline: bool,
    painted_at: Option<Instant>,
    is_dirty: bool,
    /// The time of the last request, whose response may be printed elsewhere.
    requested_at: Option<Instant>,
    /// The task list that was printed last.
    printed_tasks: Vec<Task>,
    /// A task refreshes the screen.
    pub(super) has_ticker: bool,
}

impl Screen {
    pub(super) fn new(out: Box<dyn Write + Send>, style: Style, mode: DisplayMode) -> Self {
        Self {
            out,
            is_broken: false,
            style,
            mode,
            transcript: Transcript::default(),
            commit: Commit::default(),
            region: LiveRegion::default(),
            typed: TypedInput::default(),
            turn: None,
            question: None,
            asked_at: None,
            is_exclusive: false,
            suspended: None,
            is_midline: false,
            painted_at: None,
            is_dirty: false,
            requested_at: None,
            printed_tasks: Vec::new(),
            has_ticker: false,
        }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// The state of the session for the status line.
    pub(super) fn status(&mut self) -> &mut SessionStatus {
        self.transcript.status_mut()
    }

    /// The input that the user types during a turn.
    pub(super) fn typed(&mut self) -> &mut TypedInput {
        &mut self.typed
    }

    /// Shows an event.
    pub(super) fn event(&mut self, event: LoopbackEvent, now: Instant) {
        if let LoopbackEvent::Retrying(retry) = &event
            && !self.is_animated()
        {
            self.transcript.message(Severity::Notice, retry.to_string());
        }
        if matches!(event, LoopbackEvent::Requesting { .. }) {
            self.requested_at = Some(now);
        }
        self.transcript.apply(event, now);
        if let Some(turn) = &mut self.turn {
            turn.last_event = now;
        }
        self.change(now);
    }

    /// Handles a key that was typed during a turn.
    pub(super) fn press(&mut self, key: KeyPress) {
        self.typed.press(key);
        self.refresh(Instant::now());
    }

    /// Notes a change. The next frame shows it.
    fn change(&mut self, now: Instant) {
        self.is_dirty = true;
        let is_due = self
            .painted_at
            .is_none_or(|last| now.saturating_duration_since(last) >= FRAME);
        if is_due || !self.is_animated() {
            self.refresh(now);
        }
    }

    /// Shows the current state.
    pub(super) fn refresh(&mut self, now: Instant) {
        self.print(String::new(), false, now);
    }

    /// Shows the current state at regular intervals. Returns whether another interval is needed.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        self.refresh(now);
        let is_moving = self.turn.is_some() || self.is_busy() || self.is_dirty;
        self.has_ticker = is_moving && !self.is_broken;
        self.has_ticker
    }

    /// Whether a request or a call runs.
    fn is_busy(&self) -> bool {
        let mut open = self.commit.uncommitted(&self.transcript).iter();
        let is_running = |block: &Block| matches!(block, Block::Call(call) if call.is_running());
        let is_waiting = self.transcript.activity().is_some() || self.received_since().is_some();
        is_waiting || open.any(is_running)
    }

    /// The start of a response that streams and is not shown.
    fn received_since(&self) -> Option<Instant> {
        let last = self.transcript.blocks().len().checked_sub(1)?;
        let is_hidden = self.mode == DisplayMode::Aside && self.transcript.is_growing(last);
        self.requested_at.filter(|_| is_hidden)
    }

    /// Prints the committed text and `more`, and paints the live region. After a turn `is_over`, no block grows.
    fn print(&mut self, more: String, is_over: bool, now: Instant) {
        if self.is_exclusive || self.is_broken {
            return;
        }
        self.is_dirty = false;
        let target = self.target();
        let mut above = self.commit.advance(&mut self.transcript, target, is_over);
        above.push_str(&more);
        if !self.is_animated() {
            return self.raw(&above);
        }
        self.painted_at = Some(now);
        let live = if is_over {
            LiveRows::default()
        } else {
            self.live(now)
        };
        let bytes = self
            .region
            .paint(&above, live, terminal_size(), self.style.colour);
        self.raw(&bytes);
    }

    /// The rows of the live region.
    fn live(&mut self, now: Instant) -> LiveRows {
        let size = terminal_size();
        if let Some(question) = &self.question {
            return question.rows(size);
        }
        if self.turn.is_none() && !self.is_busy() {
            return LiveRows::default();
        }
        let turn = self.turn.as_ref();
        let reads_keys = turn.is_some_and(|turn| turn.reads_keys);
        let view = LiveView {
            transcript: &self.transcript,
            commit: &self.commit,
            typed: reads_keys.then_some(&self.typed),
            last_event: turn.map(|turn| turn.last_event).or(self.received_since()),
            is_cancelling: turn.is_some_and(|turn| turn.is_cancelling),
            size,
            now,
        };
        view.rows()
    }

    fn is_animated(&self) -> bool {
        self.style.animate && self.mode != DisplayMode::Quiet
    }

    fn target(&self) -> Target {
        Target {
            style: self.style,
            mode: self.mode,
            width: match self.style.terminal {
                true => terminal_size().columns,
                false => UNBOUNDED,
            },
        }
    }

    /// A turn begins. If it reads keys, typed keys reach the input line.
    pub(super) fn begin_turn(&mut self, reads_keys: bool) {
        let now = Instant::now();
        self.turn = Some(Turn {
            began: now,
            reads_keys,
            is_cancelling: false,
            last_event: now,
            asked: Duration::ZERO,
        });
        self.change(now);
    }

    /// The time since the turn began, without the time in which the user was asked.
    pub(super) fn turn_time(&self) -> Duration {
        let turn = self.turn.as_ref();
        turn.map_or(Duration::ZERO, |turn| {
            turn.began.elapsed().saturating_sub(turn.asked)
        })
    }

    /// The user cancels the turn.
    pub(super) fn cancel_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.is_cancelling = true;
        }
        self.refresh(Instant::now());
    }

    /// The turn is over: nothing grows, and the cursor is at the beginning of a line. Returns the time in which the user
    /// was asked.
    pub(super) fn end_turn(&mut self) -> Duration {
        self.transcript.end_turn();
        self.is_exclusive = false;
        self.question = None;
        let tasks = self.changed_tasks();
        self.print(tasks, true, Instant::now());
        self.transcript.forget_text();
        self.commit.begin();
        let turn = self.turn.take();
        turn.map_or(Duration::ZERO, |turn| turn.asked)
    }

    /// The task list if it has changed since it was printed.
    fn changed_tasks(&mut self) -> String {
        let tasks = self.transcript.tasks();
        if tasks == self.printed_tasks.as_slice() || self.mode == DisplayMode::Quiet {
            return String::new();
        }
        self.printed_tasks = tasks.to_vec();
        let target = self.target();
        let text = target.text(&task_lines(&self.printed_tasks, target.width));
        if text.is_empty() {
            text
        } else {
            format!("\n{text}")
        }
    }

    /// Shows a notice to the user.
    pub(super) fn notice(&mut self, text: &str) {
        self.message(Severity::Notice, text);
    }

    /// Shows a remark of little weight.
    pub(super) fn remark(&mut self, text: &str) {
        self.message(Severity::Remark, text);
    }

    /// Shows a remark in one line. A cut is marked.
    pub(super) fn remark_line(&mut self, text: &str) {
        let line = fit(text, self.target().width);
        self.remark(&line);
    }

    /// Shows a failure, also in quiet mode.
    pub(super) fn error(&mut self, text: &str) {
        self.message(Severity::Error, text);
    }

    fn message(&mut self, severity: Severity, text: &str) {
        self.push(Block::Message(severity, text.to_owned()));
    }

    /// Shows the result of a command of the user.
    pub(super) fn say(&mut self, text: &str) {
        self.push(Block::Reply(text.to_owned()));
    }

    /// Shows a block.
    pub(super) fn push(&mut self, block: Block) {
        self.transcript.push(block);
        self.refresh(Instant::now());
    }

    /// Shows the whole question, or the last shortened result in full.
    pub(super) fn expand(&mut self) {
        let target = self.target();
        let lines = match &mut self.question {
            Some(question) => {
                question.is_printed = true;
                question.lines(target.width, Detail::Full)
            }
            None => {
                let is_result = |block: &&Block| match block {
                    Block::Call(call) => !call.is_running(),
                    Block::Reasoning(_) => true,
                    _ => false,
                };
                let lines = |block: &Block, detail| block_lines(block, target.width, detail);
                let is_shortened =
                    |block: &&Block| lines(block, Detail::Excerpt) != lines(block, Detail::Full);
                let mut results = self.transcript.blocks().iter().rev().filter(is_result);
                let last = results.clone().next();
                results
                    .find(is_shortened)
                    .or(last)
                    .map(|block| lines(block, Detail::Full))
                    .unwrap_or_default()
            }
        };
        if !self.is_exclusive {
            self.print(target.text(&lines), false, Instant::now());
        } else if !lines.is_empty() {
            let text = format!("\n{}", target.text(&lines));
            self.append(&text);
            self.return_to_question();
        }
    }

    /// Erases the live region, and prints nothing until [`Screen::resume`].
    pub(super) fn suspend(&mut self) {
        let erased = self.region.erase(terminal_size().columns);
        self.raw(&erased);
        self.suspended.get_or_insert(self.is_exclusive);
        self.is_exclusive = true;
    }

    /// Whether nothing is printed until [`Screen::resume`].
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended.is_some()
    }

    /// Continues after the process was stopped. Others may have used the screen.
    pub(super) fn resume(&mut self) {
        if let Some(was_exclusive) = self.suspended.take() {
            self.is_exclusive = was_exclusive;
        }
        self.region.forget();
        self.refresh(Instant::now());
    }

    /// Writes a sequence that a reader does not see.
    pub(super) fn steer(&mut self, sequence: &str) {
        self.raw(sequence);
    }

    /// Ends the line of a prompt that the terminal shows.
    pub(super) fn end_prompt(&mut self) {
        self.raw("\n");
    }

    /// Writes to the stream. A failure only stops the output.
    fn raw(&mut self, text: &str) {
        if !self.is_broken && !text.is_empty() {
            let written = self
                .out
                .write_all(text.as_bytes())
                .and_then(|()| self.out.flush());
            self.is_broken = written.is_err();
        }
    }
}

/// The size of the terminal.
pub(super) fn terminal_size() -> Size {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or(
        Size {
            columns: 80,
            rows: 24,
        },
        |size| Size {
            columns: usize::from(size.ws_col),
            rows: usize::from(size.ws_row),
        },
    )
}

/// The width of a line in a dialog.
pub(super) fn columns() -> usize {
    terminal_size().columns.max(20)
}
