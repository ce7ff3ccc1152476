//! The menu of completions, which is not open without a suggestion: the library's menu would show a text for that.

use reedline::{
    Completer, Editor, IdeMenu, Menu, MenuBuilder as _, MenuEvent, MenuSettings, Painter,
    Suggestion,
};

/// The menu.
pub(super) struct CompletionMenu(IdeMenu);

impl CompletionMenu {
    pub(super) fn new(name: &str) -> Self {
        Self(IdeMenu::default().with_name(name))
    }
}

impl Menu for CompletionMenu {
    fn settings(&self) -> &MenuSettings {
        self.0.settings()
    }

    fn is_active(&self) -> bool {
        self.0.is_active() && !self.0.get_values().is_empty()
    }

    fn set_active(&mut self, active: bool) {
        self.0.set_active(active);
    }

    fn clear_input(&mut self) {
        self.0.clear_input();
    }

    fn menu_event(&mut self, event: MenuEvent) {
        self.0.menu_event(event);
    }

    fn can_quick_complete(&self) -> bool {
        self.0.can_quick_complete()
    }

    fn can_partially_complete(
        &mut self,
        values_updated: bool,
        editor: &mut Editor,
        completer: &mut dyn Completer,
    ) -> bool {
        self.0
            .can_partially_complete(values_updated, editor, completer)
    }

    fn update_values(&mut self, editor: &mut Editor, completer: &mut dyn Completer) {
        self.0.update_values(editor, completer);
    }

    fn reset_position(&mut self) {
        self.0.reset_position();
    }

    fn update_working_details(
        &mut self,
        editor: &mut Editor,
        completer: &mut dyn Completer,
        painter: &Painter,
    ) {
        self.0.update_working_details(editor, completer, painter);
    }

    fn replace_in_buffer(&self, editor: &mut Editor) {
        self.0.replace_in_buffer(editor);
    }

    fn menu_required_lines(&self, terminal_columns: u16) -> u16 {
        match self.is_active() {
            true => self.0.menu_required_lines(terminal_columns),
            false => 0,
        }
    }

    fn menu_string(&self, available_lines: u16, use_ansi_coloring: bool) -> String {
        match self.is_active() {
            true => self.0.menu_string(available_lines, use_ansi_coloring),
            false => String::new(),
        }
    }

    fn min_rows(&self) -> u16 {
        self.0.min_rows()
    }

    fn get_values(&self) -> &[Suggestion] {
        self.0.get_values()
    }

    fn results_are_provisional(&self) -> bool {
        self.0.results_are_provisional()
    }

    fn is_awaiting_first_answer(&self) -> bool {
        self.0.is_awaiting_first_answer()
    }

    fn set_cursor_pos(&mut self, position: (u16, u16)) {
        self.0.set_cursor_pos(position);
    }
}
