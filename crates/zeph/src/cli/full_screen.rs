//! `zeph --tui`: a conversation on the full screen.

use std::io::IsTerminal as _;
use std::sync::Arc;

use zeph_core::Channel;
use zeph_tui::signals::{Handles, end_on_signals};
use zeph_tui::{TuiChannel, run_full_screen};

use super::args::{GlobalArgs, TurnArgs};
use super::conversation::Conversation;
use super::run::{end_session, load_for_session, refuse_turn_options};
use super::session_selection::choose_session;
use super::{Exit, scheduler, usage};
use crate::terminal;

/// Holds a conversation on the full screen, which `first_input` starts.
pub(super) async fn run(
    global: &GlobalArgs,
    turn: &TurnArgs,
    first_input: Option<String>,
) -> anyhow::Result<Exit> {
    refuse_turn_options(turn)?;
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(usage(
            "--tui needs stdin and stdout on a terminal; for one turn use -p TEXT",
        ));
    }
    let terminal = terminal::options(global.quiet, global.yes);
    if terminal.dumb {
        return Err(usage(
            "--tui needs a terminal with escape sequences; set TERM, or leave out --tui",
        ));
    }
    end_on_signals();
    let (loaded, env) = load_for_session(global).await?;
    if loaded.config.tools.audit.stdout && std::io::stderr().is_terminal() {
        return Err(usage(
            "`[tools.audit] stdout` would print into the full screen; turn it off, redirect stderr, or leave out --tui",
        ));
    }
    let channel = Arc::new(TuiChannel::new(terminal, loaded.config.terminal.clone()));
    let Some(choice) = choose_session(turn, &loaded, &env, terminal).await? else {
        return Ok(Exit::Done);
    };
    let (own, place) = (loaded.clone(), env.clone());
    let shown: Arc<dyn Channel> = Arc::clone(&channel) as _;
    let (mut conversation, mut options) =
        Conversation::begin(own, place, global, &choice, Arc::clone(&shown)).await?;
    options.first_input = first_input;
    let resources = conversation.resources();
    // The signal that ends the conversation must not end the program before the session is stored.
    let _handles = Handles::signals();
    let talk = run_full_screen(&mut conversation, channel, options, resources);
    let end = scheduler::beside(global, &loaded, &env, &shown, talk).await?;
    end_session(conversation, global.quiet).await?;
    Ok(end.into())
}
