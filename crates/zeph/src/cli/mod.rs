//! Dispatch of the command line: runs the command, and returns its exit code.

mod acp;
pub(crate) mod agents;
mod args;
mod audit;
mod commands;
mod completion;
mod config_cmd;
mod config_editor;
mod config_migrate;
mod config_value;
mod conversation;
mod demo;
mod doctor;
mod filter;
mod folder_trust;
#[cfg(feature = "tui")]
mod full_screen;
mod generate;
mod help;
mod login;
mod mcp;
mod mcp_serve;
mod memory;
mod model_lines;
mod models;
mod open_files;
mod overflow;
mod policy;
mod prompt_words;
mod response_schema;
mod run;
mod scheduler;
mod session_search;
mod session_selection;
mod sessions;
mod skills;
#[cfg(test)]
mod tests;
mod tools;
mod undo;
mod user_file;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use clap::FromArgMatches as _;
use clap::error::ErrorKind;

use crate::assemble::{SessionChoice, withhold, withhold_environment};
use crate::config::{Environment, Loaded, load};
pub(crate) use crate::exit::{Exit, Outcome, UsageError, is_closed_pipe, usage};
use crate::logs::{self, Console};
use crate::output::redact::{redacted, without_known};
use crate::output::sanitize::clean;
use crate::output::{Recorder, ResultObject, stderr_line, stderr_line_unless};
use crate::telemetry;
use args::{Cli, Command, GlobalArgs, OutputFormat, TurnArgs};
use prompt_words::PromptSource;

/// Runs the program.
pub(crate) fn main() -> Exit {
    if let Some(exit) = completion::respond() {
        return exit;
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are requests; other kinds are usage errors.
            let exit = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
                _ => Exit::Usage,
            };
            // A closed pipe is not an error.
            let _ = match exit {
                Exit::Done => error.print(),
                _ => refuse(&error),
            };
            return exit;
        }
    };
    logs::start(cli.global.verbose, console(&cli), cli.global.overrides());
    if let Some(problem) = open_files::problem() {
        stderr_line(&format!("error: {problem}"));
        return Exit::Failed;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            stderr_line(&format!("error: the runtime cannot start: {error}"));
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(dispatch(cli));
    telemetry::finish();
    // A blocked read of standard input must not delay the exit.
    runtime.shutdown_background();
    exit
}

/// The use of standard error by a command.
fn console(cli: &Cli) -> Console {
    match &cli.command {
        Some(Command::Acp { setup: false }) => Console::Taken,
        // A log line would destroy the screen.
        None if cli.tui => Console::Taken,
        _ => Console::Messages,
    }
}

/// Parses the command line.
fn parse() -> Result<Cli, clap::Error> {
    let mut command = help::command();
    let mut matches = command.try_get_matches_from_mut(help::arguments(std::env::args_os()))?;
    let cli = Cli::from_arg_matches_mut(&mut matches);
    cli.map_err(|error| error.format(&mut command))
}

/// Prints a mistake in the command line, which may quote a secret.
fn refuse(error: &clap::Error) -> std::io::Result<()> {
    if let Ok(env) = Environment::of_process() {
        withhold_environment(&env);
    }
    let text = error.render().to_string();
    let shown = clean(&redacted(&text));
    if shown == text {
        return error.print();
    }
    std::io::stderr().write_all(shown.as_bytes())
}

