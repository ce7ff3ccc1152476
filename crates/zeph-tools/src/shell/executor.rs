//! The executor of `bash`.
//!
//! One call: parameters → blocklist → directory, environment, shell → runner → capture, live
//! output → text, envelope, class.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::{Answer, ApprovedBy, CallContext};
use crate::def::ToolDef;
use crate::diagnostics::Diagnostics;
use crate::error::{Confirmation, ToolError};
use crate::event::{OutputStream, ToolEvent};
use crate::executor::{ExecutorResult, SkillEnv, ToolExecutor};
use crate::layers::CallPath;
use crate::output::ToolOutput;
use crate::trust::TrustLevel;

use super::bash::{self, BASH, BashParams};
use super::capture::{Capture, Captured, Limits};
use super::classify::classify;
use super::config::ShellConfig;
use super::live::LiveLimit;
use super::local::LocalRunner;
use super::os_sandbox::plan::{Plan, resolve};
use super::os_sandbox::told::Told;
use super::policy::{PolicyError, ShellPolicyHandle, Start, Verdict};
use super::runner::{CommandRunner, CommandSpec, Ended, RunError};
use super::supervisor::{CALL_TAG, SupervisorCommand};
use super::{cwd, env, program};

/// Bytes of a command: what Linux takes as one argument (`MAX_ARG_STRLEN`), its end left out.
const LONGEST_COMMAND: usize = 128 * 1024 - 1;

/// Runs `bash` calls.
pub struct ShellExecutor {
    config: ShellConfig,
    cwd: PathBuf,
    base_env: Vec<(OsString, OsString)>,
    shell: Option<PathBuf>,
    skill_env: ArcSwapOption<SkillEnv>,
    runner: Arc<dyn CommandRunner>,
    sandbox: Told,
    definition: ToolDef,
    policy: ShellPolicyHandle,
    /// What must not be destroyed, wherever a command starts.
    start: Start,
}

impl ShellExecutor {
    /// An executor whose commands start in `cwd` (absolute) on this machine, below the process
    /// that `supervisor` starts at the first of them. `base_env` is the environment of which
    /// `config` says what passes.
    ///
    /// # Errors
    /// [`PolicyError`]s when the blocklist of `config` is wrong.
    pub fn new(
        config: ShellConfig,
        cwd: PathBuf,
        base_env: Vec<(OsString, OsString)>,
        supervisor: SupervisorCommand,
    ) -> Result<Self, Vec<PolicyError>> {
        let tag = variable(&base_env, CALL_TAG).cloned();
        let env = env::select(&base_env, &config.env, None);
        let sandbox = Plan::new(&config, &cwd, &env, resolve);
        let runner = Arc::new(LocalRunner::new(supervisor, tag).confined(sandbox.clone()));
        Ok(Self {
            sandbox: Told::new(sandbox),
            ..Self::with_runner(config, cwd, base_env, runner)?
        })
    }

    /// The same with another way of running commands.
    ///
    /// # Errors
    /// [`PolicyError`]s when the blocklist of `config` is wrong.
    pub fn with_runner(
        config: ShellConfig,
        cwd: PathBuf,
        base_env: Vec<(OsString, OsString)>,
        runner: Arc<dyn CommandRunner>,
    ) -> Result<Self, Vec<PolicyError>> {
        let path = variable(&base_env, "PATH");
        let shell = program::find_shell(path.map(OsString::as_os_str));
        let start = Start {
            cwd: cwd.clone(),
            home: variable(&base_env, "HOME").map(PathBuf::from),
            roots: cwd::protected(&cwd, &config.allowed_paths),
        };
        Ok(Self {
            policy: ShellPolicyHandle::new(&config)?,
            start,
            config,
            cwd,
            base_env,
            shell,
            skill_env: ArcSwapOption::empty(),
            runner,
            sandbox: Told::default(),
            definition: bash::definition(),
        })
    }

    /// The blocklist; what is rebuilt through it holds for the calls that follow.
    #[must_use]
    pub fn policy(&self) -> ShellPolicyHandle {
        self.policy.clone()
    }

