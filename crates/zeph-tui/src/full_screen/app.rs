//! The state of the interface, and the effect of keys on it. Pure: it reads no terminal and writes to none.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::blocks::Blocks;
use super::completion::{Popup, Suggestions, is_completable};
use super::dialog::{Dialog, DialogKey};
use super::input::Input;
use super::question::Answer;
use super::search::Search;
use crate::terminal::{SessionEnd, SessionPicker};
use crate::view::Transcript;

/// Two presses within this time end the session.
const TWICE: Duration = Duration::from_secs(2);
/// Rows of one step of the mouse wheel.
const WHEEL_ROWS: isize = 3;
/// A terminal with more columns has space for the panels next to the conversation.
pub(super) const MIN_WIDE_COLUMNS: u16 = 100;

/// An effect outside of the interface.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// The user submitted a text.
    Submit(String),
    /// The user interrupts the turn.
    Interrupt,
    /// The user answered the question with this id.
    Answer(u64, Answer),
    /// The text before the cursor, a position in bytes, needs suggestions.
    Complete(String, usize),
    /// Take the latest input back that waits for the end of the turn.
    TakeBack,
    /// Select the next permission mode.
    NextMode,
    /// Open the text of the prompt in the user's editor.
    Edit,
    /// The user selected a session, or none.
    Picked(Option<String>),
    /// Stop the process.
    Suspend,
    /// Draw everything again.
    Redraw,
    /// End the session.
    Leave(SessionEnd),
}

/// The state of the interface.
#[derive(Debug)]
pub(super) struct App {
    pub(super) input: Input,
    pub(super) blocks: Blocks,
    pub(super) popup: Option<Popup>,
    pub(super) dialog: Option<Dialog>,
    pub(super) search: Option<Search>,
    pub(super) panel: Panel,
    /// The list of sessions, in place of everything else.
    pub(super) picker: Option<SessionPicker>,
    /// The list of keys is shown.
    pub(super) has_help: bool,
    pub(super) turn: Turn,
    /// A hint in the status bar.
    pub(super) hint: Option<&'static str>,
    /// The last press of Ctrl-C or Esc at an empty prompt, or the one that interrupted a turn.
    pressed: Option<Instant>,
    /// The positions of the last drawing, for clicks.
    pub(super) areas: Areas,
}

/// The side panels.
#[derive(Debug, Default)]
pub(super) struct Panel {
    /// The panels differ from the default: visible next to the conversation, hidden if they would cover it.
    pub(super) is_toggled: bool,
    /// Rows above the visible ones, if the panels cover the conversation.
    pub(super) scroll: usize,
    /// Calls that differ from the default.
    pub(super) toggled: BTreeSet<usize>,
}

/// The state of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Idle,
    Working,
    Cancelling,
}

/// The positions of the last drawing.
#[derive(Debug, Default)]
pub(super) struct Areas {
    pub(super) size: (u16, u16),
    pub(super) conversation: Rect,
    /// The block of each row of the conversation.
    pub(super) rows: Vec<usize>,
    pub(super) panel: Rect,
    pub(super) calls: Rect,
    /// The block of each row of the tool panel.
    pub(super) call_rows: Vec<usize>,
    pub(super) dialog: Rect,
}

