//! The tool `diagnostics`: the results of `cargo check` or `cargo clippy` for the project, as data.
//!
//! Build scripts and macros of the project run during the check, so this is not a read-only tool. It is asked
//! about like a command, and its processes run under the same supervisor, with the same environment and the same
//! time limit.

mod config;
pub mod parse;
mod sources;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::def::{Annotations, CachePolicy, Risk, ToolDef};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::plural::pluralize;
use crate::shell::capture::{HeadTailBuffer, Limits};
use crate::shell::time_limit::TimeLimits;
use crate::shell::{ShellConfig, ShellExecutor, env, program};
use crate::tool_set::{Tool, ToolGroup, ToolSet};
pub use config::DiagnosticsConfig;
use parse::{Collector, Diagnostic};
use sources::Sources;
use zeph_exec::StdStream;
use zeph_exec::runner::{CommandOutcome, CommandRunner, CommandSandbox, CommandSpec, EndReason};

/// The size of the retained start and end of standard error, in bytes each.
const KEPT_STDERR: usize = 4 * 1024;

/// Which of cargo's commands runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(description = "")]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Check,
    Clippy,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Params {
    kind: Option<Kind>,
    #[schemars(range(min = 1))]
    max_diagnostics: Option<usize>,
}

/// The executor of `diagnostics`.
#[derive(Clone)]
pub struct DiagnosticsExecutor {
    tools: ToolSet,
}

impl DiagnosticsExecutor {
    /// Creates an executor for `tool`.
    #[must_use]
    pub fn new(tool: Diagnostics) -> Self {
        Self {
            tools: ToolSet::new(vec![Arc::new(tool)]),
        }
    }
}

impl ToolGroup for DiagnosticsExecutor {
    fn tools(&self) -> &ToolSet {
        &self.tools
    }
}

/// The tool `diagnostics`.
pub struct Diagnostics {
    def: ToolDef,
    config: ShellConfig,
    cwd: PathBuf,
    base_env: Vec<(OsString, OsString)>,
    runner: Arc<dyn CommandRunner>,
    limits: DiagnosticsConfig,
}

impl Diagnostics {
    /// Creates the tool for the project of `shell`; its processes run as the commands of `shell` do.
    #[must_use]
    pub fn for_shell(shell: &ShellExecutor) -> Self {
        let (commands, runner) = shell.parts();
        Self::new(
            commands.config.clone(),
            commands.cwd.clone(),
            commands.base_env.clone(),
            Arc::clone(runner),
        )
    }

    /// Creates the tool for the project in `cwd`; commands run with `runner` and the settings of `config`.
    #[must_use]
    pub fn new(
        config: ShellConfig,
        cwd: PathBuf,
        base_env: Vec<(OsString, OsString)>,
        runner: Arc<dyn CommandRunner>,
    ) -> Self {
        Self {
            def: ToolDef::new::<Params>(
                "diagnostics",
                "Cargo diagnostics; not by bash.",
                Annotations {
                    read_only: false,
                    destructive: false,
                    idempotent: true,
                    open_world: false,
                    risk: Risk::High,
                },
            )
            .with_cache(CachePolicy::CACHED_PROGRAM),
            config,
            cwd,
            base_env,
            runner,
            limits: DiagnosticsConfig::default(),
        }
    }

    /// Sets the limits of `[tools.diagnostics]`.
    #[must_use]
    pub fn with_config(self, limits: DiagnosticsConfig) -> Self {
        Self { limits, ..self }
    }

    fn cargo(&self) -> Option<PathBuf> {
        let path = self.base_env.iter().find(|(name, _)| name == "PATH");
        program::find(&["cargo"], path.map(|(_, value)| value.as_os_str()))
    }

    /// Returns the state of the project before cargo runs, if the result may be cached.
    async fn sources(&self, cx: &CallContext) -> Option<Sources> {
        if !cx.may_be_kept {
            return None;
        }
        let home = self.base_env.iter().find(|(name, _)| name == "HOME");
        let home = home.map(|(_, home)| PathBuf::from(home));
        let cwd = self.cwd.clone();
        let look = move || Sources::look(&cwd, home.as_deref());
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }

    fn command(&self, cargo: &Path, kind: Kind) -> CommandSpec {
        let subcommand = match kind {
            Kind::Check => "check",
            Kind::Clippy => "clippy",
        };
        CommandSpec {
            argv: vec![
                cargo.into(),
                subcommand.into(),
                "--message-format=json".into(),
            ],
            cwd: self.cwd.clone(),
            env: env::select(&self.base_env, &self.config.env, None),
            timeout: Some(Duration::from_secs(TimeLimits::new(&self.config).long)),
            readable_folders: Vec::new(),
            sandbox: CommandSandbox::Session,
        }
    }
}