    /// The tool `diagnostics`, whose processes run as this executor's commands do.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics::new(
            self.config.clone(),
            self.cwd.clone(),
            self.base_env.clone(),
            Arc::clone(&self.runner),
        )
    }

    /// Ends everything that commands left behind; the end of the session. Returns when it is gone.
    pub async fn shutdown(&self) {
        self.runner.shutdown().await;
    }

    async fn bash(
        &self,
        path: CallPath,
        call: &ToolCall,
        cx: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let params: BashParams = call.parse()?;
        self.admit(path, &params, cx)?;
        let timeout_secs = self.check(&params)?;
        let command = self.prepare(&params, timeout_secs)?;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let place = command.cwd.clone();
        let started = Instant::now();
        let mut recorder = Recorder::new(call, cx, started);
        let ended = self
            .runner
            .run(command, &cx.cancel, &mut |stream, bytes| {
                recorder.record(stream, bytes);
            })
            .await;
        let captured = recorder.finish();
        let ended = ended.map_err(|error| run_failed(error, &captured))?;
        if ended.restarted {
            cx.emit(ToolEvent::Notice {
                call_id: call.id.clone(),
                text: "The process that runs shell commands had died and was started anew."
                    .to_owned(),
            });
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(text) = self.sandbox.warning(&ended) {
            let call_id = call.id.clone();
            cx.emit(ToolEvent::Notice { call_id, text });
        }
        let stderr = &captured.stderr.text;
        let refusal = self.sandbox.refusal(&ended, &place, stderr);
        self.conclude(captured, &ended, refusal, duration_ms, timeout_secs)
    }

    /// What the blocklist says about a command; it stands on both paths.
    fn decide(&self, params: &BashParams) -> Verdict {
        let policy = self.policy.load();
        match &params.cwd {
            None => policy.decide(&params.command, &self.start),
            Some(cwd) => {
                let start = Start {
                    cwd: self.cwd.join(cwd),
                    ..self.start.clone()
                };
                policy.decide(&params.command, &start)
            }
        }
    }

    /// Refuses what is blocked on both paths, and asks on the normal one where nothing has been
    /// agreed to.
    fn admit(
        &self,
        path: CallPath,
        params: &BashParams,
        cx: &CallContext,
    ) -> Result<(), ToolError> {
        match self.decide(params) {
            Verdict::Allow => Ok(()),
            Verdict::Block { what } => Err(ToolError::blocked(format!(
                "the shell's blocklist refuses this command: {what}"
            ))),
            Verdict::Ask { .. } if path == CallPath::Confirmed => {
                cx.trace().approved_by = ApprovedBy::User;
                Ok(())
            }
            Verdict::Ask { why } => match &cx.answer {
                Answer::No(Some(told)) => Err(ToolError::blocked(format!(
                    "the user refused this call and says: {told}"
                ))),
                Answer::No(None) => Err(ToolError::blocked("the user refused this call")),
                answer => Err(ToolError::ConfirmationRequired(Box::new(Confirmation {
                    tool: BASH.to_owned(),
                    subject: params.command.clone(),
                    risk: self.definition.annotations.risk,
                    reason: format!("{why}."),
                    hint: if *answer == Answer::CanAsk {
                        String::new()
                    } else {
                        "Nobody can be asked here: --yes allows every question once.".to_owned()
                    },
                }))),
            },
        }
    }

    /// Refuses parameters that no command can be run with. The time that holds, in seconds.
    fn check(&self, params: &BashParams) -> Result<u64, ToolError> {
        let max = self.config.max_timeout;
        let secs = params
            .timeout_secs
            .unwrap_or(self.config.timeout.clamp(1, max.max(1)));
        if params.command.trim().is_empty() {
            return Err(ToolError::invalid("/command: expected a command, got none"));
        }
        if params.command.contains('\0') {
            return Err(ToolError::invalid(
                "/command: a NUL character cannot be passed to a shell",
            ));
        }
        if params.command.len() > LONGEST_COMMAND {
            return Err(ToolError::invalid(format!(
                "/command: expected at most {LONGEST_COMMAND} bytes, got {}; write a script to a \
                 file and run that",
                params.command.len()
            )));
        }
        if params.timeout_secs == Some(0) || secs > max {
            return Err(ToolError::invalid(format!(
                "/timeout_secs: expected 1 to {max} (`[tools.shell] max_timeout`), got {secs}"
            )));
        }
        Ok(secs)
    }

    fn prepare(&self, params: &BashParams, timeout_secs: u64) -> Result<CommandSpec, ToolError> {
        let Some(shell) = &self.shell else {
            return Err(ToolError::permanent(
                "neither bash nor sh was found on PATH; no command can be run",
            ));
        };
        let cwd = cwd::resolve(params.cwd.as_deref(), &self.cwd, &self.config.allowed_paths)?;
        let skill = self.skill_env.load();
        Ok(CommandSpec {
            // Without `--` a command that starts with a dash would be taken for options.
            argv: vec![
                shell.into(),
                "-c".into(),
                "--".into(),
                params.command.as_str().into(),
            ],
            cwd,
            env: env::select(&self.base_env, &self.config.env, skill.as_deref()),
            timeout: Duration::from_secs(timeout_secs),
        })
    }

    fn conclude(
        &self,
        captured: Captured,
        ended: &Ended,
        refusal: Option<String>,
        duration_ms: u64,
        timeout_secs: u64,
    ) -> Result<ToolOutput, ToolError> {
        let class = classify(ended.exit.code, &captured.stderr.text);
        let output = bash::output(captured, ended, duration_ms);
        let refused = refusal.map(|message| (ToolErrorCategory::PolicyBlocked, message));
        let failure = || bash::failure(ended, class, timeout_secs, self.config.max_timeout);
        match refused.or_else(failure) {
            None => Ok(output),
            Some((category, message)) => Err(ToolError::Shell {
                exit_code: Some(ended.exit.code),
                category,
                message,
                output: Box::new(output),
            }),
        }
    }
}

