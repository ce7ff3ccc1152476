//! Which headers are of C++.

use super::lexer::{Kind as Lexed, Lexer};

/// Whether a header holds what C does not have.
pub(in super::super) fn is_cpp(text: &[u8]) -> bool {
    let mut lexer = Lexer::new(text).peekable();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    while let Some(token) = lexer.next() {
        let next = lexer.peek().map(|next| next.kind);
        let word = text.get(token.start..token.end).unwrap_or_default();
        let tells = match (token.kind, word) {
            (Lexed::Scope, _) => true,
            (Lexed::Word, b"class" | b"using" | b"typename") => next == Some(Lexed::Word),
            (Lexed::Word, b"namespace") => matches!(next, Some(Lexed::Word | Lexed::Sign(b'{'))),
            (Lexed::Word, b"template") => next == Some(Lexed::Sign(b'<')),
            (Lexed::Word, b"public" | b"private" | b"protected") => next == Some(Lexed::Sign(b':')),
            (Lexed::Word, b"operator") => {
                matches!(next, Some(Lexed::Sign(sign)) if !matches!(sign, b';' | b',' | b')'))
            }
            _ => false,
        };
        if tells {
            return true;
        }
    }
    false
}
