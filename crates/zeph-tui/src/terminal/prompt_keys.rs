//! The keys of the prompt: those of Emacs or vi, and the ones that act without a text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, Keybindings, PromptEditMode,
    ReedlineEvent, ReedlineRawEvent, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings, default_vi_visual_keybindings,
};

use super::editor::PromptKey;
use crate::config::KeyBindings;

/// The menu of completions.
pub(super) const MENU: &str = "completion";
/// The name of Ctrl-G that passes through the line editor if the user has an editor.
pub(super) const EDIT: &str = "\0edit";
/// The input of Shift-Tab.
const NEXT_MODE: &str = "/mode next";

/// The keys that act without a text, by the name that passes through the line editor.
const KEYS: [(&str, PromptKey); 5] = [
    ("\0escape", PromptKey::Escape),
    ("\0expand", PromptKey::Expand),
    ("\0help", PromptKey::Help),
    ("\0suspend", PromptKey::Suspend),
    ("\0editor", PromptKey::NoEditor),
];

/// The key with this name.
pub(super) fn key(name: &str) -> Option<PromptKey> {
    let found = KEYS.iter().find(|(known, _)| *known == name);
    found.map(|(_, key)| *key)
}

fn event(key: PromptKey) -> ReedlineEvent {
    let found = KEYS.iter().find(|(_, known)| *known == key);
    found.map_or(ReedlineEvent::None, |(name, _)| {
        ReedlineEvent::ExecuteHostCommand((*name).to_owned())
    })
}

/// Whether a line ends with a backslash that is not itself escaped.
pub(super) fn is_continued(line: &str) -> bool {
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}

/// The state of the text at the prompt, on which the effect of keys depends.
#[derive(Debug, Default)]
pub(super) struct LineState {
    has_text: AtomicBool,
    /// The cursor is after a backslash at the end of the text.
    continues: AtomicBool,
    /// Typed text belongs to the search of an earlier input.
    is_search: AtomicBool,
}

impl LineState {
    /// Stores the state of the text that the editor shows.
    pub(super) fn set(&self, text: &str, cursor: usize) {
        let continues = cursor == text.len() && is_continued(text);
        self.has_text.store(!text.is_empty(), Ordering::Relaxed);
        self.continues.store(continues, Ordering::Relaxed);
        self.is_search.store(false, Ordering::Relaxed);
    }

    /// Whether the text is empty.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_text.load(Ordering::Relaxed)
    }

    /// Whether Enter continues the text. The editor shows the text only after a whole batch of keys, so each `event`
    /// changes the state.
    fn continues_at(&self, event: &ReedlineEvent) -> bool {
        let continues = self.continues.load(Ordering::Relaxed);
        let next = match event {
            ReedlineEvent::None => continues,
            ReedlineEvent::Enter => {
                self.continues.store(false, Ordering::Relaxed);
                return continues;
            }
            ReedlineEvent::Edit(commands) => commands.iter().fold(continues, after),
            ReedlineEvent::SearchHistory => {
                self.is_search.store(true, Ordering::Relaxed);
                false
            }
            _ => false,
        };
        let is_search = self.is_search.load(Ordering::Relaxed);
        self.continues.store(next && !is_search, Ordering::Relaxed);
        false
    }
}

/// Whether a text continues after an edit at its end.
fn after(continues: bool, command: &EditCommand) -> bool {
    match command {
        EditCommand::InsertChar('\\') => !continues,
        EditCommand::InsertString(text) if text.bytes().all(|byte| byte == b'\\') => {
            continues != is_continued(text)
        }
        EditCommand::InsertString(text) => is_continued(text),
        _ => false,
    }
}

/// The keys of the prompt.
pub(super) struct PromptKeys {
    inner: Box<dyn EditMode>,
    is_vi: bool,
    state: Arc<LineState>,
}

impl PromptKeys {
    /// The keys of `bindings`. With an editor of the user, Ctrl-G opens it.
    pub(super) fn new(bindings: KeyBindings, has_editor: bool, state: Arc<LineState>) -> Self {
        let is_vi = bindings == KeyBindings::Vi;
        let inner: Box<dyn EditMode> = match bindings {
            KeyBindings::Emacs => {
                let mut keys = default_emacs_keybindings();
                add_keys(&mut keys, has_editor);
                Box::new(Emacs::new(keys))
            }
            KeyBindings::Vi => {
                let mut insert = default_vi_insert_keybindings();
                let mut normal = default_vi_normal_keybindings();
                add_keys(&mut insert, has_editor);
                add_keys(&mut normal, has_editor);
                let visual = default_vi_visual_keybindings();
                Box::new(Vi::new(insert, normal, visual))
            }
        };
        Self {
            inner,
            is_vi,
            state,
        }
    }

    /// The action of a key at an empty prompt. In vi, Esc leaves the insert mode.
    fn at_empty_prompt(&self, event: &crossterm::event::Event) -> Option<PromptKey> {
        let crossterm::event::Event::Key(key) = event else {
            return None;
        };
        let is_plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match key.code {
            _ if !is_plain || !self.state.is_empty() => None,
            KeyCode::Char('?') if self.is_inserting() => Some(PromptKey::Help),
            KeyCode::Esc if !self.is_vi => Some(PromptKey::Escape),
            _ => None,
        }
    }

    fn is_inserting(&self) -> bool {
        use reedline::PromptViMode::Insert;
        !self.is_vi || matches!(self.inner.edit_mode(), PromptEditMode::Vi(Insert))
    }
}

