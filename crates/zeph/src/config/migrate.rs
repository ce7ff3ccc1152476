//! Rewrites old keys in the text of a configuration file; comments, order and notation are preserved.
//!
//! The table of old keys is that of [`super::old_keys`]. The new text is read again and must have the same
//! values as the old one; otherwise nothing is returned.

use std::path::Path;

use toml_edit::{
    Array, ArrayOfTables, Decor, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value,
};

use super::Config;
use super::error::{ConfigError, ConfigErrors};
use super::layer::{FileLayer, Layer};
use super::old_keys::{
    OLD_KEYS, OLLAMA_TABLE, PATTERNS, PROVIDERS, To, is_old_table, named_pattern, ollama_provider,
};

/// The text of a file, and the text with the current keys; `None` if it has no old key.
///
/// # Errors
/// A file that cannot be read or is invalid; a file whose values would change.
pub(crate) fn migrated_file(
    file: &Path,
    is_project: bool,
) -> Result<Option<(String, String)>, ConfigErrors> {
    let text = super::paths::read(file, is_project).map_err(|error| {
        ConfigError::general(format!("{} cannot be read: {error}", file.display()))
    })?;
    let layer = match is_project {
        true => FileLayer::Project,
        false => FileLayer::User,
    };
    let new = migrated(&text, file, layer)?;
    Ok(new.map(|new| (text, new)))
}

/// The text of a file with the current keys; `None` if it has no old key.
///
/// # Errors
/// The faults of an invalid file; a file whose values would change.
fn migrated(text: &str, file: &Path, layer: FileLayer) -> Result<Option<String>, ConfigErrors> {
    let (before, has_old) = read(text, file, layer)?;
    if !has_old {
        return Ok(None);
    }
    let general = |why: String| {
        let message = format!("{} cannot be migrated: {why}", file.display());
        ConfigErrors::from(ConfigError::general(message).help("replace the old keys by hand"))
    };
    let document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| general(error.message().to_owned()))?;
    let new = Editor { document }.replace_all(&before.layer)?;
    let (after, has_old) = read(&new, file, layer)
        .map_err(|errors| general(format!("the new text is invalid: {errors}")))?;
    match has_old || after.config != before.config {
        true => Err(general("the new text would have other values".to_owned())),
        false => Ok(Some(new)),
    }
}

/// The values of a configuration text.
struct Meaning {
    /// The values before old keys are replaced.
    layer: toml::Table,
    config: Config,
}

/// Reads a text alone; also whether it has old keys.
fn read(text: &str, file: &Path, which: FileLayer) -> Result<(Meaning, bool), ConfigErrors> {
    let mut errors = Vec::new();
    let mut layer = Layer::from_toml(text, file, which, &mut errors);
    layer.replace_ollama(&mut errors);
    ConfigErrors::check(errors)?;
    let invalid = |error: String| ConfigErrors::from(ConfigError::general(error));
    let config = layer.table.try_into();
    let config = config.map_err(|error: toml::de::Error| invalid(error.message().to_owned()))?;
    let raw = toml::from_str(text);
    let meaning = Meaning {
        layer: raw.map_err(|error: toml::de::Error| invalid(error.message().to_owned()))?,
        config,
    };
    Ok((meaning, !layer.old.is_empty()))
}

struct Editor {
    document: DocumentMut,
}

/// A value that was removed, with the comments before it and its table.
struct Removed {
    key: Key,
    item: Item,
    /// The header of its table, if only old keys are in that table.
    header: Option<Header>,
}

/// The place of a table in the file, and the comments before its header.
#[derive(Clone)]
struct Header {
    position: Option<isize>,
    decor: Decor,
}

