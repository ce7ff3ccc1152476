//! Tasks that are due later. `when` parses time expressions, `cron` computes repeated times, and [`Schedule`] stores,
//! claims and reports the tasks of one project.
//!
//! The process that claims a time first runs the task. A time that passed while no process was running is *missed*:
//! it is reported, and run late only if that is configured. A run that lost its process is *interrupted*: it is
//! reported, and not repeated. The current time comes from a [`Clock`].

mod config;
pub mod cron;
pub mod when;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use zeph_memory::schedule::MAX_SCHEDULED;
use zeph_memory::{NewScheduled, RunState, Scheduled, ScheduledRun, Store, StoreError};

pub use config::SchedulerConfig;
use cron::Cron;
use when::{When, WhenError, shown};

/// The time for which a run remains claimed without a renewal.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// Bytes of a task.
const MAX_BYTES: usize = 16 * 1024;
/// Missed times that are counted.
const MAX_COUNTED: usize = 1000;
/// The minimum difference at which a clock that was set back is believed. A smaller difference makes no task due
/// twice. The value is that of Vixie cron (`cron(8)`).
const SET_BACK: SignedDuration = SignedDuration::from_hours(3);
/// The name of a time zone that is not in the database: the zone of the clock.
const LOCAL: &str = "local";

/// The source of the current time and time zone.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Zoned;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Zoned {
        Zoned::now()
    }
}

/// The reason why a task is not stored.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The time is invalid.
    #[error("/when: {0}")]
    When(#[from] WhenError),
    /// The task is empty.
    #[error("/task: expected a prompt, got an empty text")]
    Empty,
    /// The task is too long.
    #[error(
        "/task: expected at most {MAX_BYTES} bytes; write the text to a file and name the \
        file"
    )]
    Long,
    /// The project has too many tasks.
    #[error("{MAX_SCHEDULED} tasks are already scheduled here; `zeph scheduler rm` cancels one")]
    Full,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A due task that the caller claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DueRun {
    /// The task.
    pub task: Scheduled,
    /// The number of the run.
    pub run: i64,
    /// Times between the due time and now that this run covers.
    pub between: usize,
}

/// The scheduled tasks of a project.
#[derive(Clone)]
pub struct Schedule {
    store: Store,
    project: PathBuf,
    clock: Arc<dyn Clock>,
    config: SchedulerConfig,
}

impl Schedule {
    /// The tasks of `project`.
    #[must_use]
    pub fn new(
        store: Store,
        project: PathBuf,
        clock: Arc<dyn Clock>,
        config: SchedulerConfig,
    ) -> Self {
        Self {
            store,
            project,
            clock,
            config,
        }
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().timestamp().as_millisecond()
    }

