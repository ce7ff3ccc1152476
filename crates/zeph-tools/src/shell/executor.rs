//! The executor of `bash` and of the tools for its background jobs.
//!
//! One command: parameters → `admission` → `command` → `foreground` or `jobs` → text, envelope, class.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::BackgroundActivity;
use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::{CallContext, Origin};
use crate::contract::call_path::CallPath;
use crate::contract::confinement::Confinement;
use crate::contract::effective_trust::EffectiveTrust;
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::executor::{ExecutorResult, SkillEnv, ToolExecutor};
use crate::filter::FilterPipeline;
use crate::output::ToolOutput;
use crate::overflow::OverflowConfig;
use crate::secrets::SecurityPatterns;
use crate::trust::TrustLevel;

use super::admission::CommandGate;
use super::bash::{self, BASH, BashParams};
use super::classify::classify;
use super::command::{Commands, program_names, variable};
use super::config::{ShellConfig, ShellConfigError};
use super::editor_terminal::EditorTerminal;
use super::env;
use super::jobs::{self, JOB_KILL, JOB_LIST, JOB_OUTPUT, Jobs};
use super::policy_handle::ShellPolicyHandle;
use super::read_guard::ReadGuard;
use super::sandbox::access_request::AccessRequest;
use super::sandbox::plan;
use super::sandbox::profile::PreparedSandbox;
use super::sandbox::session_sandbox::{FinishedCommand, SessionSandbox};
use super::time_limit::TimeLimit;
use super::transaction::Transactions;
use super::user_command::UserDirectories;
use zeph_bash::{Parsed, PolicyError, Verdict, WorkingDirState};
use zeph_exec::local::LocalRunner;
use zeph_exec::runner::{CommandOutcome, CommandRunner, EndReason, RunError};
use zeph_exec::supervisor::{CALL_TAG, SupervisorCommand};

/// Runs commands, and stores their background jobs.
pub struct ShellExecutor {
    admission: Arc<CommandGate>,
    pub(super) commands: Commands,
    pub(super) runner: Arc<dyn CommandRunner>,
    pub(super) editor_terminal: Option<EditorTerminal>,
    transactions: Transactions,
    pub(super) sandbox: SessionSandbox,
    trust: EffectiveTrust,
    definitions: Vec<ToolDef>,
    pub(super) overflow: OverflowConfig,
    pub(super) secrets: Arc<SecurityPatterns>,
    filters: Arc<FilterPipeline>,
    pub(super) jobs: Jobs,
    pub(super) user_directories: UserDirectories,
}

impl ShellExecutor {
    /// Returns an executor for commands on this machine that start in `cwd` (absolute). The first command starts the
    /// supervisor process with `supervisor`. `config` filters the environment `base_env`, and `reads` has the read
    /// rules.
    ///
    /// # Errors
    /// [`ShellConfigError`]s if `config` is invalid.
    pub fn new(
        config: ShellConfig,
        cwd: PathBuf,
        base_env: Vec<(OsString, OsString)>,
        supervisor: SupervisorCommand,
        reads: ReadGuard,
    ) -> Result<Self, Vec<ShellConfigError>> {
        let tag = variable(&base_env, CALL_TAG).cloned();
        let env = env::select(&base_env, &config.env, None);
        let sandbox = plan(&config, &cwd, &env);
        let reads = Arc::new(reads);
        let sandbox = sandbox.map(|plan| plan.without_reading(reads.private(), reads.shared()));
        let runner = LocalRunner::new(supervisor, tag)
            .with_sandbox(sandbox.clone())
            .with_denied_files(Arc::<ReadGuard>::clone(&reads));
        let sandbox = SessionSandbox::new(sandbox, Arc::clone(&reads));
        Ok(Self {
            sandbox,
            ..Self::with_runner(config, cwd, base_env, Arc::new(runner), reads)?
        })
    }

    /// Returns an executor that runs commands with `runner`.
    ///
    /// # Errors
    /// [`ShellConfigError`]s if `config` is invalid.
    pub fn with_runner(
        config: ShellConfig,
        cwd: PathBuf,
        base_env: Vec<(OsString, OsString)>,
        runner: Arc<dyn CommandRunner>,
        reads: Arc<ReadGuard>,
    ) -> Result<Self, Vec<ShellConfigError>> {
        let faults = |errors: Vec<PolicyError>| -> Vec<ShellConfigError> {
            errors.into_iter().map(ShellConfigError::Policy).collect()
        };
        let policy = ShellPolicyHandle::new(&config).map_err(faults)?;
        let definition = bash::definition(&config, &policy.load());
        let risk = definition.annotations.risk;
        let admission = CommandGate::new(policy, &config, &cwd, &base_env, risk).guarding(reads);
        let temporary = variable(&base_env, "TMPDIR").map_or("/tmp".into(), PathBuf::from);
        let transactions = Transactions::new(&config, cwd.clone(), temporary)?;
        let commands = Commands::new(config, cwd, base_env);
        Ok(Self {
            transactions,
            admission: Arc::new(admission.run_by_sh(commands.run_by_sh())),
            commands,
            runner,
            editor_terminal: None,
            sandbox: SessionSandbox::default(),
            trust: EffectiveTrust::default(),
            definitions: std::iter::once(definition)
                .chain(jobs::definitions())
                .collect(),
            overflow: OverflowConfig::default(),
            secrets: Arc::default(),
            filters: Arc::new(FilterPipeline::off()),
            jobs: Jobs::default(),
            user_directories: UserDirectories::default(),
        })
    }

