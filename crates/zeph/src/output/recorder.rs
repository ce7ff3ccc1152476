//! The channel of `json` and `stream-json`: collects the data of the result object, and prints events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, TurnOutcome, UserAnswer};
use zeph_llm::{Usage, Usd};
use zeph_tools::question::{ServerAnswer, ServerQuestion};
use zeph_tools::{Confirmation, OutputStream};

use super::events::{Event, Line, NoticeLevel};
use super::{json_line, stderr_line, stderr_line_unless, stdout_line};

/// One call of a turn.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CallRecord {
    /// The call's id.
    pub(crate) id: String,
    /// The tool as called.
    pub(crate) tool: String,
    /// Whether it succeeded.
    pub(crate) success: bool,
    /// The category of the failure.
    pub(crate) error_category: Option<String>,
    /// How long it took, waiting for the user excluded.
    pub(crate) duration_ms: u64,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct Tokens {
    /// Tokens read, cached ones included.
    pub(crate) input_tokens: u64,
    /// Tokens written.
    pub(crate) output_tokens: u64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub(crate) cached_tokens: u64,
    /// The part of `input_tokens` that was written to the provider's cache, if known.
    pub(crate) cache_write_tokens: u64,
    /// The cost in US dollars; absent if it is not known for all requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
}

impl Tokens {
    fn new(usage: Usage, cost: Option<Usd>) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            cost_usd: cost.map(Usd::dollars),
        }
    }
}

/// What one turn came to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ResultObject {
    /// The answer.
    pub(crate) text: String,
    /// The session's id; empty when it failed before there was one.
    pub(crate) session: String,
    /// `done`, `iteration_cap`, `doom_loop`, `context_budget`, `quota`, `budget`, `refused`, `cancelled` or `error`.
    pub(crate) stop_reason: String,
    /// Responses with calls.
    pub(crate) iterations: usize,
    /// Tokens of all requests.
    pub(crate) usage: Tokens,
    /// The calls, in the order in which they ended.
    pub(crate) tool_calls: Vec<CallRecord>,
    /// The error, or the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl ResultObject {
    /// The result of a turn that could not begin.
    pub(crate) fn failed(session: &str, message: String) -> Self {
        Self {
            text: String::new(),
            session: session.to_owned(),
            stop_reason: "error".to_owned(),
            iterations: 0,
            usage: Tokens::default(),
            tool_calls: Vec::new(),
            message: Some(message),
        }
    }

    /// The result of a turn.
    pub(crate) fn new(session: &str, outcome: &TurnOutcome, tool_calls: Vec<CallRecord>) -> Self {
        let stop_reason = serde_json::to_value(outcome.end)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default();
        Self {
            text: outcome.text.clone(),
            session: session.to_owned(),
            stop_reason,
            iterations: outcome.iterations,
            usage: Tokens::new(outcome.usage, outcome.cost),
            tool_calls,
            message: outcome.message.clone(),
        }
    }
}

/// The channel of a turn that a program reads.
pub(crate) struct Recorder {
    /// Whether events are printed immediately.
    stream: bool,
    /// Whether every question is answered with "once".
    assume_yes: bool,
    /// Whether notices stay off standard error.
    is_quiet: bool,
    /// Whether something could not be written.
    lost: AtomicBool,
    calls: Mutex<Vec<CallRecord>>,
}

impl Recorder {
    /// A recorder; `stream` prints events, `assume_yes` answers every question with "once". Without
    /// events, notices go to standard error, unless it `is_quiet`.
    pub(crate) fn new(stream: bool, assume_yes: bool, is_quiet: bool) -> Self {
        Self {
            stream,
            assume_yes,
            is_quiet,
            lost: AtomicBool::new(false),
            calls: Mutex::default(),
        }
    }

    /// The calls so far; they are taken.
    pub(crate) fn take_calls(&self) -> Vec<CallRecord> {
        std::mem::take(&mut self.calls())
    }

    /// Reports information for the user: as an event, or else on standard error.
    fn info(&self, text: String) {
        if !self.stream {
            stderr_line_unless(self.is_quiet, &text);
        }
        self.notice(NoticeLevel::Info, text);
    }

