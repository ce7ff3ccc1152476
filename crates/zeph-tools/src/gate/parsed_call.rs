//! The target of a call: its paths, the parts of its command, its URL.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::command::{CommandSubject, ParsedCommandCache};
use super::glob::{HOLE, Text, fold};
use super::path_cache::CachedPathResolver;
use super::path_resolver::{PathResolver, normal};
use crate::call::ToolCall;
use crate::contract::call_targets::{PathRole, ToolTarget};
use crate::def::{Annotations, ToolDef};

/// The target of a call, created once per decision; the disk is accessed only if a rule needs it.
#[derive(Debug)]
pub struct CallSubject<'c> {
    /// The id of the tool.
    pub tool: &'c str,
    /// The nature of the tool.
    pub nature: Annotations,
    /// The arguments after validation against the schema.
    pub params: &'c Value,
    /// The paths that the arguments name.
    pub paths: Vec<SubjectPath>,
    /// The command, if the tool runs one.
    pub command: Option<CommandSubject>,
    /// The URL, if the tool requests one.
    pub url: Option<SubjectUrl>,
    places: CachedPathResolver<'c>,
    arguments: OnceCell<Text>,
}

/// A path that a call names.
#[derive(Debug)]
pub struct SubjectPath {
    /// The given text.
    pub given: String,
    /// The kind of access.
    pub role: PathRole,
    entry: bool,
    tree: bool,
    reads: bool,
    /// The absolute path, from the working directory or from the directory of the command.
    absolute: PathBuf,
    forms: OnceCell<PathForms>,
}

/// The forms of a path that rules are compared with.
#[derive(Debug)]
#[non_exhaustive]
pub struct PathForms {
    /// The real path, with links resolved; `None` if it cannot be determined.
    pub canonical: Option<PathBuf>,
    /// The real path relative to the working directory, if it is inside it.
    pub canonical_relative: Option<String>,
    /// The given path without `.` and `..`, relative to the working directory.
    pub relative: Option<String>,
    /// Whether the real path is inside the sandbox.
    pub inside: bool,
    pub(super) texts: Vec<FormText>,
}

/// A form of a path as a text for rules.
#[derive(Debug)]
pub(super) struct FormText {
    pub(super) text: Text,
    pub(super) relative: bool,
    /// Whether this is the real path, not only the given name.
    pub(super) real: bool,
    /// The text of all contents, if the call includes the contents of the directory.
    pub(super) below: Option<Text>,
}

/// A URL of a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct SubjectUrl {
    /// The given text.
    pub given: String,
    /// The URL of the request; `None` if the text is not a URL.
    pub normal: Option<String>,
    pub(super) texts: Vec<Text>,
    pub(super) normal_text: Option<Text>,
}

/// Returns the target of `call`; its arguments fit the schema of `def`.
#[must_use]
pub fn subject_of<'c>(
    call: &'c ToolCall,
    def: &'c ToolDef,
    places: &'c PathResolver,
) -> CallSubject<'c> {
    subject_after(call, def, places, &ParsedCommandCache::default())
}

/// Returns the target of `call`, with the command from `last` if it is cached there.
#[must_use]
pub(crate) fn subject_after<'c>(
    call: &'c ToolCall,
    def: &'c ToolDef,
    places: &'c PathResolver,
    last: &ParsedCommandCache,
) -> CallSubject<'c> {
    let text = |name: &str| call.params.get(name).and_then(Value::as_str);
    let mut subject = CallSubject {
        tool: &def.id,
        nature: def.annotations,
        params: &call.params,
        paths: Vec::new(),
        command: None,
        url: None,
        places: CachedPathResolver::new(places),
        arguments: OnceCell::new(),
    };
    match def.about {
        ToolTarget::Arguments => {}
        ToolTarget::Url(name) => {
            subject.url = Some(SubjectUrl::new(text(name).unwrap_or_default()))
        }
        ToolTarget::Paths(params) => {
            for param in params {
                let Some(given) = text(param.name).or(param.default) else {
                    continue;
                };
                subject.paths.push(SubjectPath {
                    entry: param.entry,
                    tree: param.tree,
                    reads: param.reads,
                    ..SubjectPath::new(given, param.role, places.cwd().join(given))
                });
            }
        }
        ToolTarget::Command { command, cwd } => {
            let start = match text(cwd) {
                Some(cwd) => places.cwd().join(cwd),
                None => places.cwd().to_owned(),
            };
            let read = last.read(text(command).unwrap_or_default(), start, places.home());
            subject.command = Some(CommandSubject::new(read, text(cwd)));
        }
    }
    subject
}

/// Returns a copy of a call with another URL, or `None` if the tool of `def` does not request a URL.
#[must_use]
pub(crate) fn redirected(call: &ToolCall, def: &ToolDef, url: &str) -> Option<ToolCall> {
    let ToolTarget::Url(name) = def.about else {
        return None;
    };
    let mut call = call.clone();
    call.params
        .as_object_mut()?
        .insert(name.to_owned(), url.into());
    Some(call)
}

impl CallSubject<'_> {
    /// Returns the resolver of its paths.
    #[must_use]
    pub fn places(&self) -> &CachedPathResolver<'_> {
        &self.places
    }

    /// Returns the arguments as canonical JSON, for rules.
    pub(super) fn arguments(&self) -> &Text {
        self.arguments
            .get_or_init(|| Text::of(&canonical_json(self.params)))
    }

    /// Returns the digest that identifies the call: an approval applies to this digest only.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        digest(self.tool, self.params)
    }
}

