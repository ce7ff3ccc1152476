//! Dialogs, and commands that have the terminal. Nothing else is printed meanwhile, apart from a question about a call,
//! which is painted in the live region.

use std::time::Instant;

use zeph_core::LoopbackEvent;

use super::{DisplayMode, Screen, terminal_size};
use crate::sanitize::clean;
use crate::terminal::call_question::CallQuestion;
use crate::terminal::style::DIM;
use crate::view::render::Detail;

impl Screen {
    /// Shows the question about a call.
    pub(in crate::terminal) fn ask_call(&mut self, mut question: CallQuestion) {
        self.asked_at = Some(Instant::now());
        let target = self.target();
        if !self.is_animated() {
            let mut lines = question.lines(target.width, Detail::Excerpt);
            lines.extend(question.keys(target.width));
            let text = target.text(&lines);
            question.is_printed = true;
            self.question = Some(question);
            return self.ask(&format!("{} ", text.trim_end_matches('\n')));
        }
        let mut above = String::new();
        let size = terminal_size();
        // A question that does not fit is printed, so that the user can read all of it.
        if question.rows(size).rows.len() >= size.rows {
            above = target.text(&question.lines(target.width, Detail::Excerpt));
            question.is_printed = true;
        }
        self.question = Some(question);
        self.print(above, false, Instant::now());
    }

    /// Changes the open question about a call.
    pub(in crate::terminal) fn change_question(&mut self, change: impl FnOnce(&mut CallQuestion)) {
        if let Some(question) = &mut self.question {
            change(question);
        }
        self.refresh(Instant::now());
    }

    /// Adds a remark about the last key to the question.
    pub(in crate::terminal) fn note_question(&mut self, note: &'static str) {
        if self.is_exclusive {
            self.append(&format!("\n  {note}"));
            return self.return_to_question();
        }
        self.change_question(|question| {
            question.note = Some(note);
            question.ignored += 1;
        });
    }

    /// Returns to the question about a call from a dialog that printed its text.
    pub(in crate::terminal) fn return_to_question(&mut self) {
        self.end_dialog_line();
        if self.is_animated() {
            self.is_exclusive = false;
            return self.change_question(|question| {
                question.note = None;
                question.reason = None;
            });
        }
        let target = self.target();
        let keys = self.question.as_ref().map(|it| it.keys(target.width));
        let text = target.text(&keys.unwrap_or_default());
        self.append(&format!("{} ", text.trim_end_matches('\n')));
    }

    /// Asks for a line that the terminal edits.
    pub(in crate::terminal) fn ask_line(&mut self, prompt: &str) {
        self.append(&format!("\n{prompt}"));
        // The terminal echoes the line and its end.
        self.is_midline = false;
    }

    /// Prints a question. Until [`Screen::answered`] nothing else is printed.
    pub(in crate::terminal) fn ask(&mut self, text: &str) {
        self.asked_at.get_or_insert_with(Instant::now);
        self.take_screen();
        self.append(text);
    }

    /// Prints more of a dialog.
    pub(in crate::terminal) fn ask_more(&mut self, text: &str) {
        if !self.is_exclusive {
            let target = self.target();
            if let Some(question) = self.question.as_mut().filter(|it| !it.is_printed) {
                question.is_printed = true;
                let lines = question.lines(target.width, Detail::Excerpt);
                self.print(target.text(&lines), false, Instant::now());
            }
            self.take_screen();
        }
        self.append(text);
    }

    /// Ends the line of a dialog, and prints nothing until [`Screen::resume`].
    pub(in crate::terminal) fn suspend_dialog(&mut self) {
        self.end_dialog_line();
        self.suspend();
    }

    /// Ends the question with the decision `answer`.
    pub(in crate::terminal) fn answered(&mut self, answer: &str) {
        let now = Instant::now();
        if let Some(asked_at) = self.asked_at.take() {
            let waited = now.saturating_duration_since(asked_at);
            self.transcript.postpone(waited);
            if let Some(turn) = &mut self.turn {
                turn.asked += waited;
                turn.last_event = now;
            }
        }
        let question = self.question.take();
        // Below a dialog, its own line shows the answer.
        let is_printed = !self.is_exclusive && question.is_some_and(|question| question.is_printed);
        if self.is_exclusive {
            if self.is_midline {
                let answer = self.style.paint(DIM, &clean(answer));
                self.append(&answer);
            }
            self.end_dialog_line();
            self.commit.after_question();
        }
        self.is_exclusive = false;
        let more = match is_printed {
            true => self.style.paint(DIM, &format!("  → {}", clean(answer))) + "\n",
            false => String::new(),
        };
        self.print(more, false, now);
    }

    /// Gives the screen to a command of the user.
    pub(in crate::terminal) fn lend(&mut self) {
        let ids: Vec<String> = self.transcript.running_ids();
        for id in ids {
            let terminal = String::new();
            self.transcript
                .apply(LoopbackEvent::Terminal { id, terminal }, Instant::now());
        }
        self.take_screen();
    }

    /// Continues the output after a command had the terminal. `reset` restores the terminal, and the cursor may be after
    /// text (`is_midline`).
    pub(in crate::terminal) fn take_back(&mut self, reset: &str, is_midline: bool) {
        self.raw(reset);
        if is_midline {
            self.raw("\n");
        }
        self.is_exclusive = false;
        self.refresh(Instant::now());
    }

    /// Prints the titles of running calls, and erases the live region.
    fn take_screen(&mut self) {
        if self.is_exclusive {
            return;
        }
        let target = self.target();
        let mut above = self.commit.advance(&mut self.transcript, target, false);
        if self.mode != DisplayMode::Quiet {
            above.push_str(&self.commit.print_titles(&mut self.transcript, target));
        }
        let erased = self.region.erase(terminal_size().columns);
        self.raw(&(erased + &above));
        self.is_exclusive = true;
        self.is_midline = false;
    }

    /// Prints text of a dialog.
    pub(super) fn append(&mut self, text: &str) {
        self.raw(text);
        if !text.is_empty() {
            self.is_midline = !text.ends_with('\n');
        }
    }

    fn end_dialog_line(&mut self) {
        if self.is_midline {
            self.append("\n");
        }
    }
}
