//! The tool `bash`: its parameters and the text of its results.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use zeph_bash::ShellPolicy;

use crate::category::ToolErrorCategory;
use crate::def::{Annotations, ToolDef};
use crate::gate::ToolTarget;
use crate::output::ToolOutput;

use super::capture::Captured;
use super::config::ShellConfig;
use super::envelope::ShellOutputEnvelope;
use super::exit_note::exit_note;
use super::jobs::processes;
use super::model_output::ModelOutput;
use super::time_limit::{TimeLimit, TimeLimits};
use zeph_exec::runner::{CommandOutcome, EndReason};

/// The id of the tool.
pub const BASH: &str = "bash";

/// The first line of the description.
const PURPOSE: &str = "Run a shell command; not to read or edit files.";

/// The parameters of `bash`. Every request sends the doc comments of its fields, so only unclear names have one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashParams {
    pub(super) command: String,
    // Signed, because the schema of an unsigned number includes its minimum in every request.
    pub(super) timeout_secs: Option<i64>,
    pub(super) cwd: Option<String>,
    pub(super) background: Option<bool>,
    #[allow(
        dead_code,
        reason = "those who ask or show read it from the call's arguments"
    )]
    pub(super) description: Option<String>,
}

/// The definition of `bash`. Its schema states the time limits of `config`, its description the refusals of `policy`.
#[must_use]
pub fn definition(config: &ShellConfig, policy: &ShellPolicy) -> ToolDef {
    let mut def = ToolDef::new::<BashParams>(BASH, PURPOSE, Annotations::ANYTHING)
        .with_fence(BASH)
        .with_param_aliases(&[("cmd", "command"), ("timeout", "timeout_secs")])
        .about(ToolTarget::Command {
            command: "command",
            cwd: "cwd",
        });
    let mut parameters = Value::clone(&def.parameters);
    if let Some(timeout) = parameters.pointer_mut("/properties/timeout_secs") {
        timeout["description"] = TimeLimits::new(config).description().into();
    }
    def.parameters = Arc::new(parameters);
    def.description = format!("{PURPOSE}\nRefused: {}.", policy.refusals()).into();
    def
}

/// The result of a command: the text for the model and the envelope. `truncated` is about the captured output, not
/// about lines that a filter rule removes. `job` is the job of the processes that the command left behind.
pub(super) fn output(
    captured: Captured,
    reduced: ModelOutput,
    ended: &CommandOutcome,
    job: Option<&str>,
    duration_ms: u64,
) -> ToolOutput {
    let notes = notes(ended, job);
    let truncated = captured.truncated();
    let mut summary = reduced.text;
    if summary.is_empty() && notes.is_empty() {
        summary.push_str("(no output)");
    }
    for note in notes {
        if !summary.is_empty() {
            summary.push('\n');
        }
        summary.push_str(&note);
    }
    let output = ToolOutput {
        overflow: reduced.overflow,
        filter: reduced.filter,
        ..ToolOutput::text(summary)
    };
    let envelope = ShellOutputEnvelope {
        stdout: captured.stdout.text,
        stderr: captured.stderr.text,
        exit_code: ended.exit.code,
        truncated,
        signal: ended.exit.signal,
        duration_ms,
    };
    with_envelope(output, envelope)
}

/// Adds the JSON result to a tool result.
pub(super) fn with_envelope(output: ToolOutput, envelope: ShellOutputEnvelope) -> ToolOutput {
    match serde_json::to_value(envelope) {
        Ok(raw) => output.with_raw(raw),
        // Strings and numbers always have a JSON form.
        Err(_) => output,
    }
}

/// The lines that follow the output.
fn notes(ended: &CommandOutcome, job: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    if ended.exit.code != 0 {
        notes.push(exit_note(ended.exit));
    }
    if !ended.background.is_empty() {
        let left = processes(&ended.background);
        notes.push(match job {
            Some(job) => format!(
                "[a background process still runs: {left}; it is {job} and ends with the session]"
            ),
            None => format!(
                "[a background process was stopped, because too many jobs run: \
                {left}]"
            ),
        });
    }
    if ended.lingering {
        notes.push("[some of its processes could not be stopped]".to_owned());
    }
    if ended.restarted {
        notes.push(
            "[the process that runs shell commands had died and was restarted; background jobs of \
             earlier commands have ended]"
                .to_owned(),
        );
    }
    notes
}

