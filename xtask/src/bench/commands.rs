//! Costs of commands: the time around a command, and the memory for its output.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;

use super::MIB;
use super::baseline;
use super::calls::Calls;
use super::report::{Figure, Unit, median};
use super::subject::Home;

/// The number of commands of each kind.
const COMMANDS: usize = 60;
/// The number of bytes that one command prints.
const PRINTED: u64 = 1_000_000_000;

pub(super) fn measure(binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let home = Home::new()?;
    let mut calls = Calls::start(&home, binary)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for nth in 0..COMMANDS {
        // The number makes each command unique.
        let command = format!("true {nth}");
        with.push(calls.call("bash", &json!({ "command": command }))?.0);
        let mut bash = home.command(Path::new("bash"));
        without.push(baseline::output(bash.args(["-c", &command]))?);
    }
    let (with, without) = (median(&with), median(&without));
    figures.push(
        Figure::new(
            "a command in its sandbox, over the command",
            Unit::Ms,
            with - without,
        )
        .at_most(5.0)
        .beside("the whole call", with)
        .beside("bash -c", without),
    );

    let before = calls.memory();
    let command = format!("yes 'a line of a log that does not end' | head -c {PRINTED}");
    let (took, read) = calls.call("bash", &json!({ "command": command, "timeout_secs": 300 }))?;
    ensure!(
        read.len() < 1024 * 1024,
        "{} bytes of output reached the model",
        read.len()
    );
    let after = calls.memory();
    for (what, now, was) in [
        ("the agent", after.peak, before.peak),
        ("its supervisor", after.helpers, before.helpers),
    ] {
        let what = format!("peak memory while 1 GB is printed, {what}");
        figures.push(
            Figure::new(what, Unit::MiB, now as f64 / MIB)
                .at_most(64.0)
                .beside("before", was as f64 / MIB),
        );
    }
    figures.push(Figure::new(
        "printing 1 GB",
        Unit::Ms,
        took.as_secs_f64() * 1e3,
    ));
    calls.end()
}
