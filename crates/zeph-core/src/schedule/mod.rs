//! Tasks that are due later: `when` understands what is said, `cron` knows when it comes again, and
//! [`Schedule`] keeps, claims and reports them for one project.
//!
//! A task is run by whoever claims its time first. A time that passed while nothing was up is *missed*: it is
//! reported, and run late only where that is configured. A run whose process died is *interrupted*: it is
//! reported, and not made again. What time it is comes from a [`Clock`].

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

/// How long a run is its process's without a sign of it.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// The most bytes of a task.
const MAX_BYTES: usize = 16 * 1024;
/// How many times that were missed are counted.
const MAX_COUNTED: usize = 1000;
/// How much earlier than it is kept a time has to come by the clock until it is believed that the clock was set
/// back for good; until then nothing is due twice. It is what Vixie cron takes (`cron(8)`).
const SET_BACK: SignedDuration = SignedDuration::from_hours(3);
/// Where a time zone has no name of the database: that of the clock.
const LOCAL: &str = "local";

/// What time it is, and where.
pub trait Clock: Send + Sync {
    /// Now.
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

/// Why a task is not kept.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// Its time.
    #[error("/when: {0}")]
    When(#[from] WhenError),
    /// Nothing is to be done.
    #[error("/task: expected what to do, got nothing")]
    Empty,
    /// It is too long.
    #[error("/task: expected at most {MAX_BYTES} bytes; put it into a file and name the file")]
    Long,
    /// There are too many.
    #[error("{MAX_SCHEDULED} tasks are scheduled here already; `zeph scheduler rm` takes one back")]
    Full,
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A time of a task that is the caller's to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRun {
    /// The task.
    pub task: Scheduled,
    /// The number of the run.
    pub run: i64,
    /// How many times the task was due since, which this run stands for.
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
    /// The tasks that are to run in `project`.
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

    /// Keeps a task.
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

    /// Takes a task back; whether there was one.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn cancel(&self, id: i64) -> Result<bool, StoreError> {
        self.store.unschedule(&self.project, id).await
    }

    /// The tasks that are to come.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn tasks(&self) -> Result<Vec<Scheduled>, StoreError> {
        self.store.scheduled(&self.project).await
    }

    /// The last runs, the latest first.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn runs(&self, most: i64) -> Result<Vec<ScheduledRun>, StoreError> {
        self.settle().await?;
        self.store.scheduled_runs(&self.project, most).await
    }

    /// Notes what was missed, and what died; brings times back that a wrong clock put far away.
    async fn settle(&self) -> Result<(), StoreError> {
        let now = self.now_ms();
        self.store.interrupt_runs(&self.project, now).await?;
        for task in self.tasks().await? {
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

    /// Where the clock was set back for good, a task that comes again is due at its next time that was not run,
    /// nor reported, before.
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

    /// When a task is due after `now`, and how many times it was between.
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

    /// Claims the next task that is due and none of `busy`: of several processes one gets it. What was missed
    /// is noted.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn take_due(&self, busy: &[i64]) -> Result<Option<DueRun>, StoreError> {
        self.settle().await?;
        let now = self.now_ms();
        for task in self.tasks().await? {
            if busy.contains(&task.id) || task.next_at.is_none_or(|due| due > now) {
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

    /// Says that a run goes on; whether it is still the caller's.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn renew(&self, run: i64) -> Result<bool, StoreError> {
        let lease = self.now_ms() + LEASE.as_millis() as i64;
        self.store.renew_run(run, lease).await
    }

    /// Notes the session that a run has.
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

    /// What was missed or interrupted and not told yet, a line each.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn report(&self) -> Result<Vec<String>, StoreError> {
        self.settle().await?;
        let runs = self.store.untold_runs(&self.project).await?;
        Ok(runs.iter().map(|run| self.describe(run)).collect())
    }

    /// A run in a line, for a person.
    #[must_use]
    pub fn describe(&self, run: &ScheduledRun) -> String {
        let due = self.shown(run.due_at);
        let what = match run.state {
            RunState::Missed => "was missed: nothing was up and free to run it",
            RunState::Interrupted if run.session.is_none() => {
                "was missed: what claimed it died before it began"
            }
            RunState::Interrupted => "was interrupted: what ran it died; it is not made again",
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

    /// A task in a line, for a person.
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

/// What is said of `times` that came after the one that is told of.
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
