//! Files that a command writes and runs as programs or scripts.
//!
//! The judge sees the text of such a script only if `echo`, `printf` or a here-document writes it. Any other script requires
//! confirmation. Compilers and other programs that write files are not in the table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::blocklist::{file_name, matches_pattern};
use super::evaluate::{CommandContext, Decider, Input};
use super::places::normalize_path;
use super::writers::written_words;
use super::written_text::{echoed, printed, shell_of};
use crate::syntax::ast::{Command, Kind, Redirect};
use crate::syntax::word::{UNRESOLVED, Word};

/// The maximum number of files with one name, and of texts of one file, that are distinguished.
const MAX_FILES: usize = 64;
const MAX_TEXTS: usize = 16;
/// The name under which files with an unresolved name are stored.
const UNRESOLVED_NAME: &str = "*";

/// A file that a command writes.
struct WrittenFile {
    /// The normalized path. `*` is an unresolved part.
    path: String,
    /// The possible texts; `None` is an unknown text.
    texts: Vec<Option<String>>,
}

/// The files that a command has written and run so far, by file name.
#[derive(Default)]
pub(super) struct WrittenFiles {
    written: BTreeMap<String, Vec<WrittenFile>>,
    ran: BTreeMap<String, BTreeSet<String>>,
}

impl WrittenFiles {
    /// The path, or a pattern that includes it if too many files have this name.
    fn limited(&self, path: String) -> String {
        let name = stored_name(&path);
        match self.written.get(name).map_or(0, Vec::len) {
            MAX_FILES.. => format!("*/{name}"),
            _ => path,
        }
    }

    fn insert(&mut self, path: String, text: Option<&str>, append: bool) {
        let name = stored_name(&path).to_owned();
        let files = self.written.entry(name).or_default();
        let index = match files.iter().position(|file| file.path == path) {
            Some(index) => index,
            None => {
                let texts = match append {
                    true => vec![None],
                    false => Vec::new(),
                };
                files.push(WrittenFile { path, texts });
                files.len() - 1
            }
        };
        let texts = &mut files[index].texts;
        let mut added = match (append, text) {
            (true, Some(text)) => texts
                .iter()
                .map(|before| before.as_ref().map(|before| format!("{before}{text}")))
                .collect(),
            _ => vec![text.map(str::to_owned)],
        };
        added.retain(|text| !texts.contains(text));
        match texts.len() + added.len() {
            ..=MAX_TEXTS => texts.append(&mut added),
            _ => *texts = vec![None],
        }
    }

    /// The possible texts of a file that the command has written.
    fn texts(&self, path: &str) -> Vec<Option<String>> {
        let same_name = self.written.get(file_name(path));
        let files = same_name
            .into_iter()
            .chain(self.written.get(UNRESOLVED_NAME));
        let mut texts = Vec::new();
        for file in files.flatten().filter(|file| may_equal(&file.path, path)) {
            for text in &file.texts {
                if !texts.contains(text) {
                    texts.push(text.clone());
                }
            }
        }
        texts
    }

    fn record_run(&mut self, path: &str) {
        let name = file_name(path);
        let paths = self.ran.entry(name.to_owned()).or_default();
        paths.insert(match paths.len() {
            MAX_FILES.. => format!("*/{name}"),
            _ => path.to_owned(),
        });
    }

    fn has_run(&self, path: &str) -> bool {
        let name = file_name(path);
        let all = name.contains('*').then_some(self.ran.values());
        let same_name = self.ran.get(name).filter(|_| all.is_none());
        let mut paths = all.into_iter().flatten().chain(same_name).flatten();
        paths.any(|ran| may_equal(ran, path))
    }
}

/// The name under which a written file is stored.
fn stored_name(path: &str) -> &str {
    match file_name(path) {
        name if name.contains('*') => UNRESOLVED_NAME,
        name => name,
    }
}

/// Whether two paths may name the same file. In each, `*` is an unresolved part.
fn may_equal(one: &str, two: &str) -> bool {
    matches_pattern(one, two) || matches_pattern(two, one)
}

