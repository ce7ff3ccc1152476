//! Programs that write text, and the words that name their files. Compilers are not among them.

use super::blocklist::file_name;
use super::rsync;
use crate::syntax::word::{UNRESOLVED, Word};

/// The maximum number of target directories that are distinguished in one command.
const MAX_DIRECTORIES: usize = 8;

/// The position of the written file in the arguments of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Each operand.
    Operands,
    /// The last operand or a file in it, as with `cp`.
    Last,
    /// Each operand after `-i`.
    InPlace,
    /// The value of `of=`.
    Assigned,
    /// The value of an option, or the last part of a URL.
    Download,
}

/// Programs that write given text, or the text of other files.
const WRITERS: &[(&str, Target)] = &[
    ("tee", Target::Operands),
    ("sponge", Target::Operands),
    ("cp", Target::Last),
    ("mv", Target::Last),
    ("ln", Target::Last),
    ("link", Target::Last),
    ("install", Target::Last),
    ("rsync", Target::Last),
    ("scp", Target::Last),
    ("sed", Target::InPlace),
    ("gsed", Target::InPlace),
    ("dd", Target::Assigned),
    ("curl", Target::Download),
    ("wget", Target::Download),
];

/// The words that name files that the program `name` writes.
pub(super) fn written_words(name: &str, arguments: &[Word]) -> Vec<Word> {
    let Some((_, target)) = WRITERS.iter().find(|(known, _)| *known == name) else {
        return Vec::new();
    };
    let is_option = |word: &&Word| word.prefix().starts_with('-');
    let operands = || arguments.iter().filter(|word| !is_option(word)).cloned();
    let has_option = |letter: char, long: &str| {
        arguments
            .iter()
            .filter(is_option)
            .any(|word| match word.prefix().strip_prefix("--") {
                Some(name) => long.starts_with(name.split('=').next().unwrap_or_default()),
                None => word.prefix().contains(letter),
            })
    };
    let pairs = arguments.windows(2).filter(|pair| names_output(&pair[0]));
    let values = || {
        let next = pairs.clone().map(|pair| pair[1].clone());
        next.chain(arguments.iter().flat_map(option_values))
    };
    match *target {
        Target::Operands => operands().collect(),
        Target::InPlace if has_option('i', "in-place") => operands().collect(),
        Target::InPlace => Vec::new(),
        Target::Assigned => {
            let values = arguments
                .iter()
                .filter(|word| word.prefix().starts_with("of="));
            values.map(|word| word.after(3)).collect()
        }
        Target::Last => {
            let names: Vec<String> = operands().filter_map(|word| last_name(&word)).collect();
            let mut directories: Vec<Word> = match has_option('t', "target-directory") {
                true => values().collect(),
                false => Vec::new(),
            };
            directories.extend(match name {
                "rsync" => rsync::operands(arguments).pop().cloned(),
                _ => operands().next_back(),
            });
            let inside = files_in(&directories, &names);
            // `ln FILE` makes a link in the working directory.
            let alone = names.iter().filter(|_| names.len() == 1).map(Word::literal);
            directories
                .iter()
                .cloned()
                .chain(inside)
                .chain(alone)
                .collect()
        }
        Target::Download => {
            let urls = operands().filter(is_url);
            let names: Vec<String> = urls.filter_map(|word| last_name(&word)).collect();
            let words: Vec<Word> = values().collect();
            let inside = files_in(&words, &names);
            let alone = names.iter().map(Word::literal);
            words.iter().cloned().chain(alone).chain(inside).collect()
        }
    }
}

/// The values that an option may have in its own word: `--output=FILE`, `-oFILE`.
fn option_values(word: &Word) -> Vec<Word> {
    let text = word.prefix();
    if let Some(long) = text.strip_prefix("--") {
        let start = long.find('=').map(|at| at + 3);
        return start.map(|at| word.after(at)).into_iter().collect();
    }
    let letters = text
        .char_indices()
        .skip(1)
        .filter(|(_, c)| "oOPt".contains(*c));
    match text.starts_with('-') {
        true => letters.map(|(at, _)| word.after(at + 1)).collect(),
        false => Vec::new(),
    }
}

/// Whether the next word is the value of an option that names a file or directory.
fn names_output(option: &Word) -> bool {
    let text = option.prefix();
    match text.strip_prefix("--") {
        Some(long) => ["output", "directory-prefix", "target-directory"]
            .iter()
            .any(|name| long.starts_with(name)),
        None => text.starts_with('-') && text.ends_with(['o', 'O', 'P', 't']),
    }
}

fn is_url(word: &Word) -> bool {
    let text = word.prefix();
    text.contains("://") || (text.contains('/') && !text.starts_with(['/', '.', '~']))
}

/// The last part of a path or URL. `*` is an unresolved part.
fn last_name(word: &Word) -> Option<String> {
    let text = word.pattern().map_or_else(|| word.script(), str::to_owned);
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let name = file_name(text.trim_end_matches('/')).replace(UNRESOLVED, "*");
    (!name.is_empty()).then_some(name)
}

/// The paths of the files with these names in each of the directories.
fn files_in(directories: &[Word], names: &[String]) -> Vec<Word> {
    let directories: Vec<&str> = match directories.len() {
        MAX_DIRECTORIES.. => vec!["*"],
        _ => {
            let texts = directories.iter().map(Word::known);
            texts.map(|text| text.unwrap_or("*")).collect()
        }
    };
    let join = |directory: &str, name| Word::literal(format!("{directory}/{name}"));
    let inside = |name| {
        directories
            .iter()
            .map(move |directory| join(directory, name))
    };
    names.iter().flat_map(inside).collect()
}
