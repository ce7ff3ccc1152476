//! A command in the foreground: its runs, and the question to the user if the sandbox refuses an access.

use std::time::Instant;

use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::confirmation::Confirmation;
use crate::context::CallContext;
use crate::contract::confinement::{Confinement, SandboxAccess};
use crate::def::Risk;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::gate::parsed_call::digest;
use crate::gate::{ApprovalOptions, ApprovalProposal};
use crate::output::ToolOutput;
use crate::user_terminal::LentTerminal;

use super::bash::{self, BASH, BashParams};
use super::capture::Capture;
use super::editor_terminal::PlacedCommand;
use super::executor::{ShellExecutor, exit_code, run_failed};
use super::model_output::{self, ModelOutput};
use super::output_pipeline::Recorder;
use super::sandbox::access_request::AccessRequest;
use super::sandbox::profile::PreparedSandbox;
use super::time_limit::TimeLimit;
use zeph_exec::StdStream;
use zeph_exec::runner::{CommandOutcome, CommandSpec, RunError, RunningCommand};

/// The maximum number of questions about accesses of one call. The last run then ends with its own refusal.
pub(super) const MAX_QUESTIONS: usize = 4;

/// The end of one run.
pub(super) struct FinishedRun {
    pub(super) result: Result<ToolOutput, ToolError>,
    /// The exit code; `None` if the command has no outcome.
    pub(super) code: Option<i32>,
    /// The accesses that the sandbox refused.
    request: Option<AccessRequest>,
}

impl ShellExecutor {
    /// Runs an admitted command in the sandbox of the call. If the sandbox refuses an access and the user approves it,
    /// the command runs again with that access.
    pub(super) async fn run_foreground(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        (command, limit): (CommandSpec, Option<TimeLimit>),
    ) -> FinishedRun {
        let mut confinement = cx.confinement().clone();
        let mut questions = 0;
        loop {
            let sandbox = match self.prepare_sandbox(params, &confinement, command.env.clone()) {
                Ok(sandbox) => sandbox,
                Err(error) => return FinishedRun::failed(error),
            };
            let run = self
                .run_once(call, cx, params, (&command, limit), &sandbox, Caller::Model)
                .await;
            let Some(request) = &run.request else {
                return run;
            };
            cx.trace().sandbox_refusal = Some(request.message.clone());
            if sandbox.is_read_only || questions == MAX_QUESTIONS {
                return run;
            }
            let approved = self.ask_for_access(call, cx, params, request).await;
            if approved.is_empty() {
                return run;
            }
            questions += 1;
            add_access(&mut confinement, approved);
            cx.trace().sandbox_refusal = None;
        }
    }

    /// Asks the user whether the command runs again with the accesses of `request`. Returns the approved ones: all or
    /// none. Without a user, or for an access that the user declined before, it asks nothing.
    pub(super) async fn ask_for_access(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        request: &AccessRequest,
    ) -> Vec<SandboxAccess> {
        let access = self.sandbox.askable(&call.conversation, request);
        let Some(prompt) = cx.access_prompt().filter(|_| !access.is_empty()) else {
            return Vec::new();
        };
        let question = question(call, params, request, &access);
        if prompt.ask(call, &question).await {
            let phrases: Vec<String> = access.iter().map(SandboxAccess::phrase).collect();
            let granted = format!("the user approved the run {}", phrases.join(" and "));
            cx.trace().record_rule_match(&granted);
            return access;
        }
        self.sandbox.decline(&call.conversation, access);
        Vec::new()
    }

    /// Runs a command of the user, without a sandbox and without a time limit, at the terminal `lent` if there is one.
    pub(super) async fn run_unconfined(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        command: &CommandSpec,
        lent: Option<Box<dyn LentTerminal>>,
    ) -> Result<ToolOutput, ToolError> {
        let sandbox = PreparedSandbox::without_plan(command.env.clone());
        let run = self.run_once(
            call,
            cx,
            params,
            (command, None),
            &sandbox,
            Caller::User(lent),
        );
        run.await.result
    }

    /// Runs a command once, in a span.
    async fn run_once(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        command: (&CommandSpec, Option<TimeLimit>),
        sandbox: &PreparedSandbox,
        caller: Caller,
    ) -> FinishedRun {
        let span = command_span();
        let run = self.run_process(call, cx, params, command, sandbox, caller);
        let run = run.instrument(span.clone()).await;
        if let Some(code) = run.code {
            span.record("process.exit.code", code);
        }
        if let Err(error) = &run.result {
            span.record("error.type", error.category().label());
            span.record("otel.status_code", "ERROR");
        }
        run
    }

