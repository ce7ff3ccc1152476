//! A background job: its state, and the task that follows it to its end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{Instant as Moment, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::event::{EventSink, OutputStream, ToolEvent};
use crate::overflow::OverflowConfig;
use crate::secrets::SecurityPatterns;
use crate::shell::capture::Captured;
use crate::shell::sandbox::profile::PreparedSandbox;
use crate::shell::time_limit::TimeLimit;
use zeph_exec::StdStream;
use zeph_exec::runner::{BackgroundProcess, CommandOutcome, EndReason, RunError, RunningCommand};

use super::pending_output::PendingOutput;
use super::report;

/// The origin of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Origin {
    /// A call started it in the background.
    Started,
    /// It consists of processes that a command left behind.
    Left,
}

/// The reason why a job was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// `job_kill` ended it.
    Killed,
    /// Its time limit was reached.
    TimedOut,
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// The command runs.
    Running,
    /// The shell has exited, and these processes still run.
    Left(Vec<BackgroundProcess>),
    /// No process of the job runs.
    Ended(End),
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// The outcome of the command, or the reason why it is unknown.
    pub(super) ended: Result<CommandOutcome, String>,
    /// The duration of the job.
    pub(super) after: Duration,
    /// The reason why it was stopped, if it was.
    pub(super) stop: Option<Stop>,
}

/// The state of a job at one moment, with its new output.
#[derive(Debug)]
pub(in crate::shell) struct Snapshot {
    pub(super) state: State,
    pub(super) age: Duration,
    /// The number of queries so far. Queries in quick succession count once.
    pub(super) looks: u32,
    /// Whether this is the first report of its end.
    pub(super) first: bool,
    pub(super) output: Captured,
}

/// One job.
pub(in crate::shell) struct Job {
    /// The id of the job.
    pub(in crate::shell) id: String,
    pub(super) conversation: String,
    pub(super) command: String,
    pub(super) origin: Origin,
    /// The directory in which the command started.
    pub(super) place: PathBuf,
    /// The sandbox of its command; `None` for processes that a command left behind.
    pub(super) sandbox: Option<Arc<PreparedSandbox>>,
    /// The time limit.
    pub(super) limit: Option<TimeLimit>,
    call_id: String,
    events: Arc<dyn EventSink>,
    started: Instant,
    cancel: CancellationToken,
    inner: Mutex<Inner>,
    /// Notified on new output and on a change of the state.
    changed: Notify,
}

struct Inner {
    state: State,
    unread: PendingOutput,
    stop: Option<Stop>,
    looks: u32,
    looked: Option<Instant>,
    told: bool,
    /// Whether the end of the job is not reported to the user.
    muted: bool,
}

/// The properties of a new job.
pub(super) struct NewJob {
    pub(super) id: String,
    pub(super) conversation: String,
    pub(super) command: String,
    pub(super) origin: Origin,
    pub(super) place: PathBuf,
    pub(super) sandbox: Option<Arc<PreparedSandbox>>,
    pub(super) limit: Option<TimeLimit>,
    pub(super) call_id: String,
    pub(super) events: Arc<dyn EventSink>,
    /// The limits for its output.
    pub(super) overflow: OverflowConfig,
    /// The secrets that are removed from its output.
    pub(super) secrets: Arc<SecurityPatterns>,
}

