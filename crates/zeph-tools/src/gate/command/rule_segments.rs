//! The parts of a command that permission rules match.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};

use crate::gate::symbols::{BLANK, HOLE, Symbol, Text, fold};
use crate::gate::{CommandPart, ParsedCommand, PartKind};
use zeph_bash::{
    Assignment, Parsed, Part, ShellPolicy, Verdict, Word, WorkingDirState, file_name,
    has_known_commands, kind_of, normalize_path, program_options, read_only, runs_unlisted_program,
    visit_from,
};

/// Devices that store nothing.
pub(super) const FREE: &[&str] = &["/dev/null", "/dev/tty", "/dev/zero", "/dev/full"];
/// Names of the command's own output streams. Opening one writes to a file that the command writes anyway, unless
/// the command opens another file for reading.
pub(super) const STREAMS: &[&str] = &["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"];

/// The maximum index at which an inner command is searched in the arguments of another command.
const MAX_OPTIONS: usize = 32;

/// Fills in the parts of `command`, and the words that it names.
pub(crate) fn read(command: &mut ParsedCommand, parsed: &Parsed, home: Option<PathBuf>) {
    let start = WorkingDirState {
        cwd: command.start.clone(),
        home,
        ..WorkingDirState::default()
    };
    command.rewritten = parsed.rewritten().map(str::to_owned);
    let (parts, targets) = (&mut command.parts, &mut command.targets);
    // Equal parts are stored once. This map has the indexes of the parts with the same text.
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::new();
    let hasher = std::hash::RandomState::new();
    let mut add = |part: CommandPart| {
        let is_same = |at: &usize| {
            let other: &CommandPart = &parts[*at];
            other.depth == part.depth && other.words == part.words && other.strict == part.strict
        };
        let same = seen.entry(hasher.hash_one(&part.text)).or_default();
        if !same.iter().any(is_same) {
            same.push(parts.len());
            parts.push(part);
        }
    };
    let (mut unknown_writes, mut reopens, mut opens) = (false, false, false);
    let (verdict, named) = visit_from(parsed, &start, &mut |part| match part {
        Part::Command {
            words,
            assignments,
            depth,
        } => add(simple(words, assignments, depth)),
        Part::Assignments { assignments, depth } => {
            add(simple(&[], assignments, depth));
        }
        Part::Redirection { target, places } => {
            let written = written(target, places, targets);
            unknown_writes |= written == Written::Unknown;
            reopens |= written == Written::Stream;
        }
        Part::Source(source) => opens |= source.known().is_none_or(|file| !FREE.contains(&file)),
        Part::Output(_) => {}
    });
    command.named = named;
    command.reads = read_only(parsed, &start).ok().map(|reads| reads.paths);
    command.unknown_writes = unknown_writes || (reopens && opens);
    // Rules compare the commands as written. If all of them are known, values of variables decide
    // about the targets.
    let resolves = matches!(verdict, Verdict::Ask { .. }) && has_known_commands(parsed, &start);
    let (unresolved, exactly) = unknown_part(verdict);
    command.unresolved.clone_from(&unresolved);
    (command.unknown, command.can_be_allowed_exactly) = match resolves {
        true => unknown_part(ShellPolicy::open().decide_parsed(parsed, &start)),
        false => (unresolved, exactly),
    };
}

/// The unknown part of a command with this verdict, and whether an allow rule with the exact text
/// replaces the confirmation.
fn unknown_part(verdict: Verdict) -> (Option<String>, bool) {
    match verdict {
        Verdict::Allow => (None, false),
        Verdict::Ask {
            why,
            can_be_allowed_exactly,
        } => (Some(why), can_be_allowed_exactly),
        Verdict::Block { what } => (Some(what), false),
    }
}

/// Records the target of a redirection, unless it is a stream or unknown.
fn written(
    target: &Word,
    places: &[Option<PathBuf>],
    targets: &mut Vec<(String, PathBuf)>,
) -> Written {
    let Some(given) = target.known() else {
        return Written::Unknown;
    };
    if STREAMS.contains(&given) {
        return Written::Stream;
    }
    if FREE.contains(&given) {
        return Written::Known;
    }
    let absolute = Path::new(given).is_absolute();
    let mut known = Written::Known;
    for place in places {
        let path = match place {
            _ if absolute => PathBuf::from(given),
            Some(place) if place.is_absolute() => place.join(given),
            _ => {
                known = Written::Unknown;
                continue;
            }
        };
        if is_of_a_process(&path) {
            known = Written::Unknown;
            continue;
        }
        if !targets.iter().any(|(_, target)| *target == path) {
            targets.push((given.to_owned(), path));
        }
    }
    known
}