async fn dispatch(cli: Cli) -> Exit {
    zeph_tui::signals::outlive_file_size_limit();
    if let Some(flag) = cli.idle_flag() {
        stderr_line(&format!(
            "error: {flag} has no effect before this command; remove it"
        ));
        return Exit::Usage;
    }
    if let Some(directory) = &cli.global.directory
        && let Err(error) = std::env::set_current_dir(directory)
    {
        return refuse_directory(&cli, directory, &error);
    }
    let Cli {
        global,
        turn,
        prompt,
        words,
        tui,
        command,
        migrate_config,
    } = cli;
    if migrate_config {
        let migrate = config_cmd::ConfigCommand::Migrate {
            project: false,
            dry_run: false,
        };
        return report(config_cmd::run(&global, migrate));
    }
    // A turn handles signals itself: it cancels its work and reports that.
    if !matches!(command, None | Some(Command::Run { .. })) {
        zeph_tui::signals::end_on_signals();
    }
    match command {
        Some(Command::Run { text, turn: own }) => {
            let turn = merged(turn, own);
            let source = match text.as_slice() {
                [] => run::Prompt::Stdin,
                [dash] if dash == "-" => run::Prompt::Stdin,
                [words @ .., dash] if dash == "-" => run::Prompt::TextAndStdin(words.join(" ")),
                words => run::Prompt::Text(words.join(" ")),
            };
            run::one_shot(&global, &turn, source).await
        }
        // An editor adds the flag to the arguments of its agent, for the login in a terminal.
        Some(Command::Acp { setup: true }) => report(doctor::run(&global, false).await),
        Some(Command::Acp { setup: false }) => report(acp::run(&global).await),
        Some(Command::Tools { command }) => report(tools::run(&global, command).await),
        Some(Command::Sessions { command }) => report(sessions::run(&global, command).await),
        Some(Command::Scheduler { command }) => report(scheduler::run(&global, command).await),
        Some(Command::Skills { command }) => report(skills::run(&global, command)),
        Some(Command::Agents { command }) => report(agents::run(&global, command)),
        Some(Command::Commands { command }) => report(commands::run(&global, command)),
        Some(Command::Mcp { command }) => report(mcp::run(&global, command).await),
        Some(Command::Models { command }) => report(models::run(&global, command).await),
        Some(Command::Overflow { command }) => report(overflow::run(&global, command).await),
        Some(Command::Memory { command }) => report(memory::run(&global, command).await),
        Some(Command::Filter(args)) => report(filter::run(&global, args).await),
        Some(Command::Audit { command }) => report(audit::run(&global, command).await),
        Some(Command::Policy { command }) => report(policy::run(&global, command).await),
        Some(Command::Login(args)) => report(login::login(&global, args).await),
        Some(Command::Logout(args)) => report(login::logout(&global, &args)),
        Some(Command::Undo(args)) => report(undo::run(&global, args).await),
        Some(Command::Config { command }) => report(config_cmd::run(&global, command)),
        Some(Command::Doctor { report: true, .. }) => report(doctor::report::run(&global).await),
        Some(Command::Doctor { json, .. }) => report(doctor::run(&global, json).await),
        Some(Command::Demo { keep }) => report(demo::run(&global, keep).await),
        Some(Command::Completions { shell }) => report(generate::completions(shell)),
        Some(Command::Man { command, dir }) => report(generate::man(&command, dir.as_deref())),
        None => match PromptSource::of(prompt, words) {
            Ok(PromptSource::OneTurn(source)) => run::one_shot(&global, &turn, source).await,
            Ok(PromptSource::Session(text)) if tui => {
                let result = full_screen(&global, &turn, text).await;
                report_turn(turn.output_format, result)
            }
            Ok(PromptSource::Session(None)) if !std::io::stdin().is_terminal() => {
                run::one_shot(&global, &turn, run::Prompt::Stdin).await
            }
            Ok(PromptSource::Session(Some(text))) if !turn.is_session() => {
                run::one_shot(&global, &turn, run::Prompt::Text(text)).await
            }
            Ok(PromptSource::Session(text)) => {
                let result = run::interactive(&global, &turn, text).await;
                report_turn(turn.output_format, result)
            }
            Err(error) => report_turn(turn.output_format, Err(error)),
        },
    }
}

/// Prints that the directory of `-C` cannot be entered, in the output format of a turn.
fn refuse_directory(cli: &Cli, directory: &Path, error: &std::io::Error) -> Exit {
    if let Ok(env) = Environment::of_process() {
        withhold_environment(&env);
    }
    let message = clean(&redacted(&format!(
        "-C {}: the directory cannot be entered: {error}",
        directory.display()
    )));
    let format = match &cli.command {
        None => cli.turn.output_format,
        Some(Command::Run { turn, .. }) => merged(cli.turn.clone(), turn.clone()).output_format,
        Some(_) => OutputFormat::Text,
    };
    report_turn(format, Err(usage(message)))
}

