//! An argument that does not fit its schema: the JSON pointer, the expected value, the received one.

use std::fmt::Display;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::contract::json_pointer::{at, below};
use crate::params::describe;

/// Alternatives of `anyOf` and `oneOf` that a message lists.
const MAX_ALTERNATIVES: usize = 4;
/// Levels of alternatives within alternatives that a message lists.
const MAX_NESTED: usize = 3;
/// Characters of a value that the schema expects.
const MAX_EXPECTED: usize = 200;

/// One argument that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The JSON pointer of the argument.
    pub(crate) pointer: String,
    /// Whether its JSON type is wrong.
    pub(crate) wrong_type: bool,
    /// The sentence for the model.
    pub(crate) message: String,
    /// Pointers of arguments whose type is wrong in an alternative.
    pub(super) alternatives: Vec<String>,
}

impl Fault {
    pub(super) fn new(error: &ValidationError<'_>) -> Self {
        let pointer = error.instance_path().as_str().to_owned();
        let mut alternatives = Vec::new();
        let wrong_type = match error.kind() {
            Kind::Type { .. } => true,
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                collect(context, &mut alternatives, 0);
                let of_value = |error: &ValidationError<'_>| {
                    matches!(error.kind(), Kind::Type { .. })
                        && error.instance_path().as_str() == pointer
                };
                let mut branches = context.iter();
                !context.is_empty() && branches.all(|errors| errors.iter().any(of_value))
            }
            _ => false,
        };
        Self {
            message: message(error, 0),
            pointer,
            wrong_type,
            alternatives,
        }
    }

    pub(super) fn too_deep(max_depth: usize) -> Self {
        Self {
            pointer: String::new(),
            wrong_type: false,
            message: format!(
                "the arguments have more than {max_depth} levels, which cannot be checked against \
                 this schema"
            ),
            alternatives: Vec::new(),
        }
    }
}

/// The pointers of wrong types in the alternatives of an error.
fn collect(context: &[Vec<ValidationError<'static>>], found: &mut Vec<String>, nested: usize) {
    for error in context.iter().flatten() {
        match error.kind() {
            Kind::Type { .. } => {
                let pointer = error.instance_path().as_str().to_owned();
                if !found.contains(&pointer) {
                    found.push(pointer);
                }
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } if nested < MAX_NESTED => {
                collect(context, found, nested + 1);
            }
            _ => {}
        }
    }
}

/// The expected value and the received one, in a sentence.
fn message(error: &ValidationError<'_>, nested: usize) -> String {
    let pointer = error.instance_path().as_str();
    let value = error.instance().as_ref();
    let place = at(pointer);
    let expects = |expected: String| format!("{place} expects {expected}, got {}", describe(value));
    let length = |bound: &str, limit: u64, count: usize| {
        format!("{place} expects a length of at {bound} {limit}, got {count}")
    };
    let chars = value.as_str().map_or(0, |text| text.chars().count());
    let items = value.as_array().map_or(0, Vec::len);
    let fields = value.as_object().map_or(0, serde_json::Map::len);
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("{} is missing", at(&below(pointer, name)))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names = unexpected.iter().map(|name| at(&below(pointer, name)));
            format!(
                "{} is not a known field",
                names.collect::<Vec<_>>().join(", ")
            )
        }
        Kind::Type { kind } => expects(types(kind)),
        Kind::Enum { options } => expects(format!("one of {}", listed(options))),
        Kind::Constant { expected_value } => expects(short(expected_value)),
        Kind::Minimum { limit } => expects(format!("at least {limit}")),
        Kind::Maximum { limit } => expects(format!("at most {limit}")),
        Kind::ExclusiveMinimum { limit } => expects(format!("more than {limit}")),
        Kind::ExclusiveMaximum { limit } => expects(format!("less than {limit}")),
        Kind::MultipleOf { multiple_of } => expects(format!("a multiple of {multiple_of}")),
        Kind::MinLength { limit } => length("least", *limit, chars),
        Kind::MaxLength { limit } => length("most", *limit, chars),
        Kind::MinItems { limit } => length("least", *limit, items),
        Kind::MaxItems { limit } => length("most", *limit, items),
        Kind::MinProperties { limit } => length("least", *limit, fields),
        Kind::MaxProperties { limit } => length("most", *limit, fields),
        Kind::Pattern { pattern } => expects(format!(
            "a string that matches the pattern {}",
            short(pattern)
        )),
        Kind::Format { format } => expects(format!("the format {}", short(format))),
        Kind::UniqueItems => format!("{place} expects items that differ from each other"),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } if nested < MAX_NESTED => {
            let branches = context.iter().filter_map(|errors| errors.first());
            let mut told: Vec<String> = Vec::new();
            for branch in branches.take(MAX_ALTERNATIVES) {
                let branch = message(branch, nested + 1);
                if !told.contains(&branch) {
                    told.push(branch);
                }
            }
            match told.is_empty() {
                true => expects("one of several schemas".to_owned()),
                false => format!(
                    "{place} matches none of its schemas: {}",
                    told.join(", or ")
                ),
            }
        }
        Kind::OneOfMultipleValid { .. } => {
            format!("{place} must match exactly one of its schemas, and matches several")
        }
        Kind::Not { .. } | Kind::FalseSchema => {
            format!(
                "{place} has a value that is not allowed: {}",
                describe(value)
            )
        }
        Kind::PropertyNames { error } => {
            format!(
                "{place} has an invalid field name: {}",
                message(error, nested + 1)
            )
        }
        kind => expects(format!("a value that matches `{}`", kind.keyword())),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => {
            let kinds = kinds.iter().map(|kind| kind.to_string());
            kinds.collect::<Vec<_>>().join(" or ")
        }
    }
}

fn listed(options: &Value) -> String {
    match options {
        Value::Array(options) => {
            let options: Vec<String> = options.iter().map(Value::to_string).collect();
            short(options.join(", "))
        }
        other => short(other),
    }
}

/// The text of a value, cut if it is long.
fn short(value: impl Display) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_EXPECTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
