//! Words after quote removal: braces, `~` and `${IFS}` are expanded; what cannot be known is
//! marked.

/// How many words the braces of one word may make.
const MAX_BRACES: usize = 256;
/// How deep braces may be nested.
const MAX_NESTING: usize = 16;

/// A word as a command gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text; up to the first thing that cannot be known, if there is one.
    text: String,
    known: Known,
    /// Whether something is substituted into it.
    pub substituted: bool,
}

/// How much of a word is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    All,
    /// It is a pattern that file names take the place of.
    Pattern,
    Prefix,
}

impl Word {
    /// A word that is `text`.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            known: Known::All,
            substituted: false,
        }
    }

    /// A word that begins with `prefix`; the rest shows when it runs.
    #[must_use]
    pub fn unknown(prefix: impl Into<String>) -> Self {
        Self {
            text: prefix.into(),
            known: Known::Prefix,
            substituted: false,
        }
    }

    /// The text, if it is known before it runs.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        (self.known == Known::All).then_some(self.text.as_str())
    }

    /// The text, a pattern's as well.
    #[must_use]
    pub fn pattern(&self) -> Option<&str> {
        (self.known != Known::Prefix).then_some(self.text.as_str())
    }

    /// What is known of its beginning.
    #[must_use]
    pub fn prefix(&self) -> &str {
        match self.known {
            Known::Pattern => self.text.split(['*', '?', '[']).next().unwrap_or_default(),
            Known::All | Known::Prefix => &self.text,
        }
    }

    /// The word without its first `bytes` bytes, which must be known.
    #[must_use]
    pub fn after(&self, bytes: usize) -> Self {
        Self {
            text: self.text.get(bytes..).unwrap_or_default().to_owned(),
            ..*self
        }
    }

    /// The word with every `from` in it made unknown, as `xargs -I` does.
    #[must_use]
    pub fn with_unknown(&self, from: &str) -> Self {
        match self.text.find(from) {
            Some(at) if !from.is_empty() => Self::unknown(&self.text[..at]),
            _ => self.clone(),
        }
    }

    /// For messages.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut text: String = self.text.chars().take(60).collect();
        if self.known == Known::Prefix || text.len() < self.text.len() {
            text.push('…');
        }
        text
    }
}

/// A piece of a word while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Atom {
    /// A character; whether it was quoted.
    Char(char, bool),
    /// `$IFS` outside of quotes: the word is split here.
    Split,
    /// An empty quoted string: there is a word, though it may be empty.
    Nothing,
    /// Something that shows when it runs.
    Unknown,
}

impl Atom {
    pub(super) fn is(self, wanted: char) -> bool {
        self == Self::Char(wanted, false)
    }
}

/// What is substituted for `~` and `$HOME`.
pub(super) type Home<'h> = Option<&'h str>;

/// The words that a word becomes as an argument.
pub(super) fn expand(atoms: &[Atom], home: Home<'_>, substituted: bool) -> Vec<Word> {
    let mut words = Vec::new();
    let braced = if atoms.iter().any(|atom| atom.is('{')) {
        braces(atoms, MAX_NESTING)
    } else {
        Some(vec![atoms.to_vec()])
    };
    let Some(braced) = braced else {
        return vec![Word {
            substituted,
            ..Word::unknown("")
        }];
    };
    for atoms in braced {
        for field in atoms.split(|atom| *atom == Atom::Split) {
            if !field.is_empty() {
                let mut word = single(field, home, true);
                word.substituted = substituted;
                words.push(word);
            }
        }
    }
    words
}

/// The one word that stands in a redirection, an assignment or a pattern.
pub(super) fn single(atoms: &[Atom], home: Home<'_>, globs: bool) -> Word {
    let mut text = String::new();
    let mut atoms = atoms;
    if atoms.first().is_some_and(|atom| atom.is('~')) {
        let end = atoms
            .iter()
            .position(|atom| atom.is('/'))
            .unwrap_or(atoms.len());
        match home {
            Some(home) if end == 1 => {
                text.push_str(home);
                atoms = &atoms[1..];
            }
            _ => return Word::unknown(""),
        }
    }
    let mut bracket = false;
    let mut pattern = false;
    for atom in atoms {
        match *atom {
            Atom::Char(character, quoted) => {
                if !quoted {
                    pattern |= matches!(character, '*' | '?') || (bracket && character == ']');
                    bracket |= character == '[';
                }
                text.push(character);
            }
            Atom::Nothing => {}
            Atom::Split => text.push(' '),
            Atom::Unknown => return Word::unknown(text),
        }
    }
    let known = if pattern && globs {
        Known::Pattern
    } else {
        Known::All
    };
    Word {
        text,
        known,
        substituted: false,
    }
}

