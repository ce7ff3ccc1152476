//! Matching of globs in linear time, by a set of possible states that advances with each character.
//!
//! The matcher does not backtrack: it processes each character once for each possible state. The work is
//! bounded by the product of the lengths of the text and the glob, for any input. Case does not matter.

/// A symbol of a text: a character in lower case, [`HOLE`], or [`BLANK`].
pub(crate) type Symbol = u32;

/// A gap that is unknown until the call runs: any text, or an empty text.
pub(crate) const HOLE: Symbol = 0x11_0000;
/// A blank inside a word, in a text of words that blanks separate.
pub(crate) const BLANK: Symbol = 0x11_0001;

/// The maximum number of symbols of a glob; a bit set of fixed size holds the states.
const MAX_SYMBOLS: usize = 64 * WORDS - 1;
const WORDS: usize = 10;

/// Appends `text` in lower case.
pub(crate) fn fold(text: &str, to: &mut Vec<Symbol>) {
    for character in text.chars() {
        if character.is_ascii() {
            to.push(u32::from(character.to_ascii_lowercase()));
        } else {
            to.extend(character.to_lowercase().map(u32::from));
        }
    }
}

/// A text in the form that globs are compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Text {
    symbols: Vec<Symbol>,
    /// The ASCII characters that the text contains, a bit each.
    holds: u128,
    /// The ASCII characters that the text may contain once its holes are filled.
    could_hold: u128,
}

impl Text {
    /// Converts `text` to lower case symbols.
    pub(crate) fn of(text: &str) -> Self {
        let mut symbols = Vec::with_capacity(text.len());
        fold(text, &mut symbols);
        Self::from(symbols)
    }
}

impl From<Vec<Symbol>> for Text {
    fn from(symbols: Vec<Symbol>) -> Self {
        let holds = symbols.iter().fold(0, |holds, symbol| holds | bit(*symbol));
        // A hole may be filled with any text.
        let could_hold = symbols.contains(&HOLE).then_some(u128::MAX);
        Self {
            could_hold: could_hold.unwrap_or(holds),
            symbols,
            holds,
        }
    }
}

/// Returns the bit of an ASCII character; 0 for other symbols.
fn bit(symbol: Symbol) -> u128 {
    if symbol < 128 { 1 << symbol } else { 0 }
}

/// The characters at which a wildcard stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// None.
    Nothing,
    /// `/`.
    Slash,
    /// The characters that end the host of a URL.
    Host,
}

impl Bound {
    fn passes(self, symbol: Symbol) -> bool {
        let is = |c: char| symbol == u32::from(c);
        match self {
            Self::Nothing => true,
            Self::Slash => !is('/'),
            Self::Host => !['/', '?', '#', '@', '\\', ':'].into_iter().any(is),
        }
    }
}

/// A piece of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// Exactly this character.
    Is(Symbol),
    /// Any one character.
    One(Bound),
    /// One of these characters, or none of them; never `/`.
    Class(Box<Class>),
    /// Any number of characters.
    Many(Bound),
    /// `**/`: any number of whole directories; [`Token::Within`] follows it.
    Directories,
    /// Inside the name of a directory that [`Token::Directories`] matches.
    Within,
}

/// `[a-z]`, `[!a-z]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) negated: bool,
    pub(super) ranges: Vec<(char, char)>,
}

impl Class {
    fn has(&self, symbol: Symbol) -> bool {
        let Some(lower) = char::from_u32(symbol).filter(|c| *c != '/') else {
            return false;
        };
        let within = |c: char| {
            self.ranges
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&c))
        };
        let found = within(lower) || lower.to_uppercase().any(within);
        found != self.negated
    }
}

/// A compiled glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    tokens: Vec<Token>,
    /// The token index at which the glob also matches.
    early: Option<usize>,
    /// The last symbol of each text that matches.
    last: Option<Symbol>,
    /// The ASCII characters that each matching text contains, a bit each.
    needs: u128,
}

/// The treatment of a [`HOLE`] in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GapMode {
    /// The glob must match for any text in the hole.
    Whatever,
    /// The glob must match for some text in the hole.
    Something,
}

/// The set of possible states of a glob.
#[derive(Clone, Copy)]
struct Places([u64; WORDS]);

