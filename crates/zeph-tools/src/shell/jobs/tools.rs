//! The calls about jobs: the start of a job, and the three tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tracing::Instrument as _;

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::contract::confinement::{Confinement, SandboxProfile};
use crate::error::ToolError;
use crate::filter::FilterPipeline;
use crate::output::ToolOutput;
use crate::overflow::{Overflow, OverflowConfig};
use crate::shell::bash::{self, BashParams};
use crate::shell::envelope::ShellOutputEnvelope;
use crate::shell::executor::{ShellExecutor, run_failed};
use crate::shell::foreground::{MAX_QUESTIONS, add_access, command_span};
use crate::shell::model_output::{ModelOutput, budget};
use crate::shell::sandbox::access_request::AccessRequest;
use crate::shell::time_limit::TimeLimit;
use zeph_exec::runner::{CommandOutcome, CommandSpec, RunError, RunningCommand};

use super::definitions::{JobParams, NoParams};
use super::job::{End, Job, Origin, Snapshot, State, Stop};
use super::report;

/// The time that `job_output` waits for output or the end of the job.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time that `job_output` then waits for more output and the end.
const REST: Duration = Duration::from_millis(200);
/// The time in which an unconfirmed job that the sandbox refuses an access is expected to end.
const FIRST_REFUSAL: Duration = Duration::from_secs(2);
/// Queries within this time count once.
const QUICK: Duration = Duration::from_secs(1);
/// The maximum time to wait for the end of a job: SIGTERM, two seconds, SIGKILL, and a margin.
const ENDING: Duration = Duration::from_secs(6);

impl ShellExecutor {
    /// Starts an admitted command as a job. Returns when it runs.
    pub(in crate::shell) async fn start_job(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        (mut command, limit): (CommandSpec, Option<TimeLimit>),
    ) -> Result<ToolOutput, ToolError> {
        self.jobs.check_room(&call.conversation)?;
        // The job applies the limit, also to the processes that the shell leaves behind.
        command.timeout = None;
        let mut confinement = cx.confinement().clone();
        let mut questions = 0;
        loop {
            let started = self.start_once(call, cx, params, &command, limit, &confinement);
            let job = started.await?;
            if confinement.profile != SandboxProfile::Unconfirmed || cx.access_prompt().is_none() {
                return Ok(running(&job));
            }
            // A server that may not open its port ends soon.
            job.wait_until_ended(FIRST_REFUSAL).await;
            if !job.is_ended() {
                return Ok(running(&job));
            }
            let seen = job.look(QUICK);
            let approved = match self.request_of(&job, &seen) {
                Some(request) if questions < MAX_QUESTIONS => {
                    self.ask_for_access(call, cx, params, &request).await
                }
                _ => Vec::new(),
            };
            if approved.is_empty() {
                return self.result_of(&job, seen, cx, call);
            }
            questions += 1;
            add_access(&mut confinement, approved);
        }
    }

