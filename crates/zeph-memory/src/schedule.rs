//! Scheduled tasks, and the results of their runs.
//!
//! One statement claims a run by adding its row, so only one of several processes gets it. The caller gives times in
//! milliseconds since the Unix epoch.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use crate::database::{Row, Statement, query};
use crate::error::StoreError;
use crate::store::Store;

/// The maximum number of tasks of a project that are not finished.
pub const MAX_SCHEDULED: i64 = 100;

/// A new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewScheduled<'a> {
    /// Its working directory.
    pub project: &'a Path,
    /// The prompt for the model.
    pub prompt: &'a str,
    /// The time, as the user wrote it.
    pub said: &'a str,
    /// The cron expression of its repetition; `None` for a single run.
    pub cron: Option<&'a str>,
    /// The time zone of `cron`, by its name of the IANA database.
    pub zone: &'a str,
    /// The time of its first run.
    pub next_at: i64,
    /// Now.
    pub now: i64,
}

/// A stored task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scheduled {
    /// Its number.
    pub id: i64,
    /// The prompt for the model.
    pub prompt: String,
    /// The time, as the user wrote it.
    pub said: String,
    /// The cron expression of its repetition; `None` for a single run.
    pub cron: Option<String>,
    /// The time zone of `cron`.
    pub zone: String,
    /// The time of its next run; `None` if no run follows.
    pub next_at: Option<i64>,
    /// The time when it was added.
    pub created_at: i64,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It runs.
    Running,
    /// The model responded.
    Done,
    /// It ended otherwise.
    Failed,
    /// Nothing was up that could run it.
    Missed,
    /// The process that ran it died.
    Interrupted,
}

impl RunState {
    const ALL: [Self; 5] = [
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Missed,
        Self::Interrupted,
    ];

    /// The name in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A due time of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScheduledRun {
    /// Its number.
    pub id: i64,
    /// The task's number.
    pub task: i64,
    /// The prompt for the model.
    pub prompt: String,
    /// The time when it was due.
    pub due_at: i64,
    /// Its state.
    pub state: RunState,
    /// The session that it ran in.
    pub session: Option<String>,
    /// A note about it.
    pub note: String,
}

/// The statement that selects tasks, with its conditions.
macro_rules! select_task {
    ($rest:literal) => {
        concat!(
            "SELECT id, prompt, said, cron, zone, next_at, created_at FROM schedule ",
            $rest
        )
    };
}
const RUN: &str = "SELECT r.id, r.task, t.prompt, r.due_at, r.state, r.session, r.note
                   FROM schedule_run r JOIN schedule t ON t.id = r.task";

fn key(project: &Path) -> String {
    project.to_string_lossy().into_owned()
}

fn task(row: &Row) -> Result<Scheduled, sqlx::Error> {
    Ok(Scheduled {
        id: row.try_get(0)?,
        prompt: row.try_get(1)?,
        said: row.try_get(2)?,
        cron: row.try_get(3)?,
        zone: row.try_get(4)?,
        next_at: row.try_get(5)?,
        created_at: row.try_get(6)?,
    })
}

fn run(row: &Row) -> Result<ScheduledRun, sqlx::Error> {
    let state: String = row.try_get(4)?;
    let state = RunState::ALL
        .into_iter()
        .find(|known| known.as_str() == state);
    Ok(ScheduledRun {
        id: row.try_get(0)?,
        task: row.try_get(1)?,
        prompt: row.try_get(2)?,
        due_at: row.try_get(3)?,
        state: state.ok_or_else(|| sqlx::Error::Decode("no state of a run".into()))?,
        session: row.try_get(5)?,
        note: row.try_get(6)?,
    })
}

