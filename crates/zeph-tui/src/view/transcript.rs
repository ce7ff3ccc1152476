//! The conversation as blocks, built from the events of the channel.

use std::time::{Duration, Instant};

use zeph_core::LoopbackEvent;
use zeph_memory::Task;
use zeph_tools::ToolErrorCategory;

use super::{Call, CallResult, OutputTail, SessionStatus};

/// The ended calls whose output is stored.
const MAX_OUTPUTS: usize = 16;

/// One part of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    /// A prompt of the user.
    Prompt(String),
    /// Text of the model: Markdown.
    Text(String),
    /// Reasoning of the model.
    Reasoning(String),
    /// A tool call.
    Call(Box<Call>),
    /// A message of Zeph.
    Message(Severity, String),
    /// The result of a slash command.
    Reply(String),
}

/// The weight of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// A detail, such as the cost of a turn.
    Remark,
    /// Information.
    Notice,
    /// A possible problem.
    Warning,
    /// A problem.
    Error,
}

/// The current wait, for the activity indicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    /// The operation.
    pub(crate) label: String,
    /// The start of the operation.
    pub(crate) since: Instant,
    /// The end of a wait of known length.
    pub(crate) until: Option<Instant>,
}

/// The conversation, the task list, the current wait and the state of the session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    blocks: Vec<Block>,
    /// The last block is text or reasoning that grows.
    is_open: bool,
    activity: Option<Activity>,
    tasks: Vec<Task>,
    status: SessionStatus,
}

impl Transcript {
    /// Adds an event that was emitted at `now`.
    pub(crate) fn apply(&mut self, event: LoopbackEvent, now: Instant) {
        match event {
            LoopbackEvent::Requesting { .. } => self.wait("waiting for the model", now, None),
            LoopbackEvent::SummingUp => self.wait("summarizing older messages", now, None),
            LoopbackEvent::Retrying(retry) => {
                let label = format!("attempt {}: {}", retry.attempt, retry.reason);
                self.wait(&label, now, Some(retry.wait));
            }
            LoopbackEvent::Text(text) => {
                self.activity = None;
                match self.blocks.last_mut() {
                    Some(Block::Text(open)) if self.is_open => open.push_str(&text),
                    _ => self.open(Block::Text(text)),
                }
            }
            LoopbackEvent::Reasoning(text) => match self.blocks.last_mut() {
                Some(Block::Reasoning(open)) if self.is_open => open.push_str(&text),
                _ => self.open(Block::Reasoning(text)),
            },
            LoopbackEvent::ToolStarted { id, tool, params } => {
                let call = Call {
                    id,
                    tool,
                    params,
                    started: now,
                    output: OutputTail::default(),
                    had_terminal: false,
                    result: None,
                };
                self.activity = None;
                self.push(Block::Call(Box::new(call)));
            }
            LoopbackEvent::ToolOutput {
                id,
                text,
                skipped_lines,
                ..
            } => {
                if let Some(call) = self.running_call(&id) {
                    call.output.push(&text, skipped_lines);
                }
            }
            LoopbackEvent::Terminal { id, .. } => {
                if let Some(call) = self.running_call(&id) {
                    call.had_terminal = true;
                }
            }
            LoopbackEvent::ToolFinished {
                id,
                failure,
                display,
                filter,
                changes,
                duration_ms,
                ..
            } => {
                if let Some(filter) = &filter {
                    self.status.filters.add(filter);
                }
                if failure.is_some_and(is_refusal) {
                    self.status.gates.refused += 1;
                }
                self.forget_old_output();
                if let Some(call) = self.running_call(&id) {
                    call.result = Some(CallResult {
                        failure,
                        display,
                        filter,
                        changes,
                        duration: Duration::from_millis(duration_ms),
                    });
                }
            }
            LoopbackEvent::Notice(text) => self.message(Severity::Notice, text),
            LoopbackEvent::Warning(text) => self.message(Severity::Warning, text),
            LoopbackEvent::Error(text) => self.message(Severity::Error, text),
            LoopbackEvent::Rollback { changes, .. } => {
                let text = format!("The command was rolled back: {changes}.");
                self.message(Severity::Notice, text);
            }
            LoopbackEvent::Prompt(text) => self.push(Block::Prompt(text)),
            // A terminal shows no images.
            LoopbackEvent::PromptImage(_) => {}
            LoopbackEvent::Usage(usage) => self.status.usage.add(usage),
            LoopbackEvent::Context { used, size, cost } => {
                self.status.context_used = used;
                self.status.context_size = size;
                self.status.cost = cost;
            }
            LoopbackEvent::Title(title) => self.status.title = Some(title),
            LoopbackEvent::Tasks(tasks) => self.tasks = tasks,
            LoopbackEvent::Mode(mode) => self.status.mode = Some(mode),
            // The answer to a question is part of the dialog.
            LoopbackEvent::Permission { .. } => self.status.gates.asked += 1,
        }
    }

