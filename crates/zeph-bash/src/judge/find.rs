//! `find` and `fd`: the commands that they run, and the files that they remove.
//!
//! `find DIRECTORY -delete` is judged like `rm -r DIRECTORY` if the predicates before the action match
//! every file. Predicates are combined as `find` combines them, with four levels of selectivity.

use super::evaluate::{CommandContext, Decider, Verdict};
use crate::syntax::word::Word;

/// The share of the files that an expression matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    None,
    /// Files that a test has selected.
    Some,
    /// A test with an unresolved argument.
    Perhaps,
    /// Almost all files, or the directory itself.
    Most,
    All,
}

impl Share {
    /// The complement of a selection is most of the files.
    fn not(self) -> Self {
        match self {
            Self::All => Self::None,
            Self::None => Self::All,
            Self::Some | Self::Perhaps | Self::Most => Self::Most,
        }
    }
}

/// An action of `find` that changes files or runs a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Delete,
    /// A command: the words up to the terminator.
    Run(Vec<Word>),
    /// A file that is written.
    Write(Word),
}

/// The meaning of the arguments of `find`.
#[derive(Debug, Default)]
struct Search {
    paths: Vec<Word>,
    /// The actions, with the share of the files that reach each.
    actions: Vec<(Action, Share)>,
    /// A word that may be a path, a predicate or an action.
    unresolved: bool,
}

/// Tests with an argument that is a pattern of names.
const PATTERNS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-lname",
    "-ilname",
];
const REGEXES: &[&str] = &["-regex", "-iregex"];
/// Tests and options with an argument that almost every file can satisfy.
const WIDE: &[&str] = &[
    "-type", "-xtype", "-fstype", "-user", "-uid", "-group", "-gid", "-perm", "-context",
];
/// Options with an argument.
const OPTIONS: &[&str] = &["-maxdepth", "-mindepth", "-regextype", "-D"];
/// Tests and options without an argument that match every file.
const WIDE_FLAGS: &[&str] = &[
    "-true",
    "-depth",
    "-d",
    "-xdev",
    "-x",
    "-mount",
    "-follow",
    "-daystart",
    "-noleaf",
    "-warn",
    "-nowarn",
    "-ignore_readdir_race",
    "-noignore_readdir_race",
    "-print",
    "-print0",
    "-ls",
    "-quit",
    "-prune",
    "-unique",
    "-a",
    "-and",
];
/// Tests with a number.
const NUMBERS: &[&str] = &[
    "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-size", "-links", "-used", "-inum",
];
/// Tests with an argument of another kind.
const TESTS: &[&str] = &[
    "-newer",
    "-anewer",
    "-cnewer",
    "-samefile",
    "-since",
    "-flags",
];

/// Whether this argument starts a command, or contains the start of one.
pub(super) fn executes(name: &str, word: &Word) -> bool {
    let text = word.prefix();
    match name {
        "find" | "gfind" | "bfs" => matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir"),
        _ if text.starts_with("--") => text.starts_with("--exec"),
        _ => text.starts_with('-') && text.contains(['x', 'X']),
    }
}

/// Reads the arguments.
struct Reader<'w> {
    words: &'w [Word],
    at: usize,
    search: Search,
}

