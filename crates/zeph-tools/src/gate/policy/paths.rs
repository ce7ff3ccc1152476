//! The paths of a call, for the rules of the policy.

use serde_json::Value;

use crate::contract::call_targets::PathRole;
use crate::def::Risk;
use crate::gate::parsed_call::{CallSubject, SubjectPath};
use crate::gate::path_resolver::PathResolver;

/// A path that a call names.
#[derive(Debug)]
pub(crate) struct ReferencedPath {
    /// The path.
    pub(crate) path: SubjectPath,
    /// Whether it is certainly a path; other parts of a word may be paths, and count for deny rules.
    pub(crate) certain: bool,
}

/// All paths that a call names.
#[derive(Debug, Default)]
pub(crate) struct ReferencedPaths {
    /// The known paths.
    pub(crate) paths: Vec<ReferencedPath>,
    /// A part that may be any path.
    pub(crate) unknown: Option<String>,
    /// A shell pattern that matches known files now and may match others when it runs.
    pub(crate) pattern: Option<String>,
}

/// Returns the paths of a call.
pub(super) fn of(subject: &CallSubject<'_>) -> ReferencedPaths {
    let places = subject.places();
    let mut mentions = match &subject.command {
        Some(command) => command_paths(subject, command),
        None => ReferencedPaths::default(),
    };
    let nature = &subject.nature;
    let touches_files = nature.open_world || nature.risk != Risk::Safe;
    let is_told = subject.command.is_some() || subject.url.is_some() || !subject.paths.is_empty();
    if !is_told && touches_files {
        // The tool does not declare which of its arguments are paths.
        strings(subject.params, &mut |text| {
            for found in in_text(text, places) {
                mentions.paths.push(ReferencedPath {
                    path: SubjectPath::new(&found, PathRole::Write, places.cwd().join(&found)),
                    certain: true,
                });
            }
        });
    }
    mentions
}

/// Calls `each` for every string in a value, except keys.
pub(super) fn strings<'v>(value: &'v Value, each: &mut dyn FnMut(&'v str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, each)),
        _ => {}
    }
}

#[cfg(feature = "shell")]
fn command_paths(
    subject: &CallSubject<'_>,
    command: &crate::gate::CommandSubject,
) -> ReferencedPaths {
    let mut mentions = crate::gate::command::referenced_paths::read(command, subject.places());
    if let Some(cwd) = &command.cwd {
        mentions.paths.push(ReferencedPath {
            path: SubjectPath::new(cwd, PathRole::Read, command.start.clone()),
            certain: true,
        });
    }
    mentions
}

#[cfg(not(feature = "shell"))]
fn command_paths(_: &CallSubject<'_>, _: &crate::gate::CommandSubject) -> ReferencedPaths {
    ReferencedPaths {
        unknown: Some("the paths in the command".to_owned()),
        ..ReferencedPaths::default()
    }
}

#[cfg(feature = "shell")]
fn in_text(text: &str, places: &PathResolver) -> Vec<String> {
    let mut found = crate::provenance::extract_paths(text);
    let whole = text.trim();
    let is_path = !whole.is_empty()
        && whole.len() < 4096
        && !found.iter().any(|path| path == whole)
        && places.is_there(&places.cwd().join(whole));
    if is_path {
        found.push(whole.to_owned());
    }
    for path in &mut found {
        if let (Some(rest), Some(home)) = (path.strip_prefix("~/"), places.home()) {
            *path = home.join(rest).to_string_lossy().into_owned();
        }
    }
    found
}

/// Returns the whole text: without the shell feature, paths are not searched in texts, and any text may be a
/// path.
#[cfg(not(feature = "shell"))]
fn in_text(text: &str, _places: &PathResolver) -> Vec<String> {
    vec![text.to_owned()]
}
