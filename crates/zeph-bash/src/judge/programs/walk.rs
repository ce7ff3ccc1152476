//! Parses the arguments of a program according to its row.

use super::row::{Arity, FromInput, Kind, Opt, Row};
use crate::syntax::word::Word;

/// An item of the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    /// An option of the row.
    Option {
        opt: Opt,
        value: Option<Word>,
        /// The index of the word after the option and its value.
        next: usize,
    },
    /// A word that is not an option.
    Operand(usize),
    /// An option without an entry in the row.
    Unknown(usize),
    /// An unresolved word: an option or an operand.
    Hole(usize),
    /// An option with a name that is only partly known.
    Partial(usize),
}

/// The items of `arguments`, up to the words that belong to another command.
pub(super) fn walk(row: &Row, arguments: &[Word]) -> Vec<Argument> {
    let mut reader = Reader {
        row,
        arguments,
        at: 0,
        found: Vec::new(),
        ended: false,
    };
    reader.read(row.stops || row.rest.is_some());
    reader.found
}

/// The index of the first operand.
pub(super) fn first_operand(row: Option<&Row>, arguments: &[Word]) -> Option<usize> {
    let empty = Row::default();
    let mut reader = Reader {
        row: row.unwrap_or(&empty),
        arguments,
        at: 0,
        found: Vec::new(),
        ended: false,
    };
    reader.read(true);
    reader.found.iter().find_map(|found| match found {
        Argument::Operand(at) | Argument::Hole(at) => Some(*at),
        _ => None,
    })
}

struct Reader<'r> {
    row: &'r Row,
    arguments: &'r [Word],
    at: usize,
    found: Vec<Argument>,
    /// Whether all further words are operands.
    ended: bool,
}