impl EditMode for PromptKeys {
    fn parse_event(&mut self, raw: ReedlineRawEvent) -> ReedlineEvent {
        let terminal_event = crossterm::event::Event::from(raw);
        if let Some(key) = self.at_empty_prompt(&terminal_event) {
            return event(key);
        }
        // A whole batch of keys is read before the editor shows the text again.
        if adds_text(&terminal_event) {
            self.state.has_text.store(true, Ordering::Relaxed);
        }
        let Ok(raw) = ReedlineRawEvent::try_from(terminal_event) else {
            return ReedlineEvent::None;
        };
        let is_inserting = self.is_inserting();
        let event = self.inner.parse_event(raw);
        if self.state.continues_at(&event) && is_inserting {
            let newline = vec![EditCommand::Backspace, EditCommand::InsertNewline];
            return ReedlineEvent::Edit(newline);
        }
        event
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

/// Whether an event adds text to the prompt.
fn adds_text(event: &crossterm::event::Event) -> bool {
    use crossterm::event::Event;
    match event {
        Event::Paste(text) => !text.is_empty(),
        Event::Key(key) => {
            let is_plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
            matches!(key.code, KeyCode::Char(_)) && is_plain
        }
        _ => false,
    }
}

/// Adds the keys that Emacs and vi share.
fn add_keys(keys: &mut Keybindings, has_editor: bool) {
    let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::Enter, newline());
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(
        KeyModifiers::SHIFT,
        KeyCode::BackTab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::MenuPrevious,
            ReedlineEvent::ExecuteHostCommand(NEXT_MODE.to_owned()),
        ]),
    );
    let mut control = |letter, event| {
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char(letter), event);
    };
    control('o', event(PromptKey::Expand));
    control('z', event(PromptKey::Suspend));
    match has_editor {
        // As a group, the event has no effect in a search, which would discard the edited text.
        true => control(
            'g',
            ReedlineEvent::Multiple(vec![ReedlineEvent::ExecuteHostCommand(EDIT.to_owned())]),
        ),
        false => control('g', event(PromptKey::NoEditor)),
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{Event, KeyEvent};

    use super::*;

    #[test]
    fn trailing_backslash_continues() {
        let check = |text, expect| assert_eq!(is_continued(text), expect, "{text:?}");
        check("a\\", true);
        check("a\\\\", false);
        check("a\\\\\\", true);
        check("a", false);
        check("", false);
    }

    fn keys(bindings: KeyBindings, text: &str, cursor: usize) -> PromptKeys {
        let state = Arc::new(LineState::default());
        state.set(text, cursor);
        PromptKeys::new(bindings, false, state)
    }

    /// Whether Enter after a batch of events removes the backslash and begins a line.
    fn begins_line(keys: &mut PromptKeys, events: Vec<Event>) -> bool {
        let mut press = |event: Event| match ReedlineRawEvent::try_from(event) {
            Ok(raw) => keys.parse_event(raw),
            Err(()) => ReedlineEvent::None,
        };
        for event in events {
            press(event);
        }
        let newline = vec![EditCommand::Backspace, EditCommand::InsertNewline];
        press(key(KeyCode::Enter)) == ReedlineEvent::Edit(newline)
    }

    fn key(code: KeyCode) -> Event {
        Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn paste(text: &str) -> Event {
        Event::Paste(text.to_owned())
    }

    /// Proves CLI-4: only a backslash before the cursor at Enter continues the text, also within a batch of keys.
    #[test]
    fn backslash_at_enter_begins_a_line() {
        let slash = || key(KeyCode::Char('\\'));
        let check = |text: &str, events: Vec<Event>, expect| {
            for bindings in [KeyBindings::Emacs, KeyBindings::Vi] {
                let mut keys = keys(bindings, text, text.len());
                let label = format!("{text:?} {events:?}");
                assert_eq!(begins_line(&mut keys, events.clone()), expect, "{label}");
            }
        };
        check("a\\", vec![], true);
        check("a", vec![], false);
        check("a", vec![slash()], true);
        check("a", vec![slash(), slash()], false);
        check("a\\", vec![key(KeyCode::Char('b'))], false);
        check("a\\", vec![key(KeyCode::Backspace)], false);
        check("a\\", vec![key(KeyCode::Left)], false);
        check("a\\", vec![Event::FocusGained], true);
        check("", vec![paste("a \\\rb")], false);
        check("", vec![paste("a\rb\\")], true);
        check("a\\", vec![paste("\\\\")], true);
        check("a\\", vec![paste("\\")], false);
        check("a\\", vec![paste("")], true);
        assert!(!begins_line(
            &mut keys(KeyBindings::Emacs, "a\\", 1),
            vec![]
        ));
    }

    #[test]
    fn backslash_of_the_search_begins_no_line() {
        let control = Event::Key(KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL));
        let mut keys = keys(KeyBindings::Emacs, "a\\", 2);
        let events = vec![control, key(KeyCode::Char('\\'))];
        assert!(!begins_line(&mut keys, events));
        keys.state.set("b\\", 2);
        assert!(begins_line(&mut keys, Vec::new()));
    }

    #[test]
    fn enter_in_the_normal_mode_of_vi_begins_no_line() {
        let mut keys = keys(KeyBindings::Vi, "a\\", 2);
        assert!(!begins_line(&mut keys, vec![key(KeyCode::Esc)]));
    }
}
