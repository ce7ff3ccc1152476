//! The keys of vi for the prompt: the insert mode, and the common commands of the normal mode.

use std::ops::RangeInclusive;

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
        'p' => put(area),
        'u' => {
            area.undo();
        }
        _ => {}
    }
    Vi::Normal
}

/// Inserts the removed or copied text: at the cursor, or below it if the text consists of whole lines.
fn put(area: &mut TextArea<'static>) {
    let text = area.yank_text();
    let Some(lines) = text.strip_suffix('\n') else {
        area.paste();
        return;
    };
    let row = area.cursor().0;
    area.move_cursor(CursorMove::End);
    area.insert_str(format!("\n{lines}"));
    jump(area, (row + 1, 0));
}

/// Applies an operator to the text up to a motion, or to whole lines.
fn operate(area: &mut TextArea<'static>, operator: char, letter: char) -> Vi {
    let next = match operator {
        'c' => Vi::Insert,
        _ => Vi::Normal,
    };
    if let Some(rows) = rows(area, operator, letter) {
        operate_on_rows(area, operator, rows);
        return next;
    }
    // `cw` changes the word without the space after it.
    let motion = match (operator, letter) {
        ('c', 'w') => Some(CursorMove::WordEnd),
        _ => motion(letter),
    };
    let Some(motion) = motion else {
        return Vi::Normal;
    };
    let start = area.cursor();
    let start = (start.0, start.1);
    area.start_selection();
    area.move_cursor(motion);
    if letter.eq_ignore_ascii_case(&'w') && area.cursor().0 != start.0 {
        // The last word of a line ends with the line.
        jump(area, start);
        area.move_cursor(CursorMove::End);
    } else if matches!((operator, letter), ('c', 'w') | (_, 'e')) {
        area.move_cursor(CursorMove::Forward);
    }
    match operator {
        'y' => {
            area.copy();
            area.cancel_selection();
            jump(area, start);
        }
        _ => {
            area.cut();
        }
    }
    next
}

/// The whole lines that an operator changes: its letter is repeated, or the motion goes to another line.
fn rows(area: &TextArea<'static>, operator: char, letter: char) -> Option<RangeInclusive<usize>> {
    let (row, last) = (area.cursor().0, area.lines().len().saturating_sub(1));
    Some(match letter {
        _ if letter == operator => row..=row,
        'j' if row < last => row..=row + 1,
        'k' if row > 0 => row - 1..=row,
        'g' => 0..=row,
        'G' => row..=last,
        _ => return None,
    })
}

/// Applies an operator to whole lines. `c` leaves an empty one.
fn operate_on_rows(area: &mut TextArea<'static>, operator: char, rows: RangeInclusive<usize>) {
    let (first, last) = rows.into_inner();
    let lines = area.lines();
    let length = |row: usize| lines.get(row).map_or(0, |line| line.chars().count());
    let yanked: String = (lines.iter().skip(first).take(last + 1 - first))
        .flat_map(|line| [line.as_str(), "\n"])
        .collect();
    let removed = match operator {
        'y' => None,
        'd' if last + 1 < lines.len() => Some(((first, 0), (last + 1, 0))),
        // Without a line below, the line break before the lines is removed.
        'd' if first > 0 => Some(((first - 1, length(first - 1)), (last, length(last)))),
        _ => Some(((first, 0), (last, length(last)))),
    };
    if let Some((start, end)) = removed {
        jump(area, start);
        area.start_selection();
        jump(area, end);
        area.cut();
        area.cancel_selection();
        area.move_cursor(CursorMove::Head);
    }
    area.set_yank_text(yanked);
}

/// Moves the cursor to a row and a column.
fn jump(area: &mut TextArea<'static>, (row, column): (usize, usize)) {
    let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
    area.move_cursor(CursorMove::Jump(place(row), place(column)));
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

    /// The text and the mode after keys.
    fn edit(text: &str, keys: &str) -> (String, Vi) {
        let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        let mut vi = Vi::Normal;
        for letter in keys.chars() {
            let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
            match vi {
                Vi::Insert => area.insert_char(letter),
                _ => vi.press(&mut area, key),
            }
        }
        (area.lines().join("\n"), vi)
    }

    /// Proves CLI-4d for the keys of vi on the full screen.
    #[test]
    fn commands_of_vi_edit_the_text() {
        let check = |keys: &str, expect: &str, mode| {
            assert_eq!(
                edit("one two three", keys),
                (expect.to_owned(), mode),
                "{keys:?}"
            );
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

    /// Proves CLI-4d: operators on lines remove or copy them with their line breaks, and a word ends with its line.
    #[test]
    fn operators_on_several_lines_leave_no_empty_line() {
        let check = |text: &str, keys: &str, expect: &str| {
            assert_eq!(edit(text, keys).0, expect, "{text:?} {keys:?}");
        };
        check("a\nb\nc", "jdd", "a\nc");
        check("a\nb\nc", "dd", "b\nc");
        check("a\nb\nc", "Gdd", "a\nb");
        check("a\nb\nc", "Gddx", "a\n");
        check("a\nb\nc", "dj", "c");
        check("a\nb\nc", "jdk", "c");
        check("a\nb\nc", "jdG", "a");
        check("a\nb\nc", "jdg", "c");
        check("a\nb\nc", "Gdj", "a\nb\nc");
        check("a\nb\nc", "ddp", "b\na\nc");
        check("a\nb\nc", "yyGp", "a\nb\nc\na");
        check("a\nb\nc", "jddu", "a\nb\nc");
        check("a\nb\nc", "jccX", "a\nX\nc");
        check("one two\nthree", "wdw", "one \nthree");
        check("one two\nthree", "wcwX", "one X\nthree");
        check("a\nthree", "cwX", "X\nthree");
    }
}
