//! The effects on files of the calls in a part of a conversation. Pure.
//!
//! The undo journal has no records of commands, of other programs' tools, and of calls in the original of a copied
//! session. So the calls themselves show the changes that a rewind may leave. The effects of a call
//! that started a sub-agent are those of the calls of the sub-agent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zeph_llm::{MessagePart, ToolUseRequest};
use zeph_memory::StoredMessage;
use zeph_tools::gate::command::only_reads;
use zeph_tools::{ToolErrorCategory, ToolRegistry, ToolTarget};

use crate::agent::replay::ResultView;
use crate::agent::user_command;
use crate::call_display;

/// A possible change of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// A command that may have changed files.
    Command(String),
    /// Another call that may have changed files, by its title.
    Call(String),
    /// The calls of a message that cannot be read, by its number in the session.
    Damaged(i64),
    /// A call of a file tool.
    File {
        /// The path, absolute.
        path: PathBuf,
        /// The content before the first of these calls, if it is known; `None` in it if the file did not exist.
        before: Option<Option<String>>,
    },
}

/// The effects of the calls of sub-agents, by the id of their session.
pub(super) type SubAgentEffects = HashMap<String, Vec<Effect>>;

/// The sessions of the sub-agents that calls in `messages` started. `views` are the results as the
/// user saw them.
pub(super) fn sub_sessions(
    messages: &[StoredMessage],
    views: &HashMap<i64, String>,
) -> Vec<String> {
    let views = messages.iter().filter_map(|it| views.get(&it.seq));
    let views = views.filter_map(|view| serde_json::from_str::<ResultView>(view).ok());
    views.filter_map(|view| view.sub_session).collect()
}

/// The effects of the calls in `messages`, each once, in order. `views` are the results as the user saw them.
pub(super) fn effects(
    messages: &[StoredMessage],
    views: &HashMap<i64, String>,
    registry: &ToolRegistry,
    project: &Path,
    sub_agents: &SubAgentEffects,
) -> Vec<Effect> {
    let mut found: Vec<Effect> = Vec::new();
    let mut open: Vec<ToolUseRequest> = Vec::new();
    for message in messages {
        let Ok(parts) = serde_json::from_str::<Vec<MessagePart>>(&message.content) else {
            add(&mut found, vec![Effect::Damaged(message.seq)]);
            continue;
        };
        for part in parts {
            match part {
                MessagePart::ToolUse(request) => open.push(request),
                MessagePart::ToolResult { tool_use_id, .. } => {
                    if let Some(at) = open.iter().position(|it| it.id == tool_use_id) {
                        let view = views.get(&message.seq);
                        let view: Option<ResultView> =
                            view.and_then(|view| serde_json::from_str(view).ok());
                        let session = view.as_ref().and_then(|view| view.sub_session.as_ref());
                        let request = open.remove(at);
                        let effects = match session.and_then(|id| sub_agents.get(id)) {
                            Some(effects) => effects.clone(),
                            None => of_call(&request, view, registry, project),
                        };
                        add(&mut found, effects);
                    }
                }
                MessagePart::Text { text } => add(&mut found, of_user_command(&text, project)),
                MessagePart::Reasoning { .. } | MessagePart::Image { .. } => {}
            }
        }
    }
    // A call without a result may have had an effect.
    for request in &open {
        add(&mut found, of_call(request, None, registry, project));
    }
    found
}

fn add(found: &mut Vec<Effect>, effects: Vec<Effect>) {
    for effect in effects {
        let is_known = found.iter().any(|known| match (known, &effect) {
            (Effect::File { path, .. }, Effect::File { path: other, .. }) => path == other,
            (known, effect) => known == effect,
        });
        if !is_known {
            found.push(effect);
        }
    }
}

/// The effects of one call.
fn of_call(
    request: &ToolUseRequest,
    view: Option<ResultView>,
    registry: &ToolRegistry,
    project: &Path,
) -> Vec<Effect> {
    let ToolUseRequest { name, input, .. } = request;
    let def = registry.get(name);
    let failure = view.as_ref().and_then(|view| view.failure);
    let may_change = def.is_none_or(|def| def.cache.changes_files);
    if !may_change || failure.is_some_and(did_not_run) {
        return Vec::new();
    }
    match def.map(|def| def.about) {
        Some(ToolTarget::Command { command, .. }) => {
            let command = input.get(command).and_then(Value::as_str);
            let command = command.filter(|command| !only_reads(command, project));
            let title = |_| Effect::Command(call_display::title(name, input));
            command.map(title).into_iter().collect()
        }
        Some(ToolTarget::Paths(_)) => {
            let changes = view.map(|view| view.changes).unwrap_or_default();
            let mut effects: Vec<Effect> = Vec::new();
            for change in changes {
                effects.push(Effect::File {
                    path: change.path,
                    before: Some(change.before),
                });
            }
            if effects.is_empty() && failure.is_none() {
                let paths = call_display::locations(input, project).into_iter();
                effects.extend(paths.map(|path| Effect::File { path, before: None }));
            }
            effects
        }
        _ => vec![Effect::Call(call_display::title(name, input))],
    }
}

/// Whether a call with this failure had no effect.
fn did_not_run(failure: ToolErrorCategory) -> bool {
    matches!(
        failure,
        ToolErrorCategory::ToolNotFound
            | ToolErrorCategory::InvalidParameters
            | ToolErrorCategory::TypeMismatch
            | ToolErrorCategory::PolicyBlocked
            | ToolErrorCategory::ConfirmationRequired
    )
}

/// The command that the user ran, if the message is about one. A long command is named by its first line.
fn of_user_command(text: &str, project: &Path) -> Vec<Effect> {
    let command = user_command::parse(text).map(|(command, _)| command);
    let command = command.filter(|command| !only_reads(command, project));
    let named = command.map(|command| match command.split_once('\n') {
        Some((first, _)) => Effect::Command(format!("{first} …")),
        None => Effect::Command(command.to_owned()),
    });
    named.into_iter().collect()
}
