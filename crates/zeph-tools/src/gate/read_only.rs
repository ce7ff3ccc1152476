//! Whether a command only reads, and only paths that the tool `read` may access.
//!
//! `zeph-bash` decides by the text. Here, the disk decides where the paths are: links are resolved, and patterns are
//! expanded, because a link that matches may point outside.

use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

use super::command::path_words::name_glob;
use super::parsed_call::CallSubject;
use super::permissions::first;
use super::rule::{Action, MatchMode, ToolRules};
use super::{CachedPathResolver, PathRole, SubjectPath};
use zeph_bash::ReadPath;

/// The maximum number of entries in a directory that a pattern is compared with.
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of directories that a pattern is expanded in.
const MAX_DIRECTORIES: usize = 200;

/// Whether the call is a command that only reads such paths. `rules` are those of the tool `read`.
pub(super) fn is_read_only(subject: &CallSubject<'_>, rules: Option<&ToolRules>) -> bool {
    let Some(command) = &subject.command else {
        return false;
    };
    let Some(reads) = &command.reads else {
        return false;
    };
    let places = subject.places();
    reads.iter().all(|read| {
        // Links below a directory may point anywhere. Below a file, there are none.
        let is_admitted = |path: &Path| {
            is_readable(&read.given, path, rules, places)
                && !(read.follows_links && places.is_directory(path))
        };
        read.bases.iter().all(|base| match read.is_glob {
            false => is_admitted(base),
            true => expand(read, base, places)
                .is_some_and(|paths| paths.iter().all(|path| is_admitted(path))),
        })
    })
}

/// Whether the tool `read` may access a path (absolute) without confirmation.
fn is_readable(
    given: &str,
    path: &Path,
    rules: Option<&ToolRules>,
    places: &CachedPathResolver<'_>,
) -> bool {
    let path = SubjectPath::new(given, PathRole::Read, path.to_owned());
    let forms = path.forms(places);
    let found = first(rules, |rule| match rule.is_catch_all() {
        true => MatchMode::Yes,
        false => rule.fits_path(forms),
    });
    let is_allowed = match found.rule {
        None => true,
        Some((_, rule, _)) => rule.action() == Action::Allow,
    };
    forms.inside && is_allowed
}

/// The existing paths that a pattern of the shell matches, at least. `base` is its absolute path.
/// `None` if a match may be an option, or if there are too many entries.
fn expand(read: &ReadPath, base: &Path, places: &CachedPathResolver<'_>) -> Option<Vec<PathBuf>> {
    // Only the given text is a pattern, not the working directory before it.
    let directory = base.to_str()?.strip_suffix(read.given.as_str())?;
    let mut found = vec![Path::new("/").join(directory)];
    let mut is_first = true;
    for component in Path::new(&read.given).components() {
        let Component::Normal(name) = component else {
            if component == Component::ParentDir {
                found.iter_mut().for_each(|path| path.push(".."));
            }
            continue;
        };
        let text = name.to_str()?;
        if !text.contains(['*', '?', '[']) {
            found.iter_mut().for_each(|path| path.push(name));
            continue;
        }
        if found.len() > MAX_DIRECTORIES {
            return None;
        }
        // A pattern that cannot be compiled may match any name.
        let glob = GlobBuilder::new(&name_glob(text))
            .literal_separator(true)
            .build();
        let matcher = glob.ok().map(|glob| glob.compile_matcher());
        let mut below = Vec::new();
        for directory in &found {
            if !places.is_directory(directory) {
                continue;
            }
            for entry in places.names(directory, MAX_ENTRIES)? {
                if matcher
                    .as_ref()
                    .is_none_or(|matcher| matcher.is_match(&entry))
                {
                    if read.can_be_option && is_first && entry.as_encoded_bytes().starts_with(b"-")
                    {
                        return None;
                    }
                    below.push(directory.join(entry));
                }
            }
        }
        found = below;
        is_first = false;
    }
    Some(found)
}
