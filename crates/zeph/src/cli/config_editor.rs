//! `zeph config edit`: the user's file in the user's editor.
//!
//! The editor gets a copy. Only a valid text replaces the file.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use zeph_tui::signals::Handles;

use super::config_value::is_fault;
use super::print;
use super::user_file::UserFile;
use super::with_causes;
use crate::config::{Environment, FlagOverrides};
use crate::output::stderr_line;

/// The editor without `$VISUAL` and `$EDITOR`.
const EDITOR: &str = "vi";

/// Opens the file in the editor until its text is valid or the user gives up.
///
/// # Errors
/// The editor fails; the new text is invalid and the user does not correct it. The copy then remains.
pub(super) fn edit(env: &Environment, flags: &FlagOverrides) -> anyhow::Result<()> {
    let file = UserFile::read(env, flags)?;
    let mut copy = tempfile::Builder::new()
        .prefix("zeph-config-")
        .suffix(".toml")
        .tempfile()?;
    copy.write_all(file.text.as_bytes())?;
    let copy = copy.into_temp_path();
    loop {
        open(env, &copy)?;
        let new = fs::read_to_string(&copy).context("the edited text cannot be read")?;
        if new == file.text {
            return print(&format!("{} is unchanged", file.name()));
        }
        let error = match file.replace(env, flags, &new) {
            Ok(()) => return print(&format!("wrote {}", file.name())),
            Err(error) => error,
        };
        let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
        if can_ask && is_fault(&error) {
            stderr_line(&with_causes(&error));
            if again()? {
                continue;
            }
        }
        let kept = copy.keep()?;
        return Err(error.context(format!("your text is in {}", kept.display())));
    }
}

/// Asks whether the editor opens again.
fn again() -> anyhow::Result<bool> {
    stderr_line("Open the editor again? [Y/n]");
    let mut line = String::new();
    let count = io::stdin()
        .read_line(&mut line)
        .context("the decision cannot be read")?;
    Ok(count > 0 && !matches!(line.trim().to_lowercase().as_str(), "n" | "no"))
}

/// Runs the editor, and waits for its end. Its arguments may be part of the variable.
fn open(env: &Environment, file: &Path) -> anyhow::Result<()> {
    let chosen = env.var("VISUAL").or_else(|| env.var("EDITOR"));
    let editor = chosen.and_then(|editor| editor.to_str()).unwrap_or(EDITOR);
    // A signal of the terminal, such as Ctrl-C, is for the editor.
    let _handles = Handles::signals();
    #[allow(clippy::disallowed_methods, reason = "the user's own editor")]
    let mut command = Command::new("/bin/sh");
    let status = command
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg(editor)
        .arg(file)
        .status()
        .with_context(|| format!("the editor {editor:?} cannot be started"))?;
    if !status.success() {
        bail!("the editor {editor:?} failed ({status}); nothing was changed");
    }
    Ok(())
}
