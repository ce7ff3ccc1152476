//! The paths that a command names, for the policy: what looks like a path anywhere in it, words that
//! name existing files, the files that patterns stand for, and what is written to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::parts::{FREE, STREAMS};
use super::policy::{Named, Role, ShellPolicy, Start, extract_paths};
use super::words::{expand, parts, tokens};
use crate::file::rules::plain_base;
use crate::gate::subject::{CommandSubject, SubjectPath};
use crate::gate::{Mention, Mentions, PathRole, Places};

/// What `command`, which starts in `start`, names.
pub(crate) fn read(command: &CommandSubject, start: &Path, places: &Places) -> Mentions {
    let mut mentions = Mentions::default();
    if let Some(why) = &command.unknown {
        mentions.unknown = Some(why.clone());
    }
    if command.unknown_writes {
        mentions.unknown = Some("where it writes".to_owned());
    }
    let start = Start {
        cwd: start.to_owned(),
        home: places.home().map(Path::to_owned),
        roots: Vec::new(),
    };
    let named = ShellPolicy::open().named(&command.text, &start);
    let dots = named.iter().any(|named| named.word.prefix() == "dotglob");
    let mut reader = Reader {
        places,
        dots,
        mentions,
        asked: HashMap::new(),
    };
    for named in &named {
        reader.named(named);
    }
    reader.mentions
}

struct Reader<'p> {
    places: &'p Places,
    /// Whether `*` may match names that begin with a dot.
    dots: bool,
    mentions: Mentions,
    /// What was asked of the disk.
    asked: HashMap<PathBuf, bool>,
}

impl Reader<'_> {
    fn named(&mut self, named: &Named) {
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
                    .get_or_insert_with(|| format!("what `{shown}` stands for"));
            }
        }
    }

    fn text(&mut self, text: &str, named: &Named) {
        // What is written is a path, whatever it looks like.
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

    /// Notes `text` as a path, from everywhere that it may count from.
    fn path(&mut self, text: &str, named: &Named, certain: bool) {
        let given = self.at_home(text);
        for place in &named.places {
            let absolute = match place {
                _ if given.is_absolute() => given.clone(),
                Some(place) if place.is_absolute() => place.join(&given),
                _ => {
                    let unknown = &mut self.mentions.unknown;
                    unknown.get_or_insert_with(|| format!("where `{text}` lies"));
                    continue;
                }
            };
            let role = match named.role {
                Role::Target => PathRole::Write,
                _ => PathRole::Read,
            };
            let certain = certain && !FREE.contains(&text) && !STREAMS.contains(&text);
            let known = &mut self.mentions.paths;
            match known
                .iter_mut()
                .find(|mention| mention.path.absolute() == absolute)
            {
                Some(mention) => mention.certain |= certain,
                None => known.push(Mention {
                    path: SubjectPath::new(text, role, absolute),
                    certain,
                }),
            }
        }
    }

    /// Notes the files that a pattern stands for; another set may be there when it runs.
    fn pattern(&mut self, pattern: &str, named: &Named) {
        if !pattern.contains(['*', '?', '[']) {
            return self.text(pattern, named);
        }
        self.mentions
            .pattern
            .get_or_insert_with(|| format!("what `{pattern}` stands for"));
        let base = plain_base(Path::new(pattern));
        let Ok(rest) = Path::new(pattern).strip_prefix(&base) else {
            return;
        };
        let Some(base) = base.to_str().map(|base| self.at_home(base)) else {
            return;
        };
        for place in &named.places {
            let base = match place {
                _ if base.is_absolute() => base.clone(),
                Some(place) if place.is_absolute() => place.join(&base),
                _ => {
                    self.mentions
                        .unknown
                        .get_or_insert_with(|| format!("where `{pattern}` leads"));
                    continue;
                }
            };
            let expanded = expand(&base, rest, self.dots);
            if !expanded.complete {
                self.mentions
                    .unknown
                    .get_or_insert_with(|| format!("all that `{pattern}` stands for"));
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

    fn is_there(&mut self, text: &str, named: &Named) -> bool {
        let given = self.at_home(text);
        let (places, asked) = (self.places, &mut self.asked);
        let mut ask = |path: PathBuf| match asked.get(&path) {
            Some(there) => *there,
            None => {
                let there = places.is_there(&path);
                asked.insert(path, there);
                there
            }
        };
        named.places.iter().any(|place| match place {
            Some(place) => ask(place.join(&given)),
            None => given.is_absolute() && ask(given.clone()),
        })
    }
}