    /// Sets the limits for the output that the model reads.
    #[must_use]
    pub fn with_overflow(mut self, config: OverflowConfig) -> Self {
        self.jobs = Jobs::new(config.clone(), Arc::clone(&self.secrets));
        self.overflow = config;
        self
    }

    /// Sets the secrets that are removed from the output of commands.
    #[must_use]
    pub fn with_redaction(mut self, secrets: Arc<SecurityPatterns>) -> Self {
        self.jobs = Jobs::new(self.overflow.clone(), Arc::clone(&secrets));
        self.secrets = secrets;
        self
    }

    /// Runs the commands of a model in terminals of an editor, if there are some.
    #[must_use]
    pub fn with_editor_terminal(mut self, terminal: Option<EditorTerminal>) -> Self {
        self.editor_terminal = terminal;
        self
    }

    /// The filters for the output of commands.
    #[must_use]
    pub fn filters(&self) -> &Arc<FilterPipeline> {
        &self.filters
    }

    /// Sets the filters for the output of commands. Without filters, the output is only sanitized.
    #[must_use]
    pub fn with_filters(mut self, filters: Arc<FilterPipeline>) -> Self {
        self.filters = filters;
        self
    }

    /// Stores snapshots in the directory `snapshots`, where commands do not write. A rollback does not touch the
    /// program's own `database`.
    #[must_use]
    pub fn with_own_files(self, database: PathBuf, snapshots: PathBuf) -> Self {
        Self {
            transactions: self.transactions.beside(database, snapshots),
            ..self
        }
    }

    /// The handle of the blocklist. A policy that is rebuilt through it applies to the calls that follow.
    #[must_use]
    pub fn policy(&self) -> ShellPolicyHandle {
        self.admission.policy()
    }

    /// The gate of commands, which the blocklist layer asks.
    pub(crate) fn gate(&self) -> Arc<CommandGate> {
        Arc::clone(&self.admission)
    }

    /// The decision of the blocklist and the read rules about a `bash` call with these arguments. Nothing runs.
    ///
    /// # Errors
    /// If the arguments are invalid.
    pub fn verdict(&self, params: &serde_json::Value) -> Result<Verdict, ToolError> {
        let call = ToolCall::new("", BASH, params.clone(), "");
        Ok(self.admission.verdict(&call.parse()?))
    }

    /// The settings, the working directory, the environment and the runner of its commands.
    pub(crate) fn parts(&self) -> (&Commands, &Arc<dyn CommandRunner>) {
        (&self.commands, &self.runner)
    }

    /// Whether files that the read rules deny are hidden from commands, if they exist when a command starts. If there
    /// are such rules, this starts the supervisor process.
    pub async fn enforces_deny_read(&self) -> bool {
        self.admission.reads().denies() && self.runner.enforces_deny_read().await
    }

    /// Updates the gate, which is stricter if denied files are not hidden.
    async fn find_out_what_is_hidden(&self) {
        if self.admission.reads().denies() {
            self.admission
                .set_hidden(self.runner.enforces_deny_read().await);
        }
    }

    /// Descriptions of the running background jobs, for the user.
    #[must_use]
    pub fn running_jobs(&self) -> Vec<String> {
        self.jobs.running()
    }

    /// Ends the session: ends all processes that commands left behind, and waits until they are gone.
    pub async fn shutdown(&self) {
        self.jobs.close();
        self.runner.shutdown().await;
        self.transactions.end().await;
    }

    async fn execute(&self, path: CallPath, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        match call.tool.as_str() {
            BASH => self.bash(path, call, cx).await,
            JOB_OUTPUT => self.job_output(call, cx).await,
            JOB_KILL => self.job_kill(call, cx).await,
            JOB_LIST => self.job_list(call),
            _ => return Ok(None),
        }
        .map(Some)
    }

