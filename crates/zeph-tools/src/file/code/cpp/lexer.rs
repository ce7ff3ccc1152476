//! Tokens of C++, as far as declarations are told by them: comments are gone, and what literals and lines of
//! the preprocessor hold.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    /// A number, a character or a string.
    Literal,
    /// `::`
    Scope,
    /// `->`
    Arrow,
    /// Any other sign; `>>` and `==` are two.
    Sign(u8),
    /// The name of a macro that is defined.
    Define,
    /// `#if`, `#ifdef`, `#ifndef`
    If,
    /// `#else`, `#elif`
    Else,
    /// `#endif`
    Endif,
}

/// A token and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// From 1 on.
    pub(super) line: u32,
}

/// Reads tokens of a text, any bytes at all, in linear time.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
    /// Whether nothing but space was read of the line.
    is_line_start: bool,
}

/// The longest delimiter of a raw string.
const MAX_DELIMITER_LEN: usize = 16;

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
            at: 0,
            line: 1,
            is_line_start: true,
        }
    }

    /// The text that the places of tokens are of.
    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Goes on by a byte.
    fn step(&mut self) {
        if self.peek(0) == b'\n' {
            self.line = self.line.saturating_add(1);
        }
        self.at += 1;
    }

    /// The bytes of a line end that a backslash takes away; 0 where there is none.
    fn continuation(&self) -> usize {
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'\\', b'\n', _) => 2,
            (b'\\', b'\r', b'\n') => 3,
            _ => 0,
        }
    }

    /// Goes over a line end that a backslash takes away, if there is one.
    fn continues(&mut self) -> bool {
        let bytes = self.continuation();
        for _ in 0..bytes {
            self.step();
        }
        bytes > 0
    }

    /// Goes to the end of the line, which is left to be read.
    fn line_comment(&mut self) {
        while !self.is_at_end() && self.peek(0) != b'\n' {
            if !self.continues() {
                self.at += 1;
            }
        }
    }

    fn block_comment(&mut self) {
        self.at += 2;
        while !self.is_at_end() {
            if self.peek(0) == b'*' && self.peek(1) == b'/' {
                self.at += 2;
                return;
            }
            self.step();
        }
    }

    /// A string or a character that ends with `mark`, at the latest with the line.
    fn quoted(&mut self, mark: u8) {
        self.at += 1;
        while !self.is_at_end() && self.peek(0) != b'\n' {
            if self.continues() {
                continue;
            }
            let byte = self.peek(0);
            self.at += 1;
            if byte == mark {
                return;
            }
            if byte == b'\\' && self.peek(0) != b'\n' {
                self.at += 1;
            }
        }
    }

    /// A raw string from its `"` on.
    fn raw(&mut self) {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let Some(open) = rest
            .iter()
            .take(MAX_DELIMITER_LEN + 1)
            .position(|byte| *byte == b'(')
        else {
            return self.quoted(b'"');
        };
        let end = [b")", &rest[..open], b"\""].concat();
        let inner = rest.get(open + 1..).unwrap_or_default();
        let length =
            memchr::memmem::find(inner, &end).map_or(inner.len(), |found| found + end.len());
        let until = (self.at + open + 2 + length).min(self.text.len());
        while self.at < until {
            self.step();
        }
    }

    fn number(&mut self) {
        loop {
            let (byte, next) = (self.peek(0), self.peek(1));
            match byte {
                b'e' | b'E' | b'p' | b'P' if matches!(next, b'+' | b'-') => self.at += 2,
                b'\'' if is_word(next) => self.at += 2,
                b'.' => self.at += 1,
                _ if is_word(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    /// A line of the preprocessor from its `#` on, to the end of its last line.
    fn directive(&mut self) -> Option<Token> {
        self.at += 1;
        let name = self.directive_word();
        let kind = match self.text.get(name.0..name.1).unwrap_or_default() {
            b"define" => Kind::Define,
            b"if" | b"ifdef" | b"ifndef" => Kind::If,
            b"else" | b"elif" | b"elifdef" | b"elifndef" => Kind::Else,
            b"endif" => Kind::Endif,
            _ => Kind::Literal,
        };
        let line = self.line;
        let (start, end) = if kind == Kind::Define {
            self.directive_word()
        } else {
            name
        };
        let token = Token {
            kind,
            start,
            end,
            line,
        };
        while !self.is_at_end() && self.peek(0) != b'\n' {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => self.block_comment(),
                (b'/', b'/') => self.line_comment(),
                (b'"', _) => self.quoted(b'"'),
                _ if self.continues() => {}
                _ => self.at += 1,
            }
        }
        (kind != Kind::Literal && token.end > token.start).then_some(token)
    }

    /// The next word of a directive: where it begins and ends.
    fn directive_word(&mut self) -> (usize, usize) {
        while matches!(self.peek(0), b' ' | b'\t') || self.continues() {
            if matches!(self.peek(0), b' ' | b'\t') {
                self.at += 1;
            }
        }
        let start = self.at;
        while is_word(self.peek(0)) {
            self.at += 1;
        }
        (start, self.at)
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        while !self.is_at_end() {
            let (start, line) = (self.at, self.line);
            let byte = self.peek(0);
            let was_line_start = std::mem::replace(&mut self.is_line_start, false);
            let kind = match (byte, self.peek(1)) {
                (b'\n', _) => {
                    self.step();
                    self.is_line_start = true;
                    continue;
                }
                (b' ' | b'\t' | b'\r' | 0x0b | 0x0c, _) => {
                    self.at += 1;
                    self.is_line_start = was_line_start;
                    continue;
                }
                (b'\\', _) if self.continues() => continue,
                (b'/', b'/') => {
                    self.line_comment();
                    continue;
                }
                (b'/', b'*') => {
                    self.block_comment();
                    self.is_line_start = was_line_start;
                    continue;
                }
                (b'#', _) if was_line_start => match self.directive() {
                    Some(token) => return Some(token),
                    None => continue,
                },
                (b'"' | b'\'', _) => {
                    self.quoted(byte);
                    Kind::Literal
                }
                (b'0'..=b'9', _) | (b'.', b'0'..=b'9') => {
                    self.number();
                    Kind::Literal
                }
                (b':', b':') => {
                    self.at += 2;
                    Kind::Scope
                }
                (b'-', b'>') => {
                    self.at += 2;
                    Kind::Arrow
                }
                _ if is_word(byte) => {
                    while is_word(self.peek(0)) {
                        self.at += 1;
                    }
                    let word = self.text.get(start..self.at).unwrap_or_default();
                    match (word, self.peek(0)) {
                        (b"R" | b"LR" | b"uR" | b"UR" | b"u8R", b'"') => {
                            self.raw();
                            Kind::Literal
                        }
                        (b"L" | b"u" | b"U" | b"u8", mark @ (b'"' | b'\'')) => {
                            self.quoted(mark);
                            Kind::Literal
                        }
                        _ => Kind::Word,
                    }
                }
                _ => {
                    self.at += 1;
                    Kind::Sign(byte)
                }
            };
            return Some(Token {
                kind,
                start,
                end: self.at.min(self.text.len()),
                line,
            });
        }
        None
    }
}
