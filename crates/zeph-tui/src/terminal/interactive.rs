//! The interactive session: it reads an input, passes it to the agent, and shows the result.
//!
//! Ctrl-C at the prompt clears the line; twice in a row at an empty line, it exits. In a turn it cancels the turn,
//! and a second one exits and ends all running commands. SIGTERM and SIGHUP exit at any time. Every exit restores the
//! terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use zeph_core::{Agent, LoopbackEvent, Reply, SessionSwitch, TurnEnd, TurnOutcome};
use zeph_llm::{Usage, Usd};
use zeph_tools::Permissions;
use zeph_tools::plural::pluralize;

use super::branch::branch_of;
use super::channel::TerminalChannel;
use super::clipboard;
use super::complete::ModelWords;
use super::diff_text;
use super::editor::{Editor, Input, Look, PromptKey};
use super::external_editor::NO_EDITOR;
use super::recap;
use super::session_picker::PickerEntry;
use super::session_switch::switch;
use super::signals::Handles;
use super::turn::{Pressed, Signals, suspend, turn};
use crate::view::{Block, RecapItem, SessionStatus};

/// The keys of the prompt.
const PROMPT_KEYS: &str = "\
Enter          sends the prompt; Alt-Enter or a backslash at the end begins a new line
Tab            completes commands, files after @, and models
Up, Down       earlier prompts; Ctrl-R searches in them
Shift-Tab      changes the permission mode
Ctrl-O         shows the last shortened result in full
Ctrl-G         opens the prompt in $VISUAL or $EDITOR
Ctrl-Z         suspends; fg continues
Esc, Ctrl-C    twice at an empty prompt: leaves, as Ctrl-D does
/help          lists the commands";

/// Two presses of Ctrl-C within this time end the session.
const TWICE: Duration = Duration::from_secs(2);

/// The options of a session.
#[derive(Debug, Clone)]
pub struct InteractiveOptions {
    /// The model's name.
    pub model: String,
    /// The words after `/model`.
    pub models: Arc<dyn ModelWords>,
    /// The directory the session works in.
    pub project: PathBuf,
    /// The file of earlier inputs.
    pub history_file: PathBuf,
    /// The permissions, with the mode that the prompt shows.
    pub permissions: Permissions,
    /// The command of the user's editor.
    pub external_editor: Option<String>,
    /// Messages at the start.
    pub notices: Vec<String>,
    /// The first input, from the command line.
    pub first_input: Option<String>,
}

/// The end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The user ended the session.
    Left,
    /// A second Ctrl-C in a turn, SIGTERM or SIGHUP.
    Interrupted,
}

/// The conversation of a view.
pub trait Converse {
    /// The agent that handles inputs.
    fn agent(&mut self) -> &mut Agent;

    /// The stored sessions, for a list from which the user selects one.
    ///
    /// # Errors
    /// A failure of the store.
    fn sessions(&self) -> impl Future<Output = anyhow::Result<Vec<PickerEntry>>>;

    /// The last exchanges of the session; empty if it is new.
    fn recap(&self) -> impl Future<Output = Vec<RecapItem>>;

    /// Continues with another model or session, and returns a message for the user. After an error nothing has
    /// changed.
    ///
    /// # Errors
    /// The reason why the switch failed.
    fn switch(&mut self, to: SessionSwitch) -> impl Future<Output = anyhow::Result<String>>;

    /// The name of the current model.
    fn model(&self) -> &str;

    /// Stores the mode and the model with the session if the user changed them.
    ///
    /// # Errors
    /// A failure of the store.
    fn save_choices(&self) -> impl Future<Output = anyhow::Result<()>>;

    /// The stored conversation of the session as events.
    ///
    /// # Errors
    /// If the database cannot be used.
    fn stored_events(&self) -> impl Future<Output = anyhow::Result<Vec<LoopbackEvent>>>;
}