impl Job {
    pub(super) fn new(new: NewJob) -> Arc<Self> {
        Arc::new(Self {
            id: new.id,
            conversation: new.conversation,
            command: new.command,
            origin: new.origin,
            place: new.place,
            sandbox: new.sandbox,
            limit: new.limit,
            call_id: new.call_id,
            events: new.events,
            started: Instant::now(),
            cancel: CancellationToken::new(),
            inner: Mutex::new(Inner {
                state: State::Running,
                unread: PendingOutput::new(new.overflow, new.secrets),
                stop: None,
                looks: 0,
                looked: None,
                told: false,
                muted: new.origin == Origin::Left,
            }),
            changed: Notify::new(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.inner().state, State::Ended(_))
    }

    /// Whether the end of the job was reported.
    pub(super) fn is_told(&self) -> bool {
        self.inner().told
    }

    pub(super) fn state(&self) -> State {
        self.inner().state.clone()
    }

    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends all processes of the job. [`Job::wait_until_ended`] waits until they are gone.
    pub(super) fn stop(&self, stop: Stop) {
        self.inner().stop.get_or_insert(stop);
        self.cancel.cancel();
    }

    /// Suppresses the notice about the end of the job.
    pub(super) fn mute(&self) {
        self.inner().muted = true;
    }

    /// Waits until the job has ended, at most for `limit`.
    pub(super) async fn wait_until_ended(&self, limit: Duration) {
        self.wait_for(limit, |inner| matches!(inner.state, State::Ended(_)))
            .await;
    }

    /// Waits for output or the end of the job, at most for `limit`.
    pub(super) async fn wait_for_news(&self, limit: Duration) {
        self.wait_for(limit, |inner| {
            !inner.unread.is_empty() || matches!(inner.state, State::Ended(_))
        })
        .await;
    }

    async fn wait_for(&self, limit: Duration, there: impl Fn(&Inner) -> bool + Send) {
        let deadline = Moment::now() + limit;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Every later change is noticed.
            changed.as_mut().enable();
            if there(&self.inner()) || timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }

    /// The current state, with the output since the last call. Queries within `quick` count once.
    pub(super) fn look(&self, quick: Duration) -> Snapshot {
        let mut inner = self.inner();
        if inner.looked.is_none_or(|last| last.elapsed() >= quick) {
            inner.looks += 1;
            inner.looked = Some(Instant::now());
        }
        let ended = matches!(inner.state, State::Ended(_));
        let first = ended && !std::mem::replace(&mut inner.told, ended);
        Snapshot {
            state: inner.state.clone(),
            age: self.age(),
            looks: inner.looks,
            first,
            output: inner.unread.take(),
        }
    }

    fn set(&self, state: State) {
        self.inner().state = state;
        self.changed.notify_waiters();
    }

    fn end(&self, result: Result<CommandOutcome, RunError>) {
        let mut inner = self.inner();
        inner.unread.finish();
        let stop = inner.stop;
        let ended = result.map_err(|error| error.to_string()).map(|mut ended| {
            if ended.cause == EndReason::Cancelled && stop == Some(Stop::TimedOut) {
                ended.cause = EndReason::TimedOut;
            }
            ended.background.clear();
            ended
        });
        let end = End {
            ended,
            after: self.age(),
            stop,
        };
        let notice =
            (!inner.muted && stop != Some(Stop::Killed)).then(|| report::notice(self, &end));
        inner.state = State::Ended(end);
        drop(inner);
        self.changed.notify_waiters();
        if let Some(text) = notice {
            let call_id = self.call_id.clone();
            self.events.emit(ToolEvent::Notice { call_id, text });
        }
    }

    /// Follows a background command to its end.
    pub(super) async fn follow(self: Arc<Self>, mut running: Box<dyn RunningCommand>) {
        let work = async {
            let mut output = |stream: StdStream, bytes: &[u8]| self.record(stream.into(), bytes);
            let ended = running.wait(&self.cancel, &mut output).await;
            let result = match ended {
                Ok(ended) if !ended.background.is_empty() => {
                    self.rest(running.as_mut(), ended).await
                }
                ended => ended,
            };
            self.end(result);
        };
        tokio::pin!(work);
        if let Some(limit) = self.limit {
            tokio::select! {
                biased;
                () = &mut work => return,
                () = sleep(limit.duration()) => self.stop(Stop::TimedOut),
            }
        }
        work.await;
    }

    /// Follows the processes that a command left behind to their end.
    pub(super) async fn follow_rest(
        self: Arc<Self>,
        mut running: Box<dyn RunningCommand>,
        ended: CommandOutcome,
    ) {
        let result = self.rest(running.as_mut(), ended).await;
        self.end(result);
    }

    async fn rest(
        &self,
        running: &mut dyn RunningCommand,
        ended: CommandOutcome,
    ) -> Result<CommandOutcome, RunError> {
        self.set(State::Left(ended.background.clone()));
        let mut output = |stream: StdStream, bytes: &[u8]| self.record(stream.into(), bytes);
        let clean = running.wait_for_rest(&self.cancel, &mut output).await?;
        let cause = if self.cancel.is_cancelled() {
            EndReason::Cancelled
        } else {
            ended.cause
        };
        Ok(CommandOutcome {
            cause,
            lingering: !clean,
            ..ended
        })
    }

    fn record(&self, stream: OutputStream, bytes: &[u8]) {
        self.inner().unread.push(stream, bytes);
        self.changed.notify_waiters();
    }
}
