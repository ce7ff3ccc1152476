//! The key bindings of the full screen: each key and its action. `help` shows them to the user.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{Action, App, Turn};
use super::dialog::DialogKey;
use super::search::Search;
use crate::terminal::{Picked, SessionEnd};
use crate::view::Transcript;

/// The command of Shift-Tab.
pub(super) const NEXT_MODE: &str = "/mode next";
/// The command of Ctrl-D during a turn.
const QUIT: &str = "/quit";

impl App {
    /// Handles a key: the open list, dialog or search first, then the keys of the screen, then the prompt.
    pub(super) fn key(&mut self, key: KeyEvent, at: Instant, all: &Transcript) -> Option<Action> {
        let has = |modifiers| key.modifiers.contains(modifiers);
        if let Some(picker) = &mut self.picker {
            let picked = match picker.press(key) {
                Picked::Open => return None,
                Picked::Session(id) => Some(id),
                Picked::Cancelled => None,
            };
            self.picker = None;
            return Some(Action::Picked(picked));
        }
        if key.code == KeyCode::Char('c') && has(KeyModifiers::CONTROL) {
            return self.interrupt(at);
        }
        if let Some(dialog) = &mut self.dialog {
            let (id, key) = (dialog.id, dialog.key(key, at));
            if key != DialogKey::Foreign {
                return self.answered(id, key);
            }
        }
        if std::mem::take(&mut self.has_help) {
            return None;
        }
        if self.search.is_some() && self.search_key(key, all) {
            return None;
        }
        let is_control = has(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::F(1) => self.has_help = true,
            KeyCode::F(2) => self.toggle_panel(),
            // Among the commands of vi, it is redo.
            KeyCode::Char('r') if is_control && !self.input.has_commands() => self.toggle_panel(),
            KeyCode::Char('f') if is_control => self.search = Some(Search::default()),
            KeyCode::Char('o') if is_control => match self.blocks.selected() {
                Some(block) => self.blocks.toggle(all, block),
                None => self.blocks.toggle_all(),
            },
            KeyCode::Char('l') if is_control => return Some(Action::Redraw),
            KeyCode::Char('z') if is_control => return Some(Action::Suspend),
            KeyCode::Char('d') if is_control && self.input.is_empty() => {
                return match self.turn {
                    Turn::Idle => Some(Action::Leave(SessionEnd::Left)),
                    // After the turn.
                    _ => Some(Action::Submit(QUIT.to_owned())),
                };
            }
            KeyCode::BackTab if self.turn != Turn::Idle => return Some(Action::NextMode),
            KeyCode::BackTab => return self.submit_text(NEXT_MODE.to_owned()),
            KeyCode::Char('g') if is_control => return Some(Action::Edit),
            KeyCode::PageUp => self.scroll_pages(-1, all),
            KeyCode::PageDown => self.scroll_pages(1, all),
            KeyCode::Home if is_control || self.input.is_empty() => {
                self.panel.scroll = 0;
                self.blocks.show_start(all);
            }
            KeyCode::End if is_control || self.input.is_empty() => {
                self.panel.scroll = usize::MAX;
                self.blocks.show_end();
            }
            _ => return self.edit(key, at, all),
        }
        None
    }

    /// Handles a key of the search. Returns `false` for a key that belongs elsewhere.
    fn search_key(&mut self, key: KeyEvent, all: &Transcript) -> bool {
        let Some(search) = &mut self.search else {
            return false;
        };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => self.search = None,
            KeyCode::Enter | KeyCode::Up => search.go(false, all, &mut self.blocks),
            KeyCode::Down => search.go(true, all, &mut self.blocks),
            KeyCode::Char('f') if is_control => search.go(false, all, &mut self.blocks),
            KeyCode::Backspace => search.pop(all, &mut self.blocks),
            KeyCode::Char(character) if !is_control => {
                search.push(character, all, &mut self.blocks);
            }
            _ => return false,
        }
        true
    }

    /// Handles a key of the list, the selected block or the prompt.
    fn edit(&mut self, key: KeyEvent, at: Instant, all: &Transcript) -> Option<Action> {
        if let Some(popup) = &mut self.popup {
            match key.code {
                KeyCode::Up => popup.go(false),
                KeyCode::Down => popup.go(true),
                KeyCode::Esc => self.popup = None,
                KeyCode::Tab => return self.complete(),
                KeyCode::Enter if popup.is_chosen => return self.complete(),
                _ => return self.prompt_key(key, at, all),
            }
            return None;
        }
        if let Some(block) = self.blocks.selected() {
            match key.code {
                KeyCode::Up => {
                    self.blocks.select(all, false);
                }
                KeyCode::Down => {
                    self.blocks.select(all, true);
                }
                KeyCode::Enter | KeyCode::Char(' ') => self.blocks.toggle(all, block),
                KeyCode::Esc | KeyCode::Tab => self.blocks.deselect(),
                _ => {
                    self.blocks.deselect();
                    return self.prompt_key(key, at, all);
                }
            }
            return None;
        }
        self.prompt_key(key, at, all)
    }

    /// Handles a key of the prompt.
    fn prompt_key(&mut self, key: KeyEvent, at: Instant, all: &Transcript) -> Option<Action> {
        let has = |modifiers| key.modifiers.intersects(modifiers);
        match key.code {
            KeyCode::Enter if has(KeyModifiers::ALT | KeyModifiers::SHIFT) => self.input.newline(),
            KeyCode::Char('j') if has(KeyModifiers::CONTROL) => self.input.newline(),
            KeyCode::Enter if self.input.continues() => self.input.newline(),
            KeyCode::Enter => {
                self.popup = None;
                let text = self.input.submit();
                return self.submit_text(text);
            }
            KeyCode::Esc if self.input.escape() => return None,
            KeyCode::Esc => return self.escape(at),
            KeyCode::Tab if self.input.is_empty() => {
                self.blocks.select(all, false);
                return None;
            }
            KeyCode::Tab => return Some(self.completion()),
            KeyCode::Char('?') if self.input.is_empty() => {
                self.has_help = true;
                return None;
            }
            KeyCode::Up if self.turn != Turn::Idle && self.input.is_empty() => {
                return Some(Action::TakeBack);
            }
            KeyCode::Up if self.input.recall(true) => return None,
            KeyCode::Down if self.input.recall(false) => return None,
            _ => {
                self.input.key(key);
                return self.edited();
            }
        }
        None
    }
}
