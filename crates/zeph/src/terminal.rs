//! The terminal of this process, and the program as the views in `zeph-tui` see it.

use std::borrow::Cow;
use std::io;

use zeph_tui::{TerminalEnv, TerminalOptions, ViewHost};

use crate::browser;
use crate::config::Environment;
use crate::output::redact;

/// The properties of the terminal, with the options of the command line.
pub(crate) fn options(quiet: bool, assume_yes: bool) -> TerminalOptions {
    let env = Environment::of_process().unwrap_or_default();
    let var = |name: &str| {
        env.var(name)
            .map(|value| value.to_string_lossy().into_owned())
    };
    let env = TerminalEnv {
        no_color: var("NO_COLOR"),
        term: var("TERM"),
        is_in_tmux: var("TMUX").is_some(),
    };
    TerminalOptions::detect(&Program, &env, quiet, assume_yes)
}

/// This program.
#[derive(Debug)]
struct Program;

impl ViewHost for Program {
    fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        redact::redacted(text)
    }

    fn without_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        redact::without_known(text)
    }

    fn open_url(&self, url: &str) -> io::Result<()> {
        browser::open(url, &Environment::of_process().unwrap_or_default())
    }
}
