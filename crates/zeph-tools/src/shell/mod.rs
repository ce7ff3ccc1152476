//! The shell: `bash` and the processes it starts.
//!
//! One call, from the outside in: [`executor`] decides ([`policy`], `cwd`, [`mod@env`],
//! [`program`]) and renders ([`capture`], [`live`], [`envelope`], [`classify`]); [`runner`] is the port through which a
//! command runs; [`local`] is the implementation on this machine; [`supervisor`] is the helper
//! process that is the parent of every command, so that none outlives the session; [`os_sandbox`] is
//! what the operating system lets commands do.

pub mod bash;
pub mod capture;
pub mod classify;
pub mod config;
mod cwd;
pub mod env;
pub mod envelope;
pub mod executor;
pub mod live;
pub mod local;
pub mod os_sandbox;
pub mod policy;
pub mod program;
pub mod runner;
pub mod supervisor;
mod sys;

pub use config::{ShellConfig, ShellEnvConfig};
pub use envelope::ShellOutputEnvelope;
pub use executor::ShellExecutor;
pub use local::LocalRunner;
pub use os_sandbox::{SandboxConfig, SandboxMode};
pub use policy::{PolicyError, ShellPolicy, ShellPolicyHandle, extract_paths};
pub use runner::{BackgroundProcess, Cause, CommandRunner, CommandSpec, Ended, Exit, RunError};
pub use supervisor::{SUPERVISOR_ARG, SupervisorCommand, supervisor_main};