    async fn bash(
        &self,
        path: CallPath,
        call: &ToolCall,
        cx: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let params: BashParams = call.parse()?;
        if cx.origin == Origin::Typed {
            return self.user_command(call, cx, &params).await;
        }
        self.find_out_what_is_hidden().await;
        let text = self.admission.admit(path, call, &params, cx)?;
        let limit = self.commands.check(&params)?;
        let mut command = self
            .commands
            .prepare(&params, &text, limit, cx.skill_env())?;
        command.readable_folders = self.admission.readable_folders(&params);
        if cx.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let background = params.background == Some(true);
        let transaction = self
            .transactions
            .begin(&params.command, background, call, cx)
            .await?;
        if background {
            let started = self.start_job(call, cx, &params, (command, limit)).await;
            return transaction.finish(None, started, call, cx).await;
        }
        let run = self
            .run_foreground(call, cx, &params, (command, limit))
            .await;
        transaction.finish(run.code, run.result, call, cx).await
    }

    /// Prepares the sandbox of a command with the environment `env`.
    ///
    /// # Errors
    /// If the call may run only in a sandbox, and the session has none.
    pub(super) fn prepare_sandbox(
        &self,
        params: &BashParams,
        confinement: &Confinement,
        env: Vec<(OsString, OsString)>,
    ) -> Result<PreparedSandbox, ToolError> {
        let parsed = Parsed::new(&params.command);
        let mut names = program_names(&parsed);
        // Programs that the named ones start.
        let reads = zeph_bash::read_only(&parsed, &WorkingDirState::default());
        names.extend(reads.map(|reads| reads.programs).unwrap_or_default());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let config = &self.commands.config.sandbox;
        self.sandbox.prepare(config, confinement, &names, env)
    }

    /// Notifies the user about a lost supervisor or a missing part of the sandbox.
    pub(super) fn tell(&self, call: &ToolCall, cx: &CallContext, ended: &CommandOutcome) {
        let restarted = ended
            .restarted
            .then(|| "The shell supervisor died and was restarted.".to_owned());
        for text in [restarted, self.sandbox.warning(ended)]
            .into_iter()
            .flatten()
        {
            let call_id = call.id.clone();
            cx.emit(ToolEvent::Notice { call_id, text });
        }
    }

    /// The accesses that the sandbox refused to a failed command, which started in `place`.
    pub(super) fn refusal(
        &self,
        ended: &CommandOutcome,
        sandbox: &PreparedSandbox,
        place: &Path,
        stderr: &str,
        merged: &str,
    ) -> Option<AccessRequest> {
        let finished = FinishedCommand {
            ended,
            sandbox,
            config: &self.commands.config.sandbox,
            place,
            project: &self.commands.cwd,
        };
        self.sandbox.refusal(&finished, stderr, merged)
    }

    /// The failure of a command with this time limit, if it is not a plain result.
    pub(super) fn failure(
        ended: &CommandOutcome,
        stderr: &str,
        limit: Option<TimeLimit>,
    ) -> Option<(ToolErrorCategory, String)> {
        let class = classify(ended.exit.code, stderr);
        bash::failure(ended, class, limit)
    }
}

/// The exit code of a command that was neither stopped nor killed.
pub(super) fn exit_code(ended: &CommandOutcome) -> Option<i32> {
    let by_itself = ended.cause == EndReason::Finished && ended.exit.signal.is_none();
    by_itself.then_some(ended.exit.code)
}

/// The failure of a command without an outcome, with its output so far.
pub(super) fn run_failed(error: RunError, printed: ToolOutput) -> ToolError {
    let category = match &error {
        RunError::Spawn(_) | RunError::Unavailable(_) | RunError::Terminal(_) => {
            ToolErrorCategory::PermanentFailure
        }
        RunError::Unconfined(_) => ToolErrorCategory::PolicyBlocked,
        RunError::Lost => ToolErrorCategory::ServerError,
    };
    ToolError::Shell {
        exit_code: None,
        category,
        message: error.to_string(),
        output: Box::new(printed),
    }
}

/// Background jobs can change files at any time.
impl BackgroundActivity for ShellExecutor {
    fn is_running(&self) -> bool {
        self.jobs.are_running()
    }
}

impl ToolExecutor for ShellExecutor {
    async fn execute_tool_call(&self, call: &ToolCall, cx: &CallContext) -> ExecutorResult {
        self.execute(CallPath::Normal, call, cx).await
    }

    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        self.execute(CallPath::Confirmed, call, cx).await
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        self.definitions.clone()
    }

    fn set_skill_env(&self, env: Option<SkillEnv>) {
        self.admission.set_skill_env(env.clone());
        self.commands.set_skill_env(env);
    }

    fn set_effective_trust(&self, trust: TrustLevel) {
        self.trust.set(trust);
    }

    fn is_tool_retryable(&self, _tool_id: &str) -> bool {
        false
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        let mut definitions = self.definitions.iter();
        let Some(def) = definitions.find(|def| def.id == call.tool) else {
            return false;
        };
        let asks = |params: BashParams| self.admission.would_ask(&params);
        self.trust.requires_confirmation(&def.annotations)
            || (call.tool == BASH && call.parse().is_ok_and(asks))
    }
}
