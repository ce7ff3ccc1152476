//! The shell: `bash` and the processes that it starts.
//!
//! - [`executor`] runs one call: `admission` (by the judge of `zeph-bash`), `command` with `cwd`, [`mod@env`] and [`program`], then
//!   `output_pipeline` with [`capture`] and [`live_throttle`], then [`mod@bash`], [`envelope`] and [`classify`].
//! - [`exec`] (crate `zeph-exec`) runs commands below a supervisor. [`sandbox`] configures its limits.
//! - [`read_guard`] enforces `deny_read`.
//! - [`transaction`] restores files after a failed command.
//! - [`legacy_lists`] are the rules of the older list settings.
//! - `time_limit` computes the time limit of a command.
//! - `user_command` runs the commands that the user typed.
//! - `jobs` are background jobs.
//! - [`editor_terminal`] runs commands in a terminal of an editor.

pub(crate) mod admission;
pub mod bash;
pub mod capture;
pub mod classify;
mod command;
pub mod config;
mod cwd;
mod decode;
pub mod editor_terminal;
pub mod env;
pub mod envelope;
pub mod executor;
mod exit_note;
mod foreground;
mod jobs;
pub mod legacy_lists;
pub mod live_throttle;
mod model_output;
mod output_pipeline;
mod policy_handle;
pub mod program;
pub mod read_guard;
pub mod sandbox;
pub(crate) mod time_limit;
pub mod transaction;
mod user_command;
mod version_control;

pub use crate::provenance::extract_paths;
pub use config::{ShellConfig, ShellConfigError, ShellEnvConfig};
pub use editor_terminal::EditorTerminal;
pub use envelope::ShellOutputEnvelope;
pub use executor::ShellExecutor;
pub use policy_handle::ShellPolicyHandle;
pub use read_guard::ReadGuard;
pub use sandbox::{SandboxConfig, SandboxMode};
pub use zeph_bash::{self as policy, PolicyError, ShellPolicy};
pub use zeph_exec as exec;
pub use zeph_exec::{
    BackgroundProcess, CommandOutcome, CommandRunner, CommandSpec, EndReason, Exit, LocalRunner,
    RunError, RunningCommand, SUPERVISOR_ARG, ServedProcess, ServedPrograms, StdStream,
    StdioProcess, SupervisorCommand, supervisor_main,
};
