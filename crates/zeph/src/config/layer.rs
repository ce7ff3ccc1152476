//! One layer of the configuration: a file, the environment or the flags, read and checked
//! against the schema.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::deserialize::{MAX_ERRORS, Reader};
use super::error::{ConfigError, nearest};
use super::old_keys::OldUse;
use super::origin::{Lines, Origin, Place, Provenance};
use super::schema_shape::{self, Shape, join};

/// Values and their origins.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Layer {
    /// The values, which match the schema.
    pub(crate) table: Table,
    /// The origins of the values.
    pub(crate) provenance: Provenance,
    /// The old keys that were replaced.
    pub(super) old: Vec<OldUse>,
}

/// Which file a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileLayer {
    /// The user's file.
    User,
    /// The project's file.
    Project,
}

impl Layer {
    /// Reads the text of a file. Errors go to `errors`; valid settings are in the layer.
    pub(crate) fn from_toml(
        text: &str,
        file: &Path,
        layer: FileLayer,
        errors: &mut Vec<ConfigError>,
    ) -> Self {
        let file: Arc<Path> = file.into();
        let lines = Lines::new(text);
        let origin = |offset: usize| {
            let (line, column) = lines.position(offset);
            let place = Place {
                file: Arc::clone(&file),
                line,
                column,
            };
            match layer {
                FileLayer::User => Origin::User(place),
                FileLayer::Project => Origin::Project(place),
            }
        };
        let (table, faults) = DeTable::parse_recoverable(text);
        if !faults.is_empty() {
            // Values that follow a fault cannot be judged.
            errors.extend(faults.iter().take(MAX_ERRORS).map(|fault| {
                let at = fault.span().map_or(0, |span| span.start);
                ConfigError::new(origin(at), format!("this is not TOML: {}", fault.message()))
            }));
            return Self::default();
        }
        let mut reader = Reader::new(&origin, errors);
        let table = reader.table(schema_shape::accepted(), "", table.get_ref(), 0);
        let provenance = reader.finish();
        let mut layer = Self {
            table,
            provenance,
            old: Vec::new(),
        };
        layer.replace_old_keys(errors);
        layer
    }

    /// Sets `key` (a path such as `tools.shell.timeout`) to `text`: as a TOML value if it fits the schema, as a
    /// string, or as a comma-separated list of strings.
    ///
    /// # Errors
    /// The key does not exist, or `text` is not a valid value for it.
    pub(crate) fn set_text(
        &mut self,
        key: &str,
        text: &str,
        origin: &Origin,
    ) -> Result<(), Vec<ConfigError>> {
        let fail = |error: ConfigError| vec![error];
        let (path, shape) = resolve(key).map_err(|help| {
            fail(ConfigError::new(origin.clone(), format!("`{key}` is not a known key")).help(help))
        })?;
        let whole = path
            .iter()
            .fold(String::new(), |path, part| join(&path, part));
        let mut errors = Vec::new();
        let mut read = |value: &DeValue<'_>| {
            let origin_of = |_| origin.clone();
            let mut reader = Reader::new(&origin_of, &mut errors);
            let value = reader.value(shape, &whole, value, 0);
            let provenance = reader.finish();
            (value, provenance)
        };
        let parsed = DeValue::parse(text.trim());
        let mut found = match &parsed {
            Ok(value) => read(value.get_ref()),
            Err(_) => (None, Provenance::default()),
        };
        if parsed.is_err() || !errors.is_empty() {
            if let Some(value) = plain(shape, text) {
                errors.clear();
                let mut provenance = Provenance::default();
                provenance.set(&whole, origin.clone());
                found = (Some(value), provenance);
            } else if parsed.is_err() {
                let shown: String = text.chars().take(80).collect();
                errors = fail(ConfigError::new(
                    origin.clone(),
                    format!("`{whole}` must be {}, not {shown:?}", shape.expectation()),
                ));
            }
        }
        let (Some(mut value), true) = (found.0, errors.is_empty()) else {
            return Err(errors);
        };
        for part in path.iter().rev() {
            value = Value::Table(Table::from_iter([(part.clone(), value)]));
        }
        if let Value::Table(table) = value {
            self.merge(Self {
                table,
                provenance: found.1,
                old: Vec::new(),
            });
        }
        Ok(())
    }

    /// Merges a stronger layer into this one: tables are merged, other values are replaced.
    pub(crate) fn merge(&mut self, over: Self) {
        merge(&mut self.table, over.table);
        self.provenance.extend(over.provenance);
        self.old.extend(over.old);
    }

    /// The value of a setting.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        get(&self.table, key)
    }
}

