//! A parser for the escape sequences of ECMA-48 and xterm. A sequence may be split between pieces of output.

/// The maximum length of a control sequence in characters. The rest of a longer one is treated as text.
const MAX_SEQUENCE: u32 = 64;

/// The effect of a sequence on the text of the terminal. Colours, titles and most modes are
/// [`TerminalOp::Nothing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalOp {
    Nothing,
    /// The end of an incomplete sequence, which may have consumed text.
    Swallowed,
    Up(usize),
    Down(usize),
    Left(usize),
    Right(usize),
    /// Moves the cursor to a column, from 0.
    Column(usize),
    /// Moves the cursor to the start of a line further down.
    NextLine(usize),
    /// Moves the cursor to the start of a line further up.
    PreviousLine(usize),
    /// Erases from the cursor to the end of the line.
    EraseRight,
    /// Erases from the start of the line to the cursor.
    EraseLeft,
    EraseLine,
    /// Erases from the cursor to the end of the line, and all lines below.
    EraseBelow,
    /// Erases characters from the cursor on.
    EraseCharacters(usize),
    /// Clears or changes the screen, or moves to an absolute position. Earlier text is retained.
    Elsewhere,
    Save,
    Restore,
}

/// The result for one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The character belongs to an incomplete sequence.
    More,
    /// The character is the last one of a sequence.
    Done(TerminalOp),
    /// A sequence ended before the character, which must still be processed.
    Before(TerminalOp),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// After `ESC (` and similar sequences, which one more character completes.
    Charset,
    Control,
    /// Inside OSC, DCS, SOS, PM or APC; true if the string is not empty.
    Text(bool),
    TextEscape,
}

/// The parser's state between two characters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Escapes {
    state: State,
    parameters: [Option<u16>; 2],
    at: u8,
    /// True if the sequence has a private marker or intermediate bytes. Only changes of the screen have an effect then.
    private: bool,
    length: u32,
}

impl Escapes {
    /// Returns true outside of sequences.
    pub(super) fn is_ground(&self) -> bool {
        self.state == State::Ground
    }

    /// Begins a sequence if `c` is the first character of one.
    pub(super) fn begin(&mut self, c: char) -> Option<Step> {
        match c {
            '\x1b' => self.state = State::Escape,
            '\u{9b}' => self.control(),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = State::Text(false),
            '\u{80}'..='\u{9f}' => return Some(Step::Done(c1(c))),
            _ => return None,
        }
        Some(Step::More)
    }

    fn control(&mut self) {
        *self = Self {
            state: State::Control,
            ..Self::default()
        };
    }

    /// Processes the next character of an open sequence.
    pub(super) fn step(&mut self, c: char) -> Step {
        match self.state {
            State::Ground => Step::Before(TerminalOp::Nothing),
            State::Escape => self.escape(c),
            State::Charset => {
                self.state = State::Ground;
                if (' '..='~').contains(&c) {
                    Step::Done(TerminalOp::Nothing)
                } else {
                    Step::Before(TerminalOp::Nothing)
                }
            }
            State::Control => self.parameter(c),
            State::Text(any) => match c {
                '\x07' | '\u{9c}' | '\x18' | '\x1a' => self.done(TerminalOp::Nothing),
                '\x1b' => {
                    self.state = State::TextEscape;
                    Step::More
                }
                '\n' => {
                    self.state = State::Ground;
                    Step::Before(if any {
                        TerminalOp::Swallowed
                    } else {
                        TerminalOp::Nothing
                    })
                }
                _ => {
                    self.state = State::Text(true);
                    Step::More
                }
            },
            // ST. Any other escape sequence also ends the string.
            State::TextEscape if c == '\\' => self.done(TerminalOp::Nothing),
            State::TextEscape => {
                self.state = State::Escape;
                Step::Before(TerminalOp::Swallowed)
            }
        }
    }

