//! The conversation: a single turn, or an interactive session.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use zeph_core::{Agent, AttachedPrompt, Channel, Reply, SessionSwitch, TurnEnd, TurnOutcome};
use zeph_llm::{Usage, Usd};
use zeph_tui::signals::{Handles, cancel_on_signals, end_on_signals};
use zeph_tui::{SessionEnd, TerminalChannel, run_line_interface};

use super::args::{GlobalArgs, OutputFormat, TurnArgs};
use super::conversation::Conversation;
use super::response_schema::ResponseSchema;
use super::session_selection::{choose_session, print_resume_hint};
use super::{
    Exit, Outcome, UsageError, load_config, login, scheduler, session_choice, usage, with_causes,
};
use crate::assemble::{
    App, AuditLines, choose_provider, forget_empty, has_no_provider, open_session,
};
use crate::config::{Environment, Loaded};
use crate::output::events::Event;
use crate::output::redact::redacted;
use crate::output::{Recorder, ResultObject, stderr_line};
use crate::terminal;

/// The most bytes of a piped prompt.
const MAX_STDIN: u64 = 16 * 1024 * 1024;

/// The source of the prompt.
#[derive(Debug)]
pub(crate) enum Prompt {
    /// The command line.
    Text(String),
    /// Standard input.
    Stdin,
    /// The command line, then standard input.
    TextAndStdin(String),
}

/// The side of a turn that shows it.
enum View {
    Text(Arc<TerminalChannel>),
    Json(Arc<Recorder>),
}

impl View {
    fn new(global: &GlobalArgs, format: OutputFormat) -> Self {
        match format {
            OutputFormat::Text => Self::Text(Arc::new(TerminalChannel::one_shot(
                terminal::options(global.quiet, global.yes),
            ))),
            OutputFormat::Json | OutputFormat::StreamJson => {
                let stream = format == OutputFormat::StreamJson;
                Self::Json(Arc::new(Recorder::new(stream, global.yes, global.quiet)))
            }
        }
    }

    fn channel(&self) -> Arc<dyn Channel> {
        match self {
            Self::Text(channel) => Arc::clone(channel) as _,
            Self::Json(recorder) => Arc::clone(recorder) as _,
        }
    }
}

/// Does one turn and exits. In every case, `json` prints one object and `stream-json` a last line.
pub(crate) async fn one_shot(global: &GlobalArgs, turn: &TurnArgs, prompt: Prompt) -> Exit {
    let view = View::new(global, turn.output_format);
    let mut session = String::new();
    match turn_of(global, turn, prompt, &view, &mut session).await {
        Ok(mut outcome) => {
            let message = outcome.message.as_deref().map(redacted);
            outcome.message = message.map(Cow::into_owned);
            let exit = Exit::of(Outcome::Turn(outcome.end));
            match &view {
                View::Text(channel) => {
                    if outcome.end == TurnEnd::Error {
                        let message = outcome.message.as_deref().unwrap_or("the turn failed");
                        channel.error(message);
                    }
                    match channel.finish_answer(&outcome.text) {
                        Ok(()) => exit,
                        Err(error) => {
                            channel.error(&format!(
                                "the response could not be written to standard output: {error}; \
                                 the session {session} contains it"
                            ));
                            Exit::Failed
                        }
                    }
                }
                View::Json(recorder) => {
                    let calls = recorder.take_calls();
                    finish(recorder, ResultObject::new(&session, &outcome, calls), exit)
                }
            }
        }
        Err(error) => {
            let exit = Exit::of(Outcome::Error(&error));
            match &view {
                View::Text(channel) => {
                    channel.error(&with_causes(&error));
                    exit
                }
                View::Json(recorder) => {
                    let failed = ResultObject::failed(&session, with_causes(&error));
                    finish(recorder, failed, exit)
                }
            }
        }
    }
}

/// Prints the result; one that could not be written is a failure.
pub(super) fn finish(recorder: &Recorder, result: ResultObject, exit: Exit) -> Exit {
    if recorder.finish(result) {
        return exit;
    }
    stderr_line(
        "error: the result could not be written to standard output; check the space on its \
        disk",
    );
    Exit::Failed
}

