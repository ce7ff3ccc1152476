//! `zeph scheduler …`: tasks that run at a later time, and the process that runs them.
//!
//! A task runs as one turn of its own session, in phase `autonomous`, with the caller `scheduler:ID`, through the
//! same stack as every conversation. No user is present.

mod runner;
mod task_channel;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_core::{Channel, LoopbackEvent, Schedule, SystemClock};
use zeph_memory::{Store, StoreError};
use zeph_tui::signals::cancel_on_signals;

use super::args::GlobalArgs;
use super::{Exit, load_config, print, print_as_is, with_causes};
use crate::assemble::{App, AuditLines, choose_provider, open_store};
use crate::config::{Environment, Loaded};
use crate::output::redact::redacted;
use crate::output::sanitize::visible;
use crate::output::stored_json;
use runner::{LOOK, OutageReport, Runner};

/// The time that a running task has to end when the conversation ends.
const AT_THE_END: Duration = Duration::from_secs(5);
/// How many of the last runs are listed.
const LISTED: i64 = 20;

/// `zeph scheduler …`
#[derive(Debug, Subcommand)]
pub(crate) enum SchedulerCommand {
    /// Schedule a task in this directory
    Add {
        /// Time: "in 10 minutes", "every day at 9", "2026-12-24 18:00", five fields of cron, …
        when: String,
        /// Prompt for the model
        task: String,
    },
    /// List the tasks of this directory and the results of the last runs
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a task
    #[command(visible_alias = "cancel")]
    Rm {
        /// Number of the task
        id: i64,
    },
    /// Run the due tasks of this directory until interrupted
    Run {
        /// Run the tasks that are due now, and exit
        #[arg(long)]
        once: bool,
    },
}

/// Runs one of the commands.
///
/// # Errors
/// The time is invalid, the task does not exist, or the database fails.
pub(crate) async fn run(global: &GlobalArgs, command: SchedulerCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let store = open_store(&loaded).await?;
    let schedule = schedule(&loaded, &env, &store);
    let exit = match command {
        SchedulerCommand::Add { when, task } => {
            let added = schedule.add(&task, &when).await?;
            print(&visible(&schedule.line(&added)))?;
            Exit::Done
        }
        SchedulerCommand::List { json } => {
            let text = list(&schedule, json).await?;
            match json {
                true => print_as_is(&text)?,
                false => print(&text)?,
            }
            Exit::Done
        }
        SchedulerCommand::Rm { id } => match schedule.cancel(id).await? {
            true => {
                print(&format!("task {id} is cancelled"))?;
                Exit::Done
            }
            false => bail!(
                "no task {id} is scheduled in this directory; `zeph scheduler list` names them"
            ),
        },
        SchedulerCommand::Run { once } => {
            // An invalid setting is reported before the first task is due.
            let provider = choose_provider(&loaded, &env, global.model.as_deref(), global.quiet)?;
            let (own, place) = (loaded.clone(), env.clone());
            let options = global.build_options();
            let assembly =
                App::for_conversation(own, place, options, AuditLines::Stderr, &provider).await?;
            assembly.close().await?;
            let mut runner = Runner::new(global, &loaded, &env, schedule, None);
            let cancel = CancellationToken::new();
            let _signals = cancel_on_signals(cancel.clone());
            match once {
                true => match runner.due(&cancel).await? {
                    _ if cancel.is_cancelled() => Exit::Interrupted,
                    exit => exit,
                },
                false => {
                    runner.watch(&cancel).await?;
                    Exit::Interrupted
                }
            }
        }
    };
    store.close().await?;
    Ok(exit)
}

fn schedule(loaded: &Loaded, env: &Environment, store: &Store) -> Schedule {
    let config = loaded.config.scheduler.clone();
    Schedule::new(
        store.clone(),
        env.cwd.clone(),
        Arc::new(SystemClock),
        config,
    )
}

async fn list(schedule: &Schedule, as_json: bool) -> anyhow::Result<String> {
    let runs = schedule.runs(LISTED).await?;
    let tasks = schedule.tasks().await?;
    if as_json {
        return Ok(stored_json(&json!({ "tasks": tasks, "runs": runs }))?);
    }
    let mut lines: Vec<String> = tasks.iter().map(|task| schedule.line(task)).collect();
    if lines.is_empty() {
        lines.push("nothing is scheduled in this directory".to_owned());
    }
    if !runs.is_empty() {
        lines.push("\nlast runs:".to_owned());
        lines.extend(runs.iter().map(|run| schedule.describe(run)));
    }
    Ok(visible(&redacted(&lines.join("\n"))))
}

/// Opens the store. An outage is reported once, and the store is opened when it is over. `None` if
/// cancelled.
///
/// # Errors
/// If the database cannot be used.
async fn open_available_store(
    loaded: &Loaded,
    channel: &Arc<dyn Channel>,
    cancel: &CancellationToken,
) -> Result<Option<Store>, StoreError> {
    let mut outage = OutageReport::default();
    loop {
        let Some(opened) = cancel.run_until_cancelled(open_store(loaded)).await else {
            return Ok(None);
        };
        match opened {
            Err(error) if error.is_temporary() => {
                if let Some(message) = outage.begin(error) {
                    channel.emit(LoopbackEvent::Notice(message));
                }
            }
            opened => return opened.map(Some),
        }
        let _ = cancel.run_until_cancelled(tokio::time::sleep(LOOK)).await;
    }
}

/// Runs due tasks during a conversation. It ends with `conversation`, after the running task.
///
/// # Errors
/// The errors of the conversation.
pub(super) async fn beside<T>(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
    channel: &Arc<dyn Channel>,
    conversation: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let cancel = CancellationToken::new();
    let watch = async {
        let Some(store) = open_available_store(loaded, channel, &cancel).await? else {
            return Ok(());
        };
        let schedule = schedule(loaded, env, &store);
        let told_to = Some(Arc::clone(channel));
        let mut runner = Runner::new(global, loaded, env, schedule, told_to);
        let watched = runner.watch(&cancel).await;
        store.close().await?;
        anyhow::Ok(watched?)
    };
    let (mut watch, mut conversation) = (std::pin::pin!(watch), std::pin::pin!(conversation));
    tokio::select! {
        biased;
        ended = &mut conversation => {
            cancel.cancel();
            let stop = CancellationToken::new();
            let _signals = cancel_on_signals(stop.clone());
            // A task that is still running ends with this process, and is reported as interrupted.
            let wait = tokio::time::timeout(AT_THE_END, watch);
            let _ = stop.run_until_cancelled(wait).await;
            ended
        }
        watched = &mut watch => {
            if let Err(error) = watched {
                let error = with_causes(&error);
                channel.emit(LoopbackEvent::Notice(format!("scheduled tasks cannot run: {error}")));
            }
            conversation.await
        }
    }
}