    /// Adds a closed block.
    pub(crate) fn push(&mut self, block: Block) {
        self.is_open = false;
        self.blocks.push(block);
    }

    /// Adds a message of Zeph. Text that streams continues in a new block below it.
    pub(crate) fn message(&mut self, severity: Severity, text: String) {
        self.push(Block::Message(severity, text));
    }

    /// Adds a time in which the user was asked: no operation is older than before it.
    pub(crate) fn postpone(&mut self, waited: Duration) {
        for block in &mut self.blocks {
            if let Block::Call(call) = block
                && call.is_running()
            {
                call.started += waited;
            }
        }
        if let Some(activity) = &mut self.activity {
            activity.since += waited;
        }
    }

    /// The ids of the calls that run.
    pub(crate) fn running_ids(&self) -> Vec<String> {
        let running = self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) if call.is_running() => Some(call.id.clone()),
            _ => None,
        });
        running.collect()
    }

    /// Ends the turn: nothing grows and nothing is waited for. Calls that did not end have no result.
    pub(crate) fn end_turn(&mut self) {
        self.is_open = false;
        self.activity = None;
    }

    /// Takes the text of the model out of the block with this index, for a view that prints each text once. The block
    /// remains, and may grow.
    pub(crate) fn take_text(&mut self, index: usize) -> String {
        match self.blocks.get_mut(index) {
            Some(Block::Text(text)) => std::mem::take(text),
            _ => String::new(),
        }
    }

    /// Drops the text of the model that no view has taken.
    pub(crate) fn forget_text(&mut self) {
        for at in 0..self.blocks.len() {
            self.take_text(at);
        }
    }

    /// The blocks, the oldest first.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Whether the block with this index may still change.
    pub(crate) fn is_growing(&self, index: usize) -> bool {
        match self.blocks.get(index) {
            Some(Block::Call(call)) => call.is_running(),
            Some(Block::Text(_) | Block::Reasoning(_)) => {
                self.is_open && index + 1 == self.blocks.len()
            }
            _ => false,
        }
    }

    /// The current wait.
    pub(crate) fn activity(&self) -> Option<&Activity> {
        self.activity.as_ref()
    }

    /// The task list of the session.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The state of the session.
    pub(crate) fn status(&self) -> &SessionStatus {
        &self.status
    }

    /// The state of the session, for values that no event reports.
    pub(crate) fn status_mut(&mut self) -> &mut SessionStatus {
        &mut self.status
    }

    fn open(&mut self, block: Block) {
        self.blocks.push(block);
        self.is_open = true;
    }

    fn wait(&mut self, label: &str, now: Instant, wait: Option<Duration>) {
        self.is_open = false;
        self.activity = Some(Activity {
            label: label.to_owned(),
            since: now,
            until: wait.and_then(|wait| now.checked_add(wait)),
        });
    }

    /// Drops the output of calls that ended long ago. Their results remain.
    fn forget_old_output(&mut self) {
        let ended = self
            .blocks
            .iter_mut()
            .rev()
            .filter_map(|block| match block {
                Block::Call(call) if !call.is_running() => Some(call),
                _ => None,
            });
        for call in ended.skip(MAX_OUTPUTS) {
            call.output.forget_lines();
        }
    }

    fn running_call(&mut self, id: &str) -> Option<&mut Call> {
        self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Call(call) if call.is_running() && call.id == id => Some(&mut **call),
            _ => None,
        })
    }
}

