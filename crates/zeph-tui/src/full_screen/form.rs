//! The form of an MCP server: one field after another.

use crossterm::event::KeyEvent;
use serde_json::{Map, Value};
use zeph_tools::question::FormField;

use super::input::{Field, FieldKey};
use crate::sanitize::visible;
use crate::terminal::{field_description, field_label};

/// A form that is filled in.
#[derive(Debug)]
pub(super) struct Form {
    fields: Vec<FormField>,
    at: usize,
    field: Field,
    values: Map<String, Value>,
    /// The reason why the last value was refused.
    error: Option<String>,
}

/// The result of a key in a form.
#[derive(Debug, PartialEq)]
pub(super) enum FormKey {
    /// Editing continues.
    Edited,
    /// All fields have their values.
    Done(Map<String, Value>),
    /// Escape.
    Cancelled,
}

impl Form {
    /// The form at its first field; the values if it has no field.
    pub(super) fn new(fields: &[FormField]) -> Result<Self, Map<String, Value>> {
        match fields.first() {
            None => Err(Map::new()),
            Some(first) => Ok(Self {
                field: start_of(first),
                fields: fields.to_vec(),
                at: 0,
                values: Map::new(),
                error: None,
            }),
        }
    }

    /// The field that is edited.
    pub(super) fn field(&mut self) -> &mut Field {
        &mut self.field
    }

    /// The label and the text of the field.
    pub(super) fn prompt(&self) -> (String, &Field) {
        let label = self.fields.get(self.at).map(field_label);
        (label.unwrap_or_default(), &self.field)
    }

    /// The description of the field, and the reason why its value was refused. The text is safe.
    pub(super) fn description(&self) -> String {
        let mut text = format!("field {} of {}\n", self.at + 1, self.fields.len());
        if let Some(field) = self.fields.get(self.at) {
            text.push_str(&field_description(field));
        }
        if let Some(error) = &self.error {
            text.push_str(&format!("invalid: {}\n", visible(error)));
        }
        text
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> FormKey {
        match self.field.key(key) {
            FieldKey::Edited => return FormKey::Edited,
            FieldKey::Cancelled => return FormKey::Cancelled,
            FieldKey::Done => {}
        }
        let Some(field) = self.fields.get(self.at) else {
            return FormKey::Cancelled;
        };
        match field.parse(&self.field.text()) {
            Err(error) => {
                self.error = Some(error);
                return FormKey::Edited;
            }
            Ok(value) => {
                if let Some(value) = value {
                    self.values.insert(field.name.clone(), value);
                }
            }
        }
        self.error = None;
        self.at += 1;
        match self.fields.get(self.at) {
            Some(next) => {
                self.field = start_of(next);
                FormKey::Edited
            }
            None => FormKey::Done(std::mem::take(&mut self.values)),
        }
    }
}

fn start_of(field: &FormField) -> Field {
    let default = field.default.as_ref().map(|value| field.text_of(value));
    Field::new(&default.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyCode;
    use serde_json::json;
    use zeph_tools::question::FieldKind;

    use super::*;

    fn field(name: &str, default: Option<Value>) -> FormField {
        FormField {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            is_required: true,
            default,
            kind: FieldKind::Integer {
                min: Some(1),
                max: None,
            },
        }
    }

    /// Proves MCP-1a: each value is checked, and proposed values can be accepted.
    #[test]
    fn fields_are_filled_in_sequence() {
        let fields = [field("a", Some(json!(7))), field("b", None)];
        let mut form = Form::new(&fields).unwrap();
        let enter = || KeyEvent::from(KeyCode::Enter);
        assert_eq!(form.key(enter()), FormKey::Edited);
        assert_eq!(form.prompt().0, "b");
        form.key(KeyEvent::from(KeyCode::Char('0')));
        assert_eq!(form.key(enter()), FormKey::Edited);
        assert!(
            form.description().contains("invalid: "),
            "{}",
            form.description()
        );
        form.key(KeyEvent::from(KeyCode::Backspace));
        form.key(KeyEvent::from(KeyCode::Char('3')));
        let expect = json!({ "a": 7, "b": 3 });
        assert_eq!(
            form.key(enter()),
            FormKey::Done(expect.as_object().unwrap().clone())
        );
        let mut form = Form::new(&fields).unwrap();
        assert_eq!(form.key(KeyEvent::from(KeyCode::Esc)), FormKey::Cancelled);
        assert_eq!(Form::new(&[]).unwrap_err(), Map::new());
    }
}
