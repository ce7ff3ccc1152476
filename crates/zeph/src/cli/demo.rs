//! `zeph demo`: the agent repairs a sample project offline, with a script instead of a model.
//!
//! 1. The demo creates a small Rust project with a failing test in a temporary folder.
//! 2. The scripted provider plays the model. Tools, gates, store and loop are those of every other command. Each step
//!    of the script checks the results of the tools, so the script fails if a tool did not do its work.
//! 3. The demo runs the tests itself, and the result decides its exit code.
//!
//! The demo neither reads nor writes the user's configuration and data.

mod sample;
mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_core::{CallerIdentity, Dispatcher, TurnEnd, display_error};
use zeph_llm::LlmProvider;
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_tools::shell::ShellOutputEnvelope;
use zeph_tools::{Origin, Phase, ToolCall};
use zeph_tui::signals::Handles;

use super::Exit;
use super::args::GlobalArgs;
use crate::assemble::{App, AuditLines, SessionChoice, open_session};
use crate::config::{Environment, FlagOverrides, load};
use crate::output::{redact, stderr_line, stdout_line};
use sample::{Sample, find_cargo};
use view::{View, seconds};

/// The responses of the scripted model.
const SCENARIO: &str = include_str!("demo/scenario.toml");
/// The prompt of the user.
const PROMPT: &str = "A test in this project fails. Find the cause and fix the code, not the test.";
/// The command that verifies the fix. Both streams use one pipe, so that their lines do not mix.
const TEST: &str = "cargo test 2>&1";
/// The line that `cargo test` prints when all tests of the sample pass.
const PASSED: &str = "test result: ok. 4 passed; 0 failed";

const NO_CARGO: &str = "zeph demo needs cargo for its Rust project, and cargo is not on PATH: \
    install Rust (https://rustup.rs), or add the directory of cargo to PATH";

/// The next steps for the user.
const REAL_MODEL: &str = "\
A script replaced the model in this demo. To work with a model:
  1. zeph login              (select a provider and store its key)
  2. export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…  (--model selects the model)
  3. ollama pull qwen3:8b    (a local model; Zeph finds a running Ollama without configuration)
Then run zeph in the directory of your project.";

/// Runs the demo; `keep` is the folder in which the sample project stays.
///
/// # Errors
/// If cargo is missing, if the folders cannot be created, or if a step fails.
pub(crate) async fn run(global: &GlobalArgs, keep: Option<PathBuf>) -> anyhow::Result<Exit> {
    if let Some(flag) = idle_flag(global) {
        stderr_line(&format!(
            "error: {flag} has no effect in the demo, because a script replaces the model and the \
             demo has its own configuration; remove {flag}"
        ));
        return Ok(Exit::Usage);
    }
    let outer = Environment::of_process().context("the working directory cannot be found")?;
    let cargo = find_cargo(&outer).context(NO_CARGO)?;
    // From here on a signal ends the demo in order, so that the folder is removed.
    let cancel = CancellationToken::new();
    let _handles = Handles::signals();
    cancel_on_signals(cancel.clone())?;
    let sample = Sample::lay_out(&outer, &cargo, keep.as_deref())?;
    if let Err(error) = sample.check_cargo(&cargo) {
        sample.remove()?;
        return Err(error);
    }
    let played = play(global, &sample, keep.is_some(), &cancel).await;
    let removed = sample.remove();
    match played {
        // The success counts, even if a signal arrived afterwards.
        Ok(()) => removed.map(|()| Exit::Done),
        Err(_) if cancel.is_cancelled() => {
            stderr_line("interrupted");
            removed.map(|()| Exit::Interrupted)
        }
        Err(error) => Err(error),
    }
}

/// A flag that is set but has no meaning here.
fn idle_flag(global: &GlobalArgs) -> Option<&'static str> {
    let given = [
        ("--config", global.config.is_some()),
        ("--provider", global.provider.is_some()),
        ("--model", global.model.is_some()),
    ];
    given
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
}

/// Cancels the demo at SIGINT, SIGTERM and SIGHUP; the process exits after the cleanup.
fn cancel_on_signals(cancel: CancellationToken) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        cancel.cancel();
    });
    Ok(())
}

