//! The keys of vi for the prompt: the insert mode, and the common commands of the normal mode.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::{CursorMove, TextArea};

/// The mode of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Vi {
    /// Keys are text.
    #[default]
    Insert,
    /// Keys are commands.
    Normal,
    /// `d`, `c` or `y` waits for a motion.
    Operator(char),
}

impl Vi {
    /// Handles a key outside of the insert mode.
    pub(super) fn press(&mut self, area: &mut TextArea<'static>, key: KeyEvent) {
        let KeyCode::Char(letter) = key.code else {
            *self = Self::Normal;
            area.input(key);
            return;
        };
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            *self = Self::Normal;
            if letter == 'r' {
                area.redo();
            }
            return;
        }
        *self = match *self {
            Self::Operator(operator) => operate(area, operator, letter),
            _ => command(area, letter),
        };
    }
}

/// Handles a letter of the normal mode. Returns the next mode.
fn command(area: &mut TextArea<'static>, letter: char) -> Vi {
    if let Some(motion) = motion(letter) {
        area.move_cursor(motion);
        return Vi::Normal;
    }
    match letter {
        'd' | 'c' | 'y' => return Vi::Operator(letter),
        'i' => return Vi::Insert,
        'a' => {
            area.move_cursor(CursorMove::Forward);
            return Vi::Insert;
        }
        'I' => {
            area.move_cursor(CursorMove::Head);
            return Vi::Insert;
        }
        'A' => {
            area.move_cursor(CursorMove::End);
            return Vi::Insert;
        }
        'o' => {
            area.move_cursor(CursorMove::End);
            area.insert_newline();
            return Vi::Insert;
        }
        'O' => {
            area.move_cursor(CursorMove::Head);
            area.insert_newline();
            area.move_cursor(CursorMove::Up);
            return Vi::Insert;
        }
        'C' | 'S' => {
            if letter == 'S' {
                area.move_cursor(CursorMove::Head);
            }
            area.delete_line_by_end();
            return Vi::Insert;
        }
        'D' => {
            area.delete_line_by_end();
        }
        'x' => {
            area.delete_next_char();
        }
        'X' => {
            area.delete_char();
        }
        'p' => {
            area.paste();
        }
        'u' => {
            area.undo();
        }
        _ => {}
    }
    Vi::Normal
}

/// Applies an operator to the text up to a motion, or to the line if its letter is repeated.
fn operate(area: &mut TextArea<'static>, operator: char, letter: char) -> Vi {
    let is_line = letter == operator;
    // `cw` changes the word without the space after it.
    let motion = match (operator, letter) {
        ('c', 'w') => Some(CursorMove::WordEnd),
        _ => motion(letter),
    };
    let includes_end = matches!((operator, letter), ('c', 'w') | (_, 'e'));
    if is_line {
        area.move_cursor(CursorMove::Head);
    }
    let start = area.cursor();
    area.start_selection();
    match motion {
        _ if is_line => area.move_cursor(CursorMove::End),
        Some(motion) => area.move_cursor(motion),
        None => {
            area.cancel_selection();
            return Vi::Normal;
        }
    }
    if includes_end {
        area.move_cursor(CursorMove::Forward);
    }
    match operator {
        'y' => {
            area.copy();
            area.cancel_selection();
            let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
            area.move_cursor(CursorMove::Jump(place(start.0), place(start.1)));
        }
        _ => {
            area.cut();
        }
    }
    match operator {
        'c' => Vi::Insert,
        _ => Vi::Normal,
    }
}

fn motion(letter: char) -> Option<CursorMove> {
    Some(match letter {
        'h' => CursorMove::Back,
        'l' | ' ' => CursorMove::Forward,
        'j' => CursorMove::Down,
        'k' => CursorMove::Up,
        'w' | 'W' => CursorMove::WordForward,
        'e' | 'E' => CursorMove::WordEnd,
        'b' | 'B' => CursorMove::WordBack,
        '0' | '^' => CursorMove::Head,
        '$' => CursorMove::End,
        'g' => CursorMove::Top,
        'G' => CursorMove::Bottom,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-4d for the keys of vi on the full screen.
    #[test]
    fn commands_of_vi_edit_the_text() {
        let check = |keys: &str, expect: &str, mode| {
            let mut area = TextArea::new(vec!["one two three".to_owned()]);
            let mut vi = Vi::Normal;
            for letter in keys.chars() {
                let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
                match vi {
                    Vi::Insert => area.insert_char(letter),
                    _ => vi.press(&mut area, key),
                }
            }
            assert_eq!(area.lines().join("\n"), expect, "{keys:?}");
            assert_eq!(vi, mode, "{keys:?}");
        };
        check("x", "ne two three", Vi::Normal);
        check("wD", "one ", Vi::Normal);
        check("dw", "two three", Vi::Normal);
        check("wcwX", "one X three", Vi::Insert);
        check("de", " two three", Vi::Normal);
        check("ccnew", "new", Vi::Insert);
        check("dd", "", Vi::Normal);
        check("$db", "one two ", Vi::Normal);
        check("Aend", "one two threeend", Vi::Insert);
        check("ofour", "one two three\nfour", Vi::Insert);
        check("Ozero", "zero\none two three", Vi::Insert);
        check("xu", "one two three", Vi::Normal);
        check("yw$p", "one two threeone ", Vi::Normal);
        check("dzx", "ne two three", Vi::Normal);
        check("d", "one two three", Vi::Operator('d'));
    }
}
