//! Commands that limit themselves, for terminals that are not below the supervisor.
//!
//! The program runs itself as a helper in such a terminal. The helper removes variables that the terminal adds, closes
//! the standard input, sets up the sandbox, and then becomes the command. So the command never runs without its limits.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::runner::{CommandSandbox, CommandSpec};
use super::sandbox::{self, Plan, Sockets};
use super::supervisor::protocol::{Confinement, Text};
use super::supervisor::{self, CALL_TAG};

/// The hidden first argument that makes the program the helper. The command follows it.
pub const CONFINED_ARG: &str = "__confined-command";

/// The variable with the limits of the helper. Other commands cannot change it.
const LIMITS_VARIABLE: &str = "ZEPH_COMMAND_LIMITS";

/// The exit code of a helper that did not run its command: that of a file that cannot be executed.
const NOT_RUN: u8 = 126;

/// The maximum size of the limits in bytes: one variable on Linux (`MAX_ARG_STRLEN`) with its name and final NUL.
const MAX_LIMITS_BYTES: usize = 128 * 1024 - LIMITS_VARIABLE.len() - 2;

/// The limits of the helper as a message.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    plan: Option<Confinement>,
    /// The names of the command's variables.
    variables: Vec<Text>,
}

/// Limits the process to `variables` of its environment, and as its `ZEPH_COMMAND_LIMITS` says. Then the command in its
/// arguments replaces it. If a program is started with [`CONFINED_ARG`], it calls this function before any other work, and
/// returns its result. It returns only if the command was not run.
#[must_use]
pub fn confined_main(variables: impl IntoIterator<Item = (OsString, OsString)>) -> ExitCode {
    let error = become_command(variables.into_iter().collect());
    eprintln!("zeph did not run the command: {error}");
    ExitCode::from(NOT_RUN)
}

fn become_command(mut variables: Vec<(OsString, OsString)>) -> io::Error {
    let limits = variables.iter().find(|(name, _)| name == LIMITS_VARIABLE);
    let Some((_, limits)) = limits else {
        return io::Error::other(format!(
            "{LIMITS_VARIABLE} is not set; the editor did not pass the environment of the command"
        ));
    };
    let names = match restrict(limits) {
        Ok(names) => names,
        Err(error) => return error,
    };
    variables.retain(|(name, _)| names.contains(name));
    let tag = variables.iter().find(|(name, _)| name == CALL_TAG);
    // Without a mark, the variable alone identifies the processes of the command.
    let _mark = tag.and_then(|(_, tag)| supervisor::mark(tag.to_str()?).ok());
    let mut argv = std::env::args_os().skip(2);
    let Some(program) = argv.next() else {
        return io::Error::other("no command follows the first argument");
    };
    #[allow(
        clippy::disallowed_methods,
        reason = "the process is replaced, and no process is started"
    )]
    let mut command = Command::new(program);
    command
        .args(argv)
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .exec()
}

/// Restricts the process. Returns the names of the command's variables.
fn restrict(limits: &OsStr) -> io::Result<Vec<OsString>> {
    let limits = limits.to_str().ok_or(io::ErrorKind::InvalidData)?;
    let Message { plan, variables } = serde_json::from_str(limits)?;
    if let Some(plan) = plan {
        sandbox::apply_to_process(&Plan::from(plan)).map_err(io::Error::other)?;
    }
    Ok(variables.into_iter().map(OsString::from).collect())
}

/// The limits of a command that starts now.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The plan; `None` if the command needs none, or if its arguments set them up.
    pub(crate) plan: Option<Plan>,
    /// The part of the limits that is not possible.
    pub(crate) missed: Option<String>,
}

/// The parts of a sandbox that this machine enforces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Writes are limited.
    pub(crate) confines_writes: bool,
    /// Sockets are refused.
    pub(crate) refuses_sockets: bool,
    /// Files are hidden.
    pub(crate) hides: bool,
}

impl Machine {
    fn enforces(self, plan: &Plan) -> bool {
        self.confines_writes
            && (self.refuses_sockets || plan.sockets == Sockets::All)
            && (self.hides || plan.hidden.is_none())
    }
}

/// Returns `command` in a form that sets up `limits` itself with the program `helper`. `None` if a part of the limits is
/// not possible: then only the supervisor runs the command.
pub(crate) fn confine(
    command: CommandSpec,
    limits: Limits,
    machine: Machine,
    helper: Option<&Path>,
) -> Option<CommandSpec> {
    let helper = helper.filter(|_| limits.missed.is_none())?;
    if limits
        .plan
        .as_ref()
        .is_some_and(|plan| !machine.enforces(plan))
    {
        return None;
    }
    let plan = limits.plan.map(|plan| {
        Confinement::from(&Plan {
            required: true,
            ..plan
        })
    });
    let mut env = command.env;
    // A variable of this name would precede the limits.
    env.retain(|(name, _)| name != LIMITS_VARIABLE);
    let variables = env.iter().map(|(name, _)| Text::from(name.as_os_str()));
    let message = Message {
        plan,
        variables: variables.collect(),
    };
    let message = serde_json::to_string(&message).ok()?;
    if message.len() > MAX_LIMITS_BYTES {
        return None;
    }
    env.push((LIMITS_VARIABLE.into(), message.into()));
    let mut argv = vec![helper.into(), CONFINED_ARG.into()];
    argv.extend(command.argv);
    Some(CommandSpec {
        argv,
        env,
        sandbox: CommandSandbox::Off,
        ..command
    })
}