/// Whether a failure is the decision of a gate or the user.
fn is_refusal(failure: ToolErrorCategory) -> bool {
    matches!(
        failure,
        ToolErrorCategory::PolicyBlocked | ToolErrorCategory::ConfirmationRequired
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn started(id: &str, command: &str) -> LoopbackEvent {
        LoopbackEvent::ToolStarted {
            id: id.to_owned(),
            tool: "bash".to_owned(),
            params: json!({ "command": command }),
        }
    }

    fn finished(id: &str, display: &str) -> LoopbackEvent {
        LoopbackEvent::ToolFinished {
            id: id.to_owned(),
            tool: "bash".to_owned(),
            failure: None,
            display: display.to_owned(),
            filter: None,
            locations: Vec::new(),
            changes: Vec::new(),
            duration_ms: 5,
        }
    }

    fn transcript(events: impl IntoIterator<Item = LoopbackEvent>) -> Transcript {
        let mut transcript = Transcript::default();
        for event in events {
            transcript.apply(event, Instant::now());
        }
        transcript
    }

    /// Proves CLI-4b: a result belongs to its call, in any order of their ends.
    #[test]
    fn results_of_a_batch_belong_to_their_calls() {
        let all = transcript([
            started("1", "a"),
            started("2", "b"),
            finished("2", "of b"),
            finished("1", "of a"),
        ]);
        let shown = all.blocks().iter().filter_map(|block| match block {
            Block::Call(call) => {
                let result = call.result.as_ref().map(|result| result.display.as_str());
                Some((call.title(), result))
            }
            _ => None,
        });
        let shown: Vec<_> = shown.collect();
        let expect = [
            ("a".to_owned(), Some("of a")),
            ("b".to_owned(), Some("of b")),
        ];
        assert_eq!(shown, expect);
    }

    #[test]
    fn text_grows_until_another_block_begins() {
        let text = |text: &str| LoopbackEvent::Text(text.to_owned());
        let mut all = transcript([text("one "), text("two")]);
        assert_eq!(all.blocks(), [Block::Text("one two".to_owned())]);
        assert!(all.is_growing(0));
        all.apply(started("1", "a"), Instant::now());
        all.apply(text("three"), Instant::now());
        assert!(!all.is_growing(0) && all.is_growing(1) && all.is_growing(2));
        all.end_turn();
        assert!(!all.is_growing(2));
    }

    #[test]
    fn block_continues_to_grow_after_its_text_is_taken() {
        let text = |text: &str| LoopbackEvent::Text(text.to_owned());
        let mut all = transcript([text("one "), text("two")]);
        assert_eq!(all.take_text(0), "one two");
        assert_eq!(all.take_text(1), "");
        all.apply(text(" three"), Instant::now());
        assert_eq!(all.blocks(), [Block::Text(" three".to_owned())]);
        assert!(all.is_growing(0));
        all.forget_text();
        assert_eq!(all.blocks(), [Block::Text(String::new())]);
    }

    #[test]
    fn activity_ends_with_the_first_text() {
        let mut all = transcript([LoopbackEvent::Requesting { iteration: 1 }]);
        assert_eq!(
            all.activity().map(|it| it.label.as_str()),
            Some("waiting for the model")
        );
        all.apply(LoopbackEvent::Text("a".to_owned()), Instant::now());
        assert_eq!(all.activity(), None);
    }
}
