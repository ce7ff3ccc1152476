//! The shell: `bash` and the processes that it starts.
//!
//! - [`executor`] runs one call: `admission` (by the judge of `zeph-bash`), `command` with `cwd`, [`mod@env`] and [`program`], then
//!   `output_pipeline` with [`capture`] and [`live_throttle`], then [`mod@bash`], [`envelope`] and [`classify`].
//! - [`runner`] is the port through which a command runs, [`local`] its implementation on this machine (`pipes` reads output).
//! - [`supervisor`] is the helper process that is the parent of every command, so that no process outlives the session.
//! - [`os_sandbox`] limits commands by the operating system. [`read_guard`] enforces `deny_read`.
//! - [`transaction`] restores files after a failed command.
//! - [`legacy_lists`] are the rules of the older list settings.
//! - `jobs` are background jobs. [`long_running`] are programs that communicate over pipes.

pub(crate) mod admission;
pub mod bash;
pub mod capture;
pub mod classify;
mod command;
pub mod config;
mod cwd;
mod decode;
pub mod env;
pub mod envelope;
pub mod executor;
mod jobs;
pub mod legacy_lists;
pub mod live_throttle;
pub mod local;
pub mod long_running;
mod model_output;
pub mod os_sandbox;
mod output_pipeline;
mod pipes;
mod policy_handle;
pub mod program;
pub mod read_guard;
pub mod runner;
pub mod supervisor;
mod sys;
pub mod transaction;
mod version_control;

pub use crate::provenance::extract_paths;
pub use config::{ShellConfig, ShellConfigError, ShellEnvConfig};
pub use envelope::ShellOutputEnvelope;
pub use executor::ShellExecutor;
pub use local::LocalRunner;
pub use long_running::{ServedProcess, ServedPrograms, StdioProcess};
pub use os_sandbox::{SandboxConfig, SandboxMode};
pub use policy_handle::ShellPolicyHandle;
pub use read_guard::ReadGuard;
pub use runner::{
    BackgroundProcess, CommandOutcome, CommandRunner, CommandSpec, EndReason, Exit, RunError,
    RunningCommand,
};
pub use supervisor::{SUPERVISOR_ARG, SupervisorCommand, supervisor_main};
pub use zeph_bash::{self as policy, PolicyError, ShellPolicy};
