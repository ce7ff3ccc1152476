//! Shows the last exchanges of a session that continues.

use zeph_core::{Channel as _, LoopbackEvent};
use zeph_tools::plural::pluralize;

use super::channel::TerminalChannel;
use crate::view::RecapItem;

/// Shows the last exchanges; nothing for a new session or with `--quiet`.
pub(super) fn show(channel: &TerminalChannel, items: &[RecapItem]) {
    if channel.options().quiet {
        return;
    }
    let host = channel.options().host;
    for item in items {
        match item {
            RecapItem::Earlier(count) => {
                let exchanges = pluralize(*count, "earlier exchange");
                channel.screen().remark(&format!("… {exchanges}"));
            }
            RecapItem::Prompt(text) => {
                let text = host.redacted(text).replace('\n', "\n  ");
                channel.screen().say(&format!("\n› {text}"));
            }
            RecapItem::EarlierCalls(count) => {
                let calls = pluralize(*count, "earlier call");
                channel.screen().remark(&format!("  … {calls}"));
            }
            RecapItem::Call {
                title,
                result,
                has_failed,
            } => {
                let sign = if *has_failed { "✗" } else { "●" };
                let line = format!("  {sign} {title} — {result}");
                channel.screen().remark_line(&host.redacted(&line));
            }
            RecapItem::Response(text) => {
                channel.emit(LoopbackEvent::Text(host.redacted(text).into_owned()));
                channel.screen().end_turn();
            }
        }
    }
}
