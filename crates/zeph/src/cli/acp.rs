//! `zeph acp`: serves an editor on standard input and output.

use std::os::fd::AsFd;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::fs::File;
use tokio::io::BufReader;
use zeph_acp::{ServeOptions, serve};

use super::Exit;
use super::args::GlobalArgs;
use crate::acp_host::AcpHost;
use crate::assemble::withhold_environment;
use crate::config::Environment;
use crate::output::sanitize::clean;

/// Bytes of input that are read at a time.
const READ_BYTES: usize = 64 * 1024;

/// A standard stream without the buffer of this process.
fn stream(of: impl AsFd) -> std::io::Result<File> {
    let copy = of.as_fd().try_clone_to_owned()?;
    Ok(File::from_std(copy.into()))
}

/// Serves one client until the end of standard input. Standard output carries only protocol messages.
///
/// # Errors
/// If the connection fails.
pub(super) async fn run(global: &GlobalArgs) -> anyhow::Result<Exit> {
    let env = Environment::of_process().context("the working directory cannot be found")?;
    withhold_environment(&env);
    let host = AcpHost::new(env, global.build_options());
    let unread_timeout = host.unread_timeout();
    let options = ServeOptions {
        name: "zeph".to_owned(),
        title: "Zeph".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        assume_yes: global.yes,
        clean,
        unread_timeout,
    };
    let input = stream(std::io::stdin()).context("standard input cannot be used")?;
    let output = stream(std::io::stdout()).context("standard output cannot be used")?;
    let input = BufReader::with_capacity(READ_BYTES, input);
    let served = serve(Arc::new(host), options, input, output);
    served
        .await
        .context("the connection to the client failed")?;
    Ok(Exit::Done)
}