/// Shows the demo from its first line to its last.
async fn play(
    global: &GlobalArgs,
    sample: &Sample,
    kept: bool,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let view = Arc::new(View::new(global.quiet));
    let place = sample.project.display();
    let future = if kept {
        "it stays there"
    } else {
        "removed at the end"
    };
    view.line(
        "zeph demo: an agent fixes a bug. The text of the model is scripted: no model is used.\n\
         The tools, the permission checks and all results are real.",
    );
    view.line(&format!("Project: {place} ({future})\n"));
    let flags = FlagOverrides {
        mode: global.mode.clone(),
        set: global.set.clone(),
        ..FlagOverrides::default()
    };
    let loaded = load(&sample.config_env(), &flags)?;
    let assembly = App::new(
        loaded,
        sample.env.clone(),
        global.build_options(),
        AuditLines::Stderr,
    )
    .await?;
    let worked = work(&assembly, &view, cancel).await;
    assembly.close().await?;
    worked?;
    let took = seconds(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    view.line("");
    stdout_line(&format!(
        "The bug is fixed: all 4 tests pass. The demo took {took}."
    ));
    if kept {
        stdout_line(&format!("The project is in {place}."));
    }
    view.line(&format!("\n{REAL_MODEL}"));
    Ok(())
}

/// Runs the agent, then checks the result.
async fn work(assembly: &App, view: &Arc<View>, cancel: &CancellationToken) -> anyhow::Result<()> {
    let scenario = Scenario::from_toml(SCENARIO, BTreeMap::new())
        .map_err(|message| anyhow!("the script of the demo is invalid: {message}"))?;
    let project = &assembly.env.cwd;
    let open = open_session(&assembly.store, &SessionChoice::New, project).await?;
    let provider = Arc::new(ScriptedProvider::new("demo", scenario)) as Arc<dyn LlmProvider>;
    let channel = Arc::clone(view) as _;
    let agent = assembly.open_agent(&provider, channel, &open.id, None);
    let mut agent = agent.await?;
    view.says("user", PROMPT);
    let outcome = agent.run_turn(PROMPT, cancel).await;
    view.flush();
    if outcome.end != TurnEnd::Done {
        let why = outcome
            .message
            .unwrap_or_else(|| format!("it ended with {:?}", outcome.end));
        bail!("the demo failed: {why}");
    }
    view.line("\nThe scripted part is over. Running the tests again to verify:");
    check(assembly, view, &open.id, cancel).await
}

/// Runs the tests through the tool, as the user.
async fn check(
    assembly: &App,
    view: &Arc<View>,
    session: &str,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    let dispatcher = Dispatcher::new(
        Arc::clone(&assembly.stack) as _,
        Arc::clone(view) as _,
        CallerIdentity {
            conversation: session.to_owned(),
            caller_id: None,
            phase: Phase::Executor,
            origin: Origin::User,
        },
    )
    .with_redaction(redact::secrets());
    let params = json!({ "command": TEST, "timeout_secs": 90 });
    let call = ToolCall::new("demo_check", "bash", params, session);
    let output = match dispatcher.run_user_call(&call, cancel).await {
        Ok(output) => output,
        Err(error) => bail!(
            "the tests could not be run again: {}",
            display_error(&error)
        ),
    };
    let envelope: ShellOutputEnvelope =
        serde_json::from_value(output.raw_response.clone().unwrap_or_default())
            .context("the result of bash has no exit code")?;
    if envelope.exit_code != 0 || !envelope.stdout.contains(PASSED) {
        bail!(
            "the bug is not fixed: `{TEST}` ended with exit code {}:\n{}",
            envelope.exit_code,
            output.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use zeph_llm::scripted::Scenario;

    use super::sample::FILES;
    use super::*;

    fn file(name: &str) -> &'static str {
        FILES.iter().find(|(file, _)| *file == name).unwrap().1
    }

    /// The script's edit fits the embedded file, and leaves the tests alone.
    #[test]
    fn scripted_edit_matches_the_sample() {
        let scenario = Scenario::from_toml(SCENARIO, BTreeMap::new()).unwrap();
        let calls = scenario.steps.iter().flat_map(|step| &step.calls);
        let edits: Vec<_> = calls.filter(|call| call.tool == "edit").collect();
        assert_eq!(edits.len(), 1);
        let text = file(edits[0].input["path"].as_str().unwrap());
        let (old, new) = (&edits[0].input["old_string"], &edits[0].input["new_string"]);
        assert_eq!(text.matches(old.as_str().unwrap()).count(), 1);
        assert_eq!(text.matches(new.as_str().unwrap()).count(), 0);
        let tests = text.find("#[cfg(test)]").unwrap();
        assert!(text.find(old.as_str().unwrap()).unwrap() < tests);
    }

    #[test]
    fn script_matches_the_sample() {
        let scenario = Scenario::from_toml(SCENARIO, BTreeMap::new()).unwrap();
        let failing = scenario.vars["test"]
            .strip_prefix("pages::tests::")
            .unwrap();
        assert_eq!(
            file("src/pages.rs")
                .matches(&format!("fn {failing}()"))
                .count(),
            1
        );
        let tests: usize = FILES
            .iter()
            .map(|(_, text)| text.matches("#[test]").count())
            .sum();
        assert_eq!(PASSED, format!("test result: ok. {tests} passed; 0 failed"));
        for step in &scenario.steps {
            for call in step.calls.iter().filter(|call| call.tool == "bash") {
                assert_eq!(call.input["command"], TEST);
            }
        }
        assert!(file("Cargo.toml").contains("\n[workspace]\n"));
    }
}
