//! The switch to another model or session during a session at the terminal.

use anyhow::bail;
use zeph_core::{Reply, SessionSwitch};

use super::channel::TerminalChannel;
use super::interactive::Converse;
use super::recap;
use super::session_picker::{SessionPicker, pick};

/// Continues with another model or session, and shows the last exchanges of the session. Returns the message for the
/// user.
pub(super) async fn switch(
    conversation: &mut impl Converse,
    channel: &TerminalChannel,
    to: SessionSwitch,
) -> Reply {
    let switched = match to {
        SessionSwitch::ChooseSession => match choose(conversation, channel).await {
            Ok(Some(id)) => resume(conversation, channel, id).await,
            Ok(None) => Ok("the session stays the same".to_owned()),
            Err(error) => Err(error),
        },
        SessionSwitch::Session(id) => resume(conversation, channel, id).await,
        to => conversation.switch(to).await,
    };
    switched.map_err(|error| format!("{error:#}")).into()
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
