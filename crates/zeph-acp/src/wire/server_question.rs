//! Questions of MCP servers as `elicitation/create`, and decisions as `session/request_permission`.
//!
//! Only an explicit acceptance with valid values counts. Without the capability of the client, a form is declined, and
//! an address is shown as a permission question.

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormMode, ElicitationMode, ElicitationSchema,
    ElicitationSessionScope, ElicitationUrlMode, PermissionOptionKind, SessionId,
};
use serde_json::{Map, Value, json};
use zeph_tools::hidden::revealed;
use zeph_tools::question::{
    FieldKind, FieldOption, FormField, QuestionRequest, ServerAnswer, ServerQuestion, TextFormat,
};

use super::permission::{Offer, option};
use super::updates::new_id;

/// The way in which a client is asked.
pub(super) enum Request {
    /// As an elicitation.
    Elicitation(Box<CreateElicitationRequest>),
    /// As a permission question with this text.
    Permission(String),
    /// The client cannot show the question.
    NotSupported,
}

impl Request {
    fn elicitation(mode: ElicitationMode, message: String) -> Self {
        Self::Elicitation(Box::new(CreateElicitationRequest::new(mode, message)))
    }
}

/// The request for a question in a session of a client with these capabilities.
pub(super) fn request(
    question: &ServerQuestion,
    client: Option<&ElicitationCapabilities>,
    session: &SessionId,
) -> Request {
    let message = title(question);
    let scope = ElicitationSessionScope::new(session.clone());
    match &question.request {
        QuestionRequest::Form(fields) => {
            let is_shown = client.is_some_and(|it| it.form.is_some());
            match is_shown.then(|| schema(fields)).flatten() {
                Some(schema) => {
                    let mode = ElicitationMode::Form(ElicitationFormMode::new(scope, schema));
                    Request::elicitation(mode, message)
                }
                None => Request::NotSupported,
            }
        }
        QuestionRequest::Url { url } => match client.and_then(|it| it.url.as_ref()) {
            Some(_) => {
                let mode = ElicitationUrlMode::new(scope, new_id(), url);
                Request::elicitation(ElicitationMode::Url(mode), message)
            }
            None => Request::Permission(format!("Open this address: {}", revealed(url))),
        },
        QuestionRequest::Decision { details } => Request::Permission(revealed(details)),
    }
}

/// The server and its message, with invisible characters made visible.
pub(super) fn title(question: &ServerQuestion) -> String {
    format!(
        "The MCP server {} asks: {}",
        revealed(&question.server),
        revealed(&question.message)
    )
}

/// The options of a decision.
pub(super) fn decision_offer() -> Offer<ServerAnswer> {
    use PermissionOptionKind::{AllowOnce, RejectOnce};
    Offer::new(vec![
        option(
            "accept",
            "Accept",
            AllowOnce,
            ServerAnswer::Accept(Map::new()),
        ),
        option("decline", "Decline", RejectOnce, ServerAnswer::Decline),
    ])
}

/// The answer of a response. Values that are not valid for the form decline it.
pub(super) fn answer(
    question: &ServerQuestion,
    response: CreateElicitationResponse,
) -> ServerAnswer {
    let accepted = match response.action {
        ElicitationAction::Accept(accepted) => accepted,
        ElicitationAction::Cancel => return ServerAnswer::Cancel,
        _ => return ServerAnswer::Decline,
    };
    let QuestionRequest::Form(fields) = &question.request else {
        return ServerAnswer::Accept(Map::new());
    };
    let given = accepted.content.unwrap_or_default();
    let mut values = Map::new();
    for field in fields {
        let value = given.get(&field.name);
        match value.and_then(|value| serde_json::to_value(value).ok()) {
            Some(value) if field.check(&value).is_ok() => {
                values.insert(field.name.clone(), value);
            }
            None if !field.is_required => {}
            _ => return ServerAnswer::Decline,
        }
    }
    ServerAnswer::Accept(values)
}

/// The schema of a form; `None` if the protocol cannot express it.
fn schema(fields: &[FormField]) -> Option<ElicitationSchema> {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.clone(), property(field)))
        .collect();
    let required = fields.iter().filter(|field| field.is_required);
    let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    serde_json::from_value(schema)
        .inspect_err(|error| tracing::warn!(%error, "a form cannot be expressed in the protocol"))
        .ok()
}

