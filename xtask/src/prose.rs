//! `cargo xtask prose`: the spelling of all prose, names and comments, by typos. `typos.toml` lists the exceptions.
//!
//! `tidy` checks the words that the glossary of `docs/STYLE.md` replaces.

use anyhow::Result;
use xshell::cmd;

use crate::project::Project;
use crate::wheel;

const VERSION: &str = "1.52.0";

/// Checks the spelling. An installed program is not used, because its list of words may differ.
///
/// # Errors
/// A word is misspelled.
pub(crate) fn run(project: &Project) -> Result<()> {
    let program = wheel::program(project, "typos", VERSION, "typos")?;
    let sh = &project.sh;
    Ok(cmd!(sh, "{program} --format brief --config typos.toml").run()?)
}