/// Expands braces (`a{b,c}`, `{1..3}`); `None` when they make too many words.
fn braces(atoms: &[Atom], depth: usize) -> Option<Vec<Vec<Atom>>> {
    let partners = partners(atoms);
    let mut done: Vec<Vec<Atom>> = vec![Vec::new()];
    let mut at = 0;
    while let Some(atom) = atoms.get(at) {
        let alternatives = match partners.get(at).copied().flatten() {
            Some(end) => alternatives(&atoms[at + 1..end], depth)?.map(|found| (found, end)),
            None => None,
        };
        let Some((alternatives, end)) = alternatives else {
            for word in &mut done {
                word.push(*atom);
            }
            at += 1;
            continue;
        };
        if done.len() * alternatives.len() > MAX_BRACES {
            return None;
        }
        done = done
            .iter()
            .flat_map(|start| {
                alternatives
                    .iter()
                    .map(move |alternative| [start.as_slice(), alternative].concat())
            })
            .collect();
        at = end + 1;
    }
    Some(done)
}

/// For each `{` that is closed the place of its `}`.
fn partners(atoms: &[Atom]) -> Vec<Option<usize>> {
    let mut partners = vec![None; atoms.len()];
    let mut open = Vec::new();
    for (at, atom) in atoms.iter().enumerate() {
        if atom.is('{') {
            open.push(at);
        } else if atom.is('}')
            && let Some(start) = open.pop()
        {
            partners[start] = Some(at);
        }
    }
    partners
}

/// The alternatives between two braces: `Some(None)` when there are none and the braces stay,
/// `None` when there are too many.
#[allow(clippy::option_option, reason = "the two are told apart by `?`")]
fn alternatives(inner: &[Atom], depth: usize) -> Option<Option<Vec<Vec<Atom>>>> {
    let mut level = 0_usize;
    let mut parts = vec![Vec::new()];
    for atom in inner {
        if atom.is('{') {
            level += 1;
        } else if atom.is('}') {
            level = level.saturating_sub(1);
        }
        if level == 0 && atom.is(',') {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(*atom);
        }
    }
    if parts.len() == 1 {
        return range(inner).map_or(Some(None), |range| range.map(Some));
    }
    if parts.len() > MAX_BRACES || depth == 0 {
        return None;
    }
    let mut all = Vec::new();
    for part in parts {
        all.extend(braces(&part, depth - 1)?);
        if all.len() > MAX_BRACES {
            return None;
        }
    }
    // An empty alternative still leaves what stands around it.
    Some(Some(all))
}

/// `1..5`, `a..e`, with a step perhaps. `None`: it is no range; `Some(None)`: it is too long.
#[allow(clippy::option_option, reason = "as said")]
fn range(inner: &[Atom]) -> Option<Option<Vec<Vec<Atom>>>> {
    let text: String = inner
        .iter()
        .take(64)
        .map(|atom| match atom {
            Atom::Char(character, false) => *character,
            _ => '\0',
        })
        .collect();
    let mut ends = text.split("..");
    let (first, last, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    let step = match step {
        Some(step) => step.parse::<i64>().ok()?.checked_abs()?.max(1),
        None => 1,
    };
    let letter = |text: &str| match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(i64::from(*byte)),
        _ => None,
    };
    let letters = letter(first).zip(letter(last));
    let (from, to) = match letters {
        Some(ends) => ends,
        None => (first.parse::<i64>().ok()?, last.parse::<i64>().ok()?),
    };
    let count = from.abs_diff(to) / step.unsigned_abs();
    if count >= MAX_BRACES as u64 {
        return Some(None);
    }
    let direction = if from <= to { step } else { -step };
    let values = (0..=i64::try_from(count).ok()?).map(|number| from + number * direction);
    let text_of = |value: i64| match letters {
        Some(_) => {
            u8::try_from(value).map_or_else(|_| String::new(), |b| char::from(b).to_string())
        }
        None => value.to_string(),
    };
    let quote = |text: String| text.chars().map(|c| Atom::Char(c, true)).collect();
    // Numbers written with leading zeros are padded: which way does not matter to any rule.
    Some(Some(values.map(text_of).map(quote).collect()))
}
