//! What a declaration of C++ declares, by the tokens before its body or its end.

use super::lexer::{Kind, Token};

/// Words before a parenthesis that are no names of functions.
const NO_NAMES: &[&[u8]] = &[
    b"__attribute__",
    b"__attribute",
    b"__declspec",
    b"__typeof__",
    b"_Static_assert",
    b"alignas",
    b"alignof",
    b"asm",
    b"auto",
    b"bool",
    b"catch",
    b"char",
    b"const",
    b"constexpr",
    b"decltype",
    b"defined",
    b"delete",
    b"double",
    b"explicit",
    b"float",
    b"for",
    b"if",
    b"int",
    b"long",
    b"new",
    b"noexcept",
    b"requires",
    b"return",
    b"short",
    b"signed",
    b"sizeof",
    b"static_assert",
    b"switch",
    b"throw",
    b"typeid",
    b"typeof",
    b"unsigned",
    b"using",
    b"void",
    b"volatile",
    b"while",
];
/// Words that follow the parameters of a function.
pub(super) const AFTER: &[&[u8]] = &[
    b"const",
    b"final",
    b"mutable",
    b"noexcept",
    b"override",
    b"requires",
    b"throw",
    b"try",
    b"volatile",
];
/// The tokens of a declaration that are looked at.
pub(super) const MAX_TOKENS: usize = 2048;

/// A name, and what it is in by its own words: `A` of `A::b`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) line: u32,
    /// From the outside in.
    pub(super) scopes: Vec<String>,
}

/// What a brace opens.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// A namespace, with its names from the outside in.
    Namespace(Vec<Name>),
    /// A type; the word of its kind.
    Type(&'static str, Option<Name>),
    /// The body of a function.
    Function(Name),
    /// A function, and the value of one of its members.
    Constructor(Name),
    /// More declarations of the same place.
    Same,
    /// A value, or something that is not understood.
    Other,
}

/// A declaration as far as it was read.
pub(super) struct DeclarationHead<'a> {
    text: &'a [u8],
    pub(super) tokens: &'a [Token],
    /// For each token that opens or closes a group the other one.
    partner: Vec<Option<usize>>,
}

impl<'a> DeclarationHead<'a> {
    pub(super) fn new(text: &'a [u8], tokens: &'a [Token]) -> Self {
        let mut head = Self {
            text,
            tokens,
            partner: vec![None; tokens.len()],
        };
        let mut open: Vec<(u8, usize)> = Vec::new();
        for place in 0..tokens.len() {
            let Some(sign) = head.sign(place) else {
                continue;
            };
            let before = place.checked_sub(1);
            match sign {
                b'<' if before
                    .is_some_and(|it| head.is_word(it) && head.word(it) != b"operator") =>
                {
                    open.push((sign, place));
                }
                b'(' | b'[' => open.push((sign, place)),
                b'>' if open.last().is_some_and(|last| last.0 == b'<') => {
                    head.pair(open.pop(), place);
                }
                b')' | b']' => {
                    let wanted = if sign == b')' { b'(' } else { b'[' };
                    match open.iter().rposition(|it| it.0 == wanted) {
                        // What is open within is a comparison.
                        Some(at) => {
                            open.truncate(at + 1);
                            head.pair(open.pop(), place);
                        }
                        None => open.clear(),
                    }
                }
                _ => {}
            }
        }
        head
    }

    fn pair(&mut self, open: Option<(u8, usize)>, close: usize) {
        let Some((_, open)) = open else { return };
        self.partner[open] = Some(close);
        self.partner[close] = Some(open);
    }

    pub(super) fn sign(&self, place: usize) -> Option<u8> {
        match self.tokens.get(place)?.kind {
            Kind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    pub(super) fn is(&self, place: usize, sign: u8) -> bool {
        self.sign(place) == Some(sign)
    }

    pub(super) fn kind(&self, place: usize) -> Option<Kind> {
        self.tokens.get(place).map(|token| token.kind)
    }

    pub(super) fn is_word(&self, place: usize) -> bool {
        self.kind(place) == Some(Kind::Word)
    }

    /// The word there; empty where there is none.
    pub(super) fn word(&self, place: usize) -> &'a [u8] {
        match self.tokens.get(place) {
            Some(token) if token.kind == Kind::Word => self.bytes(*token),
            _ => b"",
        }
    }

    fn bytes(&self, token: Token) -> &'a [u8] {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    pub(super) fn string(&self, place: usize) -> String {
        let bytes = self.tokens.get(place).map(|token| self.bytes(*token));
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }

    fn line(&self, place: usize) -> u32 {
        self.tokens.get(place).map_or(1, |token| token.line)
    }

    /// The place after what begins at `place`: a group as a whole.
    pub(super) fn after(&self, place: usize) -> usize {
        match self.partner.get(place) {
            Some(Some(partner)) if *partner > place => partner + 1,
            _ => place + 1,
        }
    }

    /// The places at the top: groups are one place each.
    pub(super) fn places(&self, start: usize) -> impl Iterator<Item = usize> {
        let first = (start < self.tokens.len()).then_some(start);
        std::iter::successors(first, |place| {
            let next = self.after(*place);
            (next < self.tokens.len()).then_some(next)
        })
    }

    /// Where the declaration itself begins, after `template <…>`, attributes, `extern "C"` and `export`.
    pub(super) fn start(&self) -> usize {
        let mut place = 0;
        loop {
            place = match self.word(place) {
                b"template" if self.is(place + 1, b'<') => self.after(place + 1),
                b"export" => place + 1,
                b"extern" if self.kind(place + 1) == Some(Kind::Literal) => place + 2,
                _ if self.is(place, b'[') => self.after(place),
                _ => return place,
            };
        }
    }

    /// What the brace after these tokens opens.
    pub(super) fn opened(&self) -> Opened {
        let start = self.start();
        let last = self.tokens.len().wrapping_sub(1);
        if start >= self.tokens.len() {
            return if self.tokens.is_empty() {
                Opened::Other
            } else {
                Opened::Same
            };
        }
        let first = if self.word(start) == b"inline" {
            start + 1
        } else {
            start
        };
        if self.word(first) == b"namespace" {
            return Opened::Namespace(self.namespace_names(first + 1));
        }
        // The braces of a `requires (…) {…}` are those of an expression.
        let opener = self.partner.get(last).copied().flatten();
        let before = opener
            .and_then(|opener| opener.checked_sub(1))
            .unwrap_or(last);
        if self.word(before) == b"requires" && (opener.is_some() || before == last) {
            return Opened::Other;
        }
        if let Some((word, name)) = self.type_from(start) {
            return Opened::Type(word, name);
        }
        let Some(found) = self.function_from(start) else {
            return Opened::Other;
        };
        let has_members = self.places(found.after).any(|place| self.is(place, b':'));
        if has_members && (self.is_word(last) || self.is(last, b'>')) {
            Opened::Constructor(found.name)
        } else {
            Opened::Function(found.name)
        }
    }

    /// The names of a namespace, `a::inline b`, without what a compiler is told by a macro before or after them:
    /// `std _VISIBILITY(default)`, `API net`.
    fn namespace_names(&self, start: usize) -> Vec<Name> {
        let mut chains: Vec<Vec<usize>> = Vec::new();
        let mut joined = false;
        for place in self.places(start) {
            match self.word(place) {
                b"" => joined = self.kind(place) == Some(Kind::Scope),
                b"inline" => {}
                _ if self.is(place + 1, b'(') => joined = false,
                _ => {
                    match chains.last_mut().filter(|_| joined) {
                        Some(chain) => chain.push(place),
                        None => chains.push(vec![place]),
                    }
                    joined = false;
                }
            }
        }
        let shouted = |place: &usize| !self.word(*place).iter().any(u8::is_ascii_lowercase);
        let said = chains.iter().position(|chain| !chain.iter().all(shouted));
        let names = chains.into_iter().nth(said.unwrap_or(0));
        let names = names.into_iter().flatten();
        names.map(|place| self.plain(place)).collect()
    }

    pub(super) fn plain(&self, place: usize) -> Name {
        Name {
            text: self.string(place),
            line: self.line(place),
            scopes: Vec::new(),
        }
    }

