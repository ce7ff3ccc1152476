//! Opens an address in the user's browser: `$BROWSER`, or the opener of the system.

use std::io;
use std::process::{Command, Stdio};

use crate::config::Environment;

/// The opener of the system.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Starts the browser with `url`, and does not wait for it.
///
/// # Errors
/// The address is not one of the web, or the browser cannot be started.
pub(crate) fn open(url: &str, env: &Environment) -> io::Result<()> {
    if !zeph_mcp::is_web(url) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the address is not http or https",
        ));
    }
    let chosen = env.var("BROWSER").and_then(|browser| browser.to_str());
    let argv = argv(chosen, url);
    let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    #[allow(
        clippy::disallowed_methods,
        reason = "the user's own browser, which outlives this program"
    )]
    let mut command = Command::new(program);
    let mut child = command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // The exit is collected, so that no defunct process stays.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// The program and its arguments. `$BROWSER` may list several, separated by colons; `%s` is the place of the address.
fn argv(chosen: Option<&str>, url: &str) -> Vec<String> {
    let first = chosen.and_then(|list| list.split(':').find(|one| !one.trim().is_empty()));
    let words = first.unwrap_or(OPENER).split_whitespace();
    let mut argv: Vec<String> = words.map(|word| word.replace("%s", url)).collect();
    if !argv.iter().any(|word| word.contains(url)) {
        argv.push(url.to_owned());
    }
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves MCP-1c.
    #[test]
    fn browser_gets_the_address() {
        let url = "https://e.org/?a=b";
        let check = |chosen, expect: &[&str]| assert_eq!(argv(chosen, url), expect);
        check(None, &[OPENER, url]);
        check(Some(""), &[OPENER, url]);
        check(Some("firefox:chrome"), &["firefox", url]);
        check(Some("w3m -o x=%s"), &["w3m", "-o", "x=https://e.org/?a=b"]);
    }
}
