//! The menu of completions. Without a suggestion it is not open, while the library's menu would show a text for that. The
//! prompt keeps the permission mode when it is open.

use reedline::{
    Completer, Editor, IdeMenu, Menu, MenuBuilder as _, MenuEvent, MenuSettings, Painter,
    Suggestion,
};
use zeph_tools::Mode;
use zeph_tools::permission_mode::SessionMode;

/// The menu.
pub(super) struct CompletionMenu {
    menu: IdeMenu,
    mode: SessionMode,
}

impl CompletionMenu {
    pub(super) fn new(name: &str, mode: SessionMode) -> Self {
        let menu = IdeMenu::default().with_name(name);
        Self { menu, mode }
    }
}

impl Menu for CompletionMenu {
    fn settings(&self) -> &MenuSettings {
        self.menu.settings()
    }

    /// The indicator of the prompt, which this one replaces.
    fn indicator(&self) -> &str {
        match self.mode.get() {
            Mode::Plan => "plan › ",
            Mode::Ask => "ask › ",
            Mode::AutoEdit => "auto-edit › ",
            Mode::Auto => "auto › ",
            Mode::Full => "full › ",
        }
    }

    fn is_active(&self) -> bool {
        self.menu.is_active() && !self.menu.get_values().is_empty()
    }

    fn set_active(&mut self, active: bool) {
        self.menu.set_active(active);
    }

    fn clear_input(&mut self) {
        self.menu.clear_input();
    }

    fn menu_event(&mut self, event: MenuEvent) {
        self.menu.menu_event(event);
    }

    fn can_quick_complete(&self) -> bool {
        self.menu.can_quick_complete()
    }

    fn can_partially_complete(
        &mut self,
        values_updated: bool,
        editor: &mut Editor,
        completer: &mut dyn Completer,
    ) -> bool {
        self.menu
            .can_partially_complete(values_updated, editor, completer)
    }

    fn update_values(&mut self, editor: &mut Editor, completer: &mut dyn Completer) {
        self.menu.update_values(editor, completer);
    }

    fn reset_position(&mut self) {
        self.menu.reset_position();
    }

    fn update_working_details(
        &mut self,
        editor: &mut Editor,
        completer: &mut dyn Completer,
        painter: &Painter,
    ) {
        self.menu.update_working_details(editor, completer, painter);
    }

    fn replace_in_buffer(&self, editor: &mut Editor) {
        self.menu.replace_in_buffer(editor);
    }

    fn menu_required_lines(&self, terminal_columns: u16) -> u16 {
        match self.is_active() {
            true => self.menu.menu_required_lines(terminal_columns),
            false => 0,
        }
    }

    fn menu_string(&self, available_lines: u16, use_ansi_coloring: bool) -> String {
        match self.is_active() {
            true => self.menu.menu_string(available_lines, use_ansi_coloring),
            false => String::new(),
        }
    }

    fn min_rows(&self) -> u16 {
        self.menu.min_rows()
    }

    fn get_values(&self) -> &[Suggestion] {
        self.menu.get_values()
    }

    fn results_are_provisional(&self) -> bool {
        self.menu.results_are_provisional()
    }

    fn is_awaiting_first_answer(&self) -> bool {
        self.menu.is_awaiting_first_answer()
    }

    fn set_cursor_pos(&mut self, position: (u16, u16)) {
        self.menu.set_cursor_pos(position);
    }
}
