//! The types that a declaration of C++ declares.

use super::head::{AFTER, DeclarationHead, Name};
use super::lexer::Kind;

/// Words with a parenthesis that say something of a type.
const OF_TYPES: &[&[u8]] = &[
    b"__attribute__",
    b"__attribute",
    b"__declspec",
    b"alignas",
    b"decltype",
];
impl DeclarationHead<'_> {
    /// The type that is defined: the word of its kind, and its name if it has one.
    pub(super) fn type_from(&self, start: usize) -> Option<(&'static str, Option<Name>)> {
        let key = |place: usize| match self.word(place) {
            b"class" => Some("class"),
            b"struct" => Some("struct"),
            b"union" => Some("union"),
            b"enum" => Some("enum"),
            _ => None,
        };
        let (mut place, word) = self
            .places(start)
            .find_map(|place| Some((place, key(place)?)))?;
        place += 1;
        if word == "enum" && key(place).is_some() {
            place += 1;
        }
        let (mut name, mut names, mut scopes) = (None, 0, Vec::new());
        while place < self.tokens.len() {
            let next = self.after(place);
            match self.kind(place)? {
                Kind::Word if OF_TYPES.contains(&self.word(place)) && self.is(place + 1, b'(') => {
                    place = self.after(place + 1);
                    continue;
                }
                Kind::Word if self.word(place) == b"final" && name.is_some() => break,
                Kind::Word => {
                    names += 1;
                    name = Some(place);
                    let after = if self.is(next, b'<') {
                        self.after(next)
                    } else {
                        next
                    };
                    if self.kind(after) == Some(Kind::Scope) {
                        scopes.push(self.string(place));
                        names -= 1;
                    }
                    place = after;
                    continue;
                }
                Kind::Scope | Kind::Sign(b'[') => {}
                Kind::Sign(b':') => break,
                // `class EXPORT(x) Name`: a function has its parameters there.
                Kind::Sign(b'(')
                    if names == 1 && self.is_word(next) && !AFTER.contains(&self.word(next)) =>
                {
                    (name, names) = (None, 0);
                }
                _ => return None,
            }
            place = next;
        }
        let name = name.map(|place| Name {
            scopes,
            ..self.plain(place)
        });
        Some((word, name))
    }

    /// What a declaration that ends here declares: types by other names, concepts.
    pub(super) fn types(&self) -> Vec<Name> {
        let start = self.start();
        match self.word(start) {
            b"concept" if self.is_word(start + 1) => vec![self.plain(start + 1)],
            b"using" if self.is_word(start + 1) => {
                let is_alias = self.places(start + 2).find(|place| !self.is(*place, b'['));
                match is_alias {
                    Some(place) if self.is(place, b'=') => vec![self.plain(start + 1)],
                    _ => Vec::new(),
                }
            }
            b"typedef" => self.typedef(start + 1),
            _ => Vec::new(),
        }
    }

    fn typedef(&self, start: usize) -> Vec<Name> {
        let mut names = Vec::new();
        let (mut name, mut is_done) = (None, false);
        for place in self.places(start) {
            match self.kind(place) {
                Some(Kind::Sign(b',')) => {
                    names.extend(name.take());
                    is_done = false;
                }
                Some(Kind::Sign(b'(')) if !is_done => {
                    let close = self.after(place);
                    let is_attribute = OF_TYPES.contains(&self.word(place.wrapping_sub(1)));
                    let pointed = (place + 1..close)
                        .find(|at| matches!(self.sign(*at), Some(b'*' | b'&' | b'^')));
                    let inner = pointed.and_then(|at| {
                        (at..close).find(|at| self.is_word(*at) && self.word(*at) != b"const")
                    });
                    if is_attribute {
                        name = None;
                    } else {
                        // Pointers to functions come before their parameters; others are functions.
                        name = if self.is(close, b'(') { inner } else { name };
                        is_done = true;
                    }
                }
                Some(Kind::Word) if !is_done => name = Some(place),
                _ => {}
            }
        }
        names.extend(name);
        names.into_iter().map(|place| self.plain(place)).collect()
    }
}
