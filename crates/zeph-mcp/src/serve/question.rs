//! The question about a call as an elicitation: its form, and the decision in the response. Pure.

use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
};
use serde_json::{Value, json};

use super::host::{CallDecision, CallQuestion};

/// The field of the form.
const FIELD: &str = "decision";

/// Whether a client shows forms to its user. A client that names no kind of elicitation shows forms.
pub(super) fn is_shown_by(client: Option<&ClientCapabilities>) -> bool {
    let elicitation = client.and_then(|client| client.elicitation.as_ref());
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// The form of a question; `None` if the schema of the form is invalid, which is a defect.
pub(super) fn form(question: &CallQuestion) -> Option<ElicitRequestParams> {
    let mut message = question.text.clone();
    let mut decisions = vec!["once"];
    if let Some(session) = &question.session {
        decisions.push("session");
        message.push_str("\n\"session\" allows, until the connection ends:\n");
        message.push_str(session);
    }
    decisions.push("reject");
    let schema = json!({
        "type": "object",
        "properties": {
            FIELD: {
                "type": "string",
                "title": "Decision",
                "description": "Whether the call may run",
                "enum": decisions,
            },
        },
        "required": [FIELD],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    })
}

/// The decision in a response. Only an accepted form with an offered decision approves.
pub(super) fn decision(question: &CallQuestion, response: &ElicitResult) -> CallDecision {
    let reject = |reason: &str| CallDecision::Reject(reason.to_owned());
    match response.action {
        ElicitationAction::Accept => {}
        ElicitationAction::Decline => return reject("the user declined"),
        _ => return reject("the user dismissed the question"),
    }
    let decision = response.content.as_ref().and_then(|form| form.get(FIELD));
    match decision.and_then(Value::as_str) {
        Some("once") => CallDecision::Once,
        Some("session") if question.session.is_some() => CallDecision::Session,
        Some("reject") => reject("the user rejected the call"),
        _ => reject("the form has no valid decision"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(session: Option<&str>) -> CallQuestion {
        CallQuestion {
            text: "May bash run?".to_owned(),
            session: session.map(str::to_owned),
            ..CallQuestion::default()
        }
    }

    /// Proves MCP-10: only an accepted form with an offered decision approves.
    #[test]
    fn only_an_accepted_offered_decision_approves() {
        let table = [
            (
                json!({ "action": "accept", "content": { "decision": "once" } }),
                Some(CallDecision::Once),
            ),
            (
                json!({ "action": "accept", "content": { "decision": "session" } }),
                Some(CallDecision::Session),
            ),
            (
                json!({ "action": "accept", "content": { "decision": "reject" } }),
                None,
            ),
            (
                json!({ "action": "accept", "content": { "decision": "always" } }),
                None,
            ),
            (
                json!({ "action": "accept", "content": { "decision": true } }),
                None,
            ),
            (json!({ "action": "accept", "content": {} }), None),
            (json!({ "action": "accept" }), None),
            (
                json!({ "action": "decline", "content": { "decision": "once" } }),
                None,
            ),
            (
                json!({ "action": "cancel", "content": { "decision": "once" } }),
                None,
            ),
        ];
        for (response, expected) in table {
            let parsed: ElicitResult = serde_json::from_value(response.clone()).unwrap();
            let made = decision(&question(Some("bash `touch *`")), &parsed);
            match expected {
                Some(expected) => assert_eq!(made, expected, "{response}"),
                None => assert!(matches!(made, CallDecision::Reject(_)), "{response}"),
            }
        }
        let session = json!({ "action": "accept", "content": { "decision": "session" } });
        let parsed: ElicitResult = serde_json::from_value(session).unwrap();
        let made = decision(&question(None), &parsed);
        assert!(
            matches!(made, CallDecision::Reject(_)),
            "it was not offered"
        );
    }

    /// Proves MCP-10: the form offers the session only if the question does.
    #[test]
    fn form_offers_the_decisions_of_the_question() {
        let decisions = |session| {
            let form = serde_json::to_value(form(&question(session)).unwrap()).unwrap();
            form["requestedSchema"]["properties"]["decision"]["enum"].clone()
        };
        assert_eq!(decisions(None), json!(["once", "reject"]));
        assert_eq!(decisions(Some("x")), json!(["once", "session", "reject"]));
    }

    /// Proves MCP-10.
    #[test]
    fn client_without_forms_is_not_asked() {
        let asks =
            |capabilities: Value| is_shown_by(serde_json::from_value(capabilities).ok().as_ref());
        assert!(asks(json!({ "elicitation": {} })));
        assert!(asks(json!({ "elicitation": { "form": {} } })));
        assert!(!asks(json!({ "elicitation": { "url": {} } })));
        assert!(!asks(json!({})));
        assert!(!is_shown_by(None));
    }
}
