//! Checks of MCP servers, which connect to each of them.

use zeph_mcp::{ServerHealth, ServerSandbox};
use zeph_tools::plural::counted_as;
use zeph_tools::shell::sandbox::support;

use super::{Check, Verdict, check};
use crate::assemble::Mcp;
use crate::config::{Environment, Loaded};
use crate::output::sanitize::visible;

/// One check for each server that is on.
pub(super) async fn checks(loaded: &Loaded, env: &Environment) -> Vec<Check> {
    let mcp = match Mcp::start(loaded, env) {
        Ok(Some(mcp)) => mcp,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![check("mcp", Verdict::Failed, error.to_string())],
    };
    mcp.servers.wait_for_result().await;
    let health = mcp.servers.health();
    mcp.close().await;
    health
        .iter()
        .map(|server| of_server(server, loaded))
        .collect()
}

fn of_server(server: &ServerHealth, loaded: &Loaded) -> Check {
    let name = format!("mcp {}", server.name);
    let Some(revision) = &server.revision else {
        return check(name, Verdict::Failed, visible(&server.state));
    };
    let mut detail = format!(
        "protocol {revision}, {} approved",
        counted_as(server.approved, "tool", "tools")
    );
    let mut verdict = Verdict::Ok;
    if server.unapproved > 0 {
        verdict = Verdict::Warning;
        detail.push_str(&format!(
            ", {} not; `zeph mcp approve {}` shows them",
            server.unapproved, server.name
        ));
    }
    let mut servers = loaded.config.mcp.servers.iter();
    let config = servers.find(|config| config.name == server.name);
    let is_program = config.is_some_and(|config| config.command.is_some());
    if is_program {
        let is_on = config.is_some_and(|config| config.sandbox == ServerSandbox::On);
        let sandbox = match is_on {
            false => "off (`sandbox`)",
            true if confines(loaded) => "on",
            true => {
                verdict = Verdict::Warning;
                "incomplete on this machine"
            }
        };
        detail.push_str(&format!("; OS sandbox {sandbox}"));
    }
    check(name, verdict, detail)
}

/// Whether this machine confines the writes of programs.
fn confines(loaded: &Loaded) -> bool {
    let mut sandbox = loaded.config.tools.shell.sandbox.clone();
    // The mode of commands does not turn the sandbox of servers off.
    sandbox.mode = zeph_tools::shell::SandboxMode::BestEffort;
    support(&sandbox).confines_writes
}
