//! Questions of an MCP server to the user, and the port that asks them during a call.
//!
//! A question is a form, an address to open, or a decision about a text. The texts come from the server: a channel shows
//! them with invisible characters made visible ([`super::hidden::revealed`]).

use async_trait::async_trait;
use serde_json::{Map, Value, json};

/// A question of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerQuestion {
    /// The name of the server in the configuration.
    pub server: String,
    /// The server's message, or a description of the decision.
    pub message: String,
    /// The requested input.
    pub request: QuestionRequest,
}

/// The input that a server requests.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionRequest {
    /// Values for these fields, in this order.
    Form(Vec<FormField>),
    /// That the user opens this address in a browser. The channel shows the complete address before the user accepts.
    Url {
        /// The address.
        url: String,
    },
    /// A decision: accept or decline.
    Decision {
        /// The complete text that the decision is about.
        details: String,
    },
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// The key of its value.
    pub name: String,
    /// The title; `None` if the server sends none.
    pub title: Option<String>,
    /// The description; empty if the server sends none.
    pub description: String,
    /// Whether it must have a value.
    pub is_required: bool,
    /// The proposed value.
    pub default: Option<Value>,
    /// The type of the value.
    pub kind: FieldKind,
}

/// The type of a field's value.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// A string.
    Text {
        /// The minimum number of characters.
        min_chars: Option<u32>,
        /// The maximum number of characters.
        max_chars: Option<u32>,
        /// The format.
        format: Option<TextFormat>,
    },
    /// A number.
    Number {
        /// The minimum.
        min: Option<f64>,
        /// The maximum.
        max: Option<f64>,
    },
    /// A whole number.
    Integer {
        /// The minimum.
        min: Option<i64>,
        /// The maximum.
        max: Option<i64>,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these strings.
    Choice(Vec<FieldOption>),
    /// Several of these strings, as an array.
    Choices {
        /// The possible values.
        options: Vec<FieldOption>,
        /// The minimum number of values.
        min_items: Option<u64>,
        /// The maximum number of values.
        max_items: Option<u64>,
    },
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// An e-mail address.
    Email,
    /// An address with a scheme.
    Uri,
    /// A date, `2026-07-28`.
    Date,
    /// A date with a time and an offset, `2026-07-28T09:30:00Z`.
    DateTime,
}

/// A possible value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldOption {
    /// The value.
    pub value: String,
    /// The title; `None` if the server sends none.
    pub title: Option<String>,
}

/// The response to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerAnswer {
    /// The user accepts. Only a form has values.
    Accept(Map<String, Value>),
    /// The user declines, or no user can answer.
    Decline,
    /// The user closed the question without a decision, or the turn was cancelled.
    Cancel,
}

/// Asks the user questions of a server while a call runs.
#[async_trait]
pub trait QuestionPort: Send + Sync {
    /// Asks the user.
    async fn ask(&self, question: &ServerQuestion) -> ServerAnswer;

    /// Requests a response of the session's model, after the user agreed.
    ///
    /// # Errors
    /// The user declined, or the model failed.
    async fn sample(&self, request: &SamplingRequest) -> Result<SamplingResponse, String>;
}

/// A server's request for a response of the session's model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingRequest {
    /// The name of the server in the configuration.
    pub server: String,
    /// The system prompt that the server proposes.
    pub system: Option<String>,
    /// The messages; the last one is of the user.
    pub messages: Vec<SamplingMessage>,
    /// The most tokens of the response.
    pub max_tokens: u32,
}

/// A message of a [`SamplingRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingMessage {
    /// Whether it has the role of the user, not of the model.
    pub is_user: bool,
    /// The text.
    pub text: String,
}

/// The response of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingResponse {
    /// The model.
    pub model: String,
    /// The text.
    pub text: String,
    /// Whether the limit of tokens cut it off.
    pub is_cut: bool,
}

