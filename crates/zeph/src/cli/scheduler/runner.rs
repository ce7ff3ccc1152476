//! Runs due tasks in sequence, each in its own session.
//!
//! A task that becomes due while another one runs is claimed immediately and queued, so that it is neither missed nor
//! claimed by another process.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use zeph_core::schedule::{DueRun, since};
use zeph_core::{Channel, LoopbackEvent, Schedule, TurnEnd, TurnOutcome};
use zeph_memory::{RunState, StoreError};
use zeph_tools::Phase;
use zeph_tui::{TerminalChannel, TerminalOptions};

use super::task_channel::TaskChannel;
use crate::assemble::{
    App, AuditLines, ConversationCaller, SessionChoice, choose_provider, open_session,
};
use crate::cli::args::GlobalArgs;
use crate::cli::{Exit, Outcome, with_causes};
use crate::config::{Environment, Loaded};
use crate::output::sanitize::clean;
use crate::output::stderr_line;
use crate::terminal;

/// The interval of checks for due tasks of other processes, and of lease renewals; much less than
/// [`zeph_core::schedule::LEASE`].
pub(super) const LOOK: Duration = Duration::from_secs(2);
/// The delay of a task that is not reported, in milliseconds.
const PROMPT: i64 = 2000;

/// Runs due tasks.
pub(super) struct Runner {
    global: GlobalArgs,
    loaded: Loaded,
    env: Environment,
    schedule: Schedule,
    /// The concurrent conversation, which owns the streams of the process.
    told_to: Option<Arc<dyn Channel>>,
    /// The queue of claimed tasks.
    waiting: VecDeque<DueRun>,
    outage: OutageReport,
}

impl Runner {
    pub(super) fn new(
        global: &GlobalArgs,
        loaded: &Loaded,
        env: &Environment,
        schedule: Schedule,
        told_to: Option<Arc<dyn Channel>>,
    ) -> Self {
        Self {
            // No advance approval for calls that are not known yet.
            global: GlobalArgs {
                yes: false,
                // The conversation owns the streams of the process.
                quiet: global.quiet || told_to.is_some(),
                ..global.clone()
            },
            loaded: loaded.clone(),
            env: env.clone(),
            schedule,
            told_to,
            waiting: VecDeque::new(),
            outage: OutageReport::default(),
        }
    }

    fn tell(&self, text: String) {
        match &self.told_to {
            Some(channel) => channel.emit(LoopbackEvent::Notice(text)),
            None => stderr_line(&clean(&text)),
        }
    }

    /// Reports an outage of the database once, until it is over.
    fn report_outage(&mut self, error: StoreError) {
        if let Some(message) = self.outage.begin(error) {
            self.tell(message);
        }
    }

    /// Runs tasks as they become due, until cancelled. Continues after an outage of the database.
    ///
    /// # Errors
    /// If the database cannot be used.
    pub(super) async fn watch(&mut self, cancel: &CancellationToken) -> Result<(), StoreError> {
        while !cancel.is_cancelled() {
            let wait = match self.due_and_next(cancel).await {
                Ok(wait) => {
                    self.outage = OutageReport::default();
                    wait
                }
                Err(error) if error.is_temporary() => {
                    self.report_outage(error);
                    LOOK
                }
                Err(error) => return Err(error),
            };
            let _ = cancel.run_until_cancelled(tokio::time::sleep(wait)).await;
        }
        Ok(())
    }

    /// Runs the tasks that are due now, and returns the time until the next one.
    async fn due_and_next(&mut self, cancel: &CancellationToken) -> Result<Duration, StoreError> {
        self.due(cancel).await?;
        self.until_next(None).await
    }

    /// The time until a task other than `busy` may start, according to the database.
    async fn until_next(&self, busy: Option<i64>) -> Result<Duration, StoreError> {
        let now = Timestamp::now().as_millisecond();
        let tasks = self.schedule.free_tasks(&self.claimed(busy)).await?;
        let next = tasks.iter().filter_map(|task| task.next_at).min();
        Ok(next.map_or(LOOK, |next| {
            Duration::from_millis(u64::try_from(next - now).unwrap_or(0))
                .clamp(Duration::from_millis(50), LOOK)
        }))
    }

    /// The tasks that run or wait here.
    fn claimed(&self, busy: Option<i64>) -> Vec<i64> {
        let waiting = self.waiting.iter().map(|due| due.task.id);
        waiting.chain(busy).collect()
    }

    /// Reports missed tasks, and claims due ones. `busy` is the running task.
    async fn collect(&mut self, busy: Option<i64>) -> Result<(), StoreError> {
        for line in self.schedule.report().await? {
            self.tell(format!("scheduled {line}"));
        }
        loop {
            match self.schedule.take_due(&self.claimed(busy)).await? {
                Some(due) => self.waiting.push_back(due),
                None => return Ok(()),
            }
        }
    }

