//! The paths that a command names, for the policy: all texts that look like paths, words that name existing files,
//! files that match patterns, and write targets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use std::collections::{HashMap, HashSet};

use super::path_words::{expand, parts, tokens};
use super::rule_segments::{FREE, STREAMS};
use crate::gate::parsed_call::SubjectPath;
use crate::gate::path_globs::plain_base;
use crate::gate::path_resolver::ExistsFn;
use crate::gate::{ParsedCommand, PathResolver, PathRole, ReferencedPath, ReferencedPaths};
use crate::provenance::extract_paths;
use zeph_bash::{NamedWord, Role};

/// The maximum number of directories that are open while a command is examined.
const MAX_OPEN: usize = 16;

/// Collects the paths that `command` names.
pub(crate) fn read(command: &ParsedCommand, places: &PathResolver) -> ReferencedPaths {
    let mut mentions = ReferencedPaths::default();
    if let Some(why) = &command.unresolved {
        mentions.unknown = Some(why.clone());
    }
    if command.unknown_writes {
        mentions.unknown = Some("the file that it writes to".to_owned());
    }
    let named = &command.named;
    let dots = named.iter().any(|named| named.word.prefix() == "dotglob");
    let mut reader = Reader {
        places,
        dots,
        mentions,
        noted: HashMap::new(),
        asked: HashMap::new(),
    };
    // A repeated word with the same directories adds nothing.
    let mut seen = HashSet::new();
    for named in named {
        let NamedWord { word, role, places } = named;
        let known = word
            .known()
            .map(|text| (text, *role, Arc::as_ptr(places).addr()));
        if known.is_none_or(|known| seen.insert(known)) {
            reader.named(named);
        }
    }
    reader.mentions
}

struct Reader<'p, 'c> {
    places: &'p PathResolver,
    /// Whether `*` may match names that begin with a dot.
    dots: bool,
    mentions: ReferencedPaths,
    /// The indexes of the recorded paths.
    noted: HashMap<PathBuf, usize>,
    /// The results of file system checks, by directory.
    asked: HashMap<&'c Path, Asked<'p, 'c>>,
}

/// The results for one directory.
struct Asked<'p, 'c> {
    /// The check for a name; `None` if too many directories are open.
    inside: Option<ExistsFn<'p>>,
    names: HashMap<&'c str, bool>,
}

impl<'c> Reader<'_, 'c> {
    fn named(&mut self, named: &'c NamedWord) {
        let word = &named.word;
        match (word.known(), word.pattern()) {
            (Some(text), _) => self.text(text, named),
            (None, Some(pattern)) => {
                for part in parts(pattern) {
                    self.pattern(part, named);
                }
            }
            (None, None) => {
                let shown = word.shown();
                self.mentions
                    .unknown
                    .get_or_insert_with(|| format!("the value of `{shown}`"));
            }
        }
    }

    fn text(&mut self, text: &'c str, named: &'c NamedWord) {
        // A write target is always a path, regardless of its form.
        if named.role == Role::Target {
            self.path(text, named, true);
            return;
        }
        let found = extract_paths(text);
        for path in &found {
            self.path(path, named, true);
        }
        for part in parts(text) {
            let plain = part.starts_with(['/', '~']) || part.starts_with("../");
            let is_path = part.contains('/') && !part.contains("//");
            if is_path || self.is_there(part, named) {
                let is_whole = part.len() == text.len();
                self.path(part, named, plain || is_whole || !is_path);
            }
        }
        if named.role == Role::Program {
            for token in tokens(text) {
                if self.is_there(token, named) {
                    self.path(token, named, true);
                }
            }
        }
    }

    /// Records `text` as a path, relative to each possible directory.
    fn path(&mut self, text: &str, named: &NamedWord, certain: bool) {
        let given = self.at_home(text);
        for place in named.places.iter() {
            let absolute = match place {
                _ if given.is_absolute() => given.clone(),
                Some(place) if place.is_absolute() => place.join(&given),
                _ => {
                    let unknown = &mut self.mentions.unknown;
                    unknown.get_or_insert_with(|| format!("the location of `{text}`"));
                    continue;
                }
            };
            let role = match named.role {
                Role::Target => PathRole::Write,
                _ => PathRole::Read,
            };
            let certain = certain && !FREE.contains(&text) && !STREAMS.contains(&text);
            let known = &mut self.mentions.paths;
            match self.noted.get(&absolute).and_then(|at| known.get_mut(*at)) {
                Some(mention) => mention.certain |= certain,
                None => {
                    self.noted.insert(absolute.clone(), known.len());
                    known.push(ReferencedPath {
                        path: SubjectPath::new(text, role, absolute),
                        certain,
                    });
                }
            }
        }
    }

    /// Records the files that match a pattern. Other files may match when the command runs.
    fn pattern(&mut self, pattern: &'c str, named: &'c NamedWord) {
        if !pattern.contains(['*', '?', '[']) {
            return self.text(pattern, named);
        }
        self.mentions
            .pattern
            .get_or_insert_with(|| format!("the paths that `{pattern}` matches"));
        let base = plain_base(Path::new(pattern));
        let Ok(rest) = Path::new(pattern).strip_prefix(&base) else {
            return;
        };
        let Some(base) = base.to_str().map(|base| self.at_home(base)) else {
            return;
        };
        for place in named.places.iter() {
            let base = match place {
                _ if base.is_absolute() => base.clone(),
                Some(place) if place.is_absolute() => place.join(&base),
                _ => {
                    self.mentions
                        .unknown
                        .get_or_insert_with(|| format!("the target of `{pattern}`"));
                    continue;
                }
            };
            let expanded = expand(&base, rest, self.dots);
            if !expanded.complete {
                self.mentions
                    .unknown
                    .get_or_insert_with(|| format!("all paths that `{pattern}` matches"));
            }
            for path in expanded.paths {
                let text = path.to_string_lossy().into_owned();
                self.path(&text, named, true);
            }
        }
    }

    fn at_home(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.places.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        }
    }

    /// Whether `text` names, or may name, a file in one of the possible directories.
    fn is_there(&mut self, text: &'c str, named: &'c NamedWord) -> bool {
        let given = self.at_home(text);
        if given.is_absolute() {
            return self.places.is_there(&given);
        }
        // In an unknown directory, any word may name a file. The command word is searched on `PATH` instead.
        let anywhere = named.role != Role::Command && named.places.contains(&None);
        let mut directories = named.places.iter().flatten();
        anywhere || directories.any(|directory| self.is_inside(directory, text))
    }

    fn is_inside(&mut self, directory: &'c Path, name: &'c str) -> bool {
        let (places, open) = (self.places, self.asked.len());
        let asked = self.asked.entry(directory).or_insert_with(|| Asked {
            inside: (open < MAX_OPEN).then(|| places.inside(directory)),
            names: HashMap::new(),
        });
        let ask = || match &asked.inside {
            Some(inside) => inside(name),
            None => places.is_there(&directory.join(name)),
        };
        *asked.names.entry(name).or_insert_with(ask)
    }
}