/// Returns the SHA-256 of the id of the tool and the canonical arguments.
#[must_use]
pub fn digest(tool: &str, params: &Value) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(tool.as_bytes());
    hasher.update([0]);
    hasher.update(canonical_json(params).as_bytes());
    hasher.finalize().into()
}

/// Formats JSON without blanks and with the keys of each object in order.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (number, (key, value)) in entries.into_iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write_canonical(&Value::String(key.clone()), text);
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

impl SubjectPath {
    pub(crate) fn new(given: &str, role: PathRole, absolute: PathBuf) -> Self {
        Self {
            given: given.to_owned(),
            role,
            entry: false,
            tree: false,
            reads: false,
            absolute,
            forms: OnceCell::new(),
        }
    }

    /// Whether a link at the end of the path is itself the target, instead of the target of the link.
    #[must_use]
    pub fn is_entry(&self) -> bool {
        self.entry
    }

    /// Whether the call searches below the path. The rules then limit its results, and not the call.
    #[must_use]
    pub fn is_searched(&self) -> bool {
        self.role == PathRole::Read && self.tree && !self.entry
    }

    /// Whether the call reads the path itself.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.reads || (self.role == PathRole::Read && !self.is_searched())
    }

    /// Returns the absolute path by its text; links are not resolved.
    #[must_use]
    pub fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// Returns the given and the real forms of the path; the first call accesses the disk.
    pub fn forms(&self, places: &CachedPathResolver<'_>) -> &PathForms {
        self.forms.get_or_init(|| self.resolve(places))
    }

    fn resolve(&self, places: &CachedPathResolver<'_>) -> PathForms {
        let named = normal(&self.absolute);
        let leads = places.leads_to(&self.absolute);
        let canonical = if self.entry {
            places.lies_at(&self.absolute)
        } else {
            leads.clone()
        };
        let below = self.tree
            && leads
                .as_deref()
                .is_none_or(|path| places.is_directory(path));
        let mut texts: Vec<FormText> = Vec::with_capacity(2);
        let mut add = |path: &Path, cwd: &Path, real: bool| {
            let relative = relative(path, cwd);
            let absolute = path.to_string_lossy();
            let forms = [(Some(&*absolute), false), (relative.as_deref(), true)];
            for (text, relative) in forms {
                let Some(text) = text else { continue };
                let symbols = Text::of(text);
                match texts
                    .iter_mut()
                    .find(|form| form.text == symbols && form.relative == relative)
                {
                    Some(form) => form.real |= real,
                    None => texts.push(FormText {
                        below: below.then(|| all_below(text)),
                        text: symbols,
                        relative,
                        real,
                    }),
                }
            }
            relative
        };
        let given = add(&named, places.cwd(), false);
        let canonical_relative = canonical
            .as_deref()
            .and_then(|path| add(path, places.real_cwd(), true));
        if let Some(leads) = leads.as_deref().filter(|_| self.entry) {
            add(leads, places.real_cwd(), false);
        }
        // The contents of a directory above the working directory include those of the working directory.
        let above = places.cwd().starts_with(&named)
            || leads
                .as_deref()
                .is_none_or(|path| places.real_cwd().starts_with(path));
        if below && above {
            texts.push(FormText {
                text: vec![HOLE].into(),
                relative: true,
                real: false,
                below: Some(vec![HOLE].into()),
            });
        }
        PathForms {
            inside: canonical
                .as_deref()
                .is_some_and(|path| places.is_inside(path)),
            canonical,
            canonical_relative,
            relative: given,
            texts,
        }
    }
}

fn relative(path: &Path, cwd: &Path) -> Option<String> {
    let rest = path.strip_prefix(cwd).ok()?;
    Some(match rest.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => rest.to_string_lossy().into_owned(),
    })
}

fn all_below(text: &str) -> Text {
    let mut symbols = Vec::new();
    if text != "." {
        fold(text.trim_end_matches('/'), &mut symbols);
        symbols.push(u32::from('/'));
    }
    symbols.push(HOLE);
    Text::from(symbols)
}

impl SubjectUrl {
    /// Returns the scheme, host and port of the request.
    pub(crate) fn host(&self) -> Option<&str> {
        let url = self.normal.as_deref()?;
        let start = url.find("://")? + 3;
        let end = url[start..]
            .find(['/', '?', '#'])
            .map_or(url.len(), |at| start + at);
        Some(&url[..end])
    }

    fn new(given: &str) -> Self {
        let normal = normal_url(given);
        let normal_text = normal.as_deref().map(Text::of);
        let mut texts = vec![Text::of(given.trim())];
        texts.extend(normal_text.clone().filter(|normal| *normal != texts[0]));
        Self {
            given: given.to_owned(),
            normal,
            texts,
            normal_text,
        }
    }
}

#[cfg(feature = "web")]
fn normal_url(given: &str) -> Option<String> {
    // As the web tools request it: without the fragment and without the trailing dot of the host.
    let mut url = zeph_web::Url::parse(given).ok()?;
    url.set_fragment(None);
    let bare = url.host_str().and_then(|host| host.strip_suffix('.'));
    if let Some(bare) = bare.map(str::to_owned) {
        url.set_host(Some(&bare)).ok()?;
    }
    Some(url.into())
}

/// Returns `None`: without the web tools no URL is requested.
#[cfg(not(feature = "web"))]
fn normal_url(_given: &str) -> Option<String> {
    None
}
