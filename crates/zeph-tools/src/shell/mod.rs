//! The shell: `bash` and the processes it starts.
//!
//! One call, from the outside in: [`executor`] has it judged (`admit`, by [`policy`]), prepared
//! (`command`: `cwd`, [`mod@env`], [`program`]), run and recorded (`recorder`: [`capture`],
//! [`live_throttle`]), and renders its end ([`mod@bash`], [`envelope`], [`classify`]); [`runner`] is the port
//! through which a command runs; [`local`] is the implementation on this machine (`pipes`: what a command prints); [`supervisor`] is the helper
//! process that is the parent of every command, so that none outlives the session; [`os_sandbox`] is
//! what the operating system lets commands do, [`read_guard`] what they may not read; [`transaction`] takes
//! back what a failed one did; `parts` is what rules of permissions see of a command, `mentions` the paths in it that the policy sees, `words` finds paths in words; [`legacy_lists`] are those rules that older lists stand for; `jobs` are the commands that run while calls come and go; [`long_running`] are programs that are spoken with.

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
mod path_words;
mod pipes;
pub mod policy;
pub mod program;
pub mod read_guard;
#[cfg(feature = "policy-enforcer")]
pub(crate) mod referenced_paths;
pub(crate) mod rule_segments;
pub mod runner;
pub mod supervisor;
mod sys;
pub mod transaction;
mod version_control;

pub use config::{ShellConfig, ShellEnvConfig};
pub use envelope::ShellOutputEnvelope;
pub use executor::ShellExecutor;
pub use local::LocalRunner;
pub use long_running::{ServedProcess, ServedPrograms, StdioProcess};
pub use os_sandbox::{SandboxConfig, SandboxMode};
pub use policy::{PolicyError, ShellPolicy, ShellPolicyHandle, extract_paths};
pub use read_guard::ReadGuard;
pub use runner::{
    BackgroundProcess, CommandOutcome, CommandRunner, CommandSpec, EndReason, Exit, RunError,
    RunningCommand,
};
pub use supervisor::{SUPERVISOR_ARG, SupervisorCommand, supervisor_main};