impl Editor {
    /// Replaces every old key; `values` are the values of the file.
    fn replace_all(mut self, values: &toml::Table) -> Result<String, ConfigErrors> {
        let mut values = values.clone();
        for (key, to) in OLD_KEYS {
            let Some(value) = super::layer::take(&mut values, key) else {
                continue;
            };
            let Some(removed) = self.remove(key) else {
                continue;
            };
            match to {
                To::Key(new) => self.insert(new, removed),
                To::Settings(_, _, convert) => {
                    let settings = convert(&value, &values);
                    let decor = removed.key.leaf_decor().clone();
                    if settings.is_empty() {
                        self.leave_comment(key, &decor, "");
                    }
                    for (number, (new, value)) in settings.into_iter().enumerate() {
                        let mut part = Removed {
                            key: Key::new(new),
                            item: Item::Value(scalar(&value)),
                            header: removed.header.clone(),
                        };
                        if number == 0 {
                            *part.key.leaf_decor_mut() = decor.clone();
                            copy_suffix(&removed.item, &mut part.item);
                        }
                        self.insert(new, part);
                    }
                }
                To::Nothing(_, reason) => {
                    let shown = removed.item.to_string();
                    let name = key.rsplit('.').next().unwrap_or_default();
                    let note = format!("# {name} = {} has no effect: {reason}\n", shown.trim());
                    // A value of several lines does not fit into one comment.
                    let note = match note.trim_end().contains('\n') {
                        true => format!("# {name} has no effect: {reason}\n"),
                        false => note,
                    };
                    self.leave_comment(key, removed.key.leaf_decor(), &note);
                }
                To::Provider => self.insert_provider(removed),
            }
        }
        self.name_patterns();
        self.remove_old_tables();
        Ok(self.document.to_string())
    }

    /// Removes a key.
    fn remove(&mut self, key: &str) -> Option<Removed> {
        let (parent, name) = split(key);
        let table = table_at(self.document.as_table_mut(), parent)?;
        let is_old = parent.is_empty() || is_old_table(parent);
        let found = table.key(name)?.clone();
        let item = table.remove(name)?;
        let header = match &item {
            // The table of Ollama is itself the old table.
            Item::Table(own) => Some(Header::of(own)),
            _ if is_old => item_at(self.document.as_table(), parent)
                .and_then(Item::as_table)
                .filter(|table| !table.is_dotted() && !table.is_implicit())
                .map(Header::of),
            _ => None,
        };
        let key = found;
        Some(Removed { key, item, header })
    }