/// Holds a conversation. Standard input, output and error have to be terminals.
///
/// # Errors
/// If the terminal cannot be used.
pub async fn run_line_interface(
    conversation: &mut impl Converse,
    channel: Arc<TerminalChannel>,
    options: InteractiveOptions,
) -> anyhow::Result<SessionEnd> {
    let mut signals = Signals::new().context("signals cannot be received")?;
    let _handles = Handles::signals();
    let terminal = channel.options();
    begin_status(&channel, &options);
    let (config, shown) = (channel.config(), Arc::clone(&channel));
    let (mut editor, trouble) = Editor::start(
        options.project.clone(),
        Arc::clone(&options.models),
        (&options.history_file, terminal.host),
        channel.keyboard().clone(),
        Look {
            colour: terminal.stdout.colour,
            plain: terminal.dumb,
            mode: options.permissions.mode.clone(),
            // The prompt shows the mode at another place.
            status: Arc::new(move || SessionStatus {
                mode: None,
                ..shown.screen().status().clone()
            }),
            keys: config.keys,
            external_editor: options.external_editor.clone(),
        },
    )
    .context("the line editor cannot be started")?;
    if !terminal.quiet {
        greet(&channel, &options);
    }
    recap::show(&channel, &conversation.recap().await);
    for notice in options.notices.iter().chain(&trouble) {
        channel.screen().notice(notice);
    }
    let mut pressed: Option<Pressed> = None;
    let mut first_input = options.first_input.clone();
    loop {
        let queued = channel.screen().typed().take_first();
        let text = match queued.is_some() || first_input.is_some() {
            true => String::new(),
            false => unsent(&channel),
        };
        channel.hold_notices();
        let input = tokio::select! {
            biased;
            Some(text) = std::future::ready(queued), if queued.is_some() => {
                channel.screen().push(Block::Prompt(text.clone()));
                Input::Text(text)
            }
            Some(text) = std::future::ready(first_input.take()), if first_input.is_some() => {
                let mode = options.permissions.mode.get().as_str();
                let shown = format!("{mode} › {text}");
                channel.screen().say(&terminal.host.redacted(&shown));
                Input::Text(text)
            }
            input = editor.read(text) => input.context("the terminal cannot be read")?,
            leaves = signals.at_prompt(terminal.dumb) => {
                if leaves {
                    editor.abandon();
                    channel.screen().end_prompt();
                    return Ok(SessionEnd::Interrupted);
                }
                Input::Interrupted { cleared: false }
            }
        };
        channel.release_notices();
        match input {
            Input::End => {
                if editor.is_plain() {
                    channel.screen().end_prompt();
                }
                break;
            }
            Input::Interrupted { cleared } => {
                let now = Instant::now();
                if editor.is_plain() && !cleared {
                    channel.screen().end_prompt();
                }
                if let Some(before) = pressed.take_if(|before| now - before.at <= TWICE)
                    && !cleared
                {
                    editor.finish();
                    return Ok(before.leaves);
                }
                if cleared {
                    pressed = None;
                } else {
                    pressed = Some(Pressed {
                        at: now,
                        leaves: SessionEnd::Left,
                    });
                    channel.screen().remark(LEAVES);
                    editor.prompt_again();
                }
            }
            Input::Key(key) => match key {
                PromptKey::Escape => {
                    let now = Instant::now();
                    channel.screen().end_prompt();
                    if pressed.take_if(|before| now - before.at <= TWICE).is_some() {
                        editor.finish();
                        return Ok(SessionEnd::Left);
                    }
                    let leaves = SessionEnd::Left;
                    pressed = Some(Pressed { at: now, leaves });
                    channel.screen().remark(LEAVES);
                }
                PromptKey::Expand => {
                    channel.screen().end_prompt();
                    channel.screen().expand();
                }
                PromptKey::Help => {
                    channel.screen().end_prompt();
                    channel.screen().say(PROMPT_KEYS);
                }
                PromptKey::Suspend => suspend(&mut signals).await,
                PromptKey::NoEditor => {
                    channel.screen().end_prompt();
                    channel.screen().notice(NO_EDITOR);
                }
            },
            Input::NotEdited(message) => {
                channel.screen().end_prompt();
                channel.screen().error(&message);
            }
            Input::Text(text) => {
                pressed = None;
                let start = Instant::now();
                let reply = turn(
                    conversation.agent(),
                    (&channel, &options),
                    &text,
                    &mut signals,
                    &mut pressed,
                )
                .await;
                let took = channel.end_turn(start.elapsed());
                editor.save(channel.screen().typed().take_sent());
                if let Err(error) = conversation.save_choices().await {
                    let text = format!("{error:#}");
                    channel.screen().notice(&terminal.host.redacted(&text));
                }
                channel.screen().status().branch = branch_of(&options.project);
                match reply {
                    None => {
                        editor.finish();
                        return Ok(SessionEnd::Interrupted);
                    }
                    Some(Reply::Quit) => break,
                    Some(Reply::Switch(to)) => {
                        let reply = switch(conversation, (&channel, &options), to).await;
                        show(&channel, &reply, took);
                    }
                    Some(reply) => {
                        show(&channel, &reply, took);
                        if is_broken_off(&reply) {
                            // The inputs that wait return to the prompt.
                            channel.screen().typed().unqueue();
                        }
                    }
                }
                if let Some(before) = pressed
                    && signals.interrupted()
                {
                    editor.finish();
                    return Ok(before.leaves);
                }
            }
        }
    }
    editor.finish();
    Ok(SessionEnd::Left)
}

/// The hint after the first key that leaves.
const LEAVES: &str = "Esc or Ctrl-C once more, or Ctrl-D, leaves";

/// Sets the state that the status line shows.
fn begin_status(channel: &TerminalChannel, options: &InteractiveOptions) {
    let mut screen = channel.screen();
    let status = screen.status();
    status.mode = Some(options.permissions.mode.get());
    status.model.clone_from(&options.model);
    status.branch = branch_of(&options.project);
}

