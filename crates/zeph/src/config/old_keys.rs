//! Keys of earlier configurations: each is read under its old name and converted to the key that replaced it.
//!
//! [`OLD_KEYS`] is the only list. Files, environment variables and flags use it, and so does
//! `zeph config migrate`.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::error::ConfigError;
use super::layer::{Layer, get, resolve_in, take};
use super::origin::Origin;
use super::schema_shape::{self, Field, Shape, join};

/// The key of the providers.
pub(super) const PROVIDERS: &str = "llm.providers";
/// The old table of Ollama, and the name of the provider that replaces it.
pub(super) const OLLAMA_TABLE: &str = "llm.ollama";
const OLLAMA: &str = "ollama";
/// The list of patterns; its items may be plain expressions.
pub(super) const PATTERNS: &str = "tools.filters.security.extra_patterns";

/// The settings that replace an old key with this value; the table is the rest of the layer.
type Convert = fn(&Value, &Table) -> Vec<(&'static str, Value)>;

/// The replacement of an old key.
#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    /// This key, with the same value.
    Key(&'static str),
    /// Settings that depend on the value, with the name of the key that they set.
    Settings(Type, &'static str, Convert),
    /// Nothing, for this reason.
    Nothing(Type, &'static str),
    /// A provider.
    Provider,
}

/// The type of the value of an old key that is not the type of its successor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    Boolean,
    Text,
    Texts,
}

/// Every old key. A key that depends on another old key precedes it.
pub(super) const OLD_KEYS: &[(&str, To)] = &[
    (
        "agent.max_tool_retries",
        To::Key("tools.retry.max_attempts"),
    ),
    (
        "agent.max_retry_duration_secs",
        To::Key("tools.retry.budget_secs"),
    ),
    (
        "agent.parameter_reformat_provider",
        To::Key("tools.retry.parameter_reformat_provider"),
    ),
    (
        "tools.summarize_output",
        To::Key("tools.overflow.summarize"),
    ),
    (
        "tools.filters.test.enabled",
        To::Key("tools.filters.rules.test_summary.enabled"),
    ),
    (
        "tools.filters.test.max_failures",
        To::Key("tools.filters.rules.test_summary.max_failures"),
    ),
    (
        "tools.filters.test.truncate_stack_trace",
        To::Key("tools.filters.rules.test_summary.truncate_stack_trace"),
    ),
    (
        "tools.filters.git.enabled",
        To::Key("tools.filters.rules.git-*.enabled"),
    ),
    (
        "tools.filters.git.max_diff_lines",
        To::Key("tools.filters.rules.git-*.max_diff_lines"),
    ),
    (
        "tools.filters.git.max_log_entries",
        To::Key("tools.filters.rules.git-*.max_commits"),
    ),
    (
        "tools.filters.clippy.enabled",
        To::Key("tools.filters.rules.cargo-clippy.enabled"),
    ),
    (
        "tools.filters.cargo_build.enabled",
        To::Key("tools.filters.rules.cargo-build.enabled"),
    ),
    (
        "tools.filters.dir_listing.enabled",
        To::Key("tools.filters.rules.listing-*.enabled"),
    ),
    (
        "tools.filters.log_dedup.enabled",
        To::Key("tools.filters.rules.log-dedup.enabled"),
    ),
    (
        "tools.filters.security.enabled",
        To::Settings(
            Type::Boolean,
            "tools.filters.security.redact",
            security_enabled,
        ),
    ),
    (
        "tools.shell.allowed_commands",
        To::Nothing(
            Type::Texts,
            "the default blocklist always applies; `[[tools.permissions.bash]]` allows other commands",
        ),
    ),
    (
        "tools.shell.allow_constructs",
        To::Nothing(
            Type::Texts,
            "constructs are judged by the commands that they run; `tools.shell.blocked_constructs` refuses them by name",
        ),
    ),
    (
        "tools.overflow.dir",
        To::Nothing(
            Type::Text,
            "long output is stored in the database (`memory.path`)",
        ),
    ),
    (
        "tools.audit.destination",
        To::Settings(Type::Text, "tools.audit.jsonl", audit_destination),
    ),
    (
        "tools.audit.enabled",
        To::Settings(Type::Boolean, "tools.audit.sqlite", audit_enabled),
    ),
    (OLLAMA_TABLE, To::Provider),
];

/// Old names of values: the key, the old value, and the value that has the same meaning.
const OLD_VALUES: &[(&str, &str)] = &[("type", "anthropic")];

/// An old key that a layer sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OldUse {
    /// The key.
    pub(super) key: String,
    /// The replacement, as shown in the notice.
    pub(super) now: String,
    /// Its place.
    pub(super) origin: Origin,
}

fn security_enabled(value: &Value, layer: &Table) -> Vec<(&'static str, Value)> {
    const REDACT: &str = "tools.filters.security.redact";
    // `enabled = true` does not contradict either value of `redact`.
    let agrees = value.as_bool() == Some(true) && get(layer, REDACT).is_some();
    match agrees {
        true => Vec::new(),
        false => vec![(REDACT, value.clone())],
    }
}

fn audit_destination(value: &Value, layer: &Table) -> Vec<(&'static str, Value)> {
    let on = Value::Boolean(true);
    let is_off = get(layer, "tools.audit.enabled").and_then(Value::as_bool) == Some(false);
    match value.as_str().unwrap_or_default() {
        _ if is_off => Vec::new(),
        "stdout" => vec![("tools.audit.stdout", on)],
        "" | "sqlite" | "database" => vec![("tools.audit.sqlite", on)],
        "file" | "jsonl" => vec![("tools.audit.jsonl", on)],
        _ => vec![
            ("tools.audit.jsonl", on),
            ("tools.audit.path", value.clone()),
        ],
    }
}

fn audit_enabled(value: &Value, layer: &Table) -> Vec<(&'static str, Value)> {
    const SQLITE: &str = "tools.audit.sqlite";
    let agrees = value.as_bool() == Some(true) && get(layer, SQLITE).is_some();
    match agrees {
        true => Vec::new(),
        false => vec![(SQLITE, value.clone())],
    }
}

/// Adds the old keys to the shape of the root.
pub(super) fn add_to(root: &mut schema_shape::Table) {
    let current = root.clone();
    for (key, to) in OLD_KEYS {
        let shape = match to {
            To::Key(new) => match resolve_in(&current, new) {
                Some((_, shape)) => shape.clone(),
                None => Shape::Any,
            },
            To::Settings(kind, ..) | To::Nothing(kind, _) => match kind {
                Type::Boolean => Shape::Boolean,
                Type::Text => Shape::Text,
                Type::Texts => Shape::List(Box::new(Shape::Text)),
            },
            To::Provider => Shape::Table(ollama_table(&current)),
        };
        let mut table = &mut *root;
        let mut parts: Vec<&str> = key.split('.').collect();
        let name = parts.pop().unwrap_or_default();
        for part in parts {
            if table.field(part).is_none() {
                let inner = Shape::Table(schema_shape::Table::default());
                table.fields.push(old_field(part, inner));
            }
            let Some(Shape::Table(inner)) = table.field_mut(part).map(|field| &mut field.shape)
            else {
                return;
            };
            table = inner;
        }
        table.fields.push(old_field(name, shape));
    }
    if let Some(Shape::List(item)) = root.shape_mut(PATTERNS) {
        let table = std::mem::replace(&mut **item, Shape::Any);
        **item = Shape::TextOr(Box::new(table));
    }
    if let Some(Shape::List(item)) = root.shape_mut(PROVIDERS)
        && let Shape::Table(provider) = &mut **item
    {
        for (key, value) in OLD_VALUES {
            if let Some(Shape::Choice(names)) = provider.field_mut(key).map(|it| &mut it.shape) {
                names.push((*value).to_owned());
            }
        }
    }
}

/// The keys of a provider, without those that `[llm.ollama]` implies.
fn ollama_table(root: &schema_shape::Table) -> schema_shape::Table {
    let provider = resolve_in(root, PROVIDERS).and_then(|(_, shape)| shape.section());
    let fields = provider
        .into_iter()
        .flat_map(|(table, _)| table.fields.clone());
    let fields = fields.filter(|field| field.name != "name" && field.name != "type");
    schema_shape::Table {
        fields: fields.collect(),
        ..schema_shape::Table::default()
    }
}

fn old_field(name: &str, shape: Shape) -> Field {
    Field {
        name: name.to_owned(),
        doc: String::new(),
        required: false,
        default: None,
        shape,
        is_old: true,
    }
}

impl Layer {
    /// Replaces the old keys of one layer, except the table of Ollama, by the current ones.
    pub(super) fn replace_old_keys(&mut self, errors: &mut Vec<ConfigError>) {
        for (key, to) in OLD_KEYS {
            if matches!(to, To::Provider) {
                continue;
            }
            let Some(value) = take(&mut self.table, key) else {
                continue;
            };
            let origin = self.provenance.of(key).clone();
            self.provenance.remove(key);
            let (settings, now) = match to {
                To::Key(new) => (vec![(*new, value)], format!("is now `{}`", quoted(new))),
                To::Settings(_, new, convert) => (
                    convert(&value, &self.table),
                    format!("is now `{}`", quoted(new)),
                ),
                To::Nothing(_, reason) => (Vec::new(), format!("has no effect: {reason}")),
                To::Provider => continue,
            };
            for (new, value) in settings {
                self.set_replaced(key, new, value, &origin, errors);
            }
            self.old.push(OldUse {
                key: (*key).to_owned(),
                now,
                origin,
            });
        }
        self.name_patterns();
        remove_old_tables(&mut self.table);
    }

    /// Sets `new` to the value of the old `key`, unless both are set.
    fn set_replaced(
        &mut self,
        key: &str,
        new: &str,
        value: Value,
        origin: &Origin,
        errors: &mut Vec<ConfigError>,
    ) {
        let whole = quoted(new);
        if self.get(new).is_some() {
            let other = self.provenance.of(&whole).clone();
            errors.push(both_set(key, &whole, origin, &other));
            return;
        }
        self.provenance.set(&whole, origin.clone());
        set_value(&mut self.table, new, value);
    }

    /// Adds names to the plain expressions among the patterns of secrets.
    fn name_patterns(&mut self) {
        let Some(Value::Array(items)) = get_mut(&mut self.table, PATTERNS) else {
            return;
        };
        let mut is_old = false;
        for (at, item) in items.iter_mut().enumerate() {
            if let Value::String(pattern) = item {
                let pattern = Value::String(std::mem::take(pattern));
                *item = Value::Table(named_pattern(at, pattern));
                is_old = true;
                let key = format!("{PATTERNS}[{at}]");
                let origin = self.provenance.of(&key).clone();
                for field in ["name", "pattern"] {
                    self.provenance
                        .set(&format!("{key}.{field}"), origin.clone());
                }
            }
        }
        if is_old {
            self.old.push(OldUse {
                key: format!("{PATTERNS} = [\"…\"]"),
                now: format!("is now `[[{PATTERNS}]]` with `name` and `pattern`"),
                origin: self.provenance.of(PATTERNS).clone(),
            });
        }
    }

    /// Replaces the table of Ollama by a provider after the others. It runs on the merged layers, because a
    /// list of a stronger layer replaces the whole list.
    pub(super) fn replace_ollama(&mut self, errors: &mut Vec<ConfigError>) {
        let Some(Value::Table(given)) = take(&mut self.table, OLLAMA_TABLE) else {
            return;
        };
        let keys: Vec<String> = given.keys().map(|key| join(OLLAMA_TABLE, key)).collect();
        let origins: Vec<Origin> = keys
            .iter()
            .map(|key| self.provenance.of(key).clone())
            .collect();
        let origin = origins.first().cloned().unwrap_or(Origin::Default);
        let others = self.get(PROVIDERS).and_then(Value::as_array).cloned();
        let mut providers = others.unwrap_or_default();
        let is_ollama = |it: &Value| it.get("name").and_then(Value::as_str) == Some(OLLAMA);
        if let Some(at) = providers.iter().position(is_ollama) {
            let other = self
                .provenance
                .of(&format!("{PROVIDERS}[{at}].name"))
                .clone();
            let named = format!("{PROVIDERS}` with the name `{OLLAMA}");
            errors.push(both_set(OLLAMA_TABLE, &named, &origin, &other));
            return;
        }
        if providers.is_empty() {
            self.provenance.set(PROVIDERS, origin.clone());
        }
        let item = format!("{PROVIDERS}[{}]", providers.len());
        for field in ["name", "type"] {
            self.provenance
                .set(&format!("{item}.{field}"), origin.clone());
        }
        for ((key, old), origin) in given.keys().zip(&keys).zip(origins) {
            self.provenance.remove(old);
            self.provenance.set(&format!("{item}.{key}"), origin);
        }
        providers.push(Value::Table(ollama_provider(given)));
        set_value(&mut self.table, PROVIDERS, Value::Array(providers));
        self.old.push(OldUse {
            key: OLLAMA_TABLE.to_owned(),
            now: format!("is now `[[{PROVIDERS}]]` with `type = \"{OLLAMA}\"`"),
            origin,
        });
    }
}

/// The table of a pattern without a name.
pub(super) fn named_pattern(at: usize, pattern: Value) -> Table {
    let name = Value::String(format!("pattern_{}", at + 1));
    Table::from_iter([("name".to_owned(), name), ("pattern".to_owned(), pattern)])
}

/// The provider that `[llm.ollama]` describes.
pub(super) fn ollama_provider(given: Table) -> Table {
    let text = || Value::String(OLLAMA.to_owned());
    let implied = [("name".to_owned(), text()), ("type".to_owned(), text())];
    implied.into_iter().chain(given).collect()
}

/// The single notice about old keys; `None` if no layer sets one.
pub(super) fn notice(used: &[OldUse]) -> Option<String> {
    let first = used.first()?;
    let mut text = "the configuration uses old keys:".to_owned();
    for (number, old) in used.iter().enumerate() {
        let separator = if number == 0 { "" } else { ";" };
        let _ = write!(
            text,
            "{separator} `{}` {} ({})",
            old.key, old.now, old.origin
        );
    }
    let has = |is: fn(&Origin) -> bool| used.iter().any(|old| is(&old.origin));
    let user = has(|origin| matches!(origin, Origin::User(_)));
    let project = has(|origin| matches!(origin, Origin::Project(_)));
    let command = match (user, project) {
        (true, _) => "`zeph config migrate` rewrites the file",
        (false, true) => "`zeph config migrate --project` rewrites the file",
        (false, false) => {
            let _ = write!(text, "; use the new name instead of {}", first.origin);
            return Some(text);
        }
    };
    let _ = write!(text, "; {command}");
    Some(text)
}

fn both_set(key: &str, new: &str, origin: &Origin, other: &Origin) -> ConfigError {
    let message = format!("`{key}` is the old name of `{new}`, and both are set");
    let help = match other {
        Origin::Default => format!("remove `{key}`"),
        other => format!("remove `{key}`; the other one is from {other}"),
    };
    ConfigError::new(origin.clone(), message).help(help)
}

/// A dotted key as paths are shown: parts that are not bare are quoted.
pub(super) fn quoted(key: &str) -> String {
    key.split('.')
        .fold(String::new(), |path, part| join(&path, part))
}

/// Removes the tables that only old keys have; they are empty by now.
fn remove_old_tables(table: &mut Table) {
    for (key, _) in OLD_KEYS {
        if let Some((parent, _)) = key.rsplit_once('.')
            && is_old_table(parent)
        {
            take(table, parent);
        }
    }
}

/// Whether this table has only old keys.
pub(super) fn is_old_table(path: &str) -> bool {
    let mut table = schema_shape::root();
    for part in path.split('.') {
        match table.field(part).map(|field| &field.shape) {
            Some(Shape::Table(inner)) => table = inner,
            _ => return true,
        }
    }
    false
}

/// Sets a dotted key in a table of the root.
pub(super) fn set_value(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((name, rest)) => {
            let inner = table
                .entry(name)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                set_value(inner, rest, value);
            }
        }
    }
}

fn get_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    let mut parts = key.split('.');
    let mut value = table.get_mut(parts.next()?)?;
    for part in parts {
        value = value.as_table_mut()?.get_mut(part)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests;