/// The value of a setting in a table of the root.
pub(crate) fn get<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    get_at(table, key.split('.'))
}

/// The value at a path of keys in a table of the root.
pub(super) fn get_at<'a, 'k>(
    table: &'a Table,
    mut path: impl Iterator<Item = &'k str>,
) -> Option<&'a Value> {
    let mut value = table.get(path.next()?)?;
    for part in path {
        value = value.as_table()?.get(part)?;
    }
    Some(value)
}

/// Removes the value of a key from a table of the root.
pub(super) fn take(table: &mut Table, key: &str) -> Option<Value> {
    match key.split_once('.') {
        None => table.remove(key),
        Some((name, rest)) => take(table.get_mut(name)?.as_table_mut()?, rest),
    }
}

fn merge(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The string, or the list of strings, that a text is without being TOML.
fn plain(shape: &Shape, text: &str) -> Option<Value> {
    let allowed = |shape: &Shape, text: &str| match shape {
        Shape::Text => true,
        Shape::Choice(names) => names.iter().any(|name| name == text),
        _ => false,
    };
    match shape {
        Shape::List(item) if !text.trim_start().starts_with('[') => text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| allowed(item, part).then(|| Value::String(part.to_owned())))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array),
        shape => allowed(shape, text).then(|| Value::String(text.to_owned())),
    }
}

/// Finds the shape of a key path; the error has the nearest key.
fn resolve(key: &str) -> Result<(Vec<String>, &'static Shape), String> {
    resolve_in(schema_shape::accepted(), key).ok_or_else(|| {
        match nearest(key, setting_names().iter().map(String::as_str)) {
            Some((near, _)) => format!("the nearest known key is `{near}`"),
            None => String::new(),
        }
    })
}

/// Finds the parts and the shape of a key path below `table`. In a table of free keys all that follows is
/// one key, except the last part if the values are tables that have it. A free key may have the
/// quotes of TOML.
pub(super) fn resolve_in<'a>(
    mut table: &'a schema_shape::Table,
    key: &str,
) -> Option<(Vec<String>, &'a Shape)> {
    let mut path = Vec::new();
    let mut rest = key;
    loop {
        let (name, after) = match rest.split_once('.') {
            Some((name, after)) => (name, Some(after)),
            None => (rest, None),
        };
        let field = table.field(name)?;
        path.push(name.to_owned());
        match (&field.shape, after) {
            (Shape::Table(inner), Some(after)) => {
                table = inner;
                rest = after;
            }
            (Shape::Map(inner), Some(after)) => {
                if let Shape::Table(values) = &**inner
                    && let Some((free, last)) = after.rsplit_once('.')
                    && let Some(field) = values.field(last)
                {
                    path.extend([unquoted(free), last.to_owned()]);
                    return Some((path, &field.shape));
                }
                path.push(unquoted(after));
                return Some((path, inner));
            }
            (Shape::Table(_), None) => return None,
            (shape, None) => return Some((path, shape)),
            _ => return None,
        }
    }
}

/// A key without the quotes that TOML needs around it.
fn unquoted(key: &str) -> String {
    if key.starts_with(['"', '\''])
        && let Ok(value) = DeValue::parse(key)
        && let DeValue::String(text) = value.get_ref()
    {
        return text.to_string();
    }
    key.to_owned()
}

/// The names of all settings.
pub(crate) fn setting_names() -> Vec<String> {
    schema_shape::root()
        .settings()
        .into_iter()
        .map(|(path, _)| path)
        .collect()
}

#[cfg(test)]
mod tests;
