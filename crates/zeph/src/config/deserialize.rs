//! Conversion of TOML values according to the schema, with the position or the error of each value.

use std::fmt::Write as _;

use toml::de::{DeString, DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::error::{ConfigError, any_of, nearest};
use super::layer::setting_names;
use super::origin::{Origin, Provenance};
use super::schema_shape::{self, Shape, join};

/// The maximum number of errors that are reported for one layer.
pub(super) const MAX_ERRORS: usize = 100;

/// From this likeness on, a wrong key is taken for a misspelled one.
const LIKE: f64 = 0.6;

/// Checks spanned values against the schema, and turns them into plain ones.
pub(super) struct Reader<'a> {
    origin: &'a dyn Fn(usize) -> Origin,
    provenance: Provenance,
    errors: &'a mut Vec<ConfigError>,
}

impl<'a> Reader<'a> {
    /// Creates a reader. `origin` maps the offset of a value to its position; errors are added to `errors`.
    pub(super) fn new(
        origin: &'a dyn Fn(usize) -> Origin,
        errors: &'a mut Vec<ConfigError>,
    ) -> Self {
        Self {
            origin,
            provenance: Provenance::default(),
            errors,
        }
    }

    /// The positions of the values that were read.
    pub(super) fn finish(self) -> Provenance {
        self.provenance
    }

    /// Reads a table: the file's root, or one beneath `path`.
    pub(super) fn table(
        &mut self,
        shape: &schema_shape::Table,
        path: &str,
        given: &DeTable<'_>,
        at: usize,
    ) -> Table {
        let mut table = Table::new();
        for (key, value) in given {
            match shape.field(key.get_ref()) {
                Some(field) => {
                    let path = join(path, key.get_ref());
                    self.note(&field.shape, &path, key.span().start);
                    if let Some(value) = self.spanned(&field.shape, &path, value) {
                        table.insert(key.get_ref().to_string(), value);
                    }
                }
                None => self.unknown(shape, path, key),
            }
        }
        for field in shape.fields.iter().filter(|field| field.required) {
            if !given.keys().any(|key| key.get_ref() == field.name.as_str()) {
                let help = format!("{} must be {}", field.name, field.shape.expectation());
                self.error(at, format!("`{path}` has no `{}`", field.name), Some(help));
            }
        }
        table
    }

    fn spanned(
        &mut self,
        shape: &Shape,
        path: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Value> {
        self.value(shape, path, value.get_ref(), value.span().start)
    }

    /// Reads the value at the offset `at`; `None` if the schema does not allow it.
    pub(super) fn value(
        &mut self,
        shape: &Shape,
        path: &str,
        value: &DeValue<'_>,
        at: usize,
    ) -> Option<Value> {
        match (shape, value) {
            (Shape::Texts, DeValue::String(text)) => {
                self.note(shape, path, at);
                return Some(Value::Array(vec![Value::String(text.to_string())]));
            }
            (Shape::Texts, DeValue::Array(_)) => {
                let list = Shape::List(Box::new(Shape::Text));
                return self.value(&list, path, value, at);
            }
            (Shape::TextOr(_), DeValue::String(text)) => {
                self.note(shape, path, at);
                return Some(Value::String(text.to_string()));
            }
            (Shape::TextOr(other), _) => return self.value(other, path, value, at),
            (Shape::Table(shape), DeValue::Table(given)) => {
                return Some(Value::Table(self.table(shape, path, given, at)));
            }
            (Shape::Map(shape), DeValue::Table(given)) => {
                let mut table = Table::new();
                for (key, value) in given {
                    let path = join(path, key.get_ref());
                    self.note(shape, &path, key.span().start);
                    if let Some(value) = self.spanned(shape, &path, value) {
                        table.insert(key.get_ref().to_string(), value);
                    }
                }
                return Some(Value::Table(table));
            }
            (Shape::List(shape), DeValue::Array(given)) => {
                self.note(&Shape::Any, path, at);
                let items = given.iter().enumerate();
                let items =
                    items.map(|(n, item)| self.spanned(shape, &format!("{path}[{n}]"), item));
                // One wrong item makes the list wrong, but all wrong items are reported.
                let items: Vec<Option<Value>> = items.collect();
                return items
                    .into_iter()
                    .collect::<Option<Vec<Value>>>()
                    .map(Value::Array);
            }
            _ => {}
        }
        let found = scalar(shape, value);
        if found.is_some() {
            // A key in a file was noted with its own place before.
            if self.provenance.of(path) == &Origin::Default {
                self.note(shape, path, at);
            }
            return found;
        }
        let mut message = format!("`{path}` must be {}, not ", shape.expectation());
        describe(&mut message, value);
        let help = match (shape, value) {
            (Shape::Choice(names), DeValue::String(given)) => {
                nearest(given, names.iter().map(String::as_str))
                    .filter(|(_, likeness)| *likeness >= LIKE)
                    .map(|(name, _)| format!("did you mean {name:?}?"))
            }
            _ => None,
        };
        self.error(at, message, help);
        None
    }

    fn unknown(&mut self, shape: &schema_shape::Table, path: &str, key: &Spanned<DeString<'_>>) {
        let name = key.get_ref();
        let place = match path {
            "" => "the configuration".to_owned(),
            path => format!("[{path}]"),
        };
        let here: Vec<&str> = shape
            .fields
            .iter()
            .filter(|field| !field.is_old || shape.fields.iter().all(|field| field.is_old))
            .map(|field| field.name.as_str())
            .collect();
        let near = nearest(name, here.iter().copied());
        let help = match near {
            Some((near, likeness)) if likeness >= LIKE => format!("did you mean `{near}`?"),
            near => match elsewhere(name) {
                elsewhere if !elsewhere.is_empty() => {
                    let elsewhere = elsewhere.iter().map(String::as_str);
                    format!("there is {}", any_of(elsewhere))
                }
                _ => format!(
                    "the nearest known key is `{}`; its keys are {}",
                    near.map_or("", |(near, _)| near),
                    here.join(", ")
                ),
            },
        };
        let shown = join("", name);
        self.error(
            key.span().start,
            format!("`{shown}` is not a key of {place}"),
            Some(help),
        );
    }

    /// Records the position of a setting. Tables have no origin, but their values do.
    fn note(&mut self, shape: &Shape, path: &str, at: usize) {
        if !matches!(shape, Shape::Table(_) | Shape::Map(_)) && self.errors.len() < MAX_ERRORS {
            self.provenance.set(path, (self.origin)(at));
        }
    }

    fn error(&mut self, at: usize, message: String, help: Option<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(ConfigError {
                origin: (self.origin)(at),
                message,
                help,
            });
        }
    }
}