impl Reader<'_> {
    fn read(mut self) -> Search {
        while let Some(word) = self.words.get(self.at) {
            match word.known() {
                Some("-H" | "-L" | "-P") => self.at += 1,
                Some("-D") => self.at += 2,
                Some(text) if text.starts_with("-O") => self.at += 1,
                _ => break,
            }
        }
        while let Some(word) = self.words.get(self.at) {
            let text = word.prefix();
            if word.known().is_some()
                && (text.starts_with('-') || matches!(text, "(" | "!" | ")" | ","))
            {
                break;
            }
            self.search.unresolved |= may_be_option(word);
            self.search.paths.push(word.clone());
            self.at += 1;
        }
        if self.search.paths.is_empty() {
            self.search.paths.push(Word::literal("."));
        }
        while self.at < self.words.len() {
            self.alternatives(Share::All);
            // A `)` without its `(`.
            self.at += 1;
        }
        self.search
    }

    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(Word::prefix)
    }

    /// Reads `A -o B` and `A , B`. `reached` is the share of the files that are tested.
    fn alternatives(&mut self, reached: Share) -> Share {
        let mut share = self.conjunction(reached);
        loop {
            match self.peek() {
                Some("-o" | "-or") => {
                    self.at += 1;
                    let other = self.conjunction(reached.min(share.not()));
                    share = share.max(other);
                }
                Some(",") => {
                    self.at += 1;
                    share = self.conjunction(reached);
                }
                _ => return share,
            }
        }
    }

    fn conjunction(&mut self, reached: Share) -> Share {
        let mut share = Share::All;
        while let Some(text) = self.peek() {
            if matches!(text, "-o" | "-or" | "," | ")") {
                break;
            }
            let next = self.term(reached.min(share));
            share = share.min(next);
        }
        share
    }

    fn term(&mut self, reached: Share) -> Share {
        let Some(word) = self.words.get(self.at) else {
            return Share::All;
        };
        self.at += 1;
        let text = word.prefix();
        if word.known().is_none() && may_be_option(word) {
            self.search.unresolved = true;
            return Share::Perhaps;
        }
        match text {
            "!" | "-not" => return self.term(reached).not(),
            "(" => {
                let share = self.alternatives(reached);
                self.at += 1;
                return share;
            }
            "-false" => return Share::None,
            "-delete" => self.search.actions.push((Action::Delete, reached)),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = self.words.get(self.at..).unwrap_or_default();
                let is_end = |at: usize| match rest[at].known() {
                    Some(";") => true,
                    Some("+") => at > 0 && rest[at - 1].known() == Some("{}"),
                    _ => false,
                };
                let length = (0..rest.len()).find(|at| is_end(*at)).unwrap_or(rest.len());
                self.search
                    .actions
                    .push((Action::Run(rest[..length].to_vec()), reached));
                self.at += length + 1;
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = self.argument() {
                    self.search.actions.push((Action::Write(file), reached));
                }
                self.at += usize::from(text == "-fprintf");
            }
            "-printf" => self.at += 1,
            "-files0-from" => {
                self.at += 1;
                self.search.paths.push(Word::unknown(""));
            }
            "-readable" | "-writable" | "-executable" => return Share::Most,
            _ if WIDE_FLAGS.contains(&text) => {}
            _ if OPTIONS.contains(&text) => self.at += 1,
            _ if WIDE.contains(&text) => {
                self.at += 1;
                return Share::Most;
            }
            _ if PATTERNS.contains(&text) => return self.pattern(),
            _ if REGEXES.contains(&text) => {
                return self.tested(|text| text.chars().all(|c| ".*+?^$/()\\|".contains(c)));
            }
            _ if NUMBERS.contains(&text) => return self.tested(is_wide_number),
            _ if text.starts_with("-newer") && text.len() > 6 => {
                return self.tested(|text| text.starts_with("19") || text.starts_with("@0"));
            }
            _ if TESTS.contains(&text) => self.at += 1,
            _ => {}
        }
        match text {
            _ if TESTS.contains(&text) => Share::Some,
            "-empty" | "-nouser" | "-nogroup" | "-sparse" => Share::Some,
            _ if text.starts_with('-') => Share::All,
            // An argument of a test that is not listed.
            _ => Share::All,
        }
    }

    fn argument(&mut self) -> Option<Word> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word
    }

    /// Reads a test that is wide if its argument is.
    fn tested(&mut self, is_wide: impl Fn(&str) -> bool) -> Share {
        match self.argument() {
            Some(word) => match word.known() {
                Some(text) if is_wide(text) => Share::Most,
                Some(_) => Share::Some,
                None => Share::Perhaps,
            },
            None => Share::All,
        }
    }

    fn pattern(&mut self) -> Share {
        let paths: Vec<String> = self
            .search
            .paths
            .iter()
            .map(|path| path.prefix().trim_end_matches('/').to_owned())
            .collect();
        self.tested(|pattern| {
            let literal = pattern.trim_end_matches(['*', '?', '/', '.']);
            is_wildcard(pattern) || paths.iter().any(|path| path.starts_with(literal))
        })
    }
}

