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

/// The keys of the prompt.
pub(super) struct PromptKeys {
    inner: Box<dyn EditMode>,
    is_vi: bool,
    /// Whether the text is empty.
    is_empty: Arc<AtomicBool>,
}

impl PromptKeys {
    /// The keys of `bindings`. With an editor of the user, Ctrl-G opens it.
    pub(super) fn new(bindings: KeyBindings, has_editor: bool, is_empty: Arc<AtomicBool>) -> Self {
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
            is_empty,
        }
    }

    /// The action of a key at an empty prompt. In vi, Esc leaves the insert mode.
    fn at_empty_prompt(&self, event: &crossterm::event::Event) -> Option<PromptKey> {
        let crossterm::event::Event::Key(key) = event else {
            return None;
        };
        let is_plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match key.code {
            _ if !is_plain || !self.is_empty.load(Ordering::Relaxed) => None,
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
            self.is_empty.store(false, Ordering::Relaxed);
        }
        match ReedlineRawEvent::try_from(terminal_event) {
            Ok(raw) => self.inner.parse_event(raw),
            Err(()) => ReedlineEvent::None,
        }
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
        true => control('g', ReedlineEvent::OpenEditor),
        false => control('g', event(PromptKey::NoEditor)),
    }
}
