//! Hooks: programs of the user at the events of a session. They see calls and prompts, may refuse them, and may add
//! text for the model.
//!
//! `config` is the section of the configuration, `program` runs one hook, and `reply` reads its output.

mod config;
mod program;
mod reply;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use zeph_core::{HookReply, SessionHooks};
use zeph_tools::audit::AuditResult;
use zeph_tools::call_hooks::CallHooks;
use zeph_tools::layers::now_ms;
use zeph_tools::permission_mode::SessionMode;
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::{
    AuditEntry, AuditTrail, CallContext, OutputMetadata, Phase, ResultFormat, ToolCall, ToolEvent,
    ToolResult,
};

pub(crate) use config::{HookConfig, HookEvent};
use program::HookFault;
pub(crate) use program::HookPrograms;
use reply::{HookDecision, read_reply};

/// The tool of the audit entries of hooks.
const TOOL: &str = "hook";

/// The hooks of the configuration.
pub(crate) struct Hooks {
    hooks: Vec<Hook>,
    programs: HookPrograms,
    audit: AuditTrail,
    secrets: Arc<SecurityPatterns>,
    mode: SessionMode,
    /// The sessions in which `session_start` has run.
    started: Mutex<HashSet<String>>,
}

/// A hook that is ready to run.
struct Hook {
    event: HookEvent,
    /// The tools whose calls it sees; `None` means all.
    tools: Option<GlobSet>,
    command: String,
    timeout: Duration,
}

/// The occasion of a run, for the audit entry.
#[derive(Default)]
struct Occasion<'a> {
    session: &'a str,
    call_id: &'a str,
    /// The tool of the call.
    tool: Option<&'a str>,
    caller_id: Option<&'a str>,
    phase: Phase,
}

/// The outcomes of the hooks of one event.
#[derive(Default)]
struct Outcomes {
    context: Vec<String>,
    denied: Option<String>,
    faults: Vec<String>,
}

/// The matcher of the tools of a hook; `None` matches all.
///
/// # Errors
/// The invalid glob.
pub(crate) fn tool_globs(globs: &[String]) -> Result<Option<GlobSet>, globset::Error> {
    if globs.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(Glob::new(glob)?);
    }
    set.build().map(Some)
}

impl Hooks {
    /// The hooks of `configs`, which `programs` runs. `mode` is the mode of the session.
    ///
    /// # Errors
    /// A glob is invalid.
    pub(crate) fn new(
        configs: &[HookConfig],
        programs: HookPrograms,
        audit: AuditTrail,
        secrets: Arc<SecurityPatterns>,
        mode: SessionMode,
    ) -> Result<Self, globset::Error> {
        let hooks = configs.iter().map(|hook| {
            Ok(Hook {
                event: hook.event,
                tools: tool_globs(&hook.tools)?,
                command: hook.command.clone(),
                timeout: Duration::from_secs(hook.timeout_secs),
            })
        });
        Ok(Self {
            hooks: hooks.collect::<Result<_, _>>()?,
            programs,
            audit,
            secrets,
            mode,
            started: Mutex::default(),
        })
    }

    /// Ends running hooks.
    pub(crate) async fn close(&self) {
        self.programs.shutdown().await;
    }