    /// Runs the tasks that are due now, in sequence. Returns the exit code of the last failed one.
    ///
    /// # Errors
    /// If the database cannot be used.
    pub(super) async fn due(&mut self, cancel: &CancellationToken) -> Result<Exit, StoreError> {
        let mut exit = Exit::Done;
        loop {
            self.collect(None).await?;
            let Some(run) = self.waiting.front().map(|due| due.run) else {
                return Ok(exit);
            };
            if !cancel.is_cancelled() && !self.schedule.renew(run).await? {
                // Its claim ended during an outage, and it is reported as interrupted.
                self.waiting.pop_front();
                continue;
            }
            let Some(due) = self.waiting.pop_front() else {
                return Ok(exit);
            };
            if cancel.is_cancelled() {
                self.give_up(due).await?;
                return Ok(exit);
            }
            let number = due.task.id;
            self.tell(begins(&due));
            let ended = self.one(&due, cancel).await;
            let (state, mut note) = match &ended {
                Ok(outcome) if outcome.end == TurnEnd::Done => (RunState::Done, String::new()),
                Ok(outcome) => (
                    RunState::Failed,
                    outcome.message.clone().unwrap_or_default(),
                ),
                Err(error) => (RunState::Failed, with_causes(error)),
            };
            if state == RunState::Done {
                note = since(due.between);
            }
            self.schedule.end(due.run, state, &note).await?;
            let ended = ended.map_or(Exit::Failed, |outcome| Exit::of(Outcome::Turn(outcome.end)));
            if ended != Exit::Done {
                self.tell(format!("scheduled task {number} failed: {note}"));
                exit = ended;
            }
        }
    }

    /// Marks the queued tasks as missed.
    async fn give_up(&mut self, first: DueRun) -> Result<(), StoreError> {
        for due in std::iter::once(first).chain(std::mem::take(&mut self.waiting)) {
            let note = "the runner was stopped before this task started";
            self.schedule.end(due.run, RunState::Missed, note).await?;
            self.tell(format!(
                "scheduled task {} did not start: {}",
                due.task.id, due.task.said
            ));
        }
        Ok(())
    }

    /// Renews the leases and claims tasks that have become due. Returns whether `run` still belongs to this process.
    async fn renew(&mut self, due: &DueRun) -> Result<bool, StoreError> {
        for waiting in &self.waiting {
            self.schedule.renew(waiting.run).await?;
        }
        let own = self.schedule.renew(due.run).await?;
        self.collect(Some(due.task.id)).await?;
        Ok(own)
    }

    /// Renews the leases and claims due tasks until the turn has `ended`. Cancels `turn` if the run
    /// no longer belongs to this process. During an outage of the database the turn continues.
    async fn hold(&mut self, due: &DueRun, turn: &CancellationToken, ended: &CancellationToken) {
        let busy = Some(due.task.id);
        let mut next = self.until_next(busy).await;
        loop {
            let wait = match next {
                Ok(wait) => {
                    self.outage = OutageReport::default();
                    wait
                }
                Err(error) => {
                    self.report_outage(error);
                    LOOK
                }
            };
            let slept = ended.run_until_cancelled(tokio::time::sleep(wait)).await;
            if slept.is_none() {
                return;
            }
            next = match self.renew(due).await {
                Ok(is_own) => {
                    if !is_own {
                        turn.cancel();
                    }
                    self.until_next(busy).await
                }
                Err(error) => Err(error),
            };
        }
    }

    /// Runs one turn in a new session.
    async fn one(
        &mut self,
        due: &DueRun,
        cancel: &CancellationToken,
    ) -> anyhow::Result<TurnOutcome> {
        let provider = choose_provider(
            &self.loaded,
            &self.env,
            self.global.model.as_deref(),
            self.global.quiet,
        )?;
        let (loaded, env) = (self.loaded.clone(), self.env.clone());
        let options = self.global.build_options();
        let assembly =
            App::for_conversation(loaded, env, options, AuditLines::Stderr, &provider).await?;
        let open = open_session(&assembly.store, &SessionChoice::New, &assembly.env.cwd).await?;
        self.schedule.place(due.run, &open.id).await?;
        let (channel, streams): (Arc<dyn Channel>, _) = match &self.told_to {
            Some(told_to) => (Arc::new(TaskChannel::new(told_to, due.task.id)), None),
            None => {
                let streams = Arc::new(TerminalChannel::one_shot(TerminalOptions {
                    can_ask: false,
                    ..terminal::options(self.global.quiet, false)
                }));
                (Arc::clone(&streams) as _, Some(streams))
            }
        };
        let by = ConversationCaller {
            phase: Phase::Autonomous,
            caller_id: Some(format!("scheduler:{}", due.task.id)),
        };
        let mut agent = assembly
            .open_agent_for(by, &provider, channel, &open.id, None)
            .await?;
        let (own, ended) = (cancel.child_token(), CancellationToken::new());
        let turn = async {
            let outcome = agent.run_turn(&due.task.prompt, &own).await;
            ended.cancel();
            outcome
        };
        let (outcome, ()) = tokio::join!(turn, self.hold(due, &own, &ended));
        if let Some(streams) = streams {
            streams.finish_answer(&outcome.text)?;
        } else {
            self.tell(clean(&format!(
                "scheduled task {} (session {}): {}",
                due.task.id, open.id, outcome.text
            )));
        }
        drop((agent, open));
        assembly.close().await?;
        Ok(outcome)
    }
}

/// Reports an outage of the database once.
#[derive(Debug, Default)]
pub(super) struct OutageReport {
    is_reported: bool,
}

impl OutageReport {
    /// The message of a new outage.
    pub(super) fn begin(&mut self, error: StoreError) -> Option<String> {
        (!std::mem::replace(&mut self.is_reported, true)).then(|| outage(error))
    }
}

/// The message when the database is not available.
fn outage(error: StoreError) -> String {
    format!("scheduled tasks wait: {}", with_causes(&error.into()))
}

/// The message when a task begins.
fn begins(due: &DueRun) -> String {
    let mut text = format!("scheduled task {} starts: {}", due.task.id, due.task.said);
    let now = Timestamp::now().as_millisecond();
    let late = now - due.task.next_at.unwrap_or(now);
    if late > PROMPT {
        text.push_str(&format!(" ({} s late", late / 1000));
        if due.between > 0 {
            text.push_str(&format!("; it was due then, {}", since(due.between)));
        }
        text.push(')');
    }
    text
}
