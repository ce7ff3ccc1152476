//! Text input: a field of one line, the prompt of several lines, and earlier inputs.

use std::path::Path;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use reedline::{History as _, HistoryItem, SearchDirection, SearchQuery};
use unicode_width::UnicodeWidthStr as _;

use super::vi::Vi;
use crate::config::KeyBindings;
use crate::host::ViewHost;
use crate::sanitize::clean;
use crate::terminal::InputHistory;

/// The maximum number of characters of a field.
const MAX_FIELD_CHARS: usize = 8 * 1024;

/// A field of one line.
#[derive(Debug)]
pub(super) struct Field(TextArea<'static>);

/// The result of a key in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKey {
    /// Editing continues.
    Edited,
    /// Enter.
    Done,
    /// Escape.
    Cancelled,
}

impl Field {
    /// A field with this text, and the cursor at its end.
    pub(super) fn new(text: &str) -> Self {
        Self(area(vec![text.replace('\n', " ")], WrapMode::None))
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        self.0.lines().concat()
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> FieldKey {
        match key.code {
            KeyCode::Enter => return FieldKey::Done,
            KeyCode::Esc => return FieldKey::Cancelled,
            KeyCode::Char('m' | 'j') if key.modifiers.contains(KeyModifiers::CONTROL) => {}
            _ if is_delete_to_start(key) => {
                self.0.delete_line_by_head();
            }
            _ if self.0.lines().concat().chars().count() >= MAX_FIELD_CHARS
                && matches!(key.code, KeyCode::Char(_)) => {}
            _ => {
                self.0.input(key);
            }
        }
        FieldKey::Edited
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        let room = MAX_FIELD_CHARS.saturating_sub(self.text().chars().count());
        let text: String = clean(text)
            .replace(['\n', '\t'], " ")
            .chars()
            .take(room)
            .collect();
        self.0.insert_str(text);
    }

    /// The widget.
    pub(super) fn area(&self) -> &TextArea<'static> {
        &self.0
    }
}

/// The prompt.
#[derive(Debug)]
pub(super) struct Input {
    area: TextArea<'static>,
    recall: Recall,
    /// The mode of vi; `None` with the keys of Emacs.
    vi: Option<Vi>,
}

impl Input {
    /// An empty prompt with the history in `file`. The second value is the reason if the history cannot be used.
    pub(super) fn new(
        file: &Path,
        keys: KeyBindings,
        host: &'static dyn ViewHost,
    ) -> (Self, Option<String>) {
        let (recall, trouble) = Recall::open(file, host);
        let input = Self {
            area: area(Vec::new(), WrapMode::WordOrGlyph),
            recall,
            vi: (keys == KeyBindings::Vi).then(Vi::default),
        };
        (input, trouble)
    }

    /// Whether keys are commands of vi.
    pub(super) fn has_commands(&self) -> bool {
        self.vi.is_some_and(|vi| vi != Vi::Insert)
    }