/// The failure of a command that was stopped, or with an exit of category `class`. `None` for a plain result.
#[must_use]
pub(super) fn failure(
    ended: &CommandOutcome,
    class: Option<ToolErrorCategory>,
    limit: Option<TimeLimit>,
) -> Option<(ToolErrorCategory, String)> {
    let code = ended.exit.code;
    match ended.cause {
        EndReason::Cancelled => Some((
            ToolErrorCategory::Cancelled,
            "the command was cancelled, and all its processes were stopped".to_owned(),
        )),
        EndReason::TimedOut => Some((
            ToolErrorCategory::Timeout,
            limit.map_or_else(
                || "the command exceeded its time limit and was stopped".to_owned(),
                TimeLimit::message,
            ),
        )),
        EndReason::Finished => class.map(|class| {
            let message = match code {
                126 => "the command was found but could not be executed (exit code 126)".to_owned(),
                127 => "the command was not found (exit code 127)".to_owned(),
                _ => format!(
                    "the command failed (exit code {code}) because of a missing file or permission"
                ),
            };
            (class, message)
        }),
    }
}

#[cfg(test)]
mod tests {
    use zeph_exec::runner::Exit;

    use super::*;
    use crate::event::OutputStream;
    use crate::filter::FilterPipeline;
    use crate::overflow::OverflowConfig;
    use crate::shell::capture::Capture;
    use crate::shell::model_output::budget;
    use zeph_exec::runner::BackgroundProcess;

    fn ended(code: i32) -> CommandOutcome {
        CommandOutcome {
            exit: Exit { code, signal: None },
            cause: EndReason::Finished,
            background: Vec::new(),
            lingering: false,
            unconfined: None,
            denials: Vec::new(),
            restarted: false,
        }
    }

    fn summary(stdout: &str, ended: &CommandOutcome) -> String {
        let config = OverflowConfig {
            threshold: 16,
            ..OverflowConfig::default()
        };
        let mut capture = Capture::new(&config, &std::sync::Arc::default());
        let _ = capture.push(OutputStream::Stdout, stdout.as_bytes());
        let mut filter = FilterPipeline::off().start("", budget(&config));
        filter.push(stdout);
        let captured = capture.finish();
        let reduced = ModelOutput::new(captured.merged.clone(), filter.finish(None), &config);
        output(captured, reduced, ended, Some("job-3"), 1).summary
    }

    /// Proves SH-5, D-6, SH-3a.
    #[test]
    fn summary_shows_output_exit_and_omissions() {
        assert_eq!(summary("", &ended(0)), "(no output)");
        assert_eq!(summary("a\nb\n", &ended(0)), "a\nb");
        assert_eq!(summary("a\n\n", &ended(1)), "a\n\n[exit code: 1]");
        assert_eq!(summary("", &ended(2)), "[exit code: 2]");
        let killed = CommandOutcome {
            exit: Exit::by_signal(9),
            ..ended(0)
        };
        assert_eq!(summary("", &killed), "[exit code: 137] (killed by SIGKILL)");
        let odd = CommandOutcome {
            exit: Exit::by_signal(64),
            ..ended(0)
        };
        assert_eq!(summary("", &odd), "[exit code: 192] (killed by signal 64)");
        let background = CommandOutcome {
            background: vec![BackgroundProcess {
                pid: 7,
                name: "sleep".into(),
            }],
            ..ended(0)
        };
        assert_eq!(
            summary("started\n", &background),
            "started\n[a background process still runs: sleep (pid 7); it is job-3 and ends with the \
             session]"
        );
        assert_eq!(
            summary("1\n2\n3\n4\n5\n6\n7\n8\n9\n", &ended(1)),
            "1\n2\n3\n[… lines 4-6 (3 lines, 7 bytes) left out …]\n7\n8\n9\n[exit code: 1]"
        );
    }

    #[test]
    fn definition_is_small() {
        let def = definition(&ShellConfig::default(), &ShellPolicy::default());
        let parameters = serde_json::to_string(&def.parameters).unwrap();
        let size = def.id.len() + def.description.len() + parameters.len();
        assert!(size <= 620, "{size} bytes: {parameters}");
    }
}
