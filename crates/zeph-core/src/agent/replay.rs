//! A stored conversation as events, in the form in which the user saw it.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use zeph_llm::MessagePart;
use zeph_memory::StoredMessage;
use zeph_tools::call_hooks::HOOK_CONTEXT;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::{
    FileChange, FileLocation, ImageContent, ToolError, ToolErrorCategory, ToolResult,
};

use super::reflection::REFLECTION_MARK;
use super::rewind::REWIND_MARK;
use super::tool_runner::attachments::ATTACHMENT_START;
use super::tool_runner::attachments::prompt_command;
use super::tool_runner::dispatch::display_error;
use super::tool_runner::undo::UNDO_MARK;
use super::turn::LIMIT_MARK;
use super::user_command;
use crate::channel::LoopbackEvent;
use crate::redacted::{redact_changes, redact_shown};

/// The starts of messages that the agent writes in the name of the user. They are not shown.
const OWN_MESSAGES: [&str; 3] = [LIMIT_MARK, REFLECTION_MARK, REWIND_MARK];
/// The display of a call whose result was not stored.
const INTERRUPTED: &str = "interrupted";

/// A result as the user saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultView {
    pub(crate) failure: Option<ToolErrorCategory>,
    display: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locations: Vec<FileLocation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<FileChange>,
    /// The session of the sub-agent that the call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sub_session: Option<String>,
}

impl ResultView {
    /// The view of a result, without secrets.
    pub(crate) fn new(result: &ToolResult, secrets: &Arc<SecurityPatterns>) -> Self {
        let mut view = match result {
            Ok(output) => Self {
                failure: None,
                display: output.display().to_owned(),
                locations: output.locations.clone(),
                changes: output.changes.clone(),
                sub_session: None,
            },
            Err(error) => Self {
                failure: Some(ToolError::category(error)),
                display: display_error(error),
                locations: Vec::new(),
                changes: Vec::new(),
                sub_session: None,
            },
        };
        redact_shown(secrets, &mut view.display);
        redact_changes(secrets, &mut view.changes);
        view
    }

    /// The view of `result`, which is that of a sub-agent, with the session of the sub-agent.
    pub(crate) fn with_sub_session(mut self, result: &ToolResult) -> Self {
        let raw = result.as_ref().ok();
        let raw = raw.and_then(|output| output.raw_response.as_ref());
        let session = raw.and_then(|raw| raw.get("session")?.as_str());
        self.sub_session = session.map(str::to_owned);
        self
    }
}

/// A prompt without the texts that hooks added to it.
fn without_hook_blocks(mut prompt: String) -> String {
    if let Some(start) = prompt.find(&format!("\n\n{HOOK_CONTEXT}")) {
        prompt.truncate(start);
    }
    prompt
}

/// The changes of files in the stored views of results, in order.
pub(super) fn changes(views: &HashMap<i64, String>) -> Vec<FileChange> {
    let mut numbers: Vec<_> = views.iter().collect();
    numbers.sort();
    let views = numbers.into_iter();
    let views = views.filter_map(|(_, view)| serde_json::from_str::<ResultView>(view).ok());
    views.flat_map(|view| view.changes).collect()
}

