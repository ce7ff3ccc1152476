//! The question whether a turn with many rounds of tool calls continues.

use std::os::fd::{AsFd, OwnedFd};

use zeph_core::{CheckIn, CheckInAnswer};
use zeph_tools::plural::pluralize;

use super::burst::{Bursts, Input};
use super::keyboard::{Show, is_abandoned, single_keys};
use super::style::{Style, YELLOW};

/// The hint after input that is not an answer.
const ONE_KEY: &str = "\n  ignored: press only one of the keys\n";

/// The question with its keys.
pub(super) fn question(question: &CheckIn, style: Style) -> String {
    format!(
        "{} {} of tool calls so far. Continue?\n{}",
        style.paint(YELLOW, "?"),
        pluralize(question.iterations, "round"),
        keys(question),
    )
}

/// The keys of the question.
pub(super) fn keys(question: &CheckIn) -> String {
    format!(
        "  [Enter] {} more  [a] until done  [n] stop ",
        question.more
    )
}

/// Shows the question on `terminal` and waits for a key. Ctrl-C and a closed terminal stop the turn.
pub(super) fn dialog(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    show: impl Fn(Show<'_>),
) -> rustix::io::Result<CheckInAnswer> {
    let _mode = single_keys(terminal)?;
    // Abandoned before it began, a question is not shown.
    if is_abandoned(stop)? {
        return Ok(CheckInAnswer::Stop);
    }
    show(Show::Question);
    let mut bursts = Bursts::default();
    loop {
        let answer = match bursts.next(terminal, stop)? {
            Input::End | Input::Interrupt => Some(CheckInAnswer::Stop),
            Input::Key(byte) => answer(byte),
            Input::Suspend => {
                show(Show::Suspend);
                continue;
            }
            Input::Other | Input::Next | Input::Previous => None,
        };
        if let Some(answer) = answer {
            return Ok(answer);
        }
        show(Show::Text(ONE_KEY));
        show(Show::Keys);
    }
}

/// The meaning of a key, if it has one.
fn answer(byte: u8) -> Option<CheckInAnswer> {
    match byte {
        b'\r' | b'\n' => Some(CheckInAnswer::More),
        b'a' | b'A' => Some(CheckInAnswer::UntilDone),
        b'n' | b'N' | 0x04 | 0x1b => Some(CheckInAnswer::Stop),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves D-33.
    #[test]
    fn keys_have_their_answers() {
        let check = |byte, expect| assert_eq!(answer(byte), expect, "{byte}");
        check(b'\n', Some(CheckInAnswer::More));
        check(b'\r', Some(CheckInAnswer::More));
        check(b'a', Some(CheckInAnswer::UntilDone));
        check(b'n', Some(CheckInAnswer::Stop));
        check(0x1b, Some(CheckInAnswer::Stop));
        check(b'y', None);
        check(b' ', None);
    }
}