impl Store {
    /// Stores a task and returns its number; `None` if [`MAX_SCHEDULED`] tasks exist.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn schedule(&self, new: &NewScheduled<'_>) -> Result<Option<i64>, StoreError> {
        let insert = query(
            "INSERT INTO schedule (project, prompt, said, cron, zone, next_at, created_at)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
             WHERE (SELECT count(*) FROM schedule WHERE project = ?1 AND next_at IS NOT NULL) < ?8
             RETURNING id",
        );
        let insert = insert
            .bind(key(new.project))
            .bind(new.prompt)
            .bind(new.said)
            .bind(new.cron);
        let insert = insert
            .bind(new.zone)
            .bind(new.next_at)
            .bind(new.now)
            .bind(MAX_SCHEDULED);
        let rows = self.write(insert, 0).await?;
        let id = rows.first().map(|row| row.try_get(0)).transpose();
        id.map_err(|error| self.sql(error))
    }

    /// Returns the tasks of a project that are not finished, sorted by their due time. In a shared store, they include
    /// those of users who granted access.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn scheduled(&self, project: &Path) -> Result<Vec<Scheduled>, StoreError> {
        let select = query(select_task!(
            "WHERE project = ?1 AND next_at IS NOT NULL ORDER BY next_at, id"
        ));
        self.scheduled_tasks(select.bind(key(project))).await
    }

    /// Returns the tasks of [`Store::scheduled`] that this user may run: in a shared store, their own.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn own_scheduled(&self, project: &Path) -> Result<Vec<Scheduled>, StoreError> {
        let select = Statement::per_dialect(
            select_task!("WHERE project = ?1 AND next_at IS NOT NULL ORDER BY next_at, id"),
            select_task!(
                "WHERE project = ?1 AND next_at IS NOT NULL AND owner = current_user ORDER BY next_at, id"
            ),
        );
        self.scheduled_tasks(select.bind(key(project))).await
    }

    async fn scheduled_tasks(&self, select: Statement<'_>) -> Result<Vec<Scheduled>, StoreError> {
        let rows = self.fetch(select).await?;
        let tasks = rows.iter().map(task).collect::<Result<_, _>>();
        tasks.map_err(|error| self.sql(error))
    }

    /// Removes a task, and returns whether there was one. A run that has begun continues.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn unschedule(&self, project: &Path, id: i64) -> Result<bool, StoreError> {
        let update = query(
            "UPDATE schedule SET next_at = NULL, cancelled = TRUE
             WHERE id = ?1 AND project = ?2 AND next_at IS NOT NULL RETURNING id",
        );
        let rows = self.write(update.bind(id).bind(key(project)), 0).await?;
        Ok(!rows.is_empty())
    }

    /// The tasks of a project that a process is running.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn running_tasks(&self, project: &Path) -> Result<HashSet<i64>, StoreError> {
        let select = query(
            "SELECT DISTINCT task FROM schedule_run
             WHERE state = 'running' AND task IN (SELECT id FROM schedule WHERE project = ?1)",
        );
        self.numbers(select.bind(key(project))).await
    }

    /// Claims a due time of a task, as a run with a lease (`lease_until`) or as a missed one. The
    /// first caller gets the run's number. The task is then due at `next_at`. A time is not claimed
    /// as a run while another run of the task is active; the task remains due then.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn claim_run(
        &self,
        task: &Scheduled,
        next_at: Option<i64>,
        lease_until: Option<i64>,
        note: &str,
        now: i64,
    ) -> Result<Option<i64>, StoreError> {
        let lease_until = lease_until.map(|until| self.server_time(until));
        let state = match lease_until {
            Some(_) => RunState::Running,
            None => RunState::Missed,
        };
        // A removed task, or one that another process rescheduled, is not due.
        let insert = query(
            "INSERT INTO schedule_run (task, due_at, state, note, changed_at, lease_until)
             SELECT id, next_at, ?3, ?4, ?5, ?6 FROM schedule WHERE id = ?1 AND next_at = ?2
               AND (?3 <> 'running'
                    OR NOT EXISTS (SELECT 1 FROM schedule_run WHERE task = ?1 AND state = 'running'))
             ON CONFLICT (task, due_at) DO NOTHING RETURNING id",
        );
        let insert = insert
            .bind(task.id)
            .bind(task.next_at)
            .bind(state.as_str())
            .bind(note);
        let rows = self.write(insert.bind(now).bind(lease_until), 0).await?;
        // The condition leaves a time due that no process claimed.
        let update = query(
            "UPDATE schedule SET next_at = ?3 WHERE id = ?1 AND next_at = ?2
               AND EXISTS (SELECT 1 FROM schedule_run WHERE task = ?1 AND due_at = ?2) RETURNING id",
        );
        self.write(update.bind(task.id).bind(task.next_at).bind(next_at), 0)
            .await?;
        let id = rows.first().map(|row| row.try_get(0)).transpose();
        id.map_err(|error| self.sql(error))
    }

    /// The times of a task from `from` until before `until` that have a run in any state.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn known_times(
        &self,
        task: i64,
        from: i64,
        until: i64,
    ) -> Result<HashSet<i64>, StoreError> {
        let select = query(
            "SELECT due_at FROM schedule_run WHERE task = ?1 AND due_at >= ?2 AND due_at < ?3",
        );
        self.numbers(select.bind(task).bind(from).bind(until)).await
    }

    /// The numbers in the first column of the rows.
    async fn numbers(&self, select: Statement<'_>) -> Result<HashSet<i64>, StoreError> {
        let rows = self.fetch(select).await?;
        let numbers = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>();
        numbers.map_err(|error| self.sql(error))
    }

    /// Reschedules a task; no effect if it was rescheduled or removed meanwhile.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn move_task(&self, task: &Scheduled, next_at: i64) -> Result<(), StoreError> {
        let update =
            query("UPDATE schedule SET next_at = ?3 WHERE id = ?1 AND next_at = ?2 RETURNING id");
        let update = update.bind(task.id).bind(task.next_at).bind(next_at);
        self.write(update, 0).await.map(drop)
    }

    /// Renews the lease of a run, and returns whether the run is still active.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn renew_run(&self, id: i64, lease_until: i64) -> Result<bool, StoreError> {
        let lease_until = self.server_time(lease_until);
        let update = query(
            "UPDATE schedule_run SET lease_until = ?2 WHERE id = ?1 AND state = 'running' RETURNING id",
        );
        Ok(!self
            .write(update.bind(id).bind(lease_until), 0)
            .await?
            .is_empty())
    }

    /// Records the session of a run.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn place_run(&self, id: i64, session: &str) -> Result<(), StoreError> {
        let update = query("UPDATE schedule_run SET session = ?2 WHERE id = ?1 RETURNING id");
        self.write(update.bind(id).bind(session), 0).await.map(drop)
    }

    /// Ends a run that has not ended.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn end_run(
        &self,
        id: i64,
        state: RunState,
        note: &str,
        now: i64,
    ) -> Result<(), StoreError> {
        let update = query(
            "UPDATE schedule_run SET state = ?2, note = ?3, changed_at = ?4, lease_until = NULL, told = TRUE
             WHERE id = ?1 AND state = 'running' RETURNING id",
        );
        let update = update.bind(id).bind(state.as_str()).bind(note).bind(now);
        self.write(update, 0).await.map(drop)
    }

    /// Ends the runs of a project with a dead process. They are not repeated.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn interrupt_runs(&self, project: &Path, now: i64) -> Result<(), StoreError> {
        let now = self.server_time(now);
        let update = query(
            "UPDATE schedule_run SET state = 'interrupted', changed_at = ?2, lease_until = NULL
             WHERE state = 'running' AND lease_until < ?2
               AND task IN (SELECT id FROM schedule WHERE project = ?1) RETURNING id",
        );
        self.write(update.bind(key(project)).bind(now), 0)
            .await
            .map(drop)
    }

    /// The last runs of a project, the latest first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn scheduled_runs(
        &self,
        project: &Path,
        most: i64,
    ) -> Result<Vec<ScheduledRun>, StoreError> {
        let text = format!("{RUN} WHERE t.project = ?1 ORDER BY r.due_at DESC, r.id DESC LIMIT ?2");
        self.runs(query(text).bind(key(project)).bind(most)).await
    }

    /// Returns the missed or interrupted runs of a project that were not reported yet. Each is returned once, so the
    /// caller must report it.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn untold_runs(&self, project: &Path) -> Result<Vec<ScheduledRun>, StoreError> {
        let update = query(
            "UPDATE schedule_run SET told = TRUE
             WHERE NOT told AND state IN ('missed', 'interrupted')
               AND task IN (SELECT id FROM schedule WHERE project = ?1)
             RETURNING id, task, (SELECT prompt FROM schedule AS t WHERE t.id = task), due_at, state, session, note",
        );
        let rows = self.write(update.bind(key(project)), 0).await?;
        let runs = rows.iter().map(run).collect::<Result<Vec<_>, _>>();
        let mut runs = runs.map_err(|error| self.sql(error))?;
        runs.sort_by_key(|run| (run.due_at, run.id));
        Ok(runs)
    }

    /// A time of this machine as a time of the database. Leases are compared with the clock of the server, because the clocks
    /// of several machines differ.
    fn server_time(&self, time: i64) -> i64 {
        time.saturating_add(self.database().clock_offset())
    }

    async fn runs(&self, select: Statement<'_>) -> Result<Vec<ScheduledRun>, StoreError> {
        let rows = self.fetch(select).await?;
        let runs = rows.iter().map(run).collect::<Result<_, _>>();
        runs.map_err(|error| self.sql(error))
    }
}
