//! Background jobs: commands that continue after their call.
//!
//! `bash` with `background` starts a job; a process that remains after its shell exits is a job too. [`job`] follows one until it
//! ends, [`pending_output`] buffers output until it is read, [`report`] formats the state, and [`tools`] are the tools. The table
//! here bounds the number of jobs. A job belongs to one conversation; others do not see it.

mod definitions;
mod job;
mod pending_output;
mod report;
mod tools;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::overflow::OverflowConfig;
use crate::secrets::SecurityPatterns;
use crate::shell::time_limit::TimeLimit;

use super::sandbox::profile::PreparedSandbox;
use job::{Job, NewJob, Origin};

pub(super) use definitions::{JOB_KILL, JOB_LIST, JOB_OUTPUT, definitions};
pub(super) use report::processes;

/// The maximum number of running jobs of a conversation before another one is started.
const MAX_RUNNING: usize = 16;
/// The maximum number of stored jobs of a conversation, running and ended. Processes that commands leave behind beyond
/// this limit are ended immediately.
const MAX_JOBS: usize = 32;

/// The jobs of all conversations.
#[derive(Default)]
pub(super) struct Jobs {
    /// The limits for the output of each job.
    overflow: OverflowConfig,
    /// The secrets that are removed from outputs and from shown commands.
    secrets: Arc<SecurityPatterns>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u64,
    /// The jobs in the order of their start.
    jobs: Vec<Arc<Job>>,
}

impl Jobs {
    /// Returns an empty table. `overflow` limits the output of each job, and `secrets` is removed from it.
    pub(super) fn new(overflow: OverflowConfig, secrets: Arc<SecurityPatterns>) -> Self {
        Self {
            overflow,
            secrets,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks whether another job may be started.
    ///
    /// # Errors
    /// If too many jobs run; the message names them.
    fn check_room(&self, conversation: &str) -> Result<(), ToolError> {
        self.table().check_room(conversation)
    }

    /// Adds a job that a call starts.
    ///
    /// # Errors
    /// Those of [`Jobs::check_room`].
    fn open(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        command: &str,
        (place, sandbox): (PathBuf, Arc<PreparedSandbox>),
        limit: Option<TimeLimit>,
    ) -> Result<Arc<Job>, ToolError> {
        let mut table = self.table();
        table.check_room(&call.conversation)?;
        Ok(table.add(|id| NewJob {
            id,
            conversation: call.conversation.clone(),
            command: self.secrets.redact(command).text.into_owned(),
            origin: Origin::Started,
            place,
            sandbox: Some(sandbox),
            limit,
            call_id: call.id.clone(),
            events: cx.events(),
            overflow: self.overflow.clone(),
            secrets: Arc::clone(&self.secrets),
        }))
    }

    /// Adds a job for processes that a command left behind. `None` if there are too many jobs.
    fn adopt(&self, call: &ToolCall, cx: &CallContext, command: &str) -> Option<Arc<Job>> {
        let mut table = self.table();
        let room = table.running(&call.conversation).len() < MAX_JOBS;
        room.then(|| {
            table.add(|id| NewJob {
                id,
                conversation: call.conversation.clone(),
                command: self.secrets.redact(command).text.into_owned(),
                origin: Origin::Left,
                place: PathBuf::new(),
                sandbox: None,
                limit: None,
                call_id: call.id.clone(),
                events: cx.events(),
                overflow: self.overflow.clone(),
                secrets: Arc::clone(&self.secrets),
            })
        })
    }

    /// The job with this id.
    ///
    /// # Errors
    /// If the conversation has no such job; the message names its jobs.
    fn find(&self, conversation: &str, id: &str) -> Result<Arc<Job>, ToolError> {
        let jobs = self.of(conversation);
        let found = jobs.iter().find(|job| job.id == id.trim());
        found.cloned().ok_or_else(|| ToolError::Missing {
            message: if jobs.is_empty() {
                format!("unknown job {id:?}")
            } else {
                format!("there is no job {id:?}; there are {}", names(&jobs))
            },
        })
    }

    /// The jobs of a conversation, in the order of their start.
    fn of(&self, conversation: &str) -> Vec<Arc<Job>> {
        self.table().of(conversation).cloned().collect()
    }

    /// Suppresses the notices about the ends of jobs, because the session ends.
    pub(super) fn close(&self) {
        for job in &self.table().jobs {
            job.mute();
        }
    }

    /// Whether a job of any conversation runs.
    pub(super) fn are_running(&self) -> bool {
        self.table().jobs.iter().any(|job| !job.is_ended())
    }

    /// Descriptions of the running jobs of all conversations.
    pub(super) fn running(&self) -> Vec<String> {
        let table = self.table();
        let running = table.jobs.iter().filter(|job| !job.is_ended());
        running
            .map(|job| format!("{} ({})", job.id, report::short(&job.command)))
            .collect()
    }
}

impl Table {
    fn of<'t>(&'t self, conversation: &'t str) -> impl Iterator<Item = &'t Arc<Job>> {
        let of = move |job: &&Arc<Job>| job.conversation == conversation;
        self.jobs.iter().filter(of)
    }

    fn running(&self, conversation: &str) -> Vec<Arc<Job>> {
        let all = self.of(conversation);
        all.filter(|job| !job.is_ended()).cloned().collect()
    }

    fn check_room(&self, conversation: &str) -> Result<(), ToolError> {
        let running = self.running(conversation);
        if running.len() < MAX_RUNNING {
            return Ok(());
        }
        Err(ToolError::permanent(format!(
            "{} background jobs run already, and {MAX_RUNNING} is the limit: {}; stop one with \
             job_kill first",
            running.len(),
            names(&running),
        )))
    }

    fn add(&mut self, new: impl FnOnce(String) -> NewJob) -> Arc<Job> {
        self.last += 1;
        let new = new(format!("job-{}", self.last));
        self.make_room(&new.conversation);
        let job = Job::new(new);
        self.jobs.push(Arc::clone(&job));
        job
    }

    /// Removes an ended job if there are too many: the oldest reported one, or else the oldest.
    fn make_room(&mut self, conversation: &str) {
        if self.of(conversation).count() < MAX_JOBS {
            return;
        }
        let oldest = |told: bool| {
            self.jobs.iter().position(|job| {
                job.conversation == conversation && job.is_ended() && job.is_told() == told
            })
        };
        if let Some(at) = oldest(true).or_else(|| oldest(false)) {
            self.jobs.remove(at);
        }
    }
}

/// The ids of jobs, with their commands.
fn names(jobs: &[Arc<Job>]) -> String {
    let named: Vec<String> = jobs
        .iter()
        .map(|job| format!("{} ({})", job.id, report::short(&job.command)))
        .collect();
    named.join(", ")
}