    /// Starts a job in a sandbox.
    async fn start_once(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        command: &CommandSpec,
        limit: Option<TimeLimit>,
        confinement: &Confinement,
    ) -> Result<Arc<Job>, ToolError> {
        let env = command.env.clone();
        let sandbox = Arc::new(self.prepare_sandbox(params, confinement, env)?);
        let command = CommandSpec {
            env: sandbox.env.clone(),
            sandbox: sandbox.for_runner(),
            ..command.clone()
        };
        let place = command.cwd.clone();
        let running = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
            running = self.launch(command).instrument(command_span()) => running.inspect_err(|error| {
                cx.trace().sandbox_missing = matches!(error, RunError::Unconfined(_));
            }),
        };
        let running = running.map_err(|error| run_failed(error, ToolOutput::default()))?;
        let job = self
            .jobs
            .open(call, cx, &params.command, (place, sandbox), limit)?;
        tokio::spawn(Arc::clone(&job).follow(running));
        Ok(job)
    }

    /// The accesses that the sandbox refused to an ended job.
    fn request_of(&self, job: &Job, seen: &Snapshot) -> Option<AccessRequest> {
        let State::Ended(End {
            ended: Ok(ended), ..
        }) = &seen.state
        else {
            return None;
        };
        let sandbox = job.sandbox.as_ref()?;
        let (stderr, merged) = (&seen.output.stderr.text, &seen.output.merged.text);
        self.refusal(ended, sandbox, &job.place, stderr, merged)
    }

    async fn launch(&self, command: CommandSpec) -> Result<Box<dyn RunningCommand>, RunError> {
        let mut running = self.runner.start(command).await?;
        running.started().await?;
        Ok(running)
    }

    /// Adds a job for processes that a command left behind. `None` if there are too many; they are then ended.
    pub(in crate::shell) fn adopt(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        running: Box<dyn RunningCommand>,
        ended: &CommandOutcome,
    ) -> Option<String> {
        let job = self.jobs.adopt(call, cx, &params.command)?;
        tokio::spawn(Arc::clone(&job).follow_rest(running, ended.clone()));
        Some(job.id.clone())
    }

    /// Runs `job_output`: returns the new output and the state. For an ended job, it fails as the command would have
    /// failed in the foreground.
    pub(in crate::shell) async fn job_output(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let params: JobParams = call.parse()?;
        let job = self.jobs.find(&call.conversation, &params.job_id)?;
        let news = async {
            job.wait_for_news(PATIENCE).await;
            job.wait_until_ended(REST).await;
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
            () = news => {}
        }
        let seen = job.look(QUICK);
        self.result_of(&job, seen, cx, call)
    }

    /// The result about a job: its new output and state, or the failure that the command would have in the foreground.
    fn result_of(
        &self,
        job: &Job,
        seen: Snapshot,
        cx: &CallContext,
        call: &ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        if let State::Ended(End {
            ended: Ok(ended), ..
        }) = &seen.state
            && seen.first
        {
            self.tell(call, cx, ended);
        }
        cx.trace().secrets.extend(seen.output.secrets);
        let failure = self.failure_of(job, &seen);
        let output = Box::new(told(job, seen, &self.overflow));
        match failure {
            None => Ok(*output),
            Some((exit_code, category, message)) => Err(ToolError::Shell {
                exit_code,
                category,
                message: format!("{}: {message}", job.id),
                output,
            }),
        }
    }

    /// The failure of a job that ended or reached its time limit. Processes that a command left behind have no exit
    /// code.
    fn failure_of(
        &self,
        job: &Job,
        seen: &Snapshot,
    ) -> Option<(Option<i32>, ToolErrorCategory, String)> {
        let State::Ended(end) = &seen.state else {
            return None;
        };
        let ended = match &end.ended {
            Err(why) => return Some((None, ToolErrorCategory::ServerError, why.clone())),
            Ok(ended) => ended,
        };
        if end.stop == Some(Stop::Killed) || job.origin == Origin::Left {
            return None;
        }
        let stderr = &seen.output.stderr.text;
        let refusal = self.request_of(job, seen);
        let refused = refusal.map(|it| (ToolErrorCategory::PolicyBlocked, it.message));
        let (category, message) = refused.or_else(|| Self::failure(ended, stderr, job.limit))?;
        Some((Some(ended.exit.code), category, message))
    }

    /// Runs `job_kill`: ends all processes of a job, and returns its last output.
    pub(in crate::shell) async fn job_kill(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let params: JobParams = call.parse()?;
        let job = self.jobs.find(&call.conversation, &params.job_id)?;
        if !job.is_ended() {
            job.stop(Stop::Killed);
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
                () = job.wait_until_ended(ENDING) => {}
            }
        }
        let seen = job.look(QUICK);
        cx.trace().secrets.extend(seen.output.secrets);
        Ok(told(&job, seen, &self.overflow))
    }

    /// Runs `job_list`: returns the jobs of the conversation.
    pub(in crate::shell) fn job_list(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let NoParams {} = call.parse()?;
        let jobs = self.jobs.of(&call.conversation);
        let lines: Vec<String> = jobs.iter().map(|job| report::line(job)).collect();
        let forms: Vec<Value> = jobs.iter().map(|job| report::form(job)).collect();
        let text = if lines.is_empty() {
            "there are no jobs".to_owned()
        } else {
            lines.join("\n")
        };
        Ok(ToolOutput::text(text).with_raw(json!({ "jobs": forms })))
    }
}

/// The result of the start of a job.
fn running(job: &Job) -> ToolOutput {
    let id = &job.id;
    ToolOutput::text(format!(
        "{id} runs in the background until it ends, job_kill stops it, or the session ends; \
         job_output shows its output"
    ))
    .with_raw(json!({ "job_id": id, "state": "running" }))
}

/// Sanitizes the new output for display. The head and the tail of a shortened output are unchanged. Returns the whole
/// output if a part of it is missing.
fn sanitize(seen: &mut Snapshot, config: &OverflowConfig) -> Option<Overflow> {
    let merged = &mut seen.output.merged;
    if let Some(shortened) = merged.shortened.take() {
        return Some(Overflow::Spilled(shortened));
    }
    let mut run = FilterPipeline::off().start("", budget(config));
    run.push(&merged.text);
    let reduced = ModelOutput::new(merged.clone(), run.finish(None), config);
    merged.text = reduced.text;
    reduced.overflow
}

/// The result about a job: the text, and the JSON result.
fn told(job: &Job, mut seen: Snapshot, config: &OverflowConfig) -> ToolOutput {
    let truncated = seen.output.truncated();
    let overflow = sanitize(&mut seen, config);
    let text = report::text(job, &mut seen);
    let output = ToolOutput {
        overflow,
        ..ToolOutput::text(text)
    };
    match seen.state {
        State::Running | State::Left(_) => {
            output.with_raw(report::running_form(job, &seen, truncated))
        }
        State::Ended(End {
            ended: Ok(ended),
            after,
            ..
        }) => {
            let envelope = ShellOutputEnvelope {
                truncated,
                stdout: seen.output.stdout.text,
                stderr: seen.output.stderr.text,
                exit_code: ended.exit.code,
                signal: ended.exit.signal,
                duration_ms: report::millis(after),
            };
            bash::with_envelope(output, envelope)
        }
        State::Ended(_) => output,
    }
}
