//! Words after quote removal. Braces, `~` and `${IFS}` are expanded, and unresolved parts are marked.

use std::sync::Arc;

/// The maximum number of words that result from the braces of one word.
const MAX_BRACES: usize = 256;
/// The maximum nesting depth of braces.
const MAX_NESTING: usize = 16;

/// A word as a command receives it, with known and unknown parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text, up to the first unresolved part.
    text: String,
    known: Known,
    /// Whether a part is a substitution.
    pub substituted: bool,
    /// Whether it contains the value of a variable that the command sets.
    pub(crate) assigned: bool,
    /// All parts, if some of them are unresolved.
    parts: Option<Arc<[Atom]>>,
}

/// The extent to which a word is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    All,
    /// A pattern that the shell replaces by file names.
    Pattern,
    Prefix,
}

/// The character that replaces an unresolved part in the text of a script. Unicode does not assign this character.
pub(crate) const UNRESOLVED: char = '\u{FDD0}';

impl Word {
    /// Creates a word with this text.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.contains(UNRESOLVED) {
            let atoms: Vec<Atom> = text.chars().map(|c| Atom::Char(c, true)).collect();
            return from_atoms(&atoms, false);
        }
        Self {
            text,
            known: Known::All,
            substituted: false,
            assigned: false,
            parts: None,
        }
    }

    /// Creates a word that begins with `prefix`. The rest is unresolved.
    #[must_use]
    pub fn unknown(prefix: impl Into<String>) -> Self {
        Self {
            text: prefix.into(),
            known: Known::Prefix,
            substituted: false,
            assigned: false,
            parts: None,
        }
    }

    /// The text, if all of it is known.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        (self.known == Known::All).then_some(self.text.as_str())
    }

    /// The text, if all of it is known. It may be a pattern.
    #[must_use]
    pub fn pattern(&self) -> Option<&str> {
        (self.known != Known::Prefix).then_some(self.text.as_str())
    }

    /// Returns the known start of the text.
    #[must_use]
    pub fn prefix(&self) -> &str {
        match self.known {
            Known::Pattern => self.text.split(['*', '?', '[']).next().unwrap_or_default(),
            Known::All | Known::Prefix => &self.text,
        }
    }

    /// The parts, if some of them are unresolved.
    pub(crate) fn parts(&self) -> Option<&[Atom]> {
        self.parts.as_deref()
    }

    /// The word as part of a script. Each unresolved part is [`UNRESOLVED`].
    pub(crate) fn script(&self) -> String {
        match (self.known, &self.parts) {
            (Known::All, _) => self.text.clone(),
            (Known::Pattern, _) => UNRESOLVED.into(),
            (Known::Prefix, None) => format!("{}{UNRESOLVED}", self.text),
            (Known::Prefix, Some(parts)) => parts
                .iter()
                .filter_map(|atom| match atom {
                    Atom::Char(character, _) => Some(*character),
                    Atom::Split => Some(' '),
                    Atom::Nothing => None,
                    Atom::Unknown | Atom::Variable(_) => Some(UNRESOLVED),
                })
                .collect(),
        }
    }

    /// The atoms of the word. Those of a known text count as quoted.
    pub(crate) fn atoms(&self) -> Vec<Atom> {
        match &self.parts {
            Some(parts) => parts.to_vec(),
            None => {
                let quoted = self.known != Known::Pattern;
                let text = self.text.chars().map(|c| Atom::Char(c, quoted));
                let rest = (self.known == Known::Prefix).then_some(Atom::Unknown);
                text.chain(rest).collect()
            }
        }
    }

    /// Returns the word without its first `bytes` bytes, which must be known.
    #[must_use]
    pub fn after(&self, bytes: usize) -> Self {
        let parts = self.parts.as_ref().map(|parts| {
            let (mut left, mut at) = (bytes, 0);
            while left > 0 {
                left = match parts.get(at) {
                    Some(Atom::Char(character, _)) => left.saturating_sub(character.len_utf8()),
                    Some(Atom::Split) => left - 1,
                    Some(Atom::Nothing) => left,
                    Some(Atom::Unknown | Atom::Variable(_)) | None => break,
                };
                at += 1;
            }
            parts[at..].into()
        });
        Self {
            text: self.text.get(bytes..).unwrap_or_default().to_owned(),
            known: self.known,
            substituted: self.substituted,
            assigned: self.assigned,
            parts,
        }
    }

    /// The word after `text`.
    pub(crate) fn after_text(&self, text: &str) -> Self {
        let parts = self.parts.as_ref().map(|parts| {
            let text = text.chars().map(|character| Atom::Char(character, true));
            text.chain(parts.iter().cloned()).collect()
        });
        Self {
            text: format!("{text}{}", self.text),
            known: self.known,
            substituted: self.substituted,
            assigned: self.assigned,
            parts,
        }
    }

    /// Returns the word with every `from` replaced by an unresolved part, as with `xargs -I`.
    #[must_use]
    pub fn with_unknown(&self, from: &str) -> Self {
        if from.is_empty() {
            return self.clone();
        }
        let from: Vec<char> = from.chars().collect();
        let mut atoms = self.atoms();
        atoms.retain(|atom| *atom != Atom::Nothing);
        let found = |atoms: &[Atom]| {
            atoms.len() >= from.len()
                && atoms
                    .iter()
                    .zip(&from)
                    .all(|(atom, wanted)| matches!(atom, Atom::Char(c, _) if c == wanted))
        };
        let (mut replaced, mut at) = (Vec::with_capacity(atoms.len()), 0);
        while at < atoms.len() {
            if found(&atoms[at..]) {
                replaced.push(Atom::Unknown);
                at += from.len();
            } else {
                replaced.push(atoms[at].clone());
                at += 1;
            }
        }
        if replaced.len() == atoms.len() && !replaced.contains(&Atom::Unknown) {
            return self.clone();
        }
        Self {
            substituted: self.substituted,
            assigned: self.assigned,
            ..from_atoms(&replaced, self.known == Known::Pattern)
        }
    }

    /// Returns the start of the word, for messages.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut text: String = self.text.chars().take(60).collect();
        if self.known == Known::Prefix || text.len() < self.text.len() {
            text.push('…');
        }
        text
    }
}