    /// Ends the text. Returns [`TerminalOp::Swallowed`] if an open sequence may have consumed text.
    pub(super) fn end(&mut self) -> TerminalOp {
        let swallowed = matches!(self.state, State::Text(true) | State::TextEscape);
        self.state = State::Ground;
        if swallowed {
            TerminalOp::Swallowed
        } else {
            TerminalOp::Nothing
        }
    }

    fn done(&mut self, op: TerminalOp) -> Step {
        self.state = State::Ground;
        Step::Done(op)
    }

    fn escape(&mut self, c: char) -> Step {
        match c {
            '[' => self.control(),
            ']' | 'P' | 'X' | '^' | '_' => self.state = State::Text(false),
            '\x1b' => {}
            ' '..='/' => self.state = State::Charset,
            '7' => return self.done(TerminalOp::Save),
            '8' => return self.done(TerminalOp::Restore),
            'c' => return self.done(TerminalOp::Elsewhere),
            '@'..='_' => return self.done(c1(char::from(c as u8 + 0x40))),
            '0'..='~' => return self.done(TerminalOp::Nothing),
            _ => {
                self.state = State::Ground;
                return Step::Before(TerminalOp::Nothing);
            }
        }
        Step::More
    }

    fn parameter(&mut self, c: char) -> Step {
        self.length += 1;
        match c {
            _ if self.length > MAX_SEQUENCE => {
                self.state = State::Ground;
                return Step::Before(TerminalOp::Swallowed);
            }
            '0'..='9' => {
                if let Some(parameter) = self.parameters.get_mut(usize::from(self.at)) {
                    let digit = u16::from(c as u8 - b'0');
                    let value = parameter.unwrap_or(0).saturating_mul(10);
                    *parameter = Some(value.saturating_add(digit));
                }
            }
            ';' => self.at = self.at.saturating_add(1),
            ' '..='/' | ':' | '<'..='?' => self.private = true,
            '@'..='~' => {
                let op = self.op(c);
                return self.done(op);
            }
            '\x18' | '\x1a' => return self.done(TerminalOp::Nothing),
            _ => {
                self.state = State::Ground;
                return Step::Before(TerminalOp::Nothing);
            }
        }
        Step::More
    }

    fn op(&self, last: char) -> TerminalOp {
        let first = self.parameters[0];
        if self.private {
            // Switches to the alternate screen or back.
            let screen = matches!((last, first), ('h' | 'l', Some(47 | 1047 | 1049)));
            return if screen {
                TerminalOp::Elsewhere
            } else {
                TerminalOp::Nothing
            };
        }
        let count = usize::from(first.unwrap_or(1).max(1));
        match last {
            'A' => TerminalOp::Up(count),
            'B' | 'e' => TerminalOp::Down(count),
            'C' | 'a' => TerminalOp::Right(count),
            'D' => TerminalOp::Left(count),
            'E' => TerminalOp::NextLine(count),
            'F' => TerminalOp::PreviousLine(count),
            'G' | '`' => TerminalOp::Column(count - 1),
            'H' | 'f' | 'd' => TerminalOp::Elsewhere,
            'J' => match first.unwrap_or(0) {
                0 => TerminalOp::EraseBelow,
                _ => TerminalOp::Elsewhere,
            },
            'K' => match first.unwrap_or(0) {
                0 => TerminalOp::EraseRight,
                1 => TerminalOp::EraseLeft,
                2 => TerminalOp::EraseLine,
                _ => TerminalOp::Nothing,
            },
            'X' => TerminalOp::EraseCharacters(count),
            's' if first.is_none() => TerminalOp::Save,
            'u' if first.is_none() => TerminalOp::Restore,
            _ => TerminalOp::Nothing,
        }
    }
}

/// Returns the operation of a C1 control character (U+0080 to U+009F). Three of them move the cursor.
fn c1(c: char) -> TerminalOp {
    match c {
        '\u{84}' => TerminalOp::Down(1),
        '\u{85}' => TerminalOp::NextLine(1),
        '\u{8d}' => TerminalOp::Up(1),
        _ => TerminalOp::Nothing,
    }
}