    /// The function that is declared or defined.
    fn function_from(&self, start: usize) -> Option<Function> {
        let mut macro_like = None;
        let mut place = start;
        while place < self.tokens.len() {
            let next = self.after(place);
            if self.word(place) == b"operator" {
                return self.operator(place);
            }
            // After the colon of a constructor its members are initialized.
            if self.is(place, b'=') || macro_like.is_some() && self.is(place, b':') {
                break;
            }
            if self.is(place, b'(')
                && let Some(found) = self.function_at(place, start)
            {
                // `EXPORT(x) void f()`: of two the second, where nothing stands before the first.
                if found.has_type || macro_like.is_some() {
                    return Some(found);
                }
                macro_like = Some(found);
            }
            place = next;
        }
        macro_like
    }

    /// The function whose parameters begin at `place`.
    fn function_at(&self, place: usize, start: usize) -> Option<Function> {
        let mut name = place.checked_sub(1)?;
        if self.is(name, b'>') {
            name = self.partner.get(name).copied().flatten()?.checked_sub(1)?;
        }
        if name < start || !self.is_word(name) || NO_NAMES.contains(&self.word(name)) {
            return None;
        }
        // A pointer to a function, or to a member.
        let first = place + 1;
        let is_pointer = matches!(self.sign(first), Some(b'*' | b'&' | b'^'))
            || self.kind(first + 1) == Some(Kind::Scope)
                && self.is(first + 2, b'*')
                && self.is(first + 4, b')');
        if is_pointer {
            return None;
        }
        let mut begin = name;
        let mut text = self.string(name);
        if begin > start && self.is(begin - 1, b'~') {
            begin -= 1;
            text.insert(0, '~');
        }
        let is_special = text.starts_with('~');
        let (begin, scopes) = self.scopes_before(begin, start);
        Some(Function {
            has_type: begin > start || is_special || !scopes.is_empty(),
            is_value: self.kind(first) == Some(Kind::Literal),
            after: self.after(place),
            name: Name {
                text,
                line: self.line(name),
                scopes,
            },
        })
    }

    /// An operator, from that word on.
    fn operator(&self, place: usize) -> Option<Function> {
        let mut text = "operator".to_owned();
        let mut next = place + 1;
        if self.is(next, b'(') && self.is(next + 1, b')') {
            text.push_str("()");
            next += 2;
        }
        while next < self.tokens.len() && !self.is(next, b'(') {
            let both =
                self.is_word(next) && text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            text.push_str(if both { " " } else { "" });
            text.push_str(&self.string(next));
            next += 1;
        }
        if !self.is(next, b'(') || text.len() == "operator".len() {
            return None;
        }
        let (_, scopes) = self.scopes_before(place, 0);
        Some(Function {
            has_type: true,
            is_value: false,
            after: self.after(next),
            name: Name {
                text,
                line: self.line(place),
                scopes,
            },
        })
    }

    /// The scopes written before `place`, and where they begin: `A<T>::B::`.
    fn scopes_before(&self, place: usize, start: usize) -> (usize, Vec<String>) {
        let mut place = place;
        let mut scopes = Vec::new();
        while place > start && self.kind(place - 1) == Some(Kind::Scope) {
            place -= 1;
            if place > start && self.is(place - 1, b'>') {
                match self.partner[place - 1] {
                    Some(open) if open > start => place = open,
                    _ => break,
                }
            }
            if place > start && self.is_word(place - 1) && !NO_NAMES.contains(&self.word(place - 1))
            {
                place -= 1;
                scopes.push(self.string(place));
            }
        }
        scopes.reverse();
        (place, scopes)
    }

    /// The function that a declaration which ends here declares; of a macro or a value there is none. `class`
    /// is the name of the type that it stands in, if it stands in one.
    pub(super) fn prototype(&self, class: Option<&str>) -> Option<Name> {
        let start = self.start();
        let no = [
            &b"friend"[..],
            b"using",
            b"typedef",
            b"namespace",
            b"template",
            b"concept",
            b"goto",
            b"case",
        ];
        if no.contains(&self.word(start)) {
            return None;
        }
        let found = self.function_from(start)?;
        let is_constructor = class == Some(found.name.text.as_str());
        (!found.is_value && (found.has_type || is_constructor)).then_some(found.name)
    }
}

/// A function, where its parameters were found.
struct Function {
    name: Name,
    /// Whether a type, or a scope, stands before its name.
    has_type: bool,
    /// Whether what stands in the parentheses is a value.
    is_value: bool,
    /// The place after the parameters.
    after: usize,
}