    /// Leaves the insert mode of vi, if there is text. Returns whether it did.
    pub(super) fn escape(&mut self) -> bool {
        let is_insert = self.vi == Some(Vi::Insert) && !self.is_empty();
        if is_insert {
            self.vi = Some(Vi::Normal);
        }
        is_insert
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether the prompt is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// The position of the cursor in the text, in bytes.
    pub(super) fn cursor(&self) -> usize {
        let cursor = self.area.cursor();
        let lines = self.area.lines();
        let before: usize = lines.iter().take(cursor.0).map(|line| line.len() + 1).sum();
        let line = lines.get(cursor.0).map_or("", String::as_str);
        before
            + line
                .chars()
                .take(cursor.1)
                .map(char::len_utf8)
                .sum::<usize>()
    }

    /// Replaces the text, with the cursor at its end.
    pub(super) fn set(&mut self, text: &str) {
        let lines = text.split('\n').map(str::to_owned).collect();
        self.area = area(lines, WrapMode::WordOrGlyph);
    }

    /// Replaces a range of bytes, with the cursor after it.
    pub(super) fn replace(&mut self, start: usize, end: usize, with: &str) {
        let text = self.text();
        let (Some(before), Some(after)) = (text.get(..start), text.get(end..)) else {
            return;
        };
        let start = format!("{before}{with}");
        let lines: Vec<&str> = start.split('\n').collect();
        let row = lines.len().saturating_sub(1);
        let column = lines.last().map_or(0, |line| line.chars().count());
        self.set(&format!("{start}{after}"));
        let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        self.area
            .move_cursor(CursorMove::Jump(place(row), place(column)));
    }

    /// Takes the text, and stores it in the history.
    pub(super) fn submit(&mut self) -> String {
        let text = self.text();
        self.set("");
        self.vi = self.vi.map(|_| Vi::Insert);
        self.recall.add(&text);
        text
    }

    /// Handles a key that edits the text.
    pub(super) fn key(&mut self, key: KeyEvent) {
        match &mut self.vi {
            Some(vi) if *vi != Vi::Insert => vi.press(&mut self.area, key),
            _ if is_delete_to_start(key) => {
                self.area.delete_line_by_head();
            }
            _ => {
                self.area.input(key);
            }
        }
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.area.insert_str(clean(&text));
    }

    /// Begins a new line.
    pub(super) fn newline(&mut self) {
        self.area.insert_newline();
    }

    /// Whether Enter continues the text: the line before the cursor ends with a backslash. The backslash is removed.
    pub(super) fn continues(&mut self) -> bool {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map_or("", String::as_str);
        let is_at_end = cursor.1 == line.chars().count();
        let slashes = line.len() - line.trim_end_matches('\\').len();
        let continues = is_at_end && slashes % 2 == 1;
        if continues {
            self.area.delete_char();
        }
        continues
    }

    /// Shows an earlier (`true`) or later input, if the cursor is at the first or last line. Returns whether it did.
    pub(super) fn recall(&mut self, is_earlier: bool) -> bool {
        let last = self.area.lines().len().saturating_sub(1);
        let edge = if is_earlier { 0 } else { last };
        if self.area.cursor().0 != edge {
            return false;
        }
        if let Some(text) = self.recall.go(is_earlier, &self.text()) {
            self.set(&text);
        }
        true
    }

    /// The rows that the text takes in a width.
    pub(super) fn rows(&self, width: u16) -> u16 {
        let width = usize::from(width.max(1));
        // The cursor after the last character needs a column.
        let rows = self
            .area
            .lines()
            .iter()
            .map(|line| line.width() / width + 1);
        u16::try_from(rows.sum::<usize>()).unwrap_or(u16::MAX)
    }

    /// The widget.
    pub(super) fn area(&self) -> &TextArea<'static> {
        &self.area
    }
}

/// Whether a key is Ctrl-U, which the widget would take for undo.
fn is_delete_to_start(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('u') && key.modifiers.contains(KeyModifiers::CONTROL)
}

fn area(lines: Vec<String>, wrap: WrapMode) -> TextArea<'static> {
    let mut area = TextArea::new(lines);
    area.set_wrap_mode(wrap);
    area.set_cursor_line_style(Style::default());
    area.set_cursor_style(Style::default().add_modifier(Modifier::REVERSED));
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

/// Earlier inputs, the oldest first.
#[derive(Debug, Default)]
struct Recall {
    history: Option<OpenHistory>,
    texts: Vec<String>,
    /// The shown text; the number of texts if it is the draft.
    at: usize,
    draft: String,
}

/// The file of earlier inputs.
struct OpenHistory(InputHistory);

impl std::fmt::Debug for OpenHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenHistory")
    }
}

impl Recall {
    fn open(file: &Path, host: &'static dyn ViewHost) -> (Self, Option<String>) {
        let trouble = |error: &dyn std::fmt::Display| {
            let file = file.display();
            Some(format!(
                "the input history is not stored, because {file} cannot be used: {error}"
            ))
        };
        let history = match InputHistory::open(file, host) {
            Ok(history) => history,
            Err(error) => return (Self::default(), trouble(&error)),
        };
        let all = SearchQuery::everything(SearchDirection::Forward, None);
        let texts: Vec<String> = match history.search(all) {
            Ok(items) => items.into_iter().map(|item| item.command_line).collect(),
            Err(error) => return (Self::default(), trouble(&error)),
        };
        let recall = Self {
            at: texts.len(),
            texts,
            history: Some(OpenHistory(history)),
            draft: String::new(),
        };
        (recall, None)
    }

