//! Scheduled tasks of a shared store during an outage of its server.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::shared::{counting, machine};
use crate::rig::{Home, OpenAi, Postgres, Reply, Running, Zeph, wait_for};

/// Starts the scheduler, which writes its messages to the file `messages`.
fn start_scheduler(home: &Home) -> Running {
    Zeph::through_bash(home, r#"exec "$0" "$@" 2>messages"#)
        .args(["scheduler", "run"])
        .env("ZEPH_MEMORY_WAIT_SECS", "2")
        .start()
}

fn add(home: &Home, task: &str) {
    home.zeph(["scheduler", "add", "now", task]).code(0);
}

/// Waits until the scheduler has reported one outage.
fn wait_for_report(home: &Home) {
    wait_for("the report", || {
        let messages = std::fs::read_to_string(home.path("messages")).ok()?;
        (messages.matches("scheduled tasks wait: ").count() == 1).then_some(())
    });
}

/// Waits until `count` runs exist and all are done.
fn wait_for_runs(server: &Postgres, count: usize) {
    wait_for("the end of the runs", || {
        let states = server.query("SELECT state FROM schedule_run");
        (states == vec!["done"; count]).then_some(())
    });
}

/// Proves OPS-3, NAT-3: the scheduler reports an outage of the server once, and runs tasks after it.
#[test]
fn scheduler_runs_tasks_after_an_outage() {
    let (mut server, model) = (Postgres::start(), counting());
    let home = machine(&model, &server);
    add(&home, "One.");
    let running = start_scheduler(&home);
    wait_for_runs(&server, 1);
    server.kill();
    wait_for_report(&home);
    server.resume();
    add(&home, "Two.");
    model.wait_for_requests(2);
    wait_for_runs(&server, 2);
    running.kill();
}

/// Proves OPS-3, NAT-3: a task that runs during an outage of the server is completed after it.
#[test]
fn running_task_continues_after_an_outage() {
    let mut server = Postgres::start();
    let (sender, receiver) = channel();
    let (goes, waits) = channel::<()>();
    let model = OpenAi::start(move |_, _| {
        sender.send(()).unwrap();
        waits.recv().unwrap();
        Reply::text("It is done.")
    });
    let home = machine(&model, &server);
    add(&home, "One.");
    let running = start_scheduler(&home);
    receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    server.kill();
    wait_for_report(&home);
    server.resume();
    goes.send(()).unwrap();
    wait_for_runs(&server, 1);
    running.kill();
}