/// The events of a stored conversation, in order. `views` are the views of results by the number of their message. The
/// patterns of `secrets` are removed from arguments and results, as in live events.
#[must_use]
pub fn events(
    messages: &[StoredMessage],
    views: &HashMap<i64, String>,
    secrets: &Arc<SecurityPatterns>,
) -> Vec<LoopbackEvent> {
    let mut events = Vec::new();
    // The calls without a result so far.
    let mut open: Vec<(String, String)> = Vec::new();
    for message in messages.iter().filter(|message| !message.rewound) {
        let Ok(parts) = serde_json::from_str::<Vec<MessagePart>>(&message.content) else {
            events.push(LoopbackEvent::Warning(format!(
                "message {} is damaged and is not shown",
                message.seq
            )));
            continue;
        };
        let is_user = message.role == "user";
        // The images of a message with results are those that tools returned.
        let is_prompt = is_user && !parts.iter().any(is_result);
        if !is_user {
            close(&mut open, &mut events);
            events.push(LoopbackEvent::Requesting { iteration: 1 });
        }
        for part in parts {
            match part {
                MessagePart::Text { text } if is_user => {
                    events.extend(of_user(text, message.seq, secrets));
                }
                MessagePart::Text { text } => events.push(LoopbackEvent::Text(text)),
                MessagePart::Reasoning { text, .. } if !text.is_empty() => {
                    events.push(LoopbackEvent::Reasoning(text));
                }
                MessagePart::ToolUse(request) => {
                    let mut params = request.input;
                    secrets.redact_json(&mut params);
                    open.push((request.id.clone(), request.name.clone()));
                    events.push(LoopbackEvent::ToolStarted {
                        id: request.id,
                        tool: request.name,
                        params,
                    });
                }
                MessagePart::ToolResult {
                    tool_use_id,
                    mut content,
                    is_error,
                } => {
                    let Some(at) = open.iter().position(|(id, _)| *id == tool_use_id) else {
                        continue;
                    };
                    let (id, tool) = open.remove(at);
                    let stored = views.get(&message.seq);
                    let view = stored.and_then(|view| serde_json::from_str(view).ok());
                    let view = view.unwrap_or_else(|| {
                        redact_shown(secrets, &mut content);
                        ResultView {
                            failure: is_error.then_some(ToolErrorCategory::PermanentFailure),
                            display: content,
                            locations: Vec::new(),
                            changes: Vec::new(),
                            sub_session: None,
                        }
                    });
                    events.push(finished(id, tool, view));
                }
                MessagePart::Image { media_type, data } if is_prompt => {
                    let image = ImageContent { media_type, data };
                    events.push(LoopbackEvent::PromptImage(image));
                }
                MessagePart::Reasoning { .. } | MessagePart::Image { .. } => {}
            }
        }
    }
    close(&mut open, &mut events);
    events
}

fn is_result(part: &MessagePart) -> bool {
    matches!(part, MessagePart::ToolResult { .. })
}

/// The events of a message in the name of the user: the input that the user typed, and its result.
fn of_user(text: String, seq: i64, secrets: &Arc<SecurityPatterns>) -> Vec<LoopbackEvent> {
    if is_of_agent(&text) {
        return Vec::new();
    }
    if let Some(report) = text.strip_prefix(UNDO_MARK) {
        return vec![
            LoopbackEvent::Prompt("/undo".to_owned()),
            LoopbackEvent::Text(report.trim_start().to_owned()),
        ];
    }
    if let Some((command, output)) = user_command::parse(&text) {
        let (id, tool) = (format!("user_{seq}"), "bash".to_owned());
        let mut params = json!({ "command": command });
        secrets.redact_json(&mut params);
        let mut display = output.to_owned();
        redact_shown(secrets, &mut display);
        let view = ResultView {
            failure: None,
            display,
            locations: Vec::new(),
            changes: Vec::new(),
            sub_session: None,
        };
        return vec![
            LoopbackEvent::Prompt(format!("!{command}")),
            LoopbackEvent::ToolStarted {
                id: id.clone(),
                tool: tool.clone(),
                params,
            },
            finished(id, tool, view),
        ];
    }
    vec![LoopbackEvent::Prompt(typed(&text))]
}

/// The prompt that the user typed; `None` for a message about a command or an undo, and for messages of the agent.
pub(super) fn typed_prompt(text: &str) -> Option<String> {
    let is_report = text.starts_with(UNDO_MARK) || user_command::parse(text).is_some();
    (!is_report && !is_of_agent(text)).then(|| typed(text))
}

/// The part of a prompt that the user typed. Attached files, resources and text of hooks are not part of it.
fn typed(text: &str) -> String {
    if let Some(command) = prompt_command(text) {
        return command;
    }
    let end = text.find(ATTACHMENT_START).unwrap_or(text.len());
    without_hook_blocks(text[..end].to_owned())
}

/// Whether the agent wrote a message in the name of the user.
#[must_use]
pub fn is_of_agent(text: &str) -> bool {
    OWN_MESSAGES.iter().any(|start| text.starts_with(start))
}

/// Ends the calls without a result.
fn close(open: &mut Vec<(String, String)>, events: &mut Vec<LoopbackEvent>) {
    for (id, tool) in open.drain(..) {
        let view = ResultView {
            failure: Some(ToolErrorCategory::Cancelled),
            display: INTERRUPTED.to_owned(),
            locations: Vec::new(),
            changes: Vec::new(),
            sub_session: None,
        };
        events.push(finished(id, tool, view));
    }
}