/// The failure of a command that has no end to tell of; what it printed goes with it.
fn run_failed(error: RunError, captured: &Captured) -> ToolError {
    let category = match &error {
        RunError::Spawn(_) | RunError::Unavailable(_) => ToolErrorCategory::PermanentFailure,
        RunError::Unconfined(_) => ToolErrorCategory::PolicyBlocked,
        RunError::Lost => ToolErrorCategory::ServerError,
    };
    ToolError::Shell {
        exit_code: None,
        category,
        message: error.to_string(),
        output: Box::new(ToolOutput::text(captured.merged.text.clone())),
    }
}

fn variable<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsString> {
    env.iter()
        .find(|(candidate, _)| candidate == name)
        .map(|(_, value)| value)
}

/// Keeps what is printed, and shows it live.
struct Recorder<'c> {
    capture: Capture,
    live: LiveLimit,
    call: &'c ToolCall,
    cx: &'c CallContext,
    last: OutputStream,
}

impl<'c> Recorder<'c> {
    fn new(call: &'c ToolCall, cx: &'c CallContext, now: Instant) -> Self {
        Self {
            capture: Capture::new(Limits::default()),
            live: LiveLimit::new(now),
            call,
            cx,
            last: OutputStream::Stdout,
        }
    }

    fn record(&mut self, stream: OutputStream, bytes: &[u8]) {
        let text = self.capture.push(stream, bytes);
        self.last = stream;
        if let Some(text) = self.live.admit(Instant::now(), &text) {
            show(self.call, self.cx, stream, text.into_owned());
        }
    }

    fn finish(mut self) -> Captured {
        if let Some(text) = self.live.finish() {
            show(self.call, self.cx, self.last, text);
        }
        self.capture.finish()
    }
}

fn show(call: &ToolCall, cx: &CallContext, stream: OutputStream, text: String) {
    cx.emit(ToolEvent::Output {
        call_id: call.id.clone(),
        stream,
        text,
    });
}

impl ToolExecutor for ShellExecutor {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        if call.tool != BASH {
            return Ok(None);
        }
        self.bash(CallPath::Normal, call, cx).await.map(Some)
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        if call.tool != BASH {
            return Ok(None);
        }
        self.bash(CallPath::Confirmed, call, cx).await.map(Some)
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        vec![self.definition.clone()]
    }

    fn set_skill_env(&self, env: Option<SkillEnv>) {
        self.skill_env.store(env.map(Arc::new));
    }

    fn set_effective_trust(&self, _trust: TrustLevel) {}

    fn is_tool_retryable(&self, _tool_id: &str) -> bool {
        false
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        call.tool == BASH
            && call
                .parse()
                .is_ok_and(|params| matches!(self.decide(&params), Verdict::Ask { .. }))
    }
}