/// A piece of a word during parsing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Atom {
    /// A character, and whether it is quoted.
    Char(char, bool),
    /// `$IFS` outside of quotes: the word is split at this position.
    Split,
    /// An empty quoted string: the word exists even if it is empty.
    Nothing,
    /// A variable. The judge may know its value.
    Variable(Arc<Variable>),
    /// A part that is known only when the command runs.
    Unknown,
}

/// A reference to a variable: `$NAME`, `${NAME}`, `${NAME OPERATOR}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    /// The name, or the digit of a positional parameter.
    pub(crate) name: String,
    /// The text from the name to the closing brace.
    pub(crate) operator: String,
    /// Whether it is inside of double quotes, so that the value is not split.
    pub(crate) quoted: bool,
    /// The text that bash may use instead of the value.
    pub(crate) alternative: Option<Arc<[Atom]>>,
}

impl Atom {
    pub(crate) fn is(&self, wanted: char) -> bool {
        *self == Self::Char(wanted, false)
    }

    /// A reference to the variable `name`.
    pub(crate) fn variable(name: &str, operator: &str, quoted: bool) -> Self {
        Self::Variable(Arc::new(Variable {
            name: name.to_owned(),
            operator: operator.to_owned(),
            quoted,
            alternative: None,
        }))
    }
}

/// The words that result from a word in the arguments of a command.
pub(crate) fn expand(atoms: &[Atom], substituted: bool) -> Vec<Word> {
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
                let mut word = single(field, true);
                word.substituted = substituted;
                words.push(word);
            }
        }
    }
    words
}

/// The single word of a redirection, an assignment or a pattern.
pub(crate) fn single(atoms: &[Atom], globs: bool) -> Word {
    if !atoms.first().is_some_and(|atom| atom.is('~')) {
        return from_atoms(atoms, globs);
    }
    let end = atoms
        .iter()
        .position(|atom| atom.is('/'))
        .unwrap_or(atoms.len());
    let directory = match &atoms[1..end] {
        [] => Atom::variable("HOME", "", true),
        [sign] if sign.is('+') => Atom::variable("PWD", "", true),
        [sign] if sign.is('-') => Atom::variable("OLDPWD", "", true),
        _ => Atom::Unknown,
    };
    let atoms: Vec<Atom> = std::iter::once(directory)
        .chain(atoms[end..].iter().cloned())
        .collect();
    from_atoms(&atoms, globs)
}

/// The word with these atoms. A `~` at the start has no meaning.
pub(crate) fn from_atoms(atoms: &[Atom], globs: bool) -> Word {
    let mut text = String::new();
    let mut bracket = false;
    let mut pattern = false;
    for atom in atoms {
        match atom {
            Atom::Char(UNRESOLVED, _) | Atom::Unknown | Atom::Variable(_) => {
                let part = |atom: &Atom| match atom {
                    Atom::Char(UNRESOLVED, _) => Atom::Unknown,
                    other => other.clone(),
                };
                return Word {
                    text,
                    known: Known::Prefix,
                    substituted: false,
                    assigned: false,
                    parts: Some(atoms.iter().map(part).collect()),
                };
            }
            Atom::Char(character, quoted) => {
                if !quoted {
                    pattern |= matches!(character, '*' | '?') || (bracket && *character == ']');
                    bracket |= *character == '[';
                }
                text.push(*character);
            }
            Atom::Nothing => {}
            Atom::Split => text.push(' '),
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
        assigned: false,
        parts: None,
    }
}

/// Expands braces (`a{b,c}`, `{1..3}`). `None` if they make too many words.
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
                word.push(atom.clone());
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

/// For each `{` that is closed, the index of its `}`.
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

/// The alternatives between two braces. `Some(None)` if there are none, so the braces stay; `None` if there are
/// too many.
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
            part.push(atom.clone());
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
    // An empty alternative leaves the text around the braces.
    Some(Some(all))
}

/// The values of `1..5` or `a..e`, with an optional step. `None` if it is not a range; `Some(None)` if it is too long.
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
    // Padding of numbers with leading zeros is not reproduced: no rule depends on it.
    Some(Some(values.map(text_of).map(quote).collect()))
}
