//! Texts and JSON results about jobs.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::shell::exit_note::exit_note;
use zeph_exec::runner::{BackgroundProcess, EndReason, Exit};

use super::job::{End, Job, Origin, Snapshot, State, Stop};

/// The number of characters of a command that are shown.
const SHORT: usize = 80;

/// The first line of a command, shortened.
pub(super) fn short(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < command.trim().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// A duration: `12 s`, `3 min`, `2 h`.
fn length(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// The names and ids of processes.
pub(in crate::shell) fn processes(processes: &[BackgroundProcess]) -> String {
    let mut text = String::new();
    for process in processes.iter().take(10) {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{} (pid {})", process.name, process.pid);
    }
    if processes.len() > 10 {
        let _ = write!(text, " and {} more", processes.len() - 10);
    }
    text
}

/// The text about a job for the model: the new output, and then the state.
pub(super) fn text(job: &Job, seen: &mut Snapshot) -> String {
    let mut text = std::mem::take(&mut seen.output.merged.text);
    if text.ends_with('\n') {
        text.pop();
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let id = &job.id;
    let news = if text.is_empty() { "; nothing new" } else { "" };
    // The count distinguishes waiting for a result from a loop.
    let asked = match seen.looks {
        0 | 1 => String::new(),
        looks => format!("; asked {looks} times"),
    };
    let age = length(seen.age);
    match &seen.state {
        State::Running => {
            let _ = write!(text, "[{id} still runs, for {age}{news}{asked}]");
        }
        State::Left(left) => {
            let left = processes(left);
            let _ = write!(
                text,
                "[{id} still runs, for {age}: its shell has exited, and {left} is still \
                 running{news}{asked}]"
            );
        }
        State::Ended(end) => {
            if let Some(exit) = exit(job, end) {
                let _ = writeln!(text, "{}", exit_note(exit));
            }
            if end.ended.as_ref().is_ok_and(|ended| ended.lingering) {
                text.push_str("[some of its processes could not be stopped]\n");
            }
            let _ = write!(text, "[{id} {}]", ending(end));
        }
    }
    text
}

/// The end of a job, as the text after its id.
fn ending(end: &End) -> String {
    let after = length(end.after);
    match (&end.ended, end.stop) {
        (Err(why), _) => format!("is lost after {after}: {why}"),
        (Ok(ended), Some(Stop::Killed)) if ended.cause == EndReason::Cancelled => {
            format!("was stopped by job_kill after {after}")
        }
        (Ok(ended), _) if ended.cause == EndReason::TimedOut => {
            format!("exceeded its time limit and was stopped after {after}")
        }
        (Ok(_), _) => format!("ended after {after}"),
    }
}

/// The exit of the command of a job. It is unknown for processes that a command left behind.
fn exit(job: &Job, end: &End) -> Option<Exit> {
    let ended = end.ended.as_ref().ok();
    ended
        .filter(|_| job.origin == Origin::Started)
        .map(|ended| ended.exit)
}

/// The notice for the user that a job has ended.
pub(super) fn notice(job: &Job, end: &End) -> String {
    let ending = ending(end);
    format!(
        "{} {ending}{}: {}",
        job.id,
        code(job, end),
        short(&job.command)
    )
}

/// The JSON result of a running job, with its new output.
pub(super) fn running_form(job: &Job, seen: &Snapshot, truncated: bool) -> Value {
    json!({
        "job_id": job.id,
        "state": "running",
        "stdout": seen.output.stdout.text,
        "stderr": seen.output.stderr.text,
        "truncated": truncated,
        "duration_ms": millis(seen.age),
    })
}

/// The line of a job in the list.
pub(super) fn line(job: &Job) -> String {
    let state = match job.state() {
        State::Running => format!("runs, for {}", length(job.age())),
        State::Left(left) => format!("runs, for {}: {}", length(job.age()), processes(&left)),
        State::Ended(end) => format!("{}{}", ending(&end), code(job, &end)),
    };
    format!("{} [{state}] {}", job.id, short(&job.command))
}

fn code(job: &Job, end: &End) -> String {
    exit(job, end).map_or_else(String::new, |exit| format!(", exit code {}", exit.code))
}

/// The JSON result of a job in the list.
pub(super) fn form(job: &Job) -> Value {
    let state = job.state();
    let exit_code = match &state {
        State::Ended(end) => exit(job, end).map(|exit| exit.code),
        _ => None,
    };
    let name = match &state {
        State::Running | State::Left(_) => "running",
        State::Ended(End { ended: Err(_), .. }) => "lost",
        State::Ended(End {
            stop: Some(Stop::Killed),
            ..
        }) => "killed",
        State::Ended(End {
            ended: Ok(ended), ..
        }) if ended.cause == EndReason::TimedOut => "timed_out",
        State::Ended(_) => "exited",
    };
    json!({
        "job_id": job.id,
        "command": job.command,
        "state": name,
        "exit_code": exit_code,
        "age_ms": millis(job.age()),
    })
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