#[async_trait]
impl Tool for Diagnostics {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: Params = call.parse()?;
        let Some(cargo) = self.cargo() else {
            let warning = "diagnostics need cargo, and cargo is not on PATH";
            return Ok(
                ToolOutput::text(format!("warning: {warning}")).with_raw(json!({
                    "diagnostics": [], "errors": 0, "warnings": 0, "warning": warning,
                })),
            );
        };
        let kind = params.kind.unwrap_or_default();
        let diagnostics_config = &self.limits;
        let mut collector = Collector::new(
            params
                .max_diagnostics
                .unwrap_or(diagnostics_config.max_diagnostics),
        );
        let mut stderr = HeadTailBuffer::new(Limits {
            head: KEPT_STDERR,
            tail: KEPT_STDERR,
        });
        let mut output = |stream: StdStream, bytes: &[u8]| match stream {
            StdStream::Stdout => collector.push(bytes),
            StdStream::Stderr => stderr.push(&String::from_utf8_lossy(bytes)),
        };
        let sources = self.sources(cx).await;
        let failed = |error| ToolError::permanent(format!("cargo could not be run: {error}"));
        let command = self.command(&cargo, kind);
        let mut running = self.runner.start(command).await.map_err(failed)?;
        let ended = running
            .wait(&cx.cancel, &mut output)
            .await
            .map_err(failed)?;
        let said = stderr.finish().text;
        let manifests: Vec<PathBuf> = collector.manifests().map(Path::to_owned).collect();
        let output = conclude(collector, &ended, &said, &self.config)?;
        let Some(sources) = sources else {
            return Ok(output);
        };
        let basis = move || sources.basis(manifests.iter().map(PathBuf::as_path));
        let basis = tokio::task::spawn_blocking(basis).await;
        Ok(output.with_cache_validity(basis.ok().flatten()))
    }
}

fn conclude(
    collector: Collector,
    ended: &CommandOutcome,
    said: &str,
    config: &ShellConfig,
) -> Result<ToolOutput, ToolError> {
    let (errors, warnings) = collector.counts();
    let found = collector.finish();
    let output = output(&found, errors, warnings);
    let stopped = |category, message: String| ToolError::Shell {
        exit_code: Some(ended.exit.code),
        category,
        message,
        output: Box::new(output.clone()),
    };
    match ended.cause {
        EndReason::TimedOut => Err(stopped(
            ToolErrorCategory::Timeout,
            format!(
                "cargo ran longer than {} s and was stopped ([tools.shell] `timeout` and \
                 `max_timeout` set the limit); its messages up to then follow",
                TimeLimits::new(config).long
            ),
        )),
        EndReason::Cancelled => Err(stopped(
            ToolErrorCategory::Cancelled,
            "the call was cancelled".to_owned(),
        )),
        EndReason::Finished if ended.exit.code != 0 && errors == 0 => {
            if said.contains("could not find `Cargo.toml`") {
                return Err(ToolError::Missing {
                    message: "this is not a Cargo project: neither the working directory nor a \
                        directory above it has a Cargo.toml"
                        .to_owned(),
                });
            }
            Err(ToolError::Shell {
                exit_code: Some(ended.exit.code),
                category: ToolErrorCategory::PermanentFailure,
                message: format!(
                    "cargo ended with exit code {} and no diagnostics",
                    ended.exit.code
                ),
                output: Box::new(ToolOutput::text(said.trim())),
            })
        }
        EndReason::Finished => Ok(output),
    }
}

fn output(found: &[Diagnostic], errors: usize, warnings: usize) -> ToolOutput {
    let mut lines = vec![match (errors, warnings) {
        (0, 0) => "No errors, no warnings.".to_owned(),
        _ => format!(
            "{}, {}",
            pluralize(errors, "error"),
            pluralize(warnings, "warning")
        ),
    }];
    lines.extend(found.iter().map(Diagnostic::line));
    let left_out = errors + warnings - found.len();
    if left_out > 0 {
        lines.push(format!(
            "[{left_out} more omitted; a higher max_diagnostics shows them]"
        ));
    }
    let mut output = ToolOutput::text(lines.join("\n")).with_raw(json!({
        "diagnostics": found, "errors": errors, "warnings": warnings, "left_out": left_out,
    }));
    for diagnostic in found {
        if let Some(file) = &diagnostic.file {
            output = output.at(file, diagnostic.line);
        }
    }
    output
}
