//! The binary `zeph`: arguments in, exit code out. Everything that runs is built in [`assemble`].

mod acp_host;
mod assemble;
mod browser;
mod cli;
mod config;
mod exit;
mod export;
mod hooks;
mod keys;
mod logs;
mod models;
mod output;
mod record_folder;
mod session_choices;
mod telemetry;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1);
    if first.as_deref() == Some(zeph_tools::shell::SUPERVISOR_ARG.as_ref()) {
        return zeph_tools::shell::supervisor_main();
    }
    if first.as_deref() == Some(zeph_tools::shell::exec::CONFINED_ARG.as_ref()) {
        #[allow(
            clippy::disallowed_methods,
            reason = "the helper passes the environment on, and reads no configuration"
        )]
        return zeph_tools::shell::exec::confined_main(std::env::vars_os());
    }
    keep_memory_private();
    zeph_tools::shell::exec::return_large_buffers();
    let exit = cli::main();
    zeph_tui::put_back();
    exit.into()
}

/// Protects the keys in the environment and the memory of this process.
///
/// No other process of the same user can read them through `/proc`, except root. No core dump contains them. If the
/// system refuses, the program continues: commands get a filtered environment in any case.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
