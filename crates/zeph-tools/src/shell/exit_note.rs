//! The remark about the exit of a process: `[exit code: 137] (killed by SIGKILL)`.

use std::fmt::Write as _;

use zeph_exec::runner::Exit;

/// The line with the exit code of a process.
pub(super) fn exit_note(exit: Exit) -> String {
    let mut note = format!("[exit code: {}]", exit.code);
    if let Some(signal) = exit.signal {
        let _ = write!(note, " (killed by {})", signal_name(signal));
    }
    note
}

/// The name of a signal.
fn signal_name(signal: i32) -> String {
    let name = match rustix::process::Signal::from_named_raw(signal) {
        Some(named) => format!("{named:?}"),
        None => return format!("signal {signal}"),
    };
    // `Signal::KILL` or `Signal(KILL)`: the last word is the name.
    name.split(|character: char| !character.is_ascii_alphanumeric())
        .rfind(|word| !word.is_empty())
        .map_or_else(|| format!("signal {signal}"), |word| format!("SIG{word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names() {
        let check = |signal, expect: &str| assert_eq!(signal_name(signal), expect);
        check(2, "SIGINT");
        check(9, "SIGKILL");
        check(11, "SIGSEGV");
        check(15, "SIGTERM");
        check(0, "signal 0");
    }
}