    /// Runs the hooks of an event in the order of the configuration. `fields` are the parts of the input that depend on
    /// the event. The first denial ends the run, and at `before_call` the first failure does too.
    async fn run(
        &self,
        event: HookEvent,
        occasion: Occasion<'_>,
        fields: Value,
        cancel: &CancellationToken,
    ) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let hooks = self.hooks.iter().filter(|hook| hook.event == event);
        let hooks: Vec<&Hook> = hooks.filter(|hook| hook.sees(occasion.tool)).collect();
        if hooks.is_empty() {
            return outcomes;
        }
        let input = self.input(event, occasion.session, fields);
        for hook in hooks {
            let decision = self.run_one(hook, &occasion, &input, cancel).await;
            let name = hook.name();
            match decision {
                Ok(HookDecision::Nothing) => {}
                Ok(HookDecision::Context(text)) => outcomes.context.push(text),
                Ok(HookDecision::Deny(reason)) if event.can_refuse() => {
                    outcomes.denied = Some(format!("{name} denied it: {reason}"));
                }
                Ok(HookDecision::Deny(reason)) => outcomes.faults.push(format!(
                    "{name} denied the event {}, which cannot be refused: {reason}",
                    event.as_str()
                )),
                Err(reason) => outcomes.faults.push(format!("{name} failed: {reason}")),
            }
            let is_stopped = event == HookEvent::BeforeCall && !outcomes.faults.is_empty();
            if is_stopped || outcomes.denied.is_some() || cancel.is_cancelled() {
                break;
            }
        }
        outcomes
    }

    /// The JSON object on the standard input of hooks.
    fn input(&self, event: HookEvent, session: &str, fields: Value) -> String {
        let mut input = Map::new();
        input.insert("event".to_owned(), event.as_str().into());
        input.insert("session".to_owned(), session.into());
        let cwd = self.programs.cwd.display().to_string();
        input.insert("cwd".to_owned(), cwd.into());
        input.insert("mode".to_owned(), self.mode.get().as_str().into());
        if let Value::Object(fields) = fields {
            input.extend(fields);
        }
        let mut input = Value::Object(input).to_string();
        input.push('\n');
        input
    }

    /// Runs one hook, and writes its audit entry.
    async fn run_one(
        &self,
        hook: &Hook,
        occasion: &Occasion<'_>,
        input: &str,
        cancel: &CancellationToken,
    ) -> Result<HookDecision, String> {
        let start = Instant::now();
        let ended = self
            .programs
            .run(&hook.command, input, hook.timeout, cancel);
        let ended = ended.await;
        let (decision, result) = match ended {
            Ok(ended) => {
                let decision = read_reply(ended.exit, &ended.stdout, &ended.stderr);
                let result = match &decision {
                    Ok(HookDecision::Deny(_)) => AuditResult::Blocked,
                    Ok(_) => AuditResult::Success,
                    Err(_) => AuditResult::Error,
                };
                (decision, result)
            }
            Err(HookFault::TimedOut) => {
                let limit = hook.timeout.as_secs();
                let why = format!("it took longer than {limit} s (`timeout_secs`)");
                (Err(why), AuditResult::Timeout)
            }
            Err(HookFault::Cancelled) => {
                let why = "the turn was cancelled".to_owned();
                (Err(why), AuditResult::Cancelled)
            }
            Err(HookFault::Failed(why)) => (Err(why), AuditResult::Error),
        };
        let entry = self.entry(hook, occasion, &decision, result, start.elapsed());
        match self.audit.append(&entry).await {
            Err(error) if self.audit.is_required() => Err(error.to_string()),
            Err(error) => {
                tracing::error!(%error, "a hook left no audit entry");
                decision
            }
            Ok(()) => decision,
        }
    }

    fn entry(
        &self,
        hook: &Hook,
        occasion: &Occasion<'_>,
        decision: &Result<HookDecision, String>,
        result: AuditResult,
        took: Duration,
    ) -> AuditEntry {
        let mut call = json!({ "event": hook.event.as_str(), "command": hook.command });
        if let Some(tool) = occasion.tool {
            call["tool"] = tool.into();
        }
        match decision {
            Ok(HookDecision::Deny(reason)) | Err(reason) => call["reason"] = reason.as_str().into(),
            Ok(HookDecision::Context(text)) => call["context_bytes"] = text.len().into(),
            Ok(HookDecision::Nothing) => {}
        }
        self.secrets.redact_json(&mut call);
        AuditEntry {
            session: occasion.session.to_owned(),
            call_id: occasion.call_id.to_owned(),
            tool: TOOL.to_owned(),
            result,
            caller_id: occasion.caller_id.map(str::to_owned),
            phase: occasion.phase,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            attempts: 1,
            ..AuditEntry::of_the_trail(now_ms(), call)
        }
    }

    async fn run_for_session(
        &self,
        event: HookEvent,
        session: &str,
        fields: Value,
        cancel: &CancellationToken,
    ) -> HookReply {
        let occasion = Occasion {
            session,
            ..Occasion::default()
        };
        let outcomes = self.run(event, occasion, fields, cancel).await;
        HookReply {
            context: outcomes.context,
            denied: outcomes.denied,
            warnings: match cancel.is_cancelled() {
                true => Vec::new(),
                false => outcomes.faults,
            },
        }
    }

    async fn run_for_call(
        &self,
        event: HookEvent,
        call: &ToolCall,
        fields: Value,
        cancel: &CancellationToken,
    ) -> Outcomes {
        let occasion = Occasion {
            session: &call.conversation,
            call_id: &call.id,
            tool: Some(&call.tool),
            caller_id: call.caller_id.as_deref(),
            phase: call.phase,
        };
        self.run(event, occasion, fields, cancel).await
    }
}