async fn turn_of(
    global: &GlobalArgs,
    turn: &TurnArgs,
    prompt: Prompt,
    view: &View,
    session_id: &mut String,
) -> anyhow::Result<TurnOutcome> {
    // A prompt that is read from standard input is ended by a signal, like the program.
    if !matches!(prompt, Prompt::Text(_)) {
        end_on_signals();
    }
    let choice = session_choice(turn)?;
    let (loaded, env) = load_config(global)?;
    let schema = turn
        .output_schema
        .as_deref()
        .map(ResponseSchema::read)
        .transpose()?;
    let text = read_prompt(prompt)?;
    // Installed before slow steps, but after the prompt is read, since Ctrl-C has to end the reading.
    let cancel = CancellationToken::new();
    let _signals = cancel_on_signals(cancel.clone());
    let provider = choose_provider(&loaded, &env, global.model.as_deref(), global.quiet)?;
    let lines = match turn.output_format {
        OutputFormat::Text => AuditLines::Stdout,
        OutputFormat::Json => AuditLines::Stderr,
        OutputFormat::StreamJson => AuditLines::Events,
    };
    let prepared = async {
        let options = global.build_options();
        let assembly = App::for_conversation(loaded, env, options, lines, &provider).await?;
        let open = open_session(&assembly.store, &choice, &assembly.env.cwd).await?;
        anyhow::Ok((assembly, open))
    };
    let (assembly, open) = tokio::select! {
        biased;
        prepared = prepared => prepared?,
        () = cancel.cancelled() => return Ok(outcome_of(TurnEnd::Cancelled, String::new())),
    };
    session_id.clone_from(&open.id);
    match view {
        View::Json(recorder) => recorder.print(Event::SessionStarted {
            session: open.id.clone(),
            provider: provider.name().to_owned(),
            model: provider.model().to_owned(),
        }),
        View::Text(_) => {}
    }
    if let Some(notice) = &open.notice {
        view.channel()
            .emit(zeph_core::LoopbackEvent::Notice(notice.clone()));
    }
    let answer = schema.as_ref().map(|schema| schema.value().clone());
    let agent = assembly.open_agent(&provider, view.channel(), &open.id, answer);
    let mut agent = agent.await?;
    let outcome = run_prompt(&mut agent, &text, schema.as_ref(), &cancel).await;
    let session = open.id.clone();
    drop(open);
    forget_empty(&assembly, &session, agent.messages().is_empty()).await?;
    assembly.close().await?;
    outcome
}

/// Runs the turn, or the command that the user typed.
///
/// Piped text can come from another author: a line in it that looks like a command is not a command. A script may also
/// pass another author's text to -p: nothing in it runs a command of the shell unasked.
///
/// # Errors
/// The typed text is not a usable command, its model cannot be used, or a file that it names cannot
/// be attached.
async fn run_prompt(
    agent: &mut Agent,
    text: &PromptText,
    schema: Option<&ResponseSchema>,
    cancel: &CancellationToken,
) -> anyhow::Result<TurnOutcome> {
    let typed = text.typed.as_deref();
    let typed = typed.filter(|typed| !typed.trim_start().starts_with('!'));
    let mut prompt = AttachedPrompt::default();
    match (typed, &text.piped, schema) {
        (Some(typed), None, None) => return handle(agent, typed, cancel).await,
        (Some(typed), ..) => {
            let begun = agent.begin_prompt(typed).map_err(anyhow::Error::msg)?;
            let typed = begun.ok_or_else(|| {
                usage(format!(
                    "--output-schema and `-` need a prompt: {:?} is a command and has no prompt",
                    typed.trim()
                ))
            })?;
            let attached = agent.attach(&typed, cancel).await;
            prompt = attached.map_err(anyhow::Error::msg)?;
        }
        (None, ..) => prompt.text = text.typed.clone().unwrap_or_default(),
    }
    if let Some(piped) = &text.piped {
        if text.typed.is_some() {
            prompt.text.push_str("\n\n");
        }
        prompt.text.push_str(piped);
    }
    match schema {
        Some(schema) => Ok(schema.run(agent, prompt, cancel).await),
        None => {
            let AttachedPrompt { text, images } = prompt;
            Ok(agent.run_turn_with_images(&text, images, cancel).await)
        }
    }
}

/// Handles a line that the user typed; the outcome is that of a turn.
///
/// # Errors
/// A usage error if the line is not a command, or has wrong arguments.
async fn handle(
    agent: &mut Agent,
    text: &str,
    cancel: &CancellationToken,
) -> anyhow::Result<TurnOutcome> {
    let told = |text| outcome_of(TurnEnd::Done, text);
    Ok(match agent.handle(text, cancel).await {
        Reply::Usage(why) => return Err(usage(why)),
        Reply::Turn(outcome) => outcome,
        Reply::Text(text) | Reply::Diff(text) => told(text),
        Reply::Copy(_) => TurnOutcome {
            message: Some(
                "/copy needs the terminal of a session; the response is on standard output"
                    .to_owned(),
            ),
            ..outcome_of(TurnEnd::Error, String::new())
        },
        Reply::Failed(why) => TurnOutcome {
            message: Some(why),
            ..outcome_of(TurnEnd::Error, String::new())
        },
        Reply::Switch(SessionSwitch::Export(_)) => TurnOutcome {
            message: Some(
                "/export is for an interactive session; here use `zeph sessions export ID --format`"
                    .to_owned(),
            ),
            ..outcome_of(TurnEnd::Error, String::new())
        },
        Reply::Switch(_) => TurnOutcome {
            message: Some(
                "/model, /resume and /fork are for an interactive session; use --model, --provider \
                 and --resume here"
                    .to_owned(),
            ),
            ..outcome_of(TurnEnd::Error, String::new())
        },
        Reply::Nothing | Reply::Ran | Reply::Quit => told(String::new()),
    })
}

