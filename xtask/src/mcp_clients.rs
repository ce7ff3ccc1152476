//! `cargo xtask mcp-clients`: official MCP clients against `zeph mcp serve` on this machine.
//!
//! They are the official conformance suite and the official Python client. All steps have deadlines, and the server is
//! ended.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::counterparts::{Counterparts, Place};
use crate::process::Server;
use crate::project::Project;

/// The time limit until the server prints its address.
const START: Duration = Duration::from_secs(20);
/// The path of the endpoint.
const PATH: &str = "/mcp";

pub(crate) fn run(project: &Project) -> Result<()> {
    let installed = Counterparts::install(project)?;
    let place = Place::new(&installed)?;
    let work = place.project();
    std::fs::write(work.join("a.txt"), "hello\n")?;
    let mut command = Command::new(&installed.zeph);
    command.args(["mcp", "serve", "--http", "127.0.0.1:0", "-C"]);
    command.arg(&work);
    place.enclose(&mut command);
    let server = Server::start("zeph mcp serve", command, START)?;
    let url = format!("{}{PATH}", server.address.trim_end_matches(PATH));

    let mut suite = installed.python("mcp_clients/conformance.py");
    suite.arg(&installed.modules).arg(&url);
    println!("{}", place.run("the conformance suite", suite)?);
    let mut client = installed.python("mcp_clients/python_client.py");
    client.arg(&installed.zeph).arg(&url).arg(&work);
    println!("{}", place.run("the official Python client", client)?);
    Ok(())
}