    /// Stores an input. One that begins with a blank is not stored.
    fn add(&mut self, text: &str) {
        self.draft.clear();
        let is_stored = !text.trim().is_empty() && !text.starts_with(' ');
        if is_stored && self.texts.last().is_none_or(|last| last != text) {
            self.texts.push(text.to_owned());
            if let Some(OpenHistory(history)) = &mut self.history {
                // A history that cannot be written now is written at the next chance.
                let _ = history.save(HistoryItem::from_command_line(text));
                let _ = history.sync();
            }
        }
        self.at = self.texts.len();
    }

    fn go(&mut self, is_earlier: bool, current: &str) -> Option<String> {
        // A changed text is a new draft, so that it is not lost.
        if self.texts.get(self.at).is_none_or(|shown| shown != current) {
            self.at = self.texts.len();
            current.clone_into(&mut self.draft);
        }
        self.at = match is_earlier {
            true => self.at.checked_sub(1)?,
            false => (self.at < self.texts.len()).then_some(self.at + 1)?,
        };
        Some(self.texts.get(self.at).unwrap_or(&self.draft).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::BareHost;

    fn input(dir: &tempfile::TempDir) -> Input {
        let file = dir.path().join("history.txt");
        let (input, trouble) = Input::new(&file, KeyBindings::Emacs, &BareHost);
        assert_eq!(trouble, None);
        input
    }

    #[test]
    fn earlier_inputs_are_recalled_and_the_draft_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = input(&dir);
        for text in ["one", "two\nlines", " private", "two\nlines"] {
            first.set(text);
            assert_eq!(first.submit(), text);
        }
        drop(first);
        let mut again = input(&dir);
        again.set("draft");
        let mut check = |is_earlier, expect: &str| {
            again.recall(is_earlier);
            assert_eq!(again.text(), expect);
        };
        check(true, "two\nlines");
        // The cursor is in the last of two lines.
        check(true, "two\nlines");
        check(false, "draft");
        check(false, "draft");
    }

    /// Proves CLI-4 for the full screen: a recalled input that the user changes is the new draft.
    #[test]
    fn changed_recalled_input_becomes_the_draft() {
        let dir = tempfile::tempdir().unwrap();
        let mut input = input(&dir);
        for text in ["a", "b"] {
            input.set(text);
            input.submit();
        }
        input.recall(true);
        input.set("new");
        for (is_earlier, expect) in [(false, "new"), (true, "b"), (true, "a"), (false, "b")] {
            input.recall(is_earlier);
            assert_eq!(input.text(), expect);
        }
        input.recall(false);
        assert_eq!(input.text(), "new");
    }

    #[test]
    fn text_is_replaced_before_the_cursor() {
        let dir = tempfile::tempdir().unwrap();
        let mut input = input(&dir);
        input.set("é\nsee @li now");
        input.replace(7, 10, "@src/lib.rs ");
        assert_eq!(input.text(), "é\nsee @src/lib.rs  now");
        assert_eq!(input.cursor(), 19);
        input.replace(3, 900, "x");
        assert_eq!(input.text(), "é\nsee @src/lib.rs  now");
    }

    #[test]
    fn trailing_backslash_continues() {
        let dir = tempfile::tempdir().unwrap();
        let mut input = input(&dir);
        let mut check = |text, expect, rest: &str| {
            input.set(text);
            assert_eq!(input.continues(), expect, "{text:?}");
            assert_eq!(input.text(), rest);
        };
        check("a\\", true, "a");
        check("a\\\\", false, "a\\\\");
        check("a", false, "a");
        check("", false, "");
    }

    #[test]
    fn pasted_controls_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut input = input(&dir);
        input.paste("a\r\nb\x1b[31mc\x07");
        assert_eq!(input.text(), "a\nbc");
        let mut field = Field::new("x");
        field.paste("1\n2\x1b[2J");
        assert_eq!(field.text(), "x1 2");
    }
}