/// Settings of that name in other tables.
fn elsewhere(name: &str) -> Vec<String> {
    let mut names = setting_names();
    names.retain(|path| path.rsplit('.').next() == Some(name));
    names
}

/// The value, if the shape allows it.
fn scalar(shape: &Shape, value: &DeValue<'_>) -> Option<Value> {
    match (shape, value) {
        (Shape::Boolean, DeValue::Boolean(value)) => Some(Value::Boolean(*value)),
        (Shape::Integer(min, max), DeValue::Integer(value)) => {
            let value = i64::from_str_radix(value.as_str(), value.radix()).ok()?;
            (*min..=*max)
                .contains(&value)
                .then_some(Value::Integer(value))
        }
        (Shape::Number(min, max), DeValue::Integer(_) | DeValue::Float(_)) => {
            let value = match value {
                DeValue::Integer(value) => {
                    i64::from_str_radix(value.as_str(), value.radix()).ok()? as f64
                }
                DeValue::Float(value) => value.as_str().parse().ok()?,
                _ => return None,
            };
            // Without bounds, the target type also accepts or rejects NaN.
            let unbounded = min.is_infinite() && max.is_infinite();
            (unbounded || (*min..=*max).contains(&value)).then_some(Value::Float(value))
        }
        (Shape::Text, DeValue::String(value)) => Some(Value::String(value.to_string())),
        (Shape::Choice(names), DeValue::String(value)) => names
            .iter()
            .any(|name| name == value)
            .then(|| Value::String(value.to_string())),
        (Shape::Any, value) => unchecked(value),
        _ => None,
    }
}

/// A value without a check against the schema.
fn unchecked(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(value) => Value::String(value.to_string()),
        DeValue::Integer(value) => {
            Value::Integer(i64::from_str_radix(value.as_str(), value.radix()).ok()?)
        }
        DeValue::Float(value) => Value::Float(value.as_str().parse().ok()?),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(value) => Value::Datetime(*value),
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| unchecked(item.get_ref()))
                .collect::<Option<_>>()?,
        ),
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
                Some((key.get_ref().to_string(), unchecked(value.get_ref())?))
            };
            Value::Table(table.iter().map(entry).collect::<Option<_>>()?)
        }
    })
}

/// Describes a value, as in `the string "x"`. Long strings are not repeated: a misplaced value may be a secret.
fn describe(message: &mut String, value: &DeValue<'_>) {
    let _ = match value {
        DeValue::String(text) if text.chars().count() <= 16 => write!(message, "{text:?}"),
        DeValue::String(_) => write!(message, "this string"),
        DeValue::Integer(number) => write!(message, "{number}"),
        DeValue::Float(number) => write!(message, "{number}"),
        DeValue::Boolean(value) => write!(message, "{value}"),
        DeValue::Datetime(_) => write!(message, "a date"),
        DeValue::Array(_) => write!(message, "a list"),
        DeValue::Table(_) => write!(message, "a table"),
    };
}
