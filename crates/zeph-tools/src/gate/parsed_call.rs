//! What a call is about: its paths, the parts of its command, its URL.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::call_targets::{PathRole, ToolTarget};
use super::command::{CommandSubject, ParsedCommandCache};
use super::glob::{HOLE, Text, fold};
use super::path_cache::CachedPathResolver;
use super::path_resolver::{PathResolver, normal};
use crate::call::ToolCall;
use crate::def::{Annotations, ToolDef};

/// What a call is about. Made once per decision; the disk is asked only when a rule needs it.
#[derive(Debug)]
pub struct CallSubject<'c> {
    /// The tool's own id.
    pub tool: &'c str,
    /// Its nature.
    pub nature: Annotations,
    /// The arguments, as they passed the schema.
    pub params: &'c Value,
    /// The paths that the arguments name.
    pub paths: Vec<SubjectPath>,
    /// The command, of a tool that runs one.
    pub command: Option<CommandSubject>,
    /// The URL, of a tool that asks for one.
    pub url: Option<SubjectUrl>,
    places: CachedPathResolver<'c>,
    arguments: OnceCell<Text>,
}

/// A path that a call names.
#[derive(Debug)]
pub struct SubjectPath {
    /// As it was given.
    pub given: String,
    /// What is done to it.
    pub role: PathRole,
    entry: bool,
    tree: bool,
    /// From the working directory, or where the command works.
    absolute: PathBuf,
    forms: OnceCell<PathForms>,
}

/// The forms of a path that rules are compared with.
#[derive(Debug)]
pub struct PathForms {
    /// Where it really lies; `None` where that cannot be said.
    pub canonical: Option<PathBuf>,
    /// That relative to the working directory, when it lies below it.
    pub canonical_relative: Option<String>,
    /// As given, without `.` and `..`, relative to the working directory.
    pub relative: Option<String>,
    /// Whether it really lies inside the sandbox.
    pub inside: bool,
    pub(super) texts: Vec<FormText>,
}

/// A form as rules see it.
#[derive(Debug)]
pub(super) struct FormText {
    pub(super) text: Text,
    pub(super) relative: bool,
    /// Where it really lies, not only how it is called.
    pub(super) real: bool,
    /// All that lies in it, where the call takes that too.
    pub(super) below: Option<Text>,
}

/// A URL.
#[derive(Debug)]
pub struct SubjectUrl {
    /// As it was given.
    pub given: String,
    /// As it will be asked; `None` when it is none.
    pub normal: Option<String>,
    pub(super) texts: Vec<Text>,
    pub(super) normal_text: Option<Text>,
}

/// What `call`, whose arguments fit the schema of `def`, is about.
#[must_use]
pub fn subject_of<'c>(
    call: &'c ToolCall,
    def: &'c ToolDef,
    places: &'c PathResolver,
) -> CallSubject<'c> {
    subject_after(call, def, places, &ParsedCommandCache::default())
}

/// The same where the command may have been read before.
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

/// A call for a URL (of what `def` says) as if it were for `url`; `None` of one that is not for a URL.
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
    /// Where its paths begin.
    #[must_use]
    pub fn places(&self) -> &CachedPathResolver<'_> {
        &self.places
    }

    /// The arguments as canonical JSON, for rules.
    pub(super) fn arguments(&self) -> &Text {
        self.arguments
            .get_or_init(|| Text::of(&canonical_json(self.params)))
    }

    /// What identifies the call: an approval is given for this, and for nothing else.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        digest(self.tool, self.params)
    }
}

/// SHA-256 of the tool's own id and the canonical arguments.
#[must_use]
pub fn digest(tool: &str, params: &Value) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(tool.as_bytes());
    hasher.update([0]);
    hasher.update(canonical_json(params).as_bytes());
    hasher.finalize().into()
}

/// JSON without blanks, the keys of every object in order.
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
            absolute,
            forms: OnceCell::new(),
        }
    }

    /// Whether a link at its end is meant itself, and not what it leads to.
    #[must_use]
    pub fn is_entry(&self) -> bool {
        self.entry
    }

    /// Where it is looked for: absolute, by its text.
    #[must_use]
    pub fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// What it is called and where it really lies; the first call asks the disk.
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
        // What lies in a directory above the working directory may be in that as well.
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
    /// The host that will be asked, with its scheme and port.
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
    // As the tools ask for it: without a fragment, and without the dot of the root.
    let mut url = url::Url::parse(given).ok()?;
    url.set_fragment(None);
    let bare = url.host_str().and_then(|host| host.strip_suffix('.'));
    if let Some(bare) = bare.map(str::to_owned) {
        url.set_host(Some(&bare)).ok()?;
    }
    Some(url.into())
}

/// Without the web tools a URL is nothing that will be asked for.
#[cfg(not(feature = "web"))]
fn normal_url(_given: &str) -> Option<String> {
    None
}