    /// Sets `new` to a removed value. A new table takes the place of the old one.
    fn insert(&mut self, new: &str, removed: Removed) {
        let (parent, name) = split(new);
        let mut table: &mut Table = self.document.as_table_mut();
        let mut header = removed.header;
        let mut parts = parent.split('.').peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let is_dotted = table.is_dotted();
            let item = table.entry(part).or_insert_with(|| {
                let mut new = Table::new();
                new.set_dotted(is_dotted);
                new.set_implicit(!is_last && !is_dotted);
                if is_last
                    && !is_dotted
                    && let Some(header) = header.take()
                {
                    new.set_position(header.position);
                    *new.decor_mut() = header.decor;
                }
                Item::Table(new)
            });
            // An inline table cannot have tables and comments.
            if let Item::Value(Value::InlineTable(inline)) = item {
                let inline = std::mem::take(inline);
                *item = Item::Table(inline.into_table());
            }
            match item {
                Item::Table(inner) => table = inner,
                _ => return,
            }
        }
        if !table.is_dotted() {
            table.set_implicit(false);
        }
        let mut key = Key::new(name);
        *key.leaf_decor_mut() = removed.key.leaf_decor().clone();
        table.insert_formatted(&key, removed.item);
    }

    /// Adds the provider that the removed table describes after the others.
    fn insert_provider(&mut self, removed: Removed) {
        let mut given = match removed.item {
            Item::Table(table) => table,
            Item::Value(Value::InlineTable(inline)) => inline.into_table(),
            _ => return,
        };
        let mut table = Table::new();
        for (name, value) in &ollama_provider(toml::Table::new()) {
            table.insert(name, Item::Value(scalar(value)));
        }
        let names: Vec<String> = given.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            if let Some((key, item)) = given.remove_entry(&name) {
                table.insert_formatted(&key, item);
            }
        }
        let (parent, name) = split(PROVIDERS);
        let llm = self.document.entry(parent).or_insert_with(|| {
            let mut llm = Table::new();
            llm.set_implicit(true);
            Item::Table(llm)
        });
        if let Item::Value(Value::InlineTable(inline)) = llm {
            let inline = std::mem::take(inline);
            *llm = Item::Table(inline.into_table());
        }
        let Some(llm) = llm.as_table_mut() else {
            return;
        };
        match llm.get_mut(name) {
            Some(Item::ArrayOfTables(list)) => {
                // Without a position it follows the last one.
                if let Some(header) = removed.header {
                    *table.decor_mut() = header.decor;
                }
                list.push(table);
            }
            Some(Item::Value(Value::Array(list))) => list.push(table.into_inline_table()),
            _ => {
                if let Some(header) = removed.header {
                    table.set_position(header.position);
                    *table.decor_mut() = header.decor;
                }
                let mut list = ArrayOfTables::new();
                list.push(table);
                llm.insert(name, Item::ArrayOfTables(list));
            }
        }
    }

    /// Adds names to the plain expressions among the patterns of secrets.
    fn name_patterns(&mut self) {
        let list = item_at_mut(self.document.as_item_mut(), PATTERNS).and_then(Item::as_array_mut);
        let Some(list) = list else {
            return;
        };
        let mut new = Array::new();
        new.set_trailing(list.trailing().clone());
        new.set_trailing_comma(list.trailing_comma());
        *new.decor_mut() = list.decor().clone();
        for (at, value) in list.iter().enumerate() {
            let mut value = value.clone();
            if value.is_str() {
                let decor = value.decor().clone();
                value.decor_mut().clear();
                let mut table = InlineTable::new();
                for (name, text) in &named_pattern(at, toml::Value::String(String::new())) {
                    let text = match name.as_str() {
                        "pattern" => value.clone(),
                        _ => scalar(text),
                    };
                    table.insert(name.as_str(), text);
                }
                *table.decor_mut() = decor;
                value = Value::InlineTable(table);
            }
            new.push_formatted(value);
        }
        *list = new;
    }

    /// Leaves the comments of a removed key, and a note, at its place.
    fn leave_comment(&mut self, key: &str, decor: &Decor, note: &str) {
        let prefix = decor
            .prefix()
            .and_then(|it| it.as_str())
            .unwrap_or_default();
        if note.is_empty() && !prefix.contains('#') {
            return;
        }
        let (parent, _) = split(key);
        let Some(table) = item_at_mut(self.document.as_item_mut(), parent) else {
            return;
        };
        let Some(table) = table.as_table_mut() else {
            return;
        };
        let first = table.iter().find(|(_, item)| item.is_value());
        let first = first.map(|(name, _)| name.to_owned());
        match first.as_deref().and_then(|name| table.key_mut(name)) {
            Some(mut key) => {
                let decor = key.leaf_decor_mut();
                let own = decor
                    .prefix()
                    .and_then(|it| it.as_str())
                    .unwrap_or_default();
                let text = format!("{prefix}{note}{own}");
                decor.set_prefix(text);
            }
            None => {
                let text = format!("\n{}{}", prefix, note.trim_end());
                table.decor_mut().set_suffix(text.trim_end().to_owned());
            }
        }
    }

    /// Removes the tables that only old keys have.
    fn remove_old_tables(&mut self) {
        for (key, _) in OLD_KEYS {
            let (parent, _) = split(key);
            if *key != OLLAMA_TABLE && is_old_table(parent) {
                let (above, name) = split(parent);
                if let Some(table) = table_at(self.document.as_table_mut(), above) {
                    table.remove(name);
                }
            }
        }
    }
}

impl Header {
    fn of(table: &Table) -> Self {
        Self {
            position: table.position(),
            decor: table.decor().clone(),
        }
    }
}

/// The path of the table of a dotted key, and the name in it.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

fn table_at<'a>(root: &'a mut Table, path: &str) -> Option<&'a mut dyn TableLike> {
    let mut table: &mut dyn TableLike = root;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        table = table.get_mut(part)?.as_table_like_mut()?;
    }
    Some(table)
}

fn item_at<'a>(root: &'a Table, path: &str) -> Option<&'a Item> {
    let mut parts = path.split('.');
    let mut item = root.get(parts.next()?)?;
    for part in parts {
        item = item.as_table_like()?.get(part)?;
    }
    Some(item)
}

fn item_at_mut<'a>(root: &'a mut Item, path: &str) -> Option<&'a mut Item> {
    let mut item = root;
    for part in path.split('.') {
        item = item.as_table_like_mut()?.get_mut(part)?;
    }
    Some(item)
}

/// A string or a boolean; conversions produce nothing else.
fn scalar(value: &toml::Value) -> Value {
    match value {
        toml::Value::Boolean(value) => Value::from(*value),
        toml::Value::Integer(value) => Value::from(*value),
        toml::Value::String(value) => Value::from(value.as_str()),
        other => Value::from(other.to_string()),
    }
}

/// Preserves the comment after a value.
fn copy_suffix(from: &Item, to: &mut Item) {
    if let (Some(from), Some(to)) = (from.as_value(), to.as_value_mut()) {
        *to.decor_mut() = from.decor().clone();
    }
}

#[cfg(test)]
mod tests;