impl FormField {
    /// Parses `text` to a value; `None` if the text is empty and the field is optional. Options are named by value,
    /// title or number (from 1); several are separated by commas.
    ///
    /// # Errors
    /// The expected form of the text.
    pub fn parse(&self, text: &str) -> Result<Option<Value>, String> {
        let text = text.trim();
        if text.is_empty() {
            return match self.is_required {
                true => Err("a value is required".to_owned()),
                false => Ok(None),
            };
        }
        let value = match &self.kind {
            FieldKind::Text { .. } => json!(text),
            FieldKind::Number { .. } => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => json!(number),
                _ => return Err("a number is required".to_owned()),
            },
            FieldKind::Integer { .. } => match text.parse::<i64>() {
                Ok(number) => json!(number),
                Err(_) => return Err("a whole number is required".to_owned()),
            },
            FieldKind::Boolean => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return Err("yes or no is required".to_owned()),
            },
            FieldKind::Choice(options) => json!(chosen(options, text)?),
            FieldKind::Choices { options, .. } => {
                let names = text.split(',').map(str::trim);
                let names = names.filter(|name| !name.is_empty());
                let values = names.map(|name| chosen(options, name));
                json!(values.collect::<Result<Vec<_>, _>>()?)
            }
        };
        self.check(&value)?;
        Ok(Some(value))
    }

    /// Formats a value as the text that [`FormField::parse`] parses to it, unless a chosen option contains a comma.
    #[must_use]
    pub fn text_of(&self, value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            Value::Array(items) => {
                let items = items.iter().filter_map(Value::as_str);
                items.collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        }
    }

    /// Checks a value against the type and the limits of the field.
    ///
    /// # Errors
    /// The expected form of the value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match &self.kind {
            FieldKind::Text {
                min_chars,
                max_chars,
                format,
            } => {
                let text = value.as_str().ok_or("a text is required")?;
                let chars = text.chars().count();
                if let Some(min) = min_chars.filter(|min| chars < *min as usize) {
                    return Err(format!("at least {min} characters are required"));
                }
                if let Some(max) = max_chars.filter(|max| chars > *max as usize) {
                    return Err(format!("at most {max} characters are allowed"));
                }
                format.map_or(Ok(()), |format| format.check(text))
            }
            FieldKind::Number { min, max } => {
                let number = value.as_f64().ok_or("a number is required")?;
                within(number, *min, *max)
            }
            FieldKind::Integer { min, max } => {
                let number = value.as_i64().ok_or("a whole number is required")?;
                within(number, *min, *max)
            }
            FieldKind::Boolean => value
                .as_bool()
                .map(|_| ())
                .ok_or_else(|| "yes or no is required".to_owned()),
            FieldKind::Choice(options) => {
                let name = value.as_str().ok_or("one of the options is required")?;
                offered(options, name)
            }
            FieldKind::Choices {
                options,
                min_items,
                max_items,
            } => {
                let items = value.as_array().ok_or("a list of options is required")?;
                for item in items {
                    offered(options, item.as_str().unwrap_or_default())?;
                }
                let count = items.len() as u64;
                if let Some(min) = min_items.filter(|min| count < *min) {
                    return Err(format!("at least {min} options are required"));
                }
                match max_items.filter(|max| count > *max) {
                    Some(max) => Err(format!("at most {max} options are allowed")),
                    None => Ok(()),
                }
            }
        }
    }
}

impl TextFormat {
    fn check(self, text: &str) -> Result<(), String> {
        let (fits, expected) = match self {
            Self::Email => {
                let parts = text.split_once('@');
                let fits = parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
                (
                    fits && !text.contains(char::is_whitespace),
                    "an e-mail address is required",
                )
            }
            Self::Uri => {
                let scheme = text.split_once(':').map(|(scheme, _)| scheme);
                let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
                let is_scheme = |scheme: &str| {
                    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                        && scheme.chars().all(fits)
                };
                (
                    scheme.is_some_and(is_scheme) && !text.contains(char::is_whitespace),
                    "an address with a scheme is required, such as https://example.org",
                )
            }
            Self::Date => (
                text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
                "a date is required, such as 2026-07-28",
            ),
            Self::DateTime => (
                text.parse::<jiff::Timestamp>().is_ok(),
                "a time with an offset is required, such as 2026-07-28T09:30:00Z",
            ),
        };
        match fits {
            true => Ok(()),
            false => Err(expected.to_owned()),
        }
    }
}

/// Whether a number is within its limits.
fn within<N: PartialOrd + std::fmt::Display>(
    number: N,
    min: Option<N>,
    max: Option<N>,
) -> Result<(), String> {
    match (min, max) {
        (Some(min), _) if number < min => Err(format!("the minimum is {min}")),
        (_, Some(max)) if number > max => Err(format!("the maximum is {max}")),
        _ => Ok(()),
    }
}

/// The value of the option that `name` names: by its value, its title, or its number.
fn chosen<'o>(options: &'o [FieldOption], name: &str) -> Result<&'o str, String> {
    let by_value = options.iter().find(|option| option.value == name);
    let by_title = || {
        let title = |option: &&FieldOption| option.title.as_deref() == Some(name);
        options.iter().find(title)
    };
    let by_number = || options.get(name.parse::<usize>().ok()?.checked_sub(1)?);
    let found = by_value.or_else(by_title).or_else(by_number);
    found
        .map(|option| option.value.as_str())
        .ok_or_else(|| format!("{name:?} is not one of the options"))
}