/// An outcome without a request.
fn outcome_of(end: TurnEnd, text: String) -> TurnOutcome {
    TurnOutcome {
        end,
        text,
        iterations: 0,
        tool_calls: 0,
        usage: Usage::default(),
        cost: Some(Usd::default()),
        ..TurnOutcome::new()
    }
}

/// The parts of a prompt.
struct PromptText {
    /// The text of the command line.
    typed: Option<String>,
    /// Standard input.
    piped: Option<String>,
}

fn read_prompt(prompt: Prompt) -> anyhow::Result<PromptText> {
    let (typed, piped) = match prompt {
        Prompt::Text(text) => (Some(text), None),
        Prompt::Stdin => (None, Some(read_stdin()?)),
        Prompt::TextAndStdin(text) => (Some(text), Some(read_stdin()?)),
    };
    let parts = [&typed, &piped];
    if parts
        .into_iter()
        .flatten()
        .all(|text| text.trim().is_empty())
    {
        return Err(usage(
            "the prompt is empty: pass it with -p TEXT or on standard input",
        ));
    }
    Ok(PromptText { typed, piped })
}

/// The complete standard input as text.
///
/// # Errors
/// If it is too large or not UTF-8.
pub(crate) fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_STDIN + 1)
        .read_to_end(&mut bytes)
        .context("standard input cannot be read")?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(usage(format!(
            "standard input is larger than {MAX_STDIN} bytes; write it to a file and name the file"
        )));
    }
    String::from_utf8(bytes)
        .with_context(|| UsageError("standard input is not valid UTF-8".to_owned()))
}

/// Holds a conversation on the terminal, which `first_input` starts.
pub(crate) async fn interactive(
    global: &GlobalArgs,
    turn: &TurnArgs,
    first_input: Option<String>,
) -> anyhow::Result<Exit> {
    refuse_turn_options(turn)?;
    if !std::io::stdout().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(usage(
            "an interactive session needs stdout and stderr on a terminal; for one turn use -p TEXT",
        ));
    }
    end_on_signals();
    let (loaded, env) = load_for_session(global).await?;
    let channel = Arc::new(TerminalChannel::interactive(
        terminal::options(global.quiet, global.yes),
        loaded.config.terminal.clone(),
    ));
    let Some(choice) = choose_session(turn, &loaded, &env, channel.options()).await? else {
        return Ok(Exit::Done);
    };
    let (own, place) = (loaded.clone(), env.clone());
    let shown: Arc<dyn Channel> = Arc::clone(&channel) as _;
    let (mut conversation, mut options) =
        Conversation::begin(own, place, global, &choice, Arc::clone(&shown)).await?;
    options.first_input = first_input;
    // The signal that ends the conversation must not end the program before the session is stored.
    let _handles = Handles::signals();
    let talk = run_line_interface(&mut conversation, Arc::clone(&channel), options);
    let end = scheduler::beside(global, &loaded, &env, &shown, talk).await?;
    end_session(conversation, global.quiet).await?;
    Ok(end.into())
}

/// Stores the session of a conversation that has ended, and prints the command that resumes it.
/// Only a second signal ends the program before.
///
/// # Errors
/// A failure of the database.
pub(super) async fn end_session(conversation: Conversation, is_quiet: bool) -> anyhow::Result<()> {
    let _signals = cancel_on_signals(CancellationToken::new());
    let session = conversation.end().await?;
    print_resume_hint(session.as_deref(), is_quiet);
    Ok(())
}

/// Loads the configuration of a session. The first start without a provider asks for one.
///
/// # Errors
/// If the configuration is wrong, or the dialog fails.
pub(super) async fn load_for_session(global: &GlobalArgs) -> anyhow::Result<(Loaded, Environment)> {
    let (loaded, env) = load_config(global)?;
    if has_no_provider(&loaded, &env, global.model.as_deref())
        && login::first_start(global, &loaded, &env).await?
    {
        return load_config(global);
    }
    Ok((loaded, env))
}

/// Refuses options that only one turn has.
pub(super) fn refuse_turn_options(turn: &TurnArgs) -> anyhow::Result<()> {
    if turn.output_format != OutputFormat::Text || turn.output_schema.is_some() {
        return Err(usage(
            "--output-format and --output-schema are for one turn: add -p TEXT",
        ));
    }
    Ok(())
}

impl From<SessionEnd> for Exit {
    fn from(end: SessionEnd) -> Self {
        match end {
            SessionEnd::Left => Self::Done,
            SessionEnd::Interrupted => Self::Interrupted,
        }
    }
}
