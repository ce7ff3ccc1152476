//! The parts of a command as rules see them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::policy::{Part, Start, Verdict, Word, kind_of, name_of, tree::Assignment, visit_from};
use crate::gate::symbols::{BLANK, HOLE, Symbol, fold};
use crate::gate::{CommandPart, CommandSubject, PartKind, PathRole, SubjectPath};

/// Files that take what is written to them nowhere, or to where the command writes anyway.
pub(super) const FREE: &[&str] = &[
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/zero",
    "/dev/full",
];

/// Fills in what the command of `subject`, which starts in `start`, is made of.
pub(crate) fn read(subject: &mut CommandSubject, start: &Path, home: Option<&Path>) {
    let start = Start {
        cwd: start.to_owned(),
        home: home.map(Path::to_owned),
        roots: Vec::new(),
    };
    let (parts, writes) = (&mut subject.parts, &mut subject.writes);
    // What is looked at more than once is one part.
    let mut seen = HashSet::new();
    let mut add = |part: CommandPart| {
        if seen.insert((part.words.clone(), part.strict.clone(), part.depth)) {
            parts.push(part);
        }
    };
    let mut unknown_writes = false;
    let verdict = visit_from(&subject.text, &start, &mut |part| match part {
        Part::Command {
            words,
            assignments,
            depth,
        } => add(simple(words, assignments, depth)),
        Part::Assignments { assignments, depth } => {
            add(simple(&[], assignments, depth));
        }
        Part::Redirection { target, places } => {
            unknown_writes |= !written(target, places, writes);
        }
        Part::Output(_) => {}
    });
    subject.unknown_writes = unknown_writes;
    subject.unknown = match verdict {
        Verdict::Allow => None,
        Verdict::Ask { why } => Some(why),
        Verdict::Block { what } => Some(what),
    };
}

/// Notes what a redirection writes to; whether it can be known.
fn written(target: &Word, places: &[Option<PathBuf>], writes: &mut Vec<SubjectPath>) -> bool {
    let Some(given) = target.known() else {
        return false;
    };
    if FREE.contains(&given) || given.starts_with("/dev/fd/") {
        return true;
    }
    let absolute = Path::new(given).is_absolute();
    let mut known = true;
    for place in places {
        let path = match place {
            _ if absolute => PathBuf::from(given),
            Some(place) if place.is_absolute() => place.join(given),
            _ => {
                known = false;
                continue;
            }
        };
        let there = |write: &SubjectPath| write.absolute() == path;
        if !writes.iter().any(there) {
            writes.push(SubjectPath::new(given, PathRole::Write, path));
        }
    }
    known
}

fn simple(words: &[Word], assignments: &[Assignment], depth: usize) -> CommandPart {
    let kind = match words {
        [] => PartKind::Assignment,
        words => kind_of(words),
    };
    let known = words.iter().all(|word| word.known().is_some())
        && assignments
            .iter()
            .all(|assignment| assignment.value.is_some());
    let strict = symbols(words, assignments, Form::Strict);
    let mut loose = vec![symbols(words, assignments, Form::Loose)];
    let vanishes = words.iter().any(vanishes);
    let forms = [Form::Loose, Form::Bare, Form::Vanished];
    for form in forms
        .into_iter()
        .filter(|form| *form != Form::Vanished || vanishes)
    {
        let text = symbols(words, &[], form);
        if !words.is_empty() && !loose.contains(&text) {
            loose.push(text);
        }
    }
    let shown: Vec<String> = words.iter().map(shown).collect();
    let assigned: Vec<(String, Option<String>)> = assignments
        .iter()
        .map(|assignment| (assignment.name.clone(), assignment.value.clone()))
        .collect();
    let front = assigned
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("…")));
    let text: Vec<String> = front.chain(shown.iter().cloned()).collect();
    CommandPart {
        assignments: assigned,
        text: text.join(" "),
        words: shown,
        known,
        kind,
        depth,
        strict,
        loose,
    }
}

/// How a part is put into words for rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Blanks inside words are none between them.
    Strict,
    /// As it stands.
    Loose,
    /// With the file name of the command alone.
    Bare,
    /// The same where what is not known is nothing, and no blank is before it.
    Vanished,
}

/// Whether a word may be none at all.
fn vanishes(word: &Word) -> bool {
    word.known().is_none() && word.pattern().is_none() && word.prefix().is_empty()
}

fn symbols(words: &[Word], assignments: &[Assignment], form: Form) -> Vec<Symbol> {
    let mut text = Vec::new();
    let apart = form == Form::Strict;
    let separate = |text: &mut Vec<Symbol>| {
        if !text.is_empty() {
            text.push(u32::from(' '));
        }
    };
    for assignment in assignments {
        separate(&mut text);
        fold(&assignment.name, &mut text);
        text.push(u32::from('='));
        let value = assignment.value.as_deref();
        let value = value.map_or(Word::unknown(""), Word::literal);
        append(&value, apart, &mut text);
    }
    for (at, word) in words.iter().enumerate() {
        if form != Form::Vanished || !vanishes(word) {
            separate(&mut text);
        }
        let bare = at == 0 && matches!(form, Form::Bare | Form::Vanished);
        match word.known().filter(|_| bare) {
            Some(command) => fold(name_of(command), &mut text),
            None => append(word, apart, &mut text),
        }
    }
    text
}

/// Appends a word; what shows when it runs is a hole. With `apart`, blanks in it are none between
/// words.
fn append(word: &Word, apart: bool, to: &mut Vec<Symbol>) {
    let start = to.len();
    match word.known() {
        Some(text) => fold(text, to),
        None => match word.pattern() {
            Some(pattern) => {
                for piece in pattern.split_inclusive(['*', '?']) {
                    let plain = piece.trim_end_matches(['*', '?']);
                    if let Some((before, _)) = plain.split_once('[') {
                        fold(before, to);
                        to.push(HOLE);
                        break;
                    }
                    fold(plain, to);
                    if plain.len() < piece.len() {
                        to.push(HOLE);
                    }
                }
            }
            None => {
                fold(word.prefix(), to);
                to.push(HOLE);
            }
        },
    }
    if apart {
        for symbol in &mut to[start..] {
            if char::from_u32(*symbol).is_some_and(char::is_whitespace) {
                *symbol = BLANK;
            }
        }
    }
}

fn shown(word: &Word) -> String {
    match word.pattern() {
        Some(text) => text.to_owned(),
        None => format!("{}…", word.prefix()),
    }
}
