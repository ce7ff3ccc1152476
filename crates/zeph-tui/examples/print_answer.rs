//! The line interface without an agent: a notice and an answer, as `zeph -p` prints them.

use std::borrow::Cow;
use std::io;

use zeph_core::{Channel as _, LoopbackEvent};
use zeph_tui::{TerminalChannel, TerminalEnv, TerminalOptions, ViewHost};

/// A program without secrets and without a browser.
#[derive(Debug)]
struct Program;

impl ViewHost for Program {
    fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text.into()
    }
    fn without_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text.into()
    }
    fn open_url(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn main() -> io::Result<()> {
    // Notices and progress go to standard error, unless the interface is quiet.
    let is_quiet = true;
    let options = TerminalOptions::detect(&Program, &TerminalEnv::default(), is_quiet, false);
    let channel = TerminalChannel::one_shot(options);
    channel.emit(LoopbackEvent::Notice("the session has started".to_owned()));
    channel.finish_answer("The answer is 42.\n\n- It is even.\n- It is positive.")
}

// Prints:
// The answer is 42.
//
// - It is even.
// - It is positive.