/// The file of the program `program`, if it still exists. A link of the kernel to the running program is resolved.
pub(crate) fn helper(program: &Path) -> Option<PathBuf> {
    let file = std::fs::read_link(program).unwrap_or_else(|_| program.to_owned());
    (file.is_absolute() && file.is_file()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> CommandSpec {
        CommandSpec {
            argv: vec!["/bin/sh".into(), "-c".into(), "true".into()],
            cwd: "/".into(),
            env: vec![
                (LIMITS_VARIABLE.into(), "{}".into()),
                ("PATH".into(), "/bin".into()),
            ],
            timeout: None,
            readable_folders: Vec::new(),
            sandbox: CommandSandbox::Session,
        }
    }

    /// Proves ACP-4, SH-20: a command leaves the supervisor only with all of its limits.
    #[test]
    fn command_is_confined_completely_or_not_at_all() {
        const ALL: Machine = Machine {
            confines_writes: true,
            refuses_sockets: true,
            hides: true,
        };
        let check = |plan: Option<Plan>, missed: bool, machine, helper: bool, expect| {
            let limits = Limits {
                plan,
                missed: missed.then(|| "too many files".to_owned()),
            };
            let helper = helper.then_some(Path::new("/zeph"));
            let made = confine(command(), limits.clone(), machine, helper);
            let first = made.as_ref().map(|made| made.argv[0].to_str().unwrap());
            assert_eq!(first, expect, "{limits:?} {machine:?} {helper:?}");
            if let Some(made) = made {
                assert_eq!(made.sandbox, CommandSandbox::Off);
                assert!(made.argv.ends_with(&command().argv));
            }
        };
        let network = || Plan {
            sockets: Sockets::All,
            ..Plan::nothing()
        };
        let hiding = || Plan {
            hidden: Some(Vec::new()),
            ..Plan::nothing()
        };
        let huge = Plan {
            hidden: Some(vec!["/x".repeat(64 * 1024).into()]),
            ..Plan::nothing()
        };
        let helped = Some("/zeph");
        check(None, false, ALL, true, helped);
        check(None, false, Machine::default(), true, helped);
        check(None, false, ALL, false, None);
        check(None, true, ALL, true, None);
        check(Some(Plan::nothing()), false, ALL, true, helped);
        check(Some(Plan::nothing()), false, ALL, false, None);
        check(Some(Plan::nothing()), true, ALL, true, None);
        check(Some(hiding()), false, ALL, true, helped);
        check(Some(huge), false, ALL, true, None);
        for (lacking, of_nothing, of_network, of_hiding) in [
            (
                Machine {
                    confines_writes: false,
                    ..ALL
                },
                None,
                None,
                None,
            ),
            (
                Machine {
                    refuses_sockets: false,
                    ..ALL
                },
                None,
                helped,
                None,
            ),
            (
                Machine {
                    hides: false,
                    ..ALL
                },
                helped,
                helped,
                None,
            ),
        ] {
            check(Some(Plan::nothing()), false, lacking, true, of_nothing);
            check(Some(network()), false, lacking, true, of_network);
            check(Some(hiding()), false, lacking, true, of_hiding);
        }
    }

    /// Proves ACP-4, SH-20: the helper requires the limits, even if the session does not. A variable of the same name in
    /// the environment of the command is removed.
    #[test]
    fn limits_reach_the_helper_as_required() {
        let limits = Limits {
            plan: Some(Plan {
                writable: vec!["/a b".into()],
                ..Plan::nothing()
            }),
            missed: None,
        };
        let machine = Machine {
            confines_writes: true,
            refuses_sockets: true,
            hides: false,
        };
        let made = confine(command(), limits, machine, Some(Path::new("/zeph"))).unwrap();
        let [path, (name, message)] = made.env.as_slice() else {
            panic!("{:?}", made.env);
        };
        assert_eq!(path.0, "PATH");
        assert_eq!(name, LIMITS_VARIABLE);
        let message: Message = serde_json::from_str(message.to_str().unwrap()).unwrap();
        let expect = Plan {
            writable: vec!["/a b".into()],
            required: true,
            ..Plan::nothing()
        };
        assert_eq!(message.plan.map(Plan::from), Some(expect));
        assert_eq!(message.variables, [Text::Utf8("PATH".to_owned())]);
    }
}