/// Whether a word may be an option.
fn may_be_option(word: &Word) -> bool {
    let text = word.prefix();
    word.pattern().is_none() && (text.is_empty() || text.starts_with('-'))
}

/// Whether a pattern of names consists of wildcards.
fn is_wildcard(pattern: &str) -> bool {
    let mut inside = false;
    pattern.chars().all(|c| {
        let wild = inside || "*?./[\\".contains(c);
        inside = (inside || c == '[') && c != ']';
        wild
    })
}

/// Whether almost every file has a number like this: `+0`, `-9999`.
fn is_wide_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().unwrap_or(0);
    match text.chars().next() {
        Some('+') => number == 0,
        Some('-') => number >= 365 || text.ends_with(['M', 'G', 'k']),
        _ => false,
    }
}

impl Decider<'_> {
    /// Judges the actions of `find`.
    pub(super) fn find(&mut self, arguments: &[Word], around: &CommandContext) {
        let reader = Reader {
            words: arguments,
            at: 0,
            search: Search::default(),
        };
        let search = reader.read();
        for (action, share) in &search.actions {
            match action {
                Action::Write(file) => self.output(file),
                Action::Delete => {
                    let words = [
                        Word::literal("rm"),
                        Word::literal("-r"),
                        Word::literal("{}"),
                    ];
                    self.found(&words, &search.paths, *share, around);
                }
                Action::Run(words) => self.found(words, &search.paths, *share, around),
            }
        }
        if search.unresolved {
            self.ask("an unresolved word for `find` may be `-delete` or `-exec`");
        }
    }

    /// A command that `find` runs for a share of the files below `paths`.
    fn found(&mut self, words: &[Word], paths: &[Word], share: Share, around: &CommandContext) {
        let command = words.first().and_then(Word::known);
        if command.is_some_and(|text| text.contains("{}")) {
            self.ask("a file that the search finds runs as a command");
            return;
        }
        let at = |place: &Word| -> Vec<Word> {
            let replace = |word: &Word| match word.known() {
                Some("{}") => place.clone(),
                // `find` inserts the path into a text for a shell or into a command word.
                _ => word.with_unknown("{}"),
            };
            words.iter().map(replace).collect()
        };
        if matches!(share, Share::None | Share::Some | Share::Perhaps) {
            self.simple(&at(&Word::literal("./found")), around);
        }
        match share {
            Share::None | Share::Some => {}
            Share::Most | Share::All => {
                for path in paths {
                    self.simple(&at(path), around);
                }
            }
            Share::Perhaps => {
                let verdict = self.aside(|decider| {
                    for path in paths {
                        decider.simple(&at(path), around);
                    }
                });
                if verdict != Verdict::Allow {
                    self.ask("the files that `find` changes are unknown before it runs");
                }
            }
        }
    }

    /// Judges the commands that `fd` runs.
    pub(super) fn fd(&mut self, arguments: &[Word], around: &CommandContext) {
        let mut at = 0;
        let mut hole = false;
        while let Some(word) = arguments.get(at) {
            at += 1;
            hole |= may_be_option(word);
            if !executes("fd", word) {
                continue;
            }
            let rest = arguments.get(at..).unwrap_or_default();
            let ends = |word: &Word| word.known() == Some(";");
            let length = rest.iter().position(ends).unwrap_or(rest.len());
            // `--exec=rm`, `-xrm`: the command starts in the word itself.
            let attached = attached(word);
            let inner: Vec<Word> = attached.iter().chain(&rest[..length]).cloned().collect();
            at += length;
            self.found(&inner, &[Word::literal("./found")], Share::Some, around);
        }
        if hole {
            self.ask("an unresolved word for `fd` may be `--exec`");
        }
    }
}

/// The part of the command in the option of `fd` itself.
fn attached(word: &Word) -> Option<Word> {
    let text = word.prefix();
    let from = match text.strip_prefix("--") {
        Some(_) => text.find('=')? + 1,
        None => text.find(['x', 'X'])? + 1,
    };
    (from < text.len()).then(|| word.after(from))
}
