//! The switch to another model or session during a session at the terminal.

use std::time::Instant;

use anyhow::bail;
use zeph_core::{LoopbackEvent, Reply, SessionSwitch};

use super::channel::TerminalChannel;
use super::interactive::{Converse, InteractiveOptions};
use super::recap;
use super::session_picker::{SessionPicker, pick};
use crate::view::SessionStatus;

/// Continues with another model or session, and shows the last exchanges and the state of the
/// session. Returns the message for the user.
pub(super) async fn switch(
    conversation: &mut impl Converse,
    (channel, options): (&TerminalChannel, &InteractiveOptions),
    to: SessionSwitch,
) -> Reply {
    let before = conversation.agent().session().to_owned();
    let switched = match to {
        SessionSwitch::ChooseSession => match choose(conversation, channel).await {
            Ok(Some(id)) => resume(conversation, channel, id).await,
            Ok(None) => Ok("the session stays the same".to_owned()),
            Err(error) => Err(error),
        },
        SessionSwitch::Session(id) => resume(conversation, channel, id).await,
        to => conversation.switch(to).await,
    };
    if conversation.agent().session() != before {
        show_session(conversation, channel).await;
    }
    let mut screen = channel.screen();
    let status = screen.status();
    status.mode = Some(options.permissions.mode.get());
    conversation.model().clone_into(&mut status.model);
    drop(screen);
    switched.map_err(|error| format!("{error:#}")).into()
}

/// Shows the title and the tasks of another session. Its context and costs are unknown until the
/// next report.
async fn show_session(conversation: &impl Converse, channel: &TerminalChannel) {
    let events = conversation.stored_events().await;
    let now = Instant::now();
    let mut screen = channel.screen();
    let status = screen.status();
    *status = SessionStatus {
        branch: status.branch.take(),
        ..SessionStatus::default()
    };
    screen.event(LoopbackEvent::Tasks(Vec::new()), now);
    match events {
        Ok(events) => {
            for event in events {
                if matches!(event, LoopbackEvent::Title(_) | LoopbackEvent::Tasks(_)) {
                    screen.event(event, now);
                }
            }
        }
        Err(error) => {
            let text = format!("the title and the tasks of the session cannot be shown: {error:#}");
            screen.error(&channel.options().host.redacted(&text));
        }
    }
    drop(screen);
    channel.set_title("ready");
}

async fn resume(
    conversation: &mut impl Converse,
    channel: &TerminalChannel,
    id: String,
) -> anyhow::Result<String> {
    let text = conversation.switch(SessionSwitch::Session(id)).await?;
    recap::show(channel, &conversation.recap().await);
    Ok(text)
}

/// Lets the user select a session.
async fn choose(
    conversation: &impl Converse,
    channel: &TerminalChannel,
) -> anyhow::Result<Option<String>> {
    let entries = conversation.sessions().await?;
    if entries.is_empty() {
        bail!("there is no other session");
    }
    channel.hold_notices();
    let picked = pick(SessionPicker::new(entries), channel.options()).await;
    channel.release_notices();
    picked
}
