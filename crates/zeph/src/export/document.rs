//! A conversation as a sequence of blocks for a reader: without secrets and without control characters.

use anyhow::Context as _;
use zeph_core::call_display;
use zeph_core::replay::is_of_agent;
use zeph_llm::MessagePart;
use zeph_memory::{SessionInfo, StoredMessage, StoredSummary};

use super::StoredConversation;
use crate::output::local_time::date;
use crate::output::redact::{redacted, secrets};
use crate::output::sanitize::clean;

/// A conversation for a reader.
pub(super) struct Document {
    pub(super) title: String,
    /// Facts about the session: name and value.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) blocks: Vec<Block>,
}

/// A part of the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// A prompt of the user, or a report about the user's own command.
    Prompt(String),
    /// A message of the agent to the model, which the user did not write.
    Note(String),
    /// Text of the model: Markdown.
    Response(String),
    /// Reasoning of the model.
    Reasoning(String),
    /// A call of a tool.
    Call(Call),
    /// An image, by its media type.
    Image(String),
    /// A summary of earlier messages: a heading and the text.
    Summary(String, String),
}

/// A call of a tool with its result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) title: String,
    /// The arguments as indented JSON.
    pub(super) arguments: String,
    /// The text of the result, and whether the call failed; `None` if no result is stored.
    pub(super) result: Option<(String, bool)>,
}

/// The parts of a stored message.
///
/// # Errors
/// If the message is damaged.
pub(crate) fn parts(
    session: &SessionInfo,
    message: &StoredMessage,
) -> anyhow::Result<Vec<MessagePart>> {
    serde_json::from_str(&message.content).with_context(|| {
        let (seq, id) = (message.seq, &session.id);
        format!("message {seq} of session {id} is damaged")
    })
}

/// A text for a reader.
fn safe(text: &str) -> String {
    clean(&redacted(text))
}

impl Document {
    /// The document of a conversation.
    ///
    /// # Errors
    /// If a message is damaged.
    pub(super) fn new(conversation: &StoredConversation) -> anyhow::Result<Self> {
        let StoredConversation {
            session,
            messages,
            summaries,
            ..
        } = conversation;
        let mut document = Self {
            title: safe(session.title.as_deref().unwrap_or("Conversation")),
            facts: facts(conversation),
            blocks: Vec::new(),
        };
        let summaries: Vec<&StoredSummary> = summaries.iter().filter(|it| !it.rewound).collect();
        for message in messages.iter().filter(|message| !message.rewound) {
            for summary in summaries.iter().filter(|it| it.last_seq + 1 == message.seq) {
                document.blocks.push(of_summary(summary));
            }
            for part in parts(session, message)? {
                document.add(&message.role, part);
            }
        }
        let end = messages.iter().rfind(|message| !message.rewound);
        let end = end.map_or(0, |message| message.seq);
        let last = summaries.iter().filter(|it| it.last_seq >= end);
        document
            .blocks
            .extend(last.map(|summary| of_summary(summary)));
        Ok(document)
    }

    fn add(&mut self, role: &str, part: MessagePart) {
        self.blocks.push(match part {
            MessagePart::Text { text } if role == "user" => match is_of_agent(&text) {
                true => Block::Note(safe(&text)),
                false => Block::Prompt(safe(&text)),
            },
            MessagePart::Text { text } => Block::Response(safe(&text)),
            MessagePart::Reasoning { text, .. } if text.is_empty() => return,
            MessagePart::Reasoning { text, .. } => Block::Reasoning(safe(&text)),
            MessagePart::Image { media_type, .. } => Block::Image(safe(&media_type)),
            MessagePart::ToolUse(mut request) => {
                secrets().redact_json(&mut request.input);
                let arguments = serde_json::to_string_pretty(&request.input);
                Block::Call(Call {
                    title: safe(&call_display::title(&request.name, &request.input)),
                    tool: safe(&request.name),
                    arguments: clean(&arguments.unwrap_or_default()),
                    id: request.id,
                    result: None,
                })
            }
            MessagePart::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                let calls = self
                    .blocks
                    .iter_mut()
                    .rev()
                    .filter_map(|block| match block {
                        Block::Call(call) => Some(call),
                        _ => None,
                    });
                let mut waiting = calls.filter(|call| call.result.is_none());
                if let Some(call) = waiting.find(|call| call.id == tool_use_id) {
                    call.result = Some((safe(&content), is_error));
                }
                return;
            }
        });
    }
}

fn facts(conversation: &StoredConversation) -> Vec<(&'static str, String)> {
    let session = &conversation.session;
    let rewound = conversation
        .messages
        .iter()
        .filter(|message| message.rewound);
    let rewound = rewound.count();
    let mut facts = vec![
        ("Session", safe(&session.id)),
        ("Directory", safe(&session.project.display().to_string())),
        ("Begun", date(session.created_at)),
        ("Last used", date(session.updated_at)),
    ];
    facts.extend(session.model.as_ref().map(|model| ("Model", safe(model))));
    if rewound > 0 {
        facts.push(("Omitted", format!("{rewound} rewound messages")));
    }
    facts
}

fn of_summary(summary: &StoredSummary) -> Block {
    let (first, last) = (summary.first_seq, summary.last_seq);
    let heading = format!("Summary of the messages {first} to {last}");
    Block::Summary(heading, safe(&summary.content))
}