/// The kind of a redirection's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Known,
    /// A stream that is opened again.
    Stream,
    Unknown,
}

/// Whether a path resolves through the open files or the working directory of a process. Another process than this one
/// resolves it.
fn is_of_a_process(path: &Path) -> bool {
    let leads = |path: &Path| {
        ["/proc", "/dev/fd"].iter().any(|dir| path.starts_with(dir))
            || path == Path::new("/dev/stdin")
    };
    leads(path) || leads(&normalize_path(path))
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
    let perhaps = perhaps(words, kind);
    let shown: Vec<String> = words.iter().map(shown).collect();
    let assigned: Vec<(String, Option<String>)> = assignments
        .iter()
        .map(|assignment| (assignment.name.clone(), assignment.value.clone()))
        .collect();
    let front = assigned
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("…")));
    let text: Vec<String> = front.chain(shown.iter().cloned()).collect();
    let options = program_options(words);
    CommandPart {
        unlisted: options.unlisted,
        offered: options.offered,
        assignments: assigned,
        text: text.join(" "),
        words: shown,
        known,
        kind,
        depth,
        strict,
        loose,
        perhaps,
    }
}

/// Other possible readings of the command. One kind omits the options before its first operand, because they may take
/// the next word as a value. The other kind consists of the programs that it may run, if no rule lists them.
fn perhaps(words: &[Word], kind: PartKind) -> Vec<Text> {
    let is_option = |word: &Word| word.prefix().starts_with(['-', '+']);
    let mut texts = Vec::new();
    let mut from = BTreeSet::from([1]);
    while let Some(at) = from.pop_first() {
        let Some(word) = words.get(at).filter(|_| at <= MAX_OPTIONS) else {
            continue;
        };
        if is_option(word) {
            from.insert(at + 1);
            from.extend((!word.prefix().contains('=')).then_some(at + 2));
        }
        if at > 1 {
            let rest = words[..1].iter().chain(&words[at..]);
            texts.push(symbols(&rest.cloned().collect::<Vec<_>>(), &[], Form::Bare));
        }
    }
    if kind == PartKind::Wrapper
        && words
            .first()
            .and_then(Word::known)
            .is_some_and(runs_unlisted_program)
    {
        let starts = 1..words.len().min(MAX_OPTIONS);
        texts.extend(starts.map(|at| symbols(&words[at..], &[], Form::Bare)));
    }
    texts
}

/// The form of a part's text for rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Blanks inside of words do not separate words.
    Strict,
    /// The text as written.
    Loose,
    /// The text with only the file name of the command.
    Bare,
    /// As `Bare`, but unresolved words are empty and have no blank before them.
    Vanished,
}

/// Whether a word may expand to no word.
fn vanishes(word: &Word) -> bool {
    word.known().is_none() && word.pattern().is_none() && word.prefix().is_empty()
}

fn symbols(words: &[Word], assignments: &[Assignment], form: Form) -> Text {
    let length = words.iter().map(|word| word.prefix().len() + 1).sum();
    let mut text = Vec::with_capacity(length);
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
        match word.known() {
            Some(command) if bare => fold(file_name(command), &mut text),
            None if bare => name_unknown(word, &mut text),
            _ => append(word, apart, &mut text),
        }
    }
    text.into()
}

/// Appends the file name of an unresolved command: the text after the last slash of a pattern.
fn name_unknown(word: &Word, to: &mut Vec<Symbol>) {
    let plain = word.pattern().filter(|pattern| !pattern.contains('['));
    match plain {
        Some(pattern) => {
            let start = to.len();
            append(word, false, to);
            if pattern.contains('/') {
                let slash = to.iter().rposition(|symbol| *symbol == u32::from('/'));
                to.drain(start..slash.map_or(start, |at| at + 1));
            }
        }
        None => to.push(HOLE),
    }
}

/// Appends a word. Unresolved parts become holes. With `apart`, blanks in the word do not separate words.
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
