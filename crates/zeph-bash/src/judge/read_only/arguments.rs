//! Reads the arguments of a command by its row. Every option has to be in the row.

use super::NOT_LISTED;
use super::table::{Arity, Opt, Row, ValueKind};
use crate::syntax::word::Word;

/// A word that is not an option.
#[derive(Debug)]
pub(super) struct Operand {
    pub(super) word: Word,
    /// Whether the program may take it as an option if it begins with a dash.
    pub(super) can_be_option: bool,
}

/// The arguments of a command.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) operands: Vec<Operand>,
    /// Values of options that name files.
    pub(super) files: Vec<Word>,
    /// Values of options that are scripts.
    pub(super) scripts: Vec<String>,
    /// The directory to which the other words are relative.
    pub(super) directory: Option<Word>,
    /// The options with their dashes.
    pub(super) seen: Vec<String>,
    /// Whether an option makes the command follow links.
    pub(super) follows: bool,
    /// The index of the first word that belongs to an inner command, or to a subcommand.
    pub(super) rest: usize,
}

impl Arguments {
    /// Whether one of these options is given.
    pub(super) fn has(&self, options: &[String]) -> bool {
        options.iter().any(|option| self.seen.contains(option))
    }
}

/// Reads the arguments `words` of the command `name`. Ends before the operand with the index `last`.
///
/// # Errors
/// The word that is not in the table, or that cannot be known.
pub(super) fn read(
    name: &str,
    row: &Row,
    words: &[Word],
    last: Option<usize>,
) -> Result<Arguments, String> {
    let mut reader = Reader {
        name,
        row,
        words,
        at: 0,
        found: Arguments::default(),
        ended: false,
    };
    reader.read(last)?;
    reader.found.rest = reader.at;
    Ok(reader.found)
}

/// The error for a word that is known only when the command runs.
pub(super) fn unresolved(word: &Word) -> String {
    format!("`{}` is unknown before the command runs", word.shown())
}

struct Reader<'r> {
    name: &'r str,
    row: &'r Row,
    words: &'r [Word],
    at: usize,
    found: Arguments,
    /// Whether all further words are operands.
    ended: bool,
}

impl Reader<'_> {
    fn read(&mut self, last: Option<usize>) -> Result<(), String> {
        if self.row.bundle {
            self.bundle()?;
        }
        while let Some(word) = self.words.get(self.at) {
            let text = word.prefix();
            if !self.ended && word.known() == Some("--") && !self.row.one_dash {
                self.ended = true;
                self.at += 1;
            } else if self.ended || !text.starts_with('-') || word.known() == Some("-") {
                if last == Some(self.found.operands.len()) {
                    return Ok(());
                }
                self.operand(word)?;
                self.at += 1;
            } else if text.starts_with("--") || self.row.one_dash {
                self.at += 1;
                self.long(word)?;
            } else {
                self.at += 1;
                self.letters(word)?;
            }
        }
        Ok(())
    }

    fn operand(&mut self, word: &Word) -> Result<(), String> {
        let row = self.row;
        let is_hidden = word.pattern().is_none() && word.prefix().is_empty();
        if is_hidden && !self.ended && !row.any_word {
            return Err(unresolved(word));
        }
        if row.plus && word.prefix().starts_with('+') {
            return Ok(());
        }
        self.found.operands.push(Operand {
            word: word.clone(),
            can_be_option: !self.ended && !row.any_word,
        });
        self.ended |= row.stops;
        Ok(())
    }

    fn unlisted(&self, option: &str) -> String {
        format!("`{} {option}` {NOT_LISTED}", self.name)
    }

    fn note(&mut self, option: String, opt: Opt) {
        self.found.follows |= opt.follows;
        self.found.seen.push(option);
    }

    /// Takes the next word as a value.
    fn next(&mut self, option: &str) -> Result<Word, String> {
        let Some(word) = self.words.get(self.at) else {
            return Err(format!("the value of `{} {option}` is missing", self.name));
        };
        self.at += 1;
        // Another version of the program may take it as an option.
        let is_number = |text: &str| text[1..].bytes().all(|byte| byte.is_ascii_digit());
        match word.known() {
            Some(text) if text.len() > 1 && text.starts_with('-') && !is_number(text) => {
                Err(self.unlisted(text))
            }
            Some(_) => Ok(word.clone()),
            None => Err(unresolved(word)),
        }
    }

    fn value(&mut self, kind: ValueKind, value: Word) -> Result<(), String> {
        let Some(text) = value.known() else {
            return Err(unresolved(&value));
        };
        match kind {
            ValueKind::Text => {}
            ValueKind::File => self.found.files.push(value),
            ValueKind::Script => self.found.scripts.push(text.to_owned()),
            // With two of them, the second is relative to the first.
            ValueKind::Directory if self.found.directory.is_some() => {
                return Err(format!("`{}` changes the directory twice", self.name));
            }
            ValueKind::Directory => self.found.directory = Some(value),
        }
        Ok(())
    }

    fn long(&mut self, word: &Word) -> Result<(), String> {
        let text = word.pattern().ok_or_else(|| unresolved(word))?;
        let (name, attached) = match text.split_once('=') {
            Some((name, _)) => (name, Some(word.after(name.len() + 1))),
            None => (text, None),
        };
        let opt = self.row.option(name).ok_or_else(|| self.unlisted(name))?;
        self.note(name.to_owned(), opt);
        // All matches of `--include=*.rs` begin with the same option.
        let is_text = attached.is_some() && opt.kind == ValueKind::Text;
        if word.known().is_none() && !is_text {
            return Err(unresolved(word));
        }
        match (opt.arity, attached) {
            (Arity::Flag | Arity::Pair, Some(_)) => Err(self.unlisted(text)),
            (Arity::Flag | Arity::Attached, None) => Ok(()),
            (_, Some(_)) if word.known().is_none() => Ok(()),
            (_, Some(value)) => self.value(opt.kind, value),
            (Arity::Value, None) => {
                let value = self.next(name)?;
                self.value(opt.kind, value)
            }
            (Arity::Pair, None) => {
                self.next(name)?;
                let value = self.next(name)?;
                self.value(opt.kind, value)
            }
        }
    }

    fn letters(&mut self, word: &Word) -> Result<(), String> {
        let text = word.known().ok_or_else(|| unresolved(word))?;
        for (at, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let opt = self.row.option(&name).ok_or_else(|| {
                // The whole bundle shows which word it is.
                self.unlisted(if text.len() > 2 { text } else { &name })
            })?;
            self.note(name.clone(), opt);
            let from = at + letter.len_utf8();
            match opt.arity {
                Arity::Flag => continue,
                Arity::Attached => {}
                _ if from < text.len() => self.value(opt.kind, word.after(from))?,
                _ => {
                    let value = self.next(&name)?;
                    self.value(opt.kind, value)?;
                }
            }
            return Ok(());
        }
        Ok(())
    }

    /// Reads `tar tfv ARCHIVE`: the letters take their values from the next words.
    fn bundle(&mut self) -> Result<(), String> {
        let Some(word) = self.words.first() else {
            return Ok(());
        };
        let text = word.known().ok_or_else(|| unresolved(word))?;
        if text.starts_with('-') {
            return Ok(());
        }
        self.at = 1;
        for letter in text.chars() {
            let name = format!("-{letter}");
            let opt = self.row.option(&name).ok_or_else(|| self.unlisted(text))?;
            self.note(name.clone(), opt);
            if opt.arity == Arity::Value {
                let value = self.next(&name)?;
                self.value(opt.kind, value)?;
            }
        }
        Ok(())
    }
}