/// The text that was typed during a turn and not sent.
fn unsent(channel: &TerminalChannel) -> String {
    channel.screen().typed().take_all()
}

/// Whether a turn was cancelled or failed.
pub(crate) fn is_broken_off(reply: &Reply) -> bool {
    let ends = [TurnEnd::Cancelled, TurnEnd::Error];
    matches!(reply, Reply::Turn(outcome) if ends.contains(&outcome.end))
}

fn greet(channel: &TerminalChannel, options: &InteractiveOptions) {
    let mut screen = channel.screen();
    screen.say(&format!(
        "zeph {}  {}  {}",
        env!("CARGO_PKG_VERSION"),
        options.model,
        options.project.display()
    ));
    screen.remark("/help lists the commands, ? lists the keys, Ctrl-D leaves");
}

fn show(channel: &TerminalChannel, reply: &Reply, took: Duration) {
    let options = channel.options();
    let host = options.host;
    let mut screen = channel.screen();
    match reply {
        Reply::Text(text) => screen.say(&host.redacted(text)),
        Reply::Diff(text) => {
            let painted = diff_text::painted(&host.redacted(text), screen.style());
            screen.steer(&painted);
        }
        Reply::Copy(_) if options.dumb => {
            screen.error("this terminal has no clipboard: it understands no escape sequences");
        }
        Reply::Copy(text) => {
            screen.steer(&clipboard::sequence(text, options.is_in_tmux));
            let length = pluralize(text.chars().count(), "character");
            screen.remark(&format!("{length} copied, if the terminal allows OSC 52"));
        }
        Reply::Failed(why) | Reply::Usage(why) => screen.error(&host.redacted(why)),
        Reply::Turn(outcome) => {
            if let Some(text) = trouble(outcome) {
                let text = host.redacted(&text);
                match outcome.end {
                    TurnEnd::Error => screen.error(&text),
                    _ => screen.notice(&text),
                }
            }
            if !options.quiet {
                screen.remark(&cost(outcome.usage, outcome.cost, took));
            }
        }
        Reply::Nothing | Reply::Ran | Reply::Switch(_) | Reply::Quit => {}
    }
}

/// The message about a turn that ended without a response. Limits were reported when they were reached.
pub(crate) fn trouble(outcome: &TurnOutcome) -> Option<String> {
    match outcome.end {
        TurnEnd::Error => {
            let what = outcome.message.as_deref().unwrap_or("the turn failed");
            Some(format!(
                "{what}\nthe conversation is stored: write \"continue\" to try again, /status \
                 shows the session"
            ))
        }
        TurnEnd::Cancelled => Some("cancelled; the partial response is stored".to_owned()),
        _ => None,
    }
}

/// The line at the end of a turn.
pub(crate) fn cost(usage: Usage, cost: Option<Usd>, took: Duration) -> String {
    // A cost of zero is not shown.
    let cost = cost.filter(|cost| *cost > Usd::default());
    let cost = cost.map_or_else(String::new, |cost| format!("{cost}, "));
    let cached = if usage.cached_tokens > 0 {
        format!(" ({} cached)", grouped(usage.cached_tokens))
    } else {
        String::new()
    };
    format!(
        "{} tokens in{cached}, {} out, {cost}{:.1} s",
        grouped(usage.input_tokens),
        grouped(usage.output_tokens),
        took.as_secs_f64()
    )
}

/// A number with separators between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-4 for the cost line.
    #[test]
    fn cost_of_a_turn_is_shown() {
        let check = |input, cached, output, millis, expect: &str| {
            let usage = Usage {
                input_tokens: input,
                output_tokens: output,
                cached_tokens: cached,
                ..Usage::default()
            };
            let took = Duration::from_millis(millis);
            assert_eq!(cost(usage, Some(Usd::default()), took), expect);
            assert_eq!(cost(usage, None, took), expect);
            let told = cost(usage, Usd::from_dollars(0.0312), took);
            assert!(told.contains(" out, $0.0312, "), "{told}");
        };
        check(
            1_234_567,
            1000,
            12,
            4250,
            "1,234,567 tokens in (1,000 cached), 12 out, 4.2 s",
        );
        check(999, 0, 0, 0, "999 tokens in, 0 out, 0.0 s");
    }

    #[test]
    fn failure_message_names_the_fix() {
        let check = |end, message: Option<&str>, expect: Option<&str>| {
            let outcome = TurnOutcome {
                end,
                message: message.map(str::to_owned),
                ..TurnOutcome::new()
            };
            let text = trouble(&outcome);
            assert_eq!(
                text.as_deref()
                    .map(|text| text.lines().next().unwrap_or("")),
                expect
            );
        };
        check(TurnEnd::Done, None, None);
        check(TurnEnd::DoomLoop, Some("stopped"), None);
        check(TurnEnd::Error, Some("no connection"), Some("no connection"));
        check(
            TurnEnd::Cancelled,
            None,
            Some("cancelled; the partial response is stored"),
        );
    }
}