fn offered(options: &[FieldOption], value: &str) -> Result<(), String> {
    match options.iter().any(|option| option.value == value) {
        true => Ok(()),
        false => Err(format!("{value:?} is not one of the options")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: FieldKind) -> FormField {
        FormField {
            name: "f".to_owned(),
            title: None,
            description: String::new(),
            is_required: false,
            default: None,
            kind,
        }
    }

    fn options() -> Vec<FieldOption> {
        let option = |value: &str, title: Option<&str>| FieldOption {
            value: value.to_owned(),
            title: title.map(str::to_owned),
        };
        vec![option("r", Some("Red")), option("g", None)]
    }

    /// Proves MCP-1b: the text that the user types becomes a value of the field's type, or a reason.
    #[test]
    fn typed_text_is_converted_to_a_checked_value() {
        let text = |format| FieldKind::Text {
            min_chars: Some(2),
            max_chars: Some(40),
            format,
        };
        let choices = || FieldKind::Choices {
            options: options(),
            min_items: Some(1),
            max_items: Some(1),
        };
        let integer = || FieldKind::Integer {
            min: Some(1),
            max: Some(9),
        };
        let number = || FieldKind::Number {
            min: None,
            max: Some(2.5),
        };
        let check = |kind: FieldKind, typed: &str, expect: Result<Value, &str>| {
            let found = field(kind).parse(typed);
            match expect {
                Ok(value) => assert_eq!(found, Ok(Some(value)), "{typed}"),
                Err(part) => assert!(found.clone().unwrap_err().contains(part), "{found:?}"),
            }
        };
        check(text(None), " ab ", Ok(json!("ab")));
        check(text(None), "a", Err("at least 2"));
        check(text(None), &"a".repeat(41), Err("at most 40"));
        check(
            text(Some(TextFormat::Email)),
            "a@b.org",
            Ok(json!("a@b.org")),
        );
        check(text(Some(TextFormat::Email)), "a b@c", Err("e-mail"));
        check(text(Some(TextFormat::Email)), "@c", Err("e-mail"));
        check(
            text(Some(TextFormat::Uri)),
            "https://a",
            Ok(json!("https://a")),
        );
        check(text(Some(TextFormat::Uri)), "no scheme", Err("scheme"));
        check(
            text(Some(TextFormat::Date)),
            "2026-02-28",
            Ok(json!("2026-02-28")),
        );
        check(text(Some(TextFormat::Date)), "2026-02-30", Err("a date"));
        let time = "2026-07-28T09:30:00+02:00";
        check(text(Some(TextFormat::DateTime)), time, Ok(json!(time)));
        check(
            text(Some(TextFormat::DateTime)),
            "2026-07-28",
            Err("a time"),
        );
        check(integer(), "9", Ok(json!(9)));
        check(integer(), "10", Err("the maximum is 9"));
        check(integer(), "0", Err("the minimum is 1"));
        check(integer(), "1.5", Err("whole number"));
        check(number(), "-2.5", Ok(json!(-2.5)));
        check(number(), "2.6", Err("the maximum is 2.5"));
        check(number(), "inf", Err("a number"));
        check(FieldKind::Boolean, "Yes", Ok(json!(true)));
        check(FieldKind::Boolean, "false", Ok(json!(false)));
        check(FieldKind::Boolean, "maybe", Err("yes or no"));
        for name in ["r", "Red", "1"] {
            check(FieldKind::Choice(options()), name, Ok(json!("r")));
        }
        check(FieldKind::Choice(options()), "0", Err("not one of"));
        check(FieldKind::Choice(options()), "3", Err("not one of"));
        check(choices(), "2", Ok(json!(["g"])));
        check(choices(), "r, g", Err("at most 1"));
        check(choices(), ",", Err("at least 1"));
    }

    /// Proves MCP-1b.
    #[test]
    fn optional_field_can_be_empty() {
        let optional = field(FieldKind::Boolean);
        assert_eq!(optional.parse("  "), Ok(None));
        let required = FormField {
            is_required: true,
            ..optional
        };
        assert!(required.parse("").is_err());
        let check = |value: Value, expect: &str| assert_eq!(required.text_of(&value), expect);
        check(json!("x"), "x");
        check(json!(true), "yes");
        check(json!(false), "no");
        check(json!(3), "3");
        check(json!(["a", "b"]), "a, b");
    }

    /// Proves MCP-1b: the text of a proposed value is read as this value.
    #[test]
    fn text_of_a_value_is_read_as_the_value() {
        let check = |kind: FieldKind, value: Value| {
            let field = field(kind);
            assert_eq!(field.parse(&field.text_of(&value)), Ok(Some(value)));
        };
        check(FieldKind::Boolean, json!(true));
        let (min, max) = (None, None);
        check(FieldKind::Integer { min, max }, json!(7));
        let (min, max) = (None, None);
        check(FieldKind::Number { min, max }, json!(-2.5));
        check(FieldKind::Choice(options()), json!("r"));
        let all = FieldKind::Choices {
            options: options(),
            min_items: None,
            max_items: None,
        };
        check(all, json!(["r", "g"]));
    }
}