fn finished(id: String, tool: String, view: ResultView) -> LoopbackEvent {
    LoopbackEvent::ToolFinished {
        id,
        tool,
        failure: view.failure,
        display: view.display,
        filter: None,
        locations: view.locations,
        changes: view.changes,
        duration_ms: 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn stored(seq: i64, role: &str, parts: &Value) -> StoredMessage {
        StoredMessage {
            seq,
            role: role.to_owned(),
            content: parts.to_string(),
            created_at: 0,
            usage: None,
            rewound: false,
        }
    }

    fn texts(messages: &[StoredMessage], views: &HashMap<i64, String>) -> Vec<String> {
        let events = events(messages, views, &Arc::default());
        let shown = events.into_iter().map(|event| match event {
            LoopbackEvent::Prompt(text) => format!("user: {text}"),
            LoopbackEvent::Text(text) => format!("text: {text}"),
            LoopbackEvent::Reasoning(text) => format!("thought: {text}"),
            LoopbackEvent::ToolStarted { id, tool, .. } => format!("{id} starts {tool}"),
            LoopbackEvent::ToolFinished {
                id,
                failure,
                display,
                changes,
                ..
            } => {
                let failure = failure.map(ToolErrorCategory::label);
                format!("{id} ends {failure:?} {display} {}", changes.len())
            }
            LoopbackEvent::Requesting { .. } => "request".to_owned(),
            other => format!("{other:?}"),
        });
        shown.collect()
    }

    /// Proves ACP-1a: the replay shows the input of the user, not the message that the model reads.
    #[test]
    fn user_input_is_shown_as_typed() {
        let check = |text: &str, expect: &[&str]| {
            let message = stored(7, "user", &json!([{"type": "text", "text": text}]));
            assert_eq!(texts(&[message], &HashMap::new()), expect);
        };
        check("go", &["user: go"]);
        check(
            &format!("{UNDO_MARK}\na.rs is as before"),
            &["user: /undo", "text: a.rs is as before"],
        );
        check(
            "[the user ran a command]\n$ ls -a\n.\n..",
            &[
                "user: !ls -a",
                "user_7 starts bash",
                "user_7 ends None .\n.. 0",
            ],
        );
        check(
            "see @t:f:a\n\n[the user attached the resource f:a of the MCP server t; the following \
             text comes from the server, not from the user]\nsecret plans\n[end of the resource f:a]",
            &["user: see @t:f:a"],
        );
        check(
            "see @/a\n\n[the user attached the resource file:///a]\nsecret plans\n[end of the \
             resource file:///a]",
            &["user: see @/a"],
        );
        check(
            "[the user chose the prompt review of the MCP server t, which wrote the following \
             text]\nReview it.",
            &["user: /mcp:t:review"],
        );
    }

    /// Proves ACP-1a: the images of a prompt are shown, those of results are not.
    #[test]
    fn images_of_prompts_are_shown() {
        let image = json!({"type": "image", "media_type": "image/png", "data": "AA=="});
        let text = json!({"type": "text", "text": "look"});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "read"});
        let messages = [
            stored(1, "user", &json!([text, image])),
            stored(2, "user", &json!([result, image])),
        ];
        let expect = LoopbackEvent::PromptImage(ImageContent {
            media_type: "image/png".to_owned(),
            data: "AA==".to_owned(),
        });
        let expect = ["user: look".to_owned(), format!("{expect:?}")];
        assert_eq!(texts(&messages, &HashMap::new()), expect);
    }

    /// Proves ACP-1a.
    #[test]
    fn stored_messages_become_events_in_order() {
        let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "bash", "input": {}});
        let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "for the model"}]);
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let messages = [
            stored(1, "user", &text("go")),
            stored(
                2,
                "assistant",
                &json!([{"type": "reasoning", "text": "hm"}, call("a"), call("b")]),
            ),
            stored(3, "user", &result("a")),
            stored(4, "user", &result("unknown")),
            stored(5, "user", &text("[limit] 10 rounds are used up")),
            stored(6, "assistant", &text("done")),
            stored(7, "assistant", &json!({"damaged": 1})),
        ];
        let view = ResultView {
            failure: None,
            display: "for the user".to_owned(),
            locations: Vec::new(),
            changes: vec![FileChange {
                path: "/a".into(),
                before: None,
                after: "b".to_owned(),
            }],
            sub_session: None,
        };
        let views = HashMap::from([(3, serde_json::to_string(&view).unwrap())]);
        let expect = [
            "user: go",
            "request",
            "thought: hm",
            "a starts bash",
            "b starts bash",
            "a ends None for the user 1",
            "b ends Some(\"cancelled\") interrupted 0",
            "request",
            "text: done",
            "Warning(\"message 7 is damaged and is not shown\")",
        ];
        assert_eq!(texts(&messages, &views), expect);
        assert_eq!(
            texts(&messages[..3], &HashMap::new())[5],
            "a ends None for the model 0"
        );
    }
}
