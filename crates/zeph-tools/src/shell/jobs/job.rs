//! One job: what is known of it, and the task that follows it to its end.

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
use crate::shell::runner::{
    BackgroundProcess, CommandOutcome, EndReason, RunError, RunningCommand,
};

use super::pending_output::PendingOutput;
use super::report;

/// How a job came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Origin {
    /// It was started in the background.
    Started,
    /// A command left it behind.
    Left,
}

/// Who stopped a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// `job_kill`.
    Killed,
    /// Its time was up.
    TimedOut,
}

/// What a job is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Its command runs.
    Running,
    /// Its shell has exited; these go on.
    Left(Vec<BackgroundProcess>),
    /// Nothing of it runs any more.
    Ended(End),
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// How it ended, or the words for why that is not known.
    pub(super) ended: Result<CommandOutcome, String>,
    /// How long it ran.
    pub(super) after: Duration,
    /// Who stopped it.
    pub(super) stop: Option<Stop>,
}

/// A job as it was at one moment, with the output that was new then.
#[derive(Debug)]
pub(in crate::shell) struct Snapshot {
    pub(super) state: State,
    pub(super) age: Duration,
    /// How often it has been asked, questions in quick succession counted once.
    pub(super) looks: u32,
    /// Whether its end is told for the first time.
    pub(super) first: bool,
    pub(super) output: Captured,
}

/// One job.
pub(in crate::shell) struct Job {
    /// Its name.
    pub(in crate::shell) id: String,
    pub(super) conversation: String,
    pub(super) command: String,
    pub(super) origin: Origin,
    /// Where its command started.
    pub(super) place: PathBuf,
    /// After how long it is ended.
    pub(super) limit: Option<Duration>,
    call_id: String,
    events: Arc<dyn EventSink>,
    started: Instant,
    cancel: CancellationToken,
    inner: Mutex<Inner>,
    /// Notified when there is output or another state.
    changed: Notify,
}

struct Inner {
    state: State,
    unread: PendingOutput,
    stop: Option<Stop>,
    looks: u32,
    looked: Option<Instant>,
    told: bool,
    /// Nobody is told when it ends.
    muted: bool,
}

/// What a job is made of.
pub(super) struct NewJob {
    pub(super) id: String,
    pub(super) conversation: String,
    pub(super) command: String,
    pub(super) origin: Origin,
    pub(super) place: PathBuf,
    pub(super) limit: Option<Duration>,
    pub(super) call_id: String,
    pub(super) events: Arc<dyn EventSink>,
    /// How much of its output is kept.
    pub(super) overflow: OverflowConfig,
    /// What is kept out of it.
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

    /// Whether its end has been told.
    pub(super) fn is_told(&self) -> bool {
        self.inner().told
    }

    pub(super) fn state(&self) -> State {
        self.inner().state.clone()
    }

    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends it, with all its processes; [`Job::wait_until_ended`] says when they are gone.
    pub(super) fn stop(&self, stop: Stop) {
        self.inner().stop.get_or_insert(stop);
        self.cancel.cancel();
    }

    /// Lets nobody be told when it ends.
    pub(super) fn mute(&self) {
        self.inner().muted = true;
    }

    /// Waits until it has ended, at most for `limit`.
    pub(super) async fn wait_until_ended(&self, limit: Duration) {
        self.wait_for(limit, |inner| matches!(inner.state, State::Ended(_)))
            .await;
    }

    /// Waits until it has ended or there is something to read, at most for `limit`.
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
            // From here on no change is missed.
            changed.as_mut().enable();
            if there(&self.inner()) || timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }

    /// What it is about, with the output since the last time. `quick`: questions that follow each
    /// other faster count once.
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

    /// Follows a command that was started in the background to its end.
    pub(super) async fn follow(self: Arc<Self>, mut running: Box<dyn RunningCommand>) {
        let work = async {
            let mut output = |stream, bytes: &[u8]| self.record(stream, bytes);
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
                () = sleep(limit) => self.stop(Stop::TimedOut),
            }
        }
        work.await;
    }

    /// Follows what a command left behind to its end.
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
        let mut output = |stream, bytes: &[u8]| self.record(stream, bytes);
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
