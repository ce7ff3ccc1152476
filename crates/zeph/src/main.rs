//! The binary `zeph`: arguments in, exit code out. Everything that runs is built in [`assemble`].

mod assemble;
mod cli;
mod config;
mod models;
mod output;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).as_deref() == Some(zeph_tools::shell::SUPERVISOR_ARG.as_ref()) {
        return zeph_tools::shell::supervisor_main();
    }
    keep_memory_private();
    let exit = cli::main();
    terminal::put_back();
    exit.into()
}

/// Keys stand in this process's environment and memory: no other process of the same user may
/// read them through `/proc` (root still can), and no core dump holds them. Where it cannot be had,
/// it goes on without: commands get a filtered environment in any case.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