impl Places {
    const NONE: Self = Self([0; WORDS]);

    fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn has(&self, at: usize) -> bool {
        self.0
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

impl Glob {
    /// Creates a glob of these tokens. With `early`, the glob also matches at that token index. `None` if it is
    /// too long.
    pub(super) fn new(tokens: Vec<Token>, early: Option<usize>) -> Option<Self> {
        if tokens.len() > MAX_SYMBOLS {
            return None;
        }
        let last = match tokens.last() {
            Some(Token::Is(symbol)) if early.is_none() => Some(*symbol),
            _ => None,
        };
        let told = early.and_then(|early| tokens.get(..early));
        let needs = told.unwrap_or(&tokens).iter().map(|token| match token {
            Token::Is(symbol) => bit(*symbol),
            _ => 0,
        });
        Some(Self {
            needs: needs.fold(0, |needs, bit| needs | bit),
            tokens,
            early,
            last,
        })
    }

    /// Whether the glob matches the text for any text in its holes.
    pub(super) fn matches(&self, text: &Text) -> bool {
        // Most patterns fail this check, so the matcher does not run.
        if self.needs & !text.holds != 0 {
            return false;
        }
        match (self.last, text.symbols.last()) {
            (Some(_), None) => false,
            (Some(wanted), Some(last)) if *last != wanted => false,
            _ => self.run(&text.symbols, GapMode::Whatever),
        }
    }

    /// Whether the glob matches the text for some text in its holes.
    pub(super) fn may_match(&self, text: &Text) -> bool {
        self.needs & !text.could_hold == 0 && self.run(&text.symbols, GapMode::Something)
    }

    fn run(&self, text: &[Symbol], holes: GapMode) -> bool {
        let end = self.tokens.len();
        let words = end / 64 + 1;
        let mut here = Places::NONE;
        self.enter(&mut here, 0);
        for symbol in text {
            let mut next = Places::NONE;
            let mut any = false;
            for (number, word) in here.0[..words].iter().enumerate() {
                let mut word = *word;
                while word != 0 {
                    let at = number * 64 + word.trailing_zeros() as usize;
                    word &= word - 1;
                    if *symbol == HOLE && holes == GapMode::Something {
                        self.anywhere_from(&mut next, at);
                        any = true;
                        break;
                    }
                    any |= self.step(&mut next, at, *symbol);
                }
                if any && *symbol == HOLE && holes == GapMode::Something {
                    break;
                }
            }
            if !any {
                return false;
            }
            here = next;
        }
        here.has(end) || self.early.is_some_and(|early| here.has(early))
    }

    /// Adds every state that some text can reach from `at`.
    fn anywhere_from(&self, next: &mut Places, at: usize) {
        let first = match self.tokens.get(at) {
            Some(Token::Within) => at - 1,
            _ => at,
        };
        for place in first..=self.tokens.len() {
            next.set(place);
        }
    }

    /// Advances from `at` by one symbol. Returns whether that is possible.
    fn step(&self, next: &mut Places, at: usize, symbol: Symbol) -> bool {
        let slash = symbol == u32::from('/');
        let hole = symbol == HOLE;
        let to = match self.tokens.get(at) {
            Some(Token::Is(wanted)) if *wanted == symbol => at + 1,
            Some(Token::One(bound)) if !hole && bound.passes(symbol) => at + 1,
            Some(Token::Class(class)) if class.has(symbol) => at + 1,
            Some(Token::Many(Bound::Nothing)) => at,
            Some(Token::Many(bound)) if !hole && bound.passes(symbol) => at,
            // The slash at the start of an absolute path.
            Some(Token::Directories) if slash => at,
            Some(Token::Directories) if !hole => at + 1,
            Some(Token::Within) if slash => at - 1,
            Some(Token::Within) if !hole => at,
            _ => return false,
        };
        self.enter(next, to);
        true
    }

    /// Adds a state and the states that it reaches without a character.
    fn enter(&self, places: &mut Places, at: usize) {
        let mut at = at;
        loop {
            places.set(at);
            at = match self.tokens.get(at) {
                Some(Token::Many(_)) => at + 1,
                Some(Token::Directories) => at + 2,
                _ => return,
            };
        }
    }
}
