//! `cargo xtask mcp-servers`: MCP servers of others with the MCP client of the built binary.
//!
//! They are the reference server of MCP and FastMCP, on stdio and on HTTP. All steps have deadlines, and the servers are
//! ended.

use anyhow::Result;

use crate::counterparts::{Counterparts, Place};
use crate::project::Project;

pub(crate) fn run(project: &Project) -> Result<()> {
    let installed = Counterparts::install(project)?;
    let place = Place::new(&installed)?;
    let mut client = installed.python("mcp_servers/client.py");
    client.arg(&installed.zeph).arg(place.root());
    client.arg(&installed.node).arg(&installed.modules);
    println!("{}", place.run("the servers of others", client)?);
    Ok(())
}