impl Hook {
    fn sees(&self, tool: Option<&str>) -> bool {
        match (&self.tools, tool) {
            (Some(globs), Some(tool)) => globs.is_match(tool),
            _ => true,
        }
    }

    /// The name in messages: the event and the start of the command.
    fn name(&self) -> String {
        const MAX_CHARS: usize = 60;
        let line = self.command.lines().next().unwrap_or_default();
        let mut start: String = line.chars().take(MAX_CHARS).collect();
        if start.len() < self.command.len() {
            start.push('…');
        }
        format!("the {} hook `{start}`", self.event.as_str())
    }
}

#[async_trait]
impl CallHooks for Hooks {
    async fn before_call(&self, call: &ToolCall, cx: &CallContext) -> Result<Vec<String>, String> {
        // The raw arguments: the hook judges exactly the call that runs.
        let mode = cx.capped_mode(self.mode.get());
        let fields = json!({ "mode": mode, "tool": call.tool, "params": call.params });
        let event = HookEvent::BeforeCall;
        let outcomes = self.run_for_call(event, call, fields, &cx.cancel).await;
        let refusal = outcomes.denied.or_else(|| {
            let fault = outcomes.faults.into_iter().next()?;
            Some(format!("{fault}; a call whose hook fails does not run"))
        });
        refusal.map_or(Ok(outcomes.context), Err)
    }

    async fn after_call(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        result: &ToolResult,
    ) -> Vec<String> {
        let form = ResultFormat::Json.content(result, OutputMetadata::default());
        let form: Value = serde_json::from_str(&form).unwrap_or_default();
        let mode = cx.capped_mode(self.mode.get());
        let fields =
            json!({ "mode": mode, "tool": call.tool, "params": call.params, "result": form });
        let event = HookEvent::AfterCall;
        let outcomes = self.run_for_call(event, call, fields, &cx.cancel).await;
        if !cx.cancel.is_cancelled() {
            for text in outcomes.faults {
                let call_id = call.id.clone();
                cx.emit(ToolEvent::Warning { call_id, text });
            }
        }
        outcomes.context
    }
}

#[async_trait]
impl SessionHooks for Hooks {
    async fn session_start(&self, session: &str, cancel: &CancellationToken) -> HookReply {
        {
            let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
            if !started.insert(session.to_owned()) {
                return HookReply::default();
            }
        }
        let event = HookEvent::SessionStart;
        self.run_for_session(event, session, json!({}), cancel)
            .await
    }

    async fn prompt(&self, session: &str, prompt: &str, cancel: &CancellationToken) -> HookReply {
        let fields = json!({ "prompt": prompt });
        self.run_for_session(HookEvent::Prompt, session, fields, cancel)
            .await
    }

    async fn turn_end(&self, session: &str, prompt: &str, result: Value) -> HookReply {
        let fields = json!({ "prompt": prompt, "result": result });
        // A cancelled turn has ended, too: only the time limits end its hooks.
        let cancel = CancellationToken::new();
        self.run_for_session(HookEvent::TurnEnd, session, fields, &cancel)
            .await
    }
}