impl Decider<'_> {
    /// The paths that a word may name. `*` is an unresolved part.
    fn paths_of(&self, word: &Word) -> Vec<String> {
        let text = match word.pattern() {
            Some(pattern) => pattern.to_owned(),
            None => word.script().replace(UNRESOLVED, "*"),
        };
        // Such a word may name any file.
        if file_name(&text).chars().all(|c| c == '*') {
            return Vec::new();
        }
        let normal = |path: &Path| normalize_path(path).display().to_string();
        if text.starts_with(['/', '*']) {
            return vec![normal(Path::new(&text))];
        }
        let anywhere = (self.later > 0).then_some(&None);
        let places = self.places.now().iter().chain(anywhere);
        let path = |place: &Option<_>| match place {
            Some(place) => normal(&Path::new(place).join(&text)),
            None => format!("*{}", normal(&Path::new("/").join(&text))),
        };
        places.map(path).collect()
    }

    /// Records a file that the command writes; `None` is an unknown text.
    pub(super) fn file_written(&mut self, word: &Word, text: Option<&str>, append: bool) {
        for path in self.paths_of(word) {
            let path = self.files.limited(path);
            if self.files.has_run(&path) {
                self.ask(format!(
                    "the command runs `{}` and writes it as well",
                    word.shown()
                ));
            }
            self.files.insert(path, text, append);
        }
    }

    /// Records the files that the redirections of a command write.
    pub(super) fn record_outputs(&mut self, command: &Command, around: &CommandContext) {
        let is_stdout =
            |redirect: &Redirect| matches!(redirect, Redirect::Output { stdout: true, .. });
        let last = command.redirects.iter().rposition(is_stdout);
        for (at, redirect) in command.redirects.iter().enumerate() {
            let Redirect::Output { target, append, .. } = redirect else {
                continue;
            };
            let text = match (&command.kind, last == Some(at)) {
                (Kind::Simple { words, .. }, true) => self.literal_output(words, &around.input),
                _ => None,
            };
            for reading in self.readings(std::slice::from_ref(target), false) {
                for word in &reading.words {
                    self.file_written(word, text.as_deref(), *append);
                }
            }
        }
    }

    /// The output of a command, if it only prints known text.
    fn literal_output(&self, words: &[Word], input: &Input) -> Option<String> {
        let Some((name, arguments)) = words.split_first() else {
            return Some(String::new());
        };
        let name = name.known()?;
        let is_other = self.functions.contains_key(name)
            || self.aliases.contains_key(name)
            || self.hashes.contains_key(name);
        if is_other {
            return None;
        }
        let arguments: Vec<&str> = arguments.iter().map(Word::known).collect::<Option<_>>()?;
        match (name, arguments.as_slice(), input) {
            (":" | "true", ..) => Some(String::new()),
            ("cat", [], Input::Text(text)) => Some(text.clone()),
            ("echo", arguments, _) => echoed(arguments),
            ("printf", [format, values @ ..], _) => printed(format, values),
            _ => None,
        }
    }

    /// Records the files that a program of the table writes.
    pub(super) fn record_written(&mut self, name: &str, arguments: &[Word]) {
        for word in written_words(name, arguments) {
            self.file_written(&word, None, false);
        }
    }

    /// Judges a program that a command word names, if the command writes its file.
    pub(super) fn written_program(&mut self, program: &str, around: &CommandContext) {
        let paths = match program.contains('/') {
            true => self.paths_of(&Word::literal(program)),
            // `PATH` usually has directories with this name.
            false if self.places.values.get("PATH").is_none() => vec![format!("*bin/{program}")],
            false => vec![format!("*/{program}")],
        };
        let texts = self.texts_of(&paths);
        for text in &texts {
            match text.as_deref().map(|text| (text, shell_of(text))) {
                Some((text, Some(shell))) => {
                    let before = self.places.values.clone();
                    self.forget_positional();
                    self.script(shell, text, around);
                    self.places.values = before;
                }
                _ => self.ask(format!(
                    "the command writes `{program}` and then runs it, so its effect is unknown"
                )),
            }
        }
    }

    /// The known texts of a script for `by`, if the command writes its file. An unknown text requires confirmation.
    pub(super) fn written_texts(&mut self, by: &str, file: Option<&Word>) -> Vec<String> {
        let Some(file) = file else { return Vec::new() };
        let paths = self.paths_of(file);
        let texts = self.texts_of(&paths);
        if texts.contains(&None) {
            self.ask(format!(
                "the command writes `{}`, and `{by}` then runs it, so its effect is unknown",
                file.shown()
            ));
        }
        texts.into_iter().flatten().collect()
    }

    fn texts_of(&mut self, paths: &[String]) -> Vec<Option<String>> {
        for path in paths {
            self.files.record_run(path);
        }
        let texts = paths.iter().flat_map(|path| self.files.texts(path));
        texts.collect()
    }
}