    fn notice(&self, level: NoticeLevel, text: String) {
        self.print(Event::Notice { level, text });
    }

    /// Prints an event, if events are printed. The turn continues when the reader closes the pipe.
    pub(crate) fn print(&self, event: Event) {
        if !self.stream {
            return;
        }
        let line = Line {
            ts: zeph_tools::layers::now_ms(),
            event,
        };
        self.write(&line);
    }

    /// Prints the result, as the last event or as the only object. `false` if the result or an earlier event could
    /// not be written.
    pub(crate) fn finish(&self, result: ResultObject) -> bool {
        if self.stream {
            self.print(Event::Finished { result });
        } else {
            self.write(&result);
        }
        !self.lost.load(Ordering::Relaxed)
    }

    fn write(&self, line: &impl Serialize) {
        let written = json_line(line).is_ok_and(|text| stdout_line(&text));
        if !written {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<CallRecord>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Channel for Recorder {
    fn emit(&self, event: LoopbackEvent) {
        match event {
            LoopbackEvent::Text(text) => self.print(Event::TextDelta { text }),
            LoopbackEvent::ToolStarted { id, tool, params } => {
                self.print(Event::ToolStarted { id, tool, params });
            }
            LoopbackEvent::ToolOutput {
                id, stream, text, ..
            } => self.print(Event::ToolOutput {
                id,
                stream: match stream {
                    OutputStream::Stdout => "stdout".to_owned(),
                    OutputStream::Stderr => "stderr".to_owned(),
                },
                text,
            }),
            LoopbackEvent::ToolFinished {
                id,
                tool,
                failure,
                display,
                duration_ms,
                filter,
                locations: _,
                changes: _,
            } => {
                let error_category = failure.map(|category| category.label().to_owned());
                self.calls().push(CallRecord {
                    id: id.clone(),
                    tool: tool.clone(),
                    success: failure.is_none(),
                    error_category: error_category.clone(),
                    duration_ms,
                });
                self.print(Event::ToolFinished {
                    id,
                    tool,
                    success: failure.is_none(),
                    error_category,
                    display,
                    filter,
                    duration_ms,
                });
            }
            LoopbackEvent::Permission {
                id,
                tool,
                allowed,
                answer,
            } => self.print(Event::Permission {
                id,
                tool,
                decision: if allowed { "allowed" } else { "refused" }.to_owned(),
                answer: answer.to_owned(),
            }),
            LoopbackEvent::Notice(text) => self.info(text),
            LoopbackEvent::Retrying(retry) => self.info(retry.to_string()),
            LoopbackEvent::Warning(text) => {
                stderr_line(&format!("warning: {text}"));
                self.notice(NoticeLevel::Warning, text);
            }
            LoopbackEvent::Error(text) => {
                stderr_line(&format!("error: {text}"));
                self.notice(NoticeLevel::Error, text);
            }
            LoopbackEvent::Rollback { id, changes } => self.print(Event::Rollback {
                id,
                restored: changes.restored,
                removed: changes.removed,
            }),
            LoopbackEvent::Requesting { .. }
            | LoopbackEvent::SummingUp
            | LoopbackEvent::Reasoning(_)
            | LoopbackEvent::Terminal { .. }
            | LoopbackEvent::Usage(_)
            | LoopbackEvent::Context { .. }
            | LoopbackEvent::Prompt(_)
            | LoopbackEvent::PromptImage(_)
            | LoopbackEvent::Title(_)
            | LoopbackEvent::Tasks(_)
            | LoopbackEvent::Mode(_) => {}
        }
    }

    fn can_ask(&self) -> bool {
        self.assume_yes
    }

    fn shows_questions(&self) -> bool {
        false
    }

    async fn confirm(&self, _call: &str, _question: &Confirmation, _params: &Value) -> UserAnswer {
        UserAnswer::Once
    }

    /// Stops the turn. JSON output has no user to ask, so no turn checks in here.
    async fn check_in(&self, _question: &CheckIn) -> CheckInAnswer {
        CheckInAnswer::Stop
    }

    /// Declines: JSON output has no user to ask.
    async fn ask_for_server(&self, _question: &ServerQuestion) -> ServerAnswer {
        ServerAnswer::Decline
    }
}
