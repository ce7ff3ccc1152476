//! The calls about jobs: starting one, and the three tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::filter::FilterPipeline;
use crate::output::ToolOutput;
use crate::overflow::{Overflow, OverflowConfig};
use crate::shell::bash::{self, BashParams};
use crate::shell::envelope::ShellOutputEnvelope;
use crate::shell::executor::{ShellExecutor, run_failed};
use crate::shell::model_output::{ModelOutput, budget};
use crate::shell::runner::{CommandOutcome, CommandSpec, RunningCommand};

use super::definitions::{JobParams, NoParams};
use super::job::{End, Job, Origin, Snapshot, State, Stop};
use super::report;

/// How long `job_output` waits for something to tell.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits, once there is something, for the rest and the end.
const REST: Duration = Duration::from_millis(200);
/// Questions that follow each other faster count once.
const QUICK: Duration = Duration::from_secs(1);
/// How long the end of a job is waited for: SIGTERM, two seconds, SIGKILL, and a margin.
const ENDING: Duration = Duration::from_secs(6);

impl ShellExecutor {
    /// Starts an admitted command as a job. Returns when it runs.
    pub(in crate::shell) async fn start_job(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
        mut command: CommandSpec,
    ) -> Result<ToolOutput, ToolError> {
        self.jobs.check_room(&call.conversation)?;
        // It is the job's own: it holds for what the shell leaves behind as well.
        let limit = command.timeout.take();
        let place = command.cwd.clone();
        let running = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
            running = self.launch(command) => running?,
        };
        let job = self.jobs.open(call, cx, &params.command, place, limit)?;
        tokio::spawn(Arc::clone(&job).follow(running));
        let id = &job.id;
        Ok(ToolOutput::text(format!(
            "{id} runs in the background until it ends, job_kill ends it, or the session is over; \
             job_output tells what it prints"
        ))
        .with_raw(json!({ "job_id": id, "state": "running" })))
    }

    async fn launch(&self, command: CommandSpec) -> Result<Box<dyn RunningCommand>, ToolError> {
        let failed = |error| run_failed(error, ToolOutput::default());
        let mut running = self.runner.start(command).await.map_err(failed)?;
        running.started().await.map_err(failed)?;
        Ok(running)
    }

    /// Makes what a command left behind a job. `None` when there are too many: then it is ended.
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

    /// `job_output`: what is new, and how the job is. That of an ended job fails as the command
    /// would have failed in the foreground.
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
        if let State::Ended(End {
            ended: Ok(ended), ..
        }) = &seen.state
            && seen.first
        {
            self.tell(call, cx, ended);
        }
        cx.trace().secrets.extend(seen.output.secrets);
        let failure = self.failure_of(&job, &seen);
        let output = Box::new(told(&job, seen, &self.overflow));
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

    /// How a job that ended by itself, or for lack of time, failed. What was left behind has no
    /// exit code of its own.
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
        let limit = job.limit.unwrap_or_default().as_secs();
        let (stderr, merged) = (&seen.output.stderr.text, &seen.output.merged.text);
        let (category, message) = self.failure(ended, &job.place, stderr, merged, limit)?;
        Some((Some(ended.exit.code), category, message))
    }

    /// `job_kill`: ends all of a job, and tells what it printed last.
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

    /// `job_list`: the jobs of the conversation.
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

/// Makes the new output what a terminal would show of it; of one that is too long head and tail
/// stay as they are. Returns all of it when something went.
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

/// What is told of a job: the text, and the envelope of one that has ended.
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
