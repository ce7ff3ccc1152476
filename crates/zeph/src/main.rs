//! The binary `zeph`: arguments in, exit code out. Everything that runs is built in [`assemble`].

mod assemble;
mod cli;
mod config;
mod output;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).as_deref() == Some(zeph_tools::shell::SUPERVISOR_ARG.as_ref()) {
        return zeph_tools::shell::supervisor_main();
    }
    cli::main().into()
}