impl App {
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            blocks: Blocks::default(),
            popup: None,
            dialog: None,
            search: None,
            panel: Panel::default(),
            picker: None,
            has_help: false,
            turn: Turn::Idle,
            hint: None,
            pressed: None,
            areas: Areas::default(),
        }
    }

    /// Whether the panels are visible in a terminal of this width.
    pub(super) fn has_panel(&self, width: u16) -> bool {
        (width >= MIN_WIDE_COLUMNS) != self.panel.is_toggled
    }

    /// The next time at which the interface changes without an input.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.dialog.as_ref().and_then(|dialog| dialog.deadline(now))
    }

    /// Handles the passing of time.
    pub(super) fn tick(&mut self, now: Instant) -> Option<Action> {
        let dialog = self.dialog.as_mut()?;
        let (id, key) = (dialog.id, dialog.tick(now));
        self.answered(id, key)
    }

    /// Handles an input that arrived at `at`.
    pub(super) fn handle(&mut self, event: Event, at: Instant, all: &Transcript) -> Option<Action> {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => None,
            Event::Key(key) => {
                self.hint = None;
                self.key(key, at, all)
            }
            Event::Paste(text) => self.paste(&text, at, all),
            Event::Mouse(mouse) => {
                self.mouse(mouse, all);
                None
            }
            Event::Resize(..) | Event::FocusGained | Event::FocusLost => None,
        }
    }

    /// Handles an interrupt: Ctrl-C, or SIGINT.
    pub(super) fn interrupt(&mut self, at: Instant) -> Option<Action> {
        self.popup = None;
        let is_twice = self
            .pressed
            .is_some_and(|before| at.saturating_duration_since(before) <= TWICE);
        self.pressed = Some(at);
        match self.turn {
            Turn::Cancelling => Some(Action::Leave(SessionEnd::Interrupted)),
            Turn::Working => {
                self.turn = Turn::Cancelling;
                self.hint = Some("cancelling; Ctrl-C again leaves");
                Some(Action::Interrupt)
            }
            Turn::Idle if !self.input.is_empty() => {
                self.input.set("");
                self.pressed = None;
                None
            }
            Turn::Idle if is_twice => Some(Action::Leave(SessionEnd::Left)),
            Turn::Idle => {
                self.hint = Some("Ctrl-C once more, or Ctrl-D, leaves");
                None
            }
        }
    }

    /// Shows suggestions for a text, unless it has changed meanwhile.
    pub(super) fn suggest(&mut self, suggestions: Suggestions) {
        if suggestions.text == self.input.text() {
            self.popup = Popup::new(suggestions);
        }
    }

    fn paste(&mut self, text: &str, at: Instant, all: &Transcript) -> Option<Action> {
        if let Some(picker) = &mut self.picker {
            picker.paste(text);
            return None;
        }
        let is_taken = self
            .dialog
            .as_mut()
            .is_some_and(|dialog| dialog.paste(text, at));
        if is_taken {
            return None;
        }
        if let Some(search) = &mut self.search {
            search.paste(text, all, &mut self.blocks);
            return None;
        }
        self.input.paste(text);
        self.edited()
    }

    pub(super) fn escape(&mut self, at: Instant) -> Option<Action> {
        match self.turn {
            Turn::Working => self.interrupt(at),
            // A second Esc does not leave a turn: it is pressed by habit.
            Turn::Cancelling => None,
            Turn::Idle if !self.input.is_empty() => None,
            Turn::Idle => self.interrupt(at),
        }
    }

    pub(super) fn submit_text(&mut self, text: String) -> Option<Action> {
        self.pressed = None;
        if text.trim().is_empty() {
            return None;
        }
        self.blocks.show_end();
        Some(Action::Submit(text))
    }

    /// The action after a change of the text.
    pub(super) fn edited(&mut self) -> Option<Action> {
        self.popup = None;
        let (text, cursor) = (self.input.text(), self.input.cursor());
        let is_completable = text.get(..cursor).is_some_and(is_completable);
        is_completable.then(|| self.completion())
    }

    pub(super) fn completion(&self) -> Action {
        Action::Complete(self.input.text(), self.input.cursor())
    }

    /// Inserts the selected suggestion.
    pub(super) fn complete(&mut self) -> Option<Action> {
        let popup = self.popup.take()?;
        let chosen = popup.chosen()?;
        let (start, end) = chosen.span;
        self.input.replace(start, end, &chosen.inserted());
        self.edited()
    }

    pub(super) fn answered(&mut self, id: u64, key: DialogKey) -> Option<Action> {
        match key {
            DialogKey::Answered(answer) => {
                self.dialog = None;
                Some(Action::Answer(id, answer))
            }
            DialogKey::Typed(text) => {
                self.input.paste(&text);
                None
            }
            DialogKey::Continued | DialogKey::Foreign => None,
        }
    }

    pub(super) fn toggle_panel(&mut self) {
        self.panel.is_toggled = !self.panel.is_toggled;
        self.panel.scroll = 0;
    }

    /// Whether the panels cover the conversation.
    fn is_covered(&self) -> bool {
        let width = self.areas.size.0;
        width < MIN_WIDE_COLUMNS && self.has_panel(width)
    }

    pub(super) fn scroll_pages(&mut self, pages: isize, all: &Transcript) {
        if self.is_covered() {
            let page = usize::from(self.areas.panel.height.max(1));
            self.panel.scroll = self
                .panel
                .scroll
                .saturating_add_signed(pages * page.cast_signed());
        } else {
            self.blocks.scroll_pages(all, pages);
        }
    }

    fn mouse(&mut self, mouse: MouseEvent, all: &Transcript) {
        let place = Position::new(mouse.column, mouse.row);
        let rows = match mouse.kind {
            MouseEventKind::ScrollUp => -WHEEL_ROWS,
            MouseEventKind::ScrollDown => WHEEL_ROWS,
            MouseEventKind::Down(MouseButton::Left) => return self.click(place, all),
            _ => return,
        };
        match &mut self.dialog {
            Some(dialog) if self.areas.dialog.contains(place) => {
                dialog.scroll = dialog.scroll.saturating_add_signed(rows);
            }
            _ if self.areas.panel.contains(place) => {
                self.panel.scroll = self.panel.scroll.saturating_add_signed(rows);
            }
            _ => self.blocks.scroll(all, rows),
        }
    }

    /// Expands or folds a call. A click answers no question.
    fn click(&mut self, place: Position, all: &Transcript) {
        let row = |area: Rect, rows: &[usize]| {
            let is_inside = area.contains(place);
            is_inside.then(|| rows.get(usize::from(place.y - area.y)).copied())?
        };
        if self.dialog.is_some() && self.areas.dialog.contains(place) {
            return;
        }
        if let Some(block) = row(self.areas.calls, &self.areas.call_rows) {
            if !self.panel.toggled.remove(&block) {
                self.panel.toggled.insert(block);
            }
        } else if let Some(block) = row(self.areas.conversation, &self.areas.rows) {
            self.blocks.toggle(all, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use zeph_core::{CheckIn, CheckInAnswer};

    use super::*;
    use crate::config::KeyBindings;
    use crate::full_screen::key_bindings::NEXT_MODE;
    use crate::full_screen::question::Question;
    use crate::host::BareHost;
    use crate::view::Block;

    struct Screen {
        app: App,
        all: Transcript,
        now: Instant,
        _dir: tempfile::TempDir,
    }

    impl Screen {
        fn new() -> Self {
            Self::with_keys(KeyBindings::Emacs)
        }

        fn with_keys(keys: KeyBindings) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (input, _) = Input::new(&dir.path().join("history.txt"), keys, &BareHost);
            Self {
                app: App::new(input),
                all: Transcript::default(),
                now: Instant::now(),
                _dir: dir,
            }
        }

        fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
            self.now += Duration::from_millis(100);
            let key = Event::Key(KeyEvent::new(code, modifiers));
            self.app.handle(key, self.now, &self.all)
        }

        fn key(&mut self, code: KeyCode) -> Option<Action> {
            self.press(code, KeyModifiers::NONE)
        }

        fn control(&mut self, character: char) -> Option<Action> {
            self.press(KeyCode::Char(character), KeyModifiers::CONTROL)
        }

        fn type_text(&mut self, text: &str) {
            for character in text.chars() {
                self.key(KeyCode::Char(character));
            }
        }
    }

    #[test]
    fn enter_submits_and_other_enters_begin_a_line() {
        let mut screen = Screen::new();
        assert_eq!(screen.key(KeyCode::Enter), None);
        screen.type_text("one");
        assert_eq!(screen.press(KeyCode::Enter, KeyModifiers::ALT), None);
        screen.type_text("two\\");
        assert_eq!(screen.key(KeyCode::Enter), None);
        screen.type_text("three");
        assert_eq!(screen.control('j'), None);
        let submitted = screen.key(KeyCode::Enter);
        assert_eq!(
            submitted,
            Some(Action::Submit("one\ntwo\nthree\n".to_owned()))
        );
        assert!(screen.app.input.is_empty());
    }

    /// Proves CLI-4d for the full screen: Ctrl-C clears, interrupts, and pressed twice exits.
    #[test]
    fn ctrl_c_clears_interrupts_and_exits() {
        let mut screen = Screen::new();
        screen.type_text("x");
        assert_eq!(screen.control('c'), None);
        assert!(screen.app.input.is_empty());
        assert_eq!(screen.control('c'), None);
        assert_eq!(screen.control('c'), Some(Action::Leave(SessionEnd::Left)));
        screen.app.turn = Turn::Working;
        assert_eq!(screen.control('c'), Some(Action::Interrupt));
        assert_eq!(screen.key(KeyCode::Esc), None);
        assert_eq!(
            screen.control('c'),
            Some(Action::Leave(SessionEnd::Interrupted))
        );
        screen.app.turn = Turn::Idle;
        screen.app.pressed = None;
        assert_eq!(screen.key(KeyCode::Esc), None);
        screen.now += TWICE;
        assert_eq!(screen.key(KeyCode::Esc), None);
        assert_eq!(
            screen.key(KeyCode::Esc),
            Some(Action::Leave(SessionEnd::Left))
        );
        assert_eq!(screen.control('d'), Some(Action::Leave(SessionEnd::Left)));
        assert_eq!(
            screen.press(KeyCode::BackTab, KeyModifiers::SHIFT),
            Some(Action::Submit(NEXT_MODE.to_owned()))
        );
    }

    #[test]
    fn typed_text_does_not_answer_a_dialog() {
        let mut screen = Screen::new();
        screen.app.turn = Turn::Working;
        screen.type_text("a");
        let question = Question::CheckIn(CheckIn {
            iterations: 1,
            more: 1,
        });
        let mut dialog = Dialog::new(4, Arc::new(question));
        dialog.drawn(screen.now);
        screen.app.dialog = Some(dialog);
        screen.type_text("nd n");
        assert_eq!(screen.app.input.text(), "and n");
        screen.now += Duration::from_secs(2);
        assert_eq!(screen.key(KeyCode::Char('n')), None);
        screen.now += Duration::from_secs(1);
        let stopped = Answer::CheckIn(CheckInAnswer::Stop);
        assert_eq!(
            screen.app.tick(screen.now),
            Some(Action::Answer(4, stopped))
        );
        assert!(screen.app.dialog.is_none());
    }

    #[test]
    fn suggestions_are_inserted() {
        let mut screen = Screen::new();
        screen.type_text("/hel");
        let asked = screen.key(KeyCode::Char('p'));
        assert_eq!(asked, Some(Action::Complete("/help".to_owned(), 5)));
        let suggestions = |text: &str| Suggestions {
            text: text.to_owned(),
            all: vec![super::super::completion::Suggestion {
                value: "/helper".to_owned(),
                description: String::new(),
                span: (0, 5),
                append_whitespace: true,
            }],
        };
        screen.app.suggest(suggestions("/he"));
        assert!(screen.app.popup.is_none(), "the text has changed");
        screen.app.suggest(suggestions("/help"));
        assert!(screen.key(KeyCode::Tab).is_some());
        assert_eq!(screen.app.input.text(), "/helper ");
        screen.app.input.set("/help");
        screen.app.suggest(suggestions("/help"));
        assert_eq!(
            screen.key(KeyCode::Enter),
            Some(Action::Submit("/help".to_owned()))
        );
    }

    /// Proves CLI-4 for the full screen: after a directory no space follows, and its content is requested.
    #[test]
    fn completed_directory_requests_its_content() {
        for (typed, value) in [("@sr", "@src/"), ("@\"my", "@\"my dir/")] {
            let mut screen = Screen::new();
            screen.type_text(typed);
            screen.app.suggest(Suggestions {
                text: typed.to_owned(),
                all: vec![super::super::completion::Suggestion {
                    value: value.to_owned(),
                    description: String::new(),
                    span: (0, typed.len()),
                    append_whitespace: false,
                }],
            });
            let content = Action::Complete(value.to_owned(), value.len());
            assert_eq!(screen.key(KeyCode::Tab), Some(content));
            assert_eq!(screen.app.input.text(), value);
        }
    }

    #[test]
    fn click_expands_and_wheel_scrolls() {
        let mut screen = Screen::new();
        screen.all.push(Block::Reasoning("a\nb\nc".to_owned()));
        for at in 0..20 {
            screen.all.push(Block::Reply(format!("row {at}")));
        }
        let rows = screen.app.blocks.visible(&screen.all, 20, 5);
        assert_eq!(rows.len(), 5);
        screen.app.areas.conversation = Rect::new(0, 0, 20, 5);
        let mouse = |kind, row| {
            Event::Mouse(MouseEvent {
                kind,
                column: 1,
                row,
                modifiers: KeyModifiers::NONE,
            })
        };
        for _ in 0..20 {
            let event = mouse(MouseEventKind::ScrollUp, 1);
            screen.app.handle(event, screen.now, &screen.all);
        }
        let before = screen.app.blocks.visible(&screen.all, 20, 5);
        screen.app.areas.rows = before.iter().map(|row| row.block).collect();
        assert_eq!(before[0].block, 0);
        let click = mouse(MouseEventKind::Down(MouseButton::Left), 0);
        screen.app.handle(click, screen.now, &screen.all);
        let after = screen.app.blocks.visible(&screen.all, 20, 5);
        assert_ne!(before, after);
    }

    /// Proves CLI-5: pasted text goes to the visible search and not to the prompt.
    #[test]
    fn paste_goes_to_the_search_or_the_list_of_sessions() {
        let mut screen = Screen::new();
        let paste = |screen: &mut Screen, text: &str| {
            let event = Event::Paste(text.to_owned());
            assert_eq!(screen.app.handle(event, screen.now, &screen.all), None);
            assert!(screen.app.input.is_empty());
        };
        screen.control('f');
        paste(&mut screen, "nee\x1b[31mdle\r\n");
        let query = screen.app.search.as_ref().map(Search::query);
        assert_eq!(query, Some("needle"));
        let entry = |id: &str, title: &str| crate::terminal::PickerEntry {
            id: id.to_owned(),
            date: String::new(),
            title: title.to_owned(),
            directory: String::new(),
            is_here: true,
        };
        let entries = vec![entry("1", "other"), entry("2", "needle")];
        screen.app.picker = Some(SessionPicker::new(entries));
        paste(&mut screen, "needle\n");
        let picked = screen.key(KeyCode::Enter);
        assert_eq!(picked, Some(Action::Picked(Some("2".to_owned()))));
    }

    #[test]
    fn panels_are_toggled() {
        let mut screen = Screen::new();
        assert!(screen.app.has_panel(100) && !screen.app.has_panel(99));
        screen.key(KeyCode::F(2));
        assert!(!screen.app.has_panel(100) && screen.app.has_panel(99));
        screen.control('r');
        assert!(screen.app.has_panel(100));
        screen.key(KeyCode::Char('?'));
        assert!(screen.app.has_help);
        screen.key(KeyCode::Char('x'));
        assert!(!screen.app.has_help && screen.app.input.is_empty());
    }

    /// Proves CLI-4d: in the normal mode of vi, Ctrl-R is redo and not the key of the panel.
    #[test]
    fn ctrl_r_is_redo_in_the_normal_mode_of_vi() {
        let mut screen = Screen::with_keys(KeyBindings::Vi);
        screen.type_text("one two");
        screen.control('r');
        assert!(!screen.app.has_panel(100));
        screen.key(KeyCode::Esc);
        screen.type_text("ddu");
        assert_eq!(screen.app.input.text(), "one two");
        screen.control('r');
        assert!(screen.app.input.is_empty() && !screen.app.has_panel(100));
    }
}
