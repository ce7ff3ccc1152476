//! The executor of `bash`.
//!
//! One call: parameters → `admit` → `command` → runner, with `recorder` → text, envelope, class.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::def::ToolDef;
use crate::diagnostics::Diagnostics;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::executor::{ExecutorResult, SkillEnv, ToolExecutor};
use crate::layers::CallPath;
use crate::output::ToolOutput;
use crate::overflow::{Overflow, OverflowConfig};
use crate::trust::TrustLevel;

use super::admit::Admission;
use super::bash::{self, BASH, BashParams};
use super::capture::Captured;
use super::classify::classify;
use super::command::{Commands, variable};
use super::config::ShellConfig;
use super::env;
use super::local::LocalRunner;
use super::os_sandbox::plan::{Plan, resolve};
use super::os_sandbox::told::Told;
use super::policy::{PolicyError, ShellPolicyHandle};
use super::reads::Reads;
use super::recorder::Recorder;
use super::runner::{CommandRunner, Ended, RunError};
use super::supervisor::{CALL_TAG, SupervisorCommand};

/// Runs `bash` calls.
pub struct ShellExecutor {
    admission: Admission,
    commands: Commands,
    runner: Arc<dyn CommandRunner>,
    sandbox: Told,
    definition: ToolDef,
    overflow: OverflowConfig,
}

impl ShellExecutor {
    /// An executor whose commands start in `cwd` (absolute) on this machine, below the process
    /// that `supervisor` starts at the first of them. `base_env` is the environment of which
    /// `config` says what passes, `reads` says what commands may not read.
    ///
    /// # Errors
    /// [`PolicyError`]s when the blocklist of `config` is wrong.
    pub fn new(
        config: ShellConfig,
        cwd: PathBuf,
        base_env: Vec<(OsString, OsString)>,
        supervisor: SupervisorCommand,
        reads: Reads,
    ) -> Result<Self, Vec<PolicyError>> {
        let tag = variable(&base_env, CALL_TAG).cloned();
        let env = env::select(&base_env, &config.env, None);
        let sandbox = Plan::new(&config, &cwd, &env, resolve);
        let reads = Arc::new(reads);
        let runner = LocalRunner::new(supervisor, tag)
            .confined(sandbox.clone())
            .hiding(Arc::clone(&reads));
        let told = Told::new(sandbox, Arc::clone(&reads));
        Ok(Self {
            sandbox: told,
            ..Self::with_runner(config, cwd, base_env, Arc::new(runner), reads)?
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
        reads: Arc<Reads>,
    ) -> Result<Self, Vec<PolicyError>> {
        let definition = bash::definition();
        let home = variable(&base_env, "HOME").map(OsString::as_os_str);
        Ok(Self {
            admission: Admission::new(&config, &cwd, home, definition.annotations.risk)?
                .guarding(reads),
            commands: Commands::new(config, cwd, base_env),
            runner,
            sandbox: Told::default(),
            definition,
            overflow: OverflowConfig::default(),
        })
    }

    /// The same with other bounds of what the model reads of a command's output.
    #[must_use]
    pub fn overflowing(mut self, config: OverflowConfig) -> Self {
        self.overflow = config;
        self
    }

    /// The blocklist; what is rebuilt through it holds for the calls that follow.
    #[must_use]
    pub fn policy(&self) -> ShellPolicyHandle {
        self.admission.policy()
    }

    /// The tool `diagnostics`, whose processes run as this executor's commands do.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics::new(
            self.commands.config.clone(),
            self.commands.cwd.clone(),
            self.commands.base_env.clone(),
            Arc::clone(&self.runner),
        )
    }

    /// Whether what the rules of reading deny is hidden from commands, as far as it is there when
    /// they start. Finds it out, where there are such rules, by starting what runs commands.
    pub async fn hides_denied(&self) -> bool {
        self.admission.reads().denies() && self.runner.hides().await
    }

    /// The gate is stricter where nothing is hidden.
    async fn find_out_what_is_hidden(&self) {
        if self.admission.reads().denies() {
            self.admission.set_hidden(self.runner.hides().await);
        }
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
        self.find_out_what_is_hidden().await;
        self.admission.admit(path, &params, cx)?;
        let timeout_secs = self.commands.check(&params)?;
        let command = self.commands.prepare(&params, timeout_secs)?;
        if cx.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let place = command.cwd.clone();
        let started = Instant::now();
        let mut recorder = Recorder::new(call, cx, started, &self.overflow);
        let ended = self
            .runner
            .run(command, &cx.cancel, &mut |stream, bytes| {
                recorder.record(stream, bytes);
            })
            .await;
        let captured = recorder.finish();
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Err(run_failed(error, captured)),
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tell(call, cx, &ended);
        self.conclude(captured, &ended, &place, duration_ms, timeout_secs)
    }

    /// Tells the user what of the command's end concerns the session.
    fn tell(&self, call: &ToolCall, cx: &CallContext, ended: &Ended) {
        let restarted = ended.restarted.then(|| {
            "The process that runs shell commands had died and was started anew.".to_owned()
        });
        for text in [restarted, self.sandbox.warning(ended)]
            .into_iter()
            .flatten()
        {
            let call_id = call.id.clone();
            cx.emit(ToolEvent::Notice { call_id, text });
        }
    }

    fn conclude(
        &self,
        captured: Captured,
        ended: &Ended,
        place: &Path,
        duration_ms: u64,
        timeout_secs: u64,
    ) -> Result<ToolOutput, ToolError> {
        let stderr = &captured.stderr.text;
        let refusal = self
            .sandbox
            .refusal(ended, place, stderr, &captured.merged.text);
        let class = classify(ended.exit.code, stderr);
        let output = bash::output(captured, ended, duration_ms);
        let refused = refusal.map(|message| (ToolErrorCategory::PolicyBlocked, message));
        let max_timeout = self.commands.config.max_timeout;
        let failure = || bash::failure(ended, class, timeout_secs, max_timeout);
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
fn run_failed(error: RunError, captured: Captured) -> ToolError {
    let category = match &error {
        RunError::Spawn(_) | RunError::Unavailable(_) => ToolErrorCategory::PermanentFailure,
        RunError::Unconfined(_) => ToolErrorCategory::PolicyBlocked,
        RunError::Lost => ToolErrorCategory::ServerError,
    };
    ToolError::Shell {
        exit_code: None,
        category,
        message: error.to_string(),
        output: Box::new(ToolOutput {
            overflow: captured.merged.shortened.map(Overflow::Spilled),
            ..ToolOutput::text(captured.merged.text)
        }),
    }
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
        self.commands.set_skill_env(env);
    }

    fn set_effective_trust(&self, _trust: TrustLevel) {}

    fn is_tool_retryable(&self, _tool_id: &str) -> bool {
        false
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        call.tool == BASH
            && call
                .parse()
                .is_ok_and(|params| self.admission.would_ask(&params))
    }
}
