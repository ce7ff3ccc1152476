//! Runs a command below a supervisor, with a time limit. Nothing that it starts outlives this program.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::time::Duration;

use zeph_exec::{CommandRunner as _, CommandSpec, LocalRunner, SUPERVISOR_ARG, SupervisorCommand};

#[tokio::main]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let runner = LocalRunner::new(SupervisorCommand::new(std::env::current_exe()?), None);
    let script = "echo hello; sleep 60 & exec sleep 60";
    let spec = CommandSpec::new("/bin/sh", ["-c", script], "/")
        .with_variable("PATH", "/usr/bin:/bin")
        .with_timeout(Duration::from_millis(300));
    let mut command = runner.start(spec).await?;
    let print = &mut |_, bytes: &[u8]| print!("{}", String::from_utf8_lossy(bytes));
    let outcome = command.wait(&Default::default(), print).await?;
    println!("{:?}, left: {}", outcome.cause, outcome.background.len());
    Ok(())
}

fn main() -> ExitCode {
    // The program is its own supervisor.
    if std::env::args().nth(1).as_deref() == Some(SUPERVISOR_ARG) {
        return zeph_exec::supervisor_main();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

// Prints:
// hello
// TimedOut, left: 0