/// Holds a conversation on the full screen, which `first_input` starts.
#[cfg(feature = "tui")]
async fn full_screen(
    global: &GlobalArgs,
    turn: &TurnArgs,
    first_input: Option<String>,
) -> anyhow::Result<Exit> {
    full_screen::run(global, turn, first_input).await
}

/// Refuses `--tui`, for which this binary was not built.
#[cfg(not(feature = "tui"))]
async fn full_screen(_: &GlobalArgs, _: &TurnArgs, _: Option<String>) -> anyhow::Result<Exit> {
    Err(usage(
        "this binary was built without the full screen (cargo feature `tui`); remove --tui",
    ))
}

/// `zeph --continue run …` and `zeph run --continue …` mean the same.
fn merged(outer: TurnArgs, own: TurnArgs) -> TurnArgs {
    TurnArgs {
        continue_last: own.continue_last || outer.continue_last,
        resume: own.resume.or(outer.resume),
        output_format: match own.output_format {
            OutputFormat::Text => outer.output_format,
            chosen => chosen,
        },
        output_schema: own.output_schema.or(outer.output_schema),
    }
}

/// The session that the command line chooses.
///
/// # Errors
/// A usage error if the user would have to select it.
fn session_choice(turn: &TurnArgs) -> anyhow::Result<SessionChoice> {
    Ok(match (&turn.resume, turn.continue_last) {
        (Some(id), _) if id.is_empty() => {
            return Err(usage(
                "--resume without an ID needs a terminal; name the session: `zeph sessions list` \
                 shows the IDs, --continue resumes the last session",
            ));
        }
        (Some(id), _) => SessionChoice::Resume(id.clone()),
        (None, true) => SessionChoice::Continue,
        (None, false) => SessionChoice::New,
    })
}

/// Takes the environment and loads the configuration; warnings go to standard error.
///
/// # Errors
/// [`ConfigErrors`](crate::config::ConfigErrors) if the configuration is wrong.
fn load_config(global: &GlobalArgs) -> anyhow::Result<(Loaded, Environment)> {
    let env = Environment::of_process()
        .map_err(|error| anyhow::anyhow!("the working directory cannot be found: {error}"))?;
    // An error in the configuration may quote a value of the environment.
    withhold_environment(&env);
    let loaded = load(&env, &global.overrides())?;
    logs::set_format(&loaded.config.log);
    withhold(&loaded, &env);
    for warning in &loaded.warnings {
        stderr_line_unless(global.quiet, &redacted(&format!("warning: {warning}")));
    }
    Ok((loaded, env))
}

/// The exit code of a command. Its error is printed on standard error.
fn report(result: anyhow::Result<Exit>) -> Exit {
    match result {
        Ok(exit) => exit,
        Err(error) => {
            let exit = Exit::of(Outcome::Error(&error));
            if exit != Exit::Done {
                stderr_line(&format!("error: {}", with_causes(&error)));
            }
            exit
        }
    }
}

/// The exit code of a turn that did not begin, or of a session. Its error is printed in the output
/// format of a turn.
fn report_turn(format: OutputFormat, result: anyhow::Result<Exit>) -> Exit {
    match result {
        Err(error) if format != OutputFormat::Text => {
            let recorder = Recorder::new(format == OutputFormat::StreamJson, false, false);
            let failed = ResultObject::failed("", with_causes(&error));
            run::finish(&recorder, failed, Exit::of(Outcome::Error(&error)))
        }
        result => report(result),
    }
}

/// An error and its causes, without the values of secrets. A cause that repeats earlier text is skipped.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    redacted(&text).into_owned()
}

/// Prints `text` and a line break to standard output. Known secrets are redacted; on a terminal, control sequences
/// are removed.
///
/// # Errors
/// Errors of writing, a closed pipe included.
fn print(text: &str) -> anyhow::Result<()> {
    let text = without_known(text);
    let text = match std::io::stdout().is_terminal() {
        true => clean(&text).into(),
        false => text,
    };
    print_as_is(&text)
}

/// Prints JSON that [`crate::output`] has prepared.
///
/// # Errors
/// Errors of writing, a closed pipe included.
fn print_as_is(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
        .and_then(|()| out.flush())
        .context("standard output cannot be written")
}
