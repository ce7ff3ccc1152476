//! The location from which a command runs: it completes the paths in its words.

use std::path::PathBuf;
use std::rc::Rc;

use super::arguments::{Arguments, unresolved};
use super::{PIPE, ReadOnly, ReadPath};
use crate::syntax::word::Word;

/// The pattern that replaces the paths that `find` passes to a command. `find` reports the folders that it searches.
pub(super) const FOUND: &str = "/dev/null/*";

/// The location from which a command runs, and the command before it in the pipeline.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// The possible working directories, if all of them are known.
    pub(super) places: Option<Vec<PathBuf>>,
    /// The directory in which the whole command starts.
    pub(super) start: PathBuf,
    pub(super) home: Option<PathBuf>,
    /// The words of the simple command that writes to standard input.
    pub(super) writer: Option<Rc<[Word]>>,
}

impl Location {
    /// Adds a path that the command reads. It follows no links below the path.
    pub(super) fn add(&self, word: &Word, found: &mut ReadOnly) -> Result<(), String> {
        self.add_operand(word, false, false, found)
    }

    /// Adds an operand or the value of an option that is a path. With `follows_links`, the command follows links below it. With
    /// `can_be_option`, a match of its pattern may be an option.
    pub(super) fn add_operand(
        &self,
        word: &Word,
        follows_links: bool,
        can_be_option: bool,
        found: &mut ReadOnly,
    ) -> Result<(), String> {
        let Some(text) = word.pattern() else {
            return Err(unresolved(word));
        };
        if text == FOUND && follows_links {
            return Err("a command follows links below the files that `find` lists".to_owned());
        }
        if matches!(text, "" | "-" | "/dev/null" | "/dev/stdin" | PIPE | FOUND) {
            return Ok(());
        }
        let is_glob = word.known().is_none();
        let bases = match (&self.places, text.starts_with('/')) {
            (_, true) => vec![PathBuf::from(text)],
            (Some(places), _) => places.iter().map(|place| place.join(text)).collect(),
            (None, _) => {
                return Err(format!(
                    "the directory of `{text}` is unknown before the command runs"
                ));
            }
        };
        let path = ReadPath {
            given: text.to_owned(),
            bases,
            is_glob,
            follows_links,
            can_be_option: is_glob && can_be_option && text.starts_with(['*', '?', '[']),
        };
        if !found.paths.contains(&path) {
            found.paths.push(path);
        }
        Ok(())
    }

    /// Adds the patterns among words that are not paths: the shell reads their directories.
    pub(super) fn add_globs(&self, words: &[Word], found: &mut ReadOnly) -> Result<(), String> {
        let mut globs = words
            .iter()
            .filter(|word| word.known().is_none() && word.pattern().is_some());
        globs.try_for_each(|word| self.add(word, found))
    }

    /// The location for the other arguments, if an option names their directory.
    pub(super) fn of_arguments(
        &self,
        given: &Arguments,
        found: &mut ReadOnly,
    ) -> Result<Self, String> {
        let Some(directory) = &given.directory else {
            return Ok(self.clone());
        };
        self.add(directory, found)?;
        let to = directory.known().ok_or_else(|| unresolved(directory))?;
        let places = self.places.as_ref();
        Ok(Self {
            places: match to.starts_with('/') {
                true => Some(vec![PathBuf::from(to)]),
                false => places.map(|places| places.iter().map(|place| place.join(to)).collect()),
            },
            ..self.clone()
        })
    }
}
