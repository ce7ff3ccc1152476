#![doc = include_str!("../README.md")]
//! # Structure
//!
//! - [`runner`] is the port through which a command runs. [`local`] implements it on this machine; `pipes` reads output.
//! - [`confined`] is the helper process for commands in other terminals.
//! - [`supervisor`] is the helper process that is the parent of every command.
//! - [`sandbox`] limits commands by the operating system; [`denied_files`] is the port to the files that it hides.
//! - [`long_running`] are programs that communicate over pipes, such as servers.
//! - `sys` is the only module with `unsafe` code.

#![deny(missing_docs)]

#[cfg(not(unix))]
compile_error!("zeph needs Linux or macOS; on Windows, use WSL 2");

pub mod confined;
pub mod denied_files;
pub mod local;
pub mod long_running;
mod pipes;
pub mod runner;
pub mod sandbox;
pub mod supervisor;
mod sys;

pub use confined::{CONFINED_ARG, confined_main};
pub use denied_files::{DeniedFiles, FoundFiles};
pub use local::LocalRunner;
pub use long_running::{ServedProcess, ServedPrograms, StdioProcess};
pub use runner::{
    BackgroundProcess, CommandOutcome, CommandRunner, CommandSandbox, CommandSpec, EndReason, Exit,
    OutputFn, RunError, RunningCommand, StdStream, exit_of,
};
pub use sandbox::{Denial, Plan, PlanOptions, Sockets};
pub use supervisor::{CALL_TAG, SUPERVISOR_ARG, SupervisorCommand, end_tagged, supervisor_main};
pub use sys::return_large_buffers;
