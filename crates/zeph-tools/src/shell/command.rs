//! Conversion of the parameters of a call into a command: shell, directory, environment and timeout.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::error::ToolError;
use crate::executor::SkillEnv;

use super::bash::BashParams;
use super::config::ShellConfig;
use super::time_limit::{TimeLimit, TimeLimits};
use super::{cwd, env, program};
use zeph_bash::{Parsed, Part, WorkingDirState, file_name, visit_from};
use zeph_exec::runner::{CommandSandbox, CommandSpec};

/// The maximum size of a command in bytes: one argument on Linux (`MAX_ARG_STRLEN`) without its final NUL.
const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// The settings with which the commands of a session run.
pub(crate) struct Commands {
    pub(crate) config: ShellConfig,
    /// The directory in which commands start; absolute.
    pub(crate) cwd: PathBuf,
    /// The environment that `config` filters.
    pub(crate) base_env: Vec<(OsString, OsString)>,
    shell: Option<PathBuf>,
    skill_env: ArcSwapOption<SkillEnv>,
}

impl Commands {
    pub(super) fn new(
        config: ShellConfig,
        cwd: PathBuf,
        base_env: Vec<(OsString, OsString)>,
    ) -> Self {
        let path = variable(&base_env, "PATH");
        Self {
            shell: program::find_shell(path.map(OsString::as_os_str)),
            config,
            cwd,
            base_env,
            skill_env: ArcSwapOption::empty(),
        }
    }

    /// Sets or clears the variables that a skill adds to the environment.
    pub(super) fn set_skill_env(&self, env: Option<SkillEnv>) {
        self.skill_env.store(env.map(Arc::new));
    }

    /// Refuses invalid parameters. Returns the time limit. A background job has one only if the call sets it.
    pub(super) fn check(&self, params: &BashParams) -> Result<Option<TimeLimit>, ToolError> {
        let limits = TimeLimits::new(&self.config);
        let max = limits.max;
        if params.command.trim().is_empty() {
            return Err(ToolError::invalid("/command: expected a command, got none"));
        }
        if params.command.contains('\0') {
            return Err(ToolError::invalid(
                "/command: a NUL character cannot be passed to a shell",
            ));
        }
        if params.command.len() > MAX_COMMAND_BYTES {
            return Err(ToolError::invalid(format!(
                "/command: expected at most {MAX_COMMAND_BYTES} bytes, got {}; write a script to a \
                 file and run the file",
                params.command.len()
            )));
        }
        let Some(secs) = params.timeout_secs else {
            let is_job = params.background == Some(true);
            return Ok((!is_job).then(|| limits.of_command(&params.command)));
        };
        let allowed = u64::try_from(secs).ok();
        match allowed.filter(|secs| (1..=max).contains(secs)) {
            Some(secs) => Ok(Some(limits.of_call(secs))),
            None => Err(ToolError::invalid(format!(
                "/timeout_secs: expected 1 to {max} (`[tools.shell] max_timeout`), got {secs}"
            ))),
        }
    }

    /// Whether `sh` runs the commands, because bash is not installed.
    pub(super) fn run_by_sh(&self) -> bool {
        let name = self.shell.as_deref().and_then(Path::file_name);
        name.is_some_and(|name| name == "sh")
    }

    /// Prepares the command of a call, which runs `text` with the environment of all skills and of this call's skill.
    ///
    /// # Errors
    /// If no shell is installed, `cwd` is invalid, or `text` is too long.
    pub(super) fn prepare(
        &self,
        params: &BashParams,
        text: &str,
        limit: Option<TimeLimit>,
        of_call: Option<&SkillEnv>,
    ) -> Result<CommandSpec, ToolError> {
        let shell = self.shell()?;
        if text.len() > MAX_COMMAND_BYTES {
            return Err(ToolError::invalid(format!(
                "/command: with its quotes it has {} bytes, more than {MAX_COMMAND_BYTES}; write a \
                 script to a file and run the file",
                text.len()
            )));
        }
        let cwd = cwd::resolve(params.cwd.as_deref(), &self.cwd, &self.config.allowed_paths)?;
        let all = self.skill_env.load();
        let skill = match (all.as_deref(), of_call) {
            (Some(all), Some(own)) => Some(all.iter().chain(own).map(clone_pair).collect()),
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (None, None) => None,
        };
        Ok(CommandSpec {
            argv: argv(shell, text),
            cwd,
            env: env::select(&self.base_env, &self.config.env, skill.as_ref()),
            timeout: limit.map(TimeLimit::duration),
            readable_folders: Vec::new(),
            sandbox: CommandSandbox::Session,
        })
    }

    /// Prepares a command that the user typed. It starts in `cwd`.
    ///
    /// # Errors
    /// If no shell is installed, or `cwd` does not exist.
    pub(super) fn prepare_for_user(
        &self,
        text: &str,
        cwd: PathBuf,
    ) -> Result<CommandSpec, ToolError> {
        if !cwd.is_dir() {
            return Err(ToolError::Missing {
                message: format!(
                    "the directory {} does not exist; !cd DIRECTORY changes it",
                    cwd.display()
                ),
            });
        }
        Ok(CommandSpec {
            argv: argv(self.shell()?, text),
            cwd,
            env: env::select(&self.base_env, &self.config.env, None),
            timeout: None,
            readable_folders: Vec::new(),
            sandbox: CommandSandbox::Off,
        })
    }

    fn shell(&self) -> Result<&Path, ToolError> {
        self.shell.as_deref().ok_or_else(|| {
            ToolError::permanent("neither bash nor sh was found on PATH; no command can be run")
        })
    }
}

/// The arguments that make `shell` run `text`.
fn argv(shell: &Path, text: &str) -> Vec<OsString> {
    // Without `--`, a command that starts with a dash would be an option.
    vec![shell.into(), "-c".into(), "--".into(), text.into()]
}

fn clone_pair((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// The value of an environment variable.
pub(super) fn variable<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsString> {
    env.iter()
        .find(|(candidate, _)| candidate == name)
        .map(|(_, value)| value)
}

/// The file names of the programs in a command, at every depth.
pub(super) fn program_names(parsed: &Parsed) -> Vec<String> {
    let mut names = Vec::new();
    let _ = visit_from(parsed, &WorkingDirState::default(), &mut |part| {
        if let Part::Command { words, .. } = part
            && let Some(name) = words.first().and_then(|word| word.known())
        {
            names.push(file_name(name).to_owned());
        }
    });
    names
}
