//! Access to one setting by its key, for `zeph config get` and `zeph config set`.

use toml::{Table, Value};

use super::Config;
use super::error::{ConfigError, ConfigErrors, nearest};
use super::layer::{Layer, get, get_at, resolve_in, setting_names};
use super::old_keys::{OLD_KEYS, To};
use super::origin::{Origin, Provenance};
use super::schema_shape::{self, join};

/// The value of a setting or of a section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Setting {
    /// It has this value.
    Value(Value),
    /// The key exists, and has no value.
    Unset,
}

/// The value of `key` in a configuration: a setting such as `tools.shell.timeout`, or a section such as `tools.shell`.
///
/// # Errors
/// The key does not exist; the error names the nearest one.
pub(crate) fn setting(config: &Config, key: &str) -> Result<Setting, ConfigErrors> {
    let values = Table::try_from(config)
        .map_err(|error| ConfigError::general(error.to_string().trim().to_owned()))?;
    let path = resolve_in(schema_shape::root(), key).map(|(path, _)| path);
    let found = match &path {
        Some(path) => get_at(&values, path.iter().map(String::as_str)),
        None => get(&values, key),
    };
    match (found, path) {
        (Some(value), _) => Ok(Setting::Value(value.clone())),
        (None, Some(_)) => Ok(Setting::Unset),
        (None, None) => Err(unknown(key).into()),
    }
}

/// A source that takes precedence over the user's file for the value at `path`, or for a part of
/// it, with the key that it sets.
pub(crate) fn stronger_source<'p>(
    provenance: &'p Provenance,
    path: &[String],
    value: &Value,
) -> Option<(String, &'p Origin)> {
    let key = path
        .iter()
        .fold(String::new(), |path, part| join(&path, part));
    stronger_at(provenance, key, value)
}

fn stronger_at<'p>(
    provenance: &'p Provenance,
    key: String,
    value: &Value,
) -> Option<(String, &'p Origin)> {
    let origin = provenance.of(&key);
    match origin {
        Origin::Project(_) | Origin::Environment(_) | Origin::Flag(_) => Some((key, origin)),
        // Tables have no origin, but their values do.
        Origin::Default | Origin::User(_) => value
            .as_table()?
            .iter()
            .find_map(|(name, value)| stronger_at(provenance, join(&key, name), value)),
    }
}

/// The path and the typed value of a setting that has the text `text`: a TOML value, a string, or a list of strings
/// separated by commas.
///
/// # Errors
/// The key does not exist, or the value does not match the schema.
pub(crate) fn typed_setting(key: &str, text: &str) -> Result<(Vec<String>, Value), ConfigErrors> {
    let Some((path, _)) = resolve_in(schema_shape::root(), key) else {
        return Err(unknown(key).into());
    };
    let mut layer = Layer::default();
    if let Err(errors) = layer.set_text(key, text, &Origin::Default) {
        ConfigErrors::check(errors)?;
    }
    let mut value = Value::Table(layer.table);
    for part in &path {
        let Value::Table(mut table) = value else {
            return Err(unknown(key).into());
        };
        value = table.remove(part).ok_or_else(|| unknown(key))?;
    }
    Ok((path, value))
}

fn unknown(key: &str) -> ConfigError {
    let error = ConfigError::general(format!("`{key}` is not a known key"));
    if let Some(new) = new_name(key) {
        return error.help(format!("it is an old name of `{new}`"));
    }
    let names = setting_names();
    let is_section = names
        .iter()
        .any(|name| name.starts_with(&format!("{key}.")));
    match nearest(key, names.iter().map(String::as_str)) {
        _ if is_section => error.help("it is a section: name one of its keys"),
        Some((near, _)) => error.help(format!("the nearest known key is `{near}`")),
        None => error,
    }
}

/// The key that replaced an old key with the same value.
fn new_name(old: &str) -> Option<&'static str> {
    let (_, to) = OLD_KEYS.iter().find(|(key, _)| *key == old)?;
    match to {
        To::Key(new) => Some(new),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-9, CFG-2: values are typed by the schema, and an unknown key names the nearest one.
    #[test]
    fn setting_is_typed_by_the_schema() {
        let typed = |key, text| {
            typed_setting(key, text).map(|(path, value)| (path.join("/"), value.to_string()))
        };
        let ok = |key, text, path: &str, value: &str| {
            assert_eq!(
                typed(key, text).unwrap(),
                (path.to_owned(), value.to_owned())
            );
        };
        ok("tools.shell.timeout", "60", "tools/shell/timeout", "60");
        ok("tools.mode", "plan", "tools/mode", "\"plan\"");
        ok("llm.default", "5", "llm/default", "\"5\"");
        ok("llm.fallback", "a, b", "llm/fallback", "[\"a\", \"b\"]");
        for (key, text, expect) in [
            (
                "tools.shell.timeot",
                "60",
                "the nearest known key is `tools.shell.timeout`",
            ),
            ("tools.shell", "60", "it is a section"),
            (
                "agent.max_tool_retries",
                "2",
                "an old name of `tools.retry.max_attempts`",
            ),
            (
                "tools.shell.timeout",
                "soon",
                "`tools.shell.timeout` must be an integer",
            ),
            ("tools.mode", "fast", "must be one of"),
        ] {
            let error = typed(key, text).unwrap_err().to_string();
            assert!(error.contains(expect), "{key}: {error}");
        }
    }

    /// Proves CLI-9.
    #[test]
    fn setting_has_a_value_or_is_unset() {
        let config = Config::default();
        let value = |key| setting(&config, key);
        assert_eq!(value("llm.default").unwrap(), Setting::Unset);
        assert!(matches!(
            value("tools.mode").unwrap(),
            Setting::Value(Value::String(_))
        ));
        assert!(matches!(
            value("tools.shell").unwrap(),
            Setting::Value(Value::Table(_))
        ));
        let error = value("tols.mode").unwrap_err().to_string();
        assert!(
            error.contains("the nearest known key is `tools.mode`"),
            "{error}"
        );
    }
}