    /// Adds a task.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub async fn add(&self, prompt: &str, said: &str) -> Result<Scheduled, ScheduleError> {
        let prompt = prompt.trim();
        if prompt.is_empty() {
            return Err(ScheduleError::Empty);
        }
        if prompt.len() > MAX_BYTES {
            return Err(ScheduleError::Long);
        }
        let now = self.clock.now();
        let when = When::parse(said, &now)?;
        let (first, cron) = match &when {
            When::Once(at) => (Some(*at), None),
            When::Again(cron) => (
                when.next(now.timestamp(), now.time_zone()),
                Some(cron.text()),
            ),
        };
        let first = first.ok_or_else(|| WhenError::Unknown(said.to_owned()))?;
        let zone = now.time_zone().iana_name().unwrap_or(LOCAL);
        let new = NewScheduled {
            project: &self.project,
            prompt,
            said: said.trim(),
            cron,
            zone,
            next_at: first.as_millisecond(),
            now: now.timestamp().as_millisecond(),
        };
        let id = self
            .store
            .schedule(&new)
            .await?
            .ok_or(ScheduleError::Full)?;
        Ok(Scheduled {
            id,
            prompt: prompt.to_owned(),
            said: said.trim().to_owned(),
            cron: cron.map(str::to_owned),
            zone: zone.to_owned(),
            next_at: Some(new.next_at),
            created_at: new.now,
        })
    }

    /// Cancels a task. Returns whether it existed.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn cancel(&self, id: i64) -> Result<bool, StoreError> {
        self.store.unschedule(&self.project, id).await
    }

    /// The tasks that are still due. In a shared store, they include those of users who granted access.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn tasks(&self) -> Result<Vec<Scheduled>, StoreError> {
        self.store.scheduled(&self.project).await
    }

    /// The tasks that are still due and that this user may run.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn own_tasks(&self) -> Result<Vec<Scheduled>, StoreError> {
        self.store.own_scheduled(&self.project).await
    }

    /// The tasks of [`Schedule::own_tasks`] that may start: no process runs them, and they are not
    /// in `busy`.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn free_tasks(&self, busy: &[i64]) -> Result<Vec<Scheduled>, StoreError> {
        let running = self.store.running_tasks(&self.project).await?;
        let mut tasks = self.own_tasks().await?;
        tasks.retain(|task| !busy.contains(&task.id) && !running.contains(&task.id));
        Ok(tasks)
    }

    /// The last runs, the latest first.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn runs(&self, most: i64) -> Result<Vec<ScheduledRun>, StoreError> {
        self.settle().await?;
        self.store.scheduled_runs(&self.project, most).await
    }

    /// Records missed and interrupted runs, and corrects times that a wrong clock moved into the far future.
    async fn settle(&self) -> Result<(), StoreError> {
        let now = self.now_ms();
        self.store.interrupt_runs(&self.project, now).await?;
        for task in self.own_tasks().await? {
            let Some(due) = task.next_at else { continue };
            let late = now - due > i64::from(self.config.grace_secs) * 1000;
            if late && !self.config.run_missed {
                let (next, between) = self.after(&task, now);
                let note = since(between);
                self.store.claim_run(&task, next, None, &note, now).await?;
            } else {
                self.bring_back(&task, due, now).await?;
            }
        }
        Ok(())
    }

    /// Corrects the due time of a repeated task after the clock was set back: the next time that was neither run nor
    /// reported.
    async fn bring_back(&self, task: &Scheduled, due: i64, now: i64) -> Result<(), StoreError> {
        let cron = task.cron.as_deref().map(Cron::parse);
        let Some(Ok(cron)) = cron else { return Ok(()) };
        let zone = self.zone(task);
        let next = |from| Some(cron.next(at(from), &zone)?.as_millisecond());
        let Some(first) = next(now).filter(|first| i128::from(due - first) > SET_BACK.as_millis())
        else {
            return Ok(());
        };
        let known = self.store.known_times(task.id, first, due).await?;
        let mut times = std::iter::successors(Some(first), |time| next(*time));
        match times.find(|time| !known.contains(time)) {
            Some(time) if time < due => self.store.move_task(task, time).await,
            _ => Ok(()),
        }
    }

    /// The next due time of a task after `now`, and the number of times in between.
    fn after(&self, task: &Scheduled, now: i64) -> (Option<i64>, usize) {
        let (Some(cron), Some(due)) = (&task.cron, task.next_at) else {
            return (None, 0);
        };
        let zone = self.zone(task);
        let Ok(cron) = Cron::parse(cron) else {
            return (None, 0);
        };
        let (mut last, mut between) = (at(due), 0);
        while between < MAX_COUNTED
            && let Some(next) = cron
                .next(last, &zone)
                .filter(|next| next.as_millisecond() <= now)
        {
            last = next;
            between += 1;
        }
        let next = cron.next(at(now.max(due)), &zone);
        (next.map(Timestamp::as_millisecond), between)
    }

    fn zone(&self, task: &Scheduled) -> TimeZone {
        match task.zone.as_str() {
            LOCAL => None,
            name => TimeZone::get(name).ok(),
        }
        .unwrap_or_else(|| self.clock.now().time_zone().clone())
    }

    /// Claims the next due task that is not in `busy` and that no process runs, for one of several
    /// processes. Records missed times.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn take_due(&self, busy: &[i64]) -> Result<Option<DueRun>, StoreError> {
        self.settle().await?;
        let now = self.now_ms();
        for task in self.free_tasks(busy).await? {
            if task.next_at.is_none_or(|due| due > now) {
                continue;
            }
            let (next, between) = self.after(&task, now);
            let lease = now + LEASE.as_millis() as i64;
            let claimed = self
                .store
                .claim_run(&task, next, Some(lease), "", now)
                .await?;
            if let Some(run) = claimed {
                return Ok(Some(DueRun { task, run, between }));
            }
        }
        Ok(None)
    }

    /// Renews the claim of a run. Returns whether the run still belongs to the caller.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn renew(&self, run: i64) -> Result<bool, StoreError> {
        let lease = self.now_ms() + LEASE.as_millis() as i64;
        self.store.renew_run(run, lease).await
    }

    /// Records the session of a run.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn place(&self, run: i64, session: &str) -> Result<(), StoreError> {
        self.store.place_run(run, session).await
    }

    /// Ends a run.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn end(&self, run: i64, state: RunState, note: &str) -> Result<(), StoreError> {
        self.store.end_run(run, state, note, self.now_ms()).await
    }

    /// Reports missed and interrupted runs that were not reported before, one line each.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn report(&self) -> Result<Vec<String>, StoreError> {
        self.settle().await?;
        let runs = self.store.untold_runs(&self.project).await?;
        Ok(runs.iter().map(|run| self.describe(run)).collect())
    }

    /// A run as one line for the user.
    #[must_use]
    pub fn describe(&self, run: &ScheduledRun) -> String {
        let due = self.shown(run.due_at);
        let what = match run.state {
            RunState::Missed => "was missed: no process was free to run it",
            RunState::Interrupted if run.session.is_none() => {
                "was missed: the process that claimed it ended before the start"
            }
            RunState::Interrupted => {
                "was interrupted: the process that ran it ended; the task is \
                not repeated"
            }
            RunState::Running => "runs",
            RunState::Done => "is done",
            RunState::Failed => "failed",
        };
        let note = match run.note.is_empty() {
            true => String::new(),
            false => format!(" ({})", run.note),
        };
        let session = run
            .session
            .as_ref()
            .map(|session| format!(", session {session}"))
            .unwrap_or_default();
        format!(
            "task {} of {due} {what}{note}{session}: {}",
            run.task,
            first_line(&run.prompt)
        )
    }

    /// A task as one line for the user.
    #[must_use]
    pub fn line(&self, task: &Scheduled) -> String {
        let next = task
            .next_at
            .map_or_else(|| "never".to_owned(), |at| self.shown(at));
        format!(
            "{:<4} {next}  {:<24} {}",
            task.id,
            task.said,
            first_line(&task.prompt)
        )
    }

    fn shown(&self, ms: i64) -> String {
        shown(at(ms), self.clock.now().time_zone())
    }
}

/// Formats the note about additional missed times after the reported one.
#[must_use]
pub fn since(times: usize) -> String {
    match times {
        0 => String::new(),
        1 => "and once more since".to_owned(),
        MAX_COUNTED => format!("and at least {times} times more since"),
        times => format!("and {times} times more since"),
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.get(..line.floor_char_boundary(100))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