impl Reader<'_> {
    fn read(&mut self, stops: bool) {
        let mut operands = 0;
        if self.row.first_is_bundle {
            self.first_bundle();
        }
        while let Some(word) = self.arguments.get(self.at) {
            let text = word.prefix();
            let at = self.at;
            if word.pattern().is_none() && text.is_empty() && !self.ended {
                self.found.push(Argument::Hole(at));
            } else if !self.ended && word.known() == Some("--") {
                self.at += 1;
                self.ended = stops || self.row.dashes_end;
                if let Some(opt) = self.row.long.get("").copied() {
                    let next = self.at;
                    self.push(opt, None, next);
                }
                continue;
            } else if !self.ended && text.starts_with('-') && word.known() != Some("-") {
                self.at += 1;
                let ends = match self.row.one_dash || text.starts_with("--") {
                    true => self.long(at, word),
                    false => self.letters(at, word, 1),
                };
                if ends {
                    return;
                }
                continue;
            } else if let (Some(kind), Some('+')) = (self.row.plus, text.chars().next()) {
                let opt = Opt {
                    arity: Arity::Attached,
                    kind: Some(kind),
                    ends: false,
                };
                self.push(opt, Some(word.after(1)), at + 1);
                self.at += 1;
                continue;
            } else {
                self.found.push(Argument::Operand(at));
            }
            self.at += 1;
            operands += 1;
            if stops && operands > self.row.before {
                return;
            }
        }
    }

    fn push(&mut self, opt: Opt, value: Option<Word>, next: usize) {
        self.found.push(Argument::Option { opt, value, next });
    }

    /// Takes the next word as a value.
    fn next_word(&mut self) -> Option<Word> {
        let word = self.arguments.get(self.at).cloned();
        self.at += usize::from(word.is_some());
        word
    }

    /// Reads `tar cIf PROGRAM ARCHIVE`: the letters take their values from the next words.
    fn first_bundle(&mut self) {
        let Some(word) = self.arguments.first() else {
            return;
        };
        let text = word.prefix();
        if text.starts_with('-') || text.is_empty() {
            return;
        }
        self.at = 1;
        for letter in text.chars() {
            match self.row.short.get(&letter).copied() {
                Some(opt) if opt.arity == Arity::Value => {
                    let value = self.next_word();
                    let next = self.at;
                    self.push(opt, value, next);
                }
                Some(opt) => self.push(opt, None, 1),
                None => self.found.push(Argument::Unknown(0)),
            }
        }
        if word.known().is_none() {
            self.found.push(Argument::Partial(0));
        }
    }

    /// Reads a long option. Returns whether the remaining words belong to the script.
    fn long(&mut self, at: usize, word: &Word) -> bool {
        let text = word.prefix();
        let dashes = 1 + usize::from(text.starts_with("--"));
        let end = text.find('=').unwrap_or(text.len());
        let name = &text[dashes.min(end)..end];
        let attached = (end < text.len()).then(|| word.after(end + 1));
        if attached.is_none() && word.known().is_none() {
            self.found.push(Argument::Partial(at));
            return false;
        }
        let Some(opt) = self.row.long_option(name, &text[dashes.min(text.len())..]) else {
            self.found.push(Argument::Unknown(at));
            return false;
        };
        let value = match (opt.arity, attached) {
            (Arity::Flag, _) => None,
            (_, Some(value)) => Some(value),
            (Arity::Value, None) => self.next_word(),
            (Arity::Attached, None) => None,
        };
        let next = self.at;
        self.push(opt, value, next);
        opt.ends
    }

    /// Reads a bundle of short options. Returns whether the remaining words belong to the script.
    fn letters(&mut self, at: usize, word: &Word, from: usize) -> bool {
        let text = word.prefix();
        let mut from = from;
        while let Some(letter) = text[from..].chars().next() {
            let pairs = &self.row.pairs_of_letters;
            let pair = pairs
                .iter()
                .find(|(pair, _)| text[from..].starts_with(pair.as_str()));
            let (length, opt) = match pair {
                Some((pair, opt)) => (pair.len(), Some(*opt)),
                None => (letter.len_utf8(), self.row.short.get(&letter).copied()),
            };
            from += length;
            let Some(opt) = opt else {
                self.found.push(Argument::Unknown(at));
                if self.row.rest.is_some() {
                    return false;
                }
                continue;
            };
            let rest = from < text.len() || word.known().is_none();
            let value = match opt.arity {
                Arity::Flag => {
                    let next = self.at;
                    self.push(opt, None, next);
                    if opt.ends {
                        return true;
                    }
                    continue;
                }
                _ if rest => {
                    let equals = usize::from(
                        text[from..].starts_with('=') && opt.kind == Some(Kind::Output),
                    );
                    Some(word.after(from + equals))
                }
                Arity::Value => self.next_word(),
                Arity::Attached => None,
            };
            let next = self.at;
            self.push(opt, value, next);
            return opt.ends;
        }
        if word.known().is_none() {
            self.found.push(Argument::Partial(at));
        }
        false
    }
}

impl Row {
    /// Finds the long option `name`, which may be abbreviated. `text` is the whole option.
    fn long_option(&self, name: &str, text: &str) -> Option<Opt> {
        if let Some(opt) = self.long.get(name) {
            return Some(*opt);
        }
        let prefixed = self
            .prefixes
            .iter()
            .find(|(prefix, _)| text.starts_with(prefix));
        if let Some((_, opt)) = prefixed {
            return Some(Opt {
                arity: Arity::Attached,
                ..*opt
            });
        }
        if self.exact {
            return None;
        }
        if self.one_dash && (name.len() < 2 || self.input != Some(FromInput::Always)) {
            return None;
        }
        let start = name.to_owned();
        let candidates = self.long.range(start..);
        let candidates: Vec<Opt> = candidates
            .take_while(|(long, _)| !name.is_empty() && long.starts_with(name))
            .map(|(_, opt)| *opt)
            .collect();
        let runs = |opt: &&Opt| opt.kind.is_some();
        match candidates.iter().find(runs) {
            Some(opt) => Some(*opt),
            None => candidates
                .first()
                .copied()
                .filter(|first| candidates.iter().all(|opt| opt == first)),
        }
    }
}