fn property(field: &FormField) -> Value {
    let mut property = match &field.kind {
        FieldKind::Text {
            min_chars,
            max_chars,
            format,
        } => json!({
            "type": "string",
            "minLength": min_chars,
            "maxLength": max_chars,
            "format": format.map(format_name),
        }),
        FieldKind::Number { min, max } => {
            json!({"type": "number", "minimum": min, "maximum": max})
        }
        FieldKind::Integer { min, max } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        FieldKind::Boolean => json!({"type": "boolean"}),
        FieldKind::Choice(options) => json!({"type": "string", "oneOf": titled(options)}),
        FieldKind::Choices {
            options,
            min_items,
            max_items,
        } => json!({
            "type": "array",
            "items": {"anyOf": titled(options)},
            "minItems": min_items,
            "maxItems": max_items,
        }),
    };
    if let Some(object) = property.as_object_mut() {
        object.retain(|_, value| !value.is_null());
        if let Some(title) = &field.title {
            object.insert("title".to_owned(), json!(revealed(title)));
        }
        if !field.description.is_empty() {
            let description = revealed(&field.description);
            object.insert("description".to_owned(), json!(description));
        }
        if let Some(default) = &field.default {
            object.insert("default".to_owned(), default.clone());
        }
    }
    property
}

fn titled(options: &[FieldOption]) -> Vec<Value> {
    let titled = |option: &FieldOption| {
        let title = option.title.as_ref().unwrap_or(&option.value);
        json!({"const": option.value, "title": revealed(title)})
    };
    options.iter().map(titled).collect()
}

fn format_name(format: TextFormat) -> &'static str {
    match format {
        TextFormat::Email => "email",
        TextFormat::Uri => "uri",
        TextFormat::Date => "date",
        TextFormat::DateTime => "date-time",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> ServerQuestion {
        let field = |name: &str, is_required, kind| FormField {
            name: name.to_owned(),
            title: None,
            description: "The \u{200b}value".to_owned(),
            is_required,
            default: None,
            kind,
        };
        let option = FieldOption {
            value: "s".to_owned(),
            title: Some("Small".to_owned()),
        };
        let text = FieldKind::Text {
            min_chars: Some(2),
            max_chars: None,
            format: None,
        };
        ServerQuestion {
            server: "forge".to_owned(),
            message: "Which branch?".to_owned(),
            request: QuestionRequest::Form(vec![
                field("branch", true, text),
                field("size", false, FieldKind::Choice(vec![option])),
                field(
                    "count",
                    false,
                    FieldKind::Integer {
                        min: Some(1),
                        max: None,
                    },
                ),
            ]),
        }
    }

    fn response(value: Value) -> CreateElicitationResponse {
        serde_json::from_value(value).expect("a response")
    }

    /// Proves MCP-1b for clients of ACP.
    #[test]
    fn form_becomes_an_elicitation_of_the_session() {
        let session = SessionId::new("s1");
        let client = serde_json::from_value(json!({"form": {}})).expect("capabilities");
        let Request::Elicitation(request) = request(&form(), Some(&client), &session) else {
            panic!("no elicitation");
        };
        let request = serde_json::to_value(request).expect("JSON");
        assert_eq!(request["mode"], "form");
        assert_eq!(request["sessionId"], "s1");
        assert_eq!(
            request["message"],
            "The MCP server forge asks: Which branch?"
        );
        let schema = &request["requestedSchema"];
        assert_eq!(schema["required"], json!(["branch"]));
        assert_eq!(schema["properties"]["branch"]["minLength"], 2);
        assert_eq!(
            schema["properties"]["branch"]["description"],
            "The \\u{200b}value"
        );
        assert_eq!(
            schema["properties"]["size"]["oneOf"],
            json!([{"const": "s", "title": "Small"}])
        );
    }

    #[test]
    fn form_without_the_capability_is_not_supported() {
        let session = SessionId::new("s1");
        let none = request(&form(), None, &session);
        assert!(matches!(none, Request::NotSupported));
        let url_only = serde_json::from_value(json!({"url": {}})).expect("capabilities");
        let none = request(&form(), Some(&url_only), &session);
        assert!(matches!(none, Request::NotSupported));
    }

    #[test]
    fn only_an_acceptance_with_valid_values_counts() {
        let check = |given: Value, expect: ServerAnswer| {
            assert_eq!(answer(&form(), response(given.clone())), expect, "{given}");
        };
        let values = |given: Value| given.as_object().cloned().unwrap_or_default();
        let given = json!({"branch": "main", "size": "s", "count": 2});
        check(
            json!({"action": "accept", "content": given}),
            ServerAnswer::Accept(values(given.clone())),
        );
        let extra = json!({"branch": "main", "other": "x"});
        check(
            json!({"action": "accept", "content": extra}),
            ServerAnswer::Accept(values(json!({"branch": "main"}))),
        );
        for invalid in [
            json!({}),
            json!({"branch": "m"}),
            json!({"branch": 1}),
            json!({"branch": "main", "size": "xl"}),
            json!({"branch": "main", "count": 0}),
        ] {
            check(
                json!({"action": "accept", "content": invalid}),
                ServerAnswer::Decline,
            );
        }
        check(json!({"action": "accept"}), ServerAnswer::Decline);
        check(json!({"action": "decline"}), ServerAnswer::Decline);
        check(json!({"action": "cancel"}), ServerAnswer::Cancel);
        check(json!({"action": "later"}), ServerAnswer::Decline);
    }
}