    async fn run_process(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        (command, mut limit): (&CommandSpec, Option<TimeLimit>),
        sandbox: &PreparedSandbox,
        caller: Caller,
    ) -> FinishedRun {
        let mut is_in_editor = false;
        let command = CommandSpec {
            env: sandbox.env.clone(),
            sandbox: sandbox.for_runner(),
            ..command.clone()
        };
        let place = command.cwd.clone();
        let started = Instant::now();
        let most = model_output::budget(&self.overflow);
        let filter = self.filters().start(&params.command, most);
        let capture = Capture::new(&self.overflow, &self.secrets);
        let mut recorder = Recorder::new(call, cx, capture, filter);
        let is_user = matches!(caller, Caller::User(_));
        let run = match caller {
            Caller::User(Some(lent)) => {
                recorder.end_live_output();
                self.run_at_terminal(command, lent, cx, &mut recorder).await
            }
            Caller::User(None) => {
                let started = self.runner.start_for_user(command, None).await;
                wait(started, call, cx, &mut recorder).await
            }
            Caller::Model => {
                let terminal = self.editor_terminal.as_ref();
                match PlacedCommand::new(&self.runner, terminal, (command, limit)).await {
                    Ok(placed) => {
                        (limit, is_in_editor) = (placed.limit, placed.is_in_editor);
                        let started = placed.runner.start(placed.command).await;
                        wait(started, call, cx, &mut recorder).await
                    }
                    Err(error) => Err(error),
                }
            }
        };
        let code = run.as_ref().ok().and_then(|(_, ended)| exit_code(ended));
        let (captured, filtered) = recorder.finish(code);
        let reduced = ModelOutput::new(captured.merged.clone(), filtered, &self.overflow);
        let (running, ended) = match run {
            Ok(run) => run,
            Err(error) => {
                if matches!(error, RunError::Unconfined(_)) {
                    cx.trace().sandbox_missing = true;
                }
                let printed = ToolOutput {
                    overflow: reduced.overflow,
                    filter: reduced.filter,
                    ..ToolOutput::text(reduced.text)
                };
                return FinishedRun::failed(run_failed(error, printed));
            }
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tell(call, cx, &ended);
        let job = if ended.background.is_empty() {
            None
        } else {
            self.adopt(call, cx, params, running, &ended)
        };
        let merged = &captured.merged.text;
        // A terminal has one stream.
        let stderr = match is_in_editor {
            true => merged,
            false => &captured.stderr.text,
        };
        let request = match is_user {
            true => None,
            false => self.refusal(&ended, sandbox, &place, stderr, merged),
        };
        let failure = match &request {
            Some(request) => Some((ToolErrorCategory::PolicyBlocked, request.message.clone())),
            None => Self::failure(&ended, stderr, limit),
        };
        let output = bash::output(captured, reduced, &ended, job.as_deref(), duration_ms);
        let result = match failure {
            None => Ok(output),
            Some((category, message)) => Err(ToolError::Shell {
                exit_code: Some(ended.exit.code),
                category,
                message,
                output: Box::new(output),
            }),
        };
        FinishedRun {
            result,
            code: Some(ended.exit.code),
            request,
        }
    }
}

/// The span of a command.
pub(super) fn command_span() -> Span {
    tracing::info_span!(
        "command",
        otel.status_code = Empty,
        process.exit.code = Empty,
        error.type = Empty,
    )
}

/// The caller of a command.
enum Caller {
    /// A model or a script: the command is confined.
    Model,
    /// The user, who typed it: it runs at this terminal, if there is one.
    User(Option<Box<dyn LentTerminal>>),
}

/// Waits for the end of a command that was started.
async fn wait(
    started: Result<Box<dyn RunningCommand>, RunError>,
    call: &ToolCall,
    cx: &CallContext,
    recorder: &mut Recorder<'_>,
) -> Result<(Box<dyn RunningCommand>, CommandOutcome), RunError> {
    let mut running = started?;
    if let Some(terminal) = running.terminal_id() {
        recorder.end_live_output();
        cx.emit(ToolEvent::Terminal {
            call_id: call.id.clone(),
            terminal_id: terminal.to_owned(),
        });
    }
    let mut record = |stream: StdStream, bytes: &[u8]| recorder.record(stream.into(), bytes);
    let ended = running.wait(&cx.cancel, &mut record).await?;
    Ok((running, ended))
}

impl FinishedRun {
    fn failed(error: ToolError) -> Self {
        Self {
            result: Err(error),
            code: None,
            request: None,
        }
    }
}

/// Adds approved accesses. A missing directory is created, because the sandbox can grant existing ones only.
pub(super) fn add_access(confinement: &mut Confinement, access: Vec<SandboxAccess>) {
    for added in &access {
        if let SandboxAccess::Write(path) = added
            && !path.exists()
        {
            // If it cannot be created, the sandbox refuses the access again.
            let _ = std::fs::create_dir_all(path);
        }
    }
    confinement.access.extend(access);
}

/// The question whether a command runs again with `access`.
fn question(
    call: &ToolCall,
    params: &BashParams,
    request: &AccessRequest,
    access: &[SandboxAccess],
) -> Confirmation {
    let phrases: Vec<String> = access.iter().map(SandboxAccess::phrase).collect();
    let grants: Option<Vec<_>> = access.iter().map(SandboxAccess::to_grant).collect();
    let proposal = match grants {
        Some(grants) => ApprovalProposal::Grants(grants),
        None => ApprovalProposal::Nothing {
            why: "the OS sandbox is left out for one run at a time".to_owned(),
        },
    };
    let refused = request.message.split("; ").next().unwrap_or_default();
    Confirmation {
        tool: BASH.to_owned(),
        subject: params.command.clone(),
        risk: Risk::High,
        reason: format!(
            "{refused}. Run the command again {}?",
            phrases.join(" and ")
        ),
        digest: digest(BASH, &call.params),
        offer: ApprovalOptions::new(proposal, None),
        ..Confirmation::default()
    }
}
