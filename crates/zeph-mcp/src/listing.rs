//! The servers with their state and their unavailable tools, as text and as JSON.

use std::collections::HashSet;
use std::fmt::Write as _;

use zeph_tools::plural::counted_as;

use crate::sanitize::line;
use crate::servers::{McpServers, told};
use crate::trust::ToolTrust;

impl McpServers {
    /// The text of `/mcp`: each server, its state, and its unavailable tools.
    #[must_use]
    pub fn listing(&self) -> String {
        let mut text = String::new();
        let mut ids: HashSet<String> = HashSet::new();
        for server in self.all() {
            let state = server.state();
            let name = &server.config.name;
            let connected = state.link.is_some();
            let mut out = Vec::new();
            let (mut usable, mut open) = (0, 0);
            for known in &state.tools {
                let id = known.tool.def.id.to_string();
                let shown = line(&known.tool.name, 64);
                match known.standing {
                    _ if !ids.insert(id) => {
                        out.push((shown, "another server has a tool with this id".to_owned()));
                    }
                    ToolTrust::Approved => usable += 1,
                    ToolTrust::New => {
                        open += 1;
                        out.push((shown, "not approved yet".to_owned()));
                    }
                    ToolTrust::Changed(_) => {
                        open += 1;
                        out.push((shown, "it changed after its approval".to_owned()));
                    }
                }
            }
            out.extend(
                state
                    .refused
                    .into_iter()
                    .map(|tool| (tool.name, tool.reason)),
            );
            let mut tools = String::new();
            if connected {
                tools = format!(", {}", counted_as(usable, "tool", "tools"));
                for (n, one, more) in [
                    (state.prompts.len(), "prompt", "prompts"),
                    (state.resources.len(), "resource", "resources"),
                ] {
                    if n > 0 {
                        tools.push_str(&format!(", {}", counted_as(n, one, more)));
                    }
                }
            }
            wrapped(
                &mut text,
                &format!("{name}: {}{tools}", told(&state.phase)),
                2,
            );
            for (tool, why) in out {
                let tool = if tool.is_empty() { "a tool" } else { &tool };
                wrapped(&mut text, &format!("  {tool} is not available: {why}"), 6);
            }
            if open > 0 {
                wrapped(
                    &mut text,
                    &format!(
                        "  /mcp approve {name}, or `zeph mcp approve {name}`, shows the unapproved tools."
                    ),
                    6,
                );
            }
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Returns the data of [`Self::listing`] as JSON, one object for each server.
    #[must_use]
    pub fn as_json(&self) -> Vec<serde_json::Value> {
        let servers = self.all();
        let servers = servers.iter().map(|server| {
            let state = server.state();
            let tools = state.tools.iter().map(|known| {
                serde_json::json!({
                    "name": known.tool.name,
                    "id": known.tool.def.id,
                    "description": known.tool.def.description,
                    "parameters": known.tool.def.parameters,
                    "standing": match known.standing {
                        ToolTrust::Approved => "approved",
                        ToolTrust::New => "new",
                        ToolTrust::Changed(_) => "changed",
                    },
                    "sha256": known.tool.pin.sha256,
                    "annotations": known.tool.def.annotations,
                })
            });
            let refused = state
                .refused
                .iter()
                .map(|tool| serde_json::json!({ "name": tool.name, "reason": tool.reason }));
            serde_json::json!({
                "name": server.config.name,
                "state": told(&state.phase),
                "connected": state.link.is_some(),
                "revision": state.link.as_ref().map(|link| link.revision.clone()),
                "tools": tools.collect::<Vec<_>>(),
                "prompts": state.prompts.iter().map(|prompt| &prompt.name).collect::<Vec<_>>(),
                "resources": state.resources.iter().map(|resource| serde_json::json!({
                    "uri": resource.uri,
                    "name": resource.name,
                })).collect::<Vec<_>>(),
                "refused": refused.collect::<Vec<_>>(),
            })
        });
        servers.collect()
    }
}

/// A disabled server as JSON, with the keys of [`McpServers::as_json`].
#[must_use]
pub fn disabled_as_json(name: &str) -> serde_json::Value {
    serde_json::json!({
        "name": name,
        "state": "off",
        "connected": false,
        "revision": null,
        "tools": [],
        "prompts": [],
        "resources": [],
        "refused": [],
    })
}

/// Adds `said` in lines of at most 80 characters; all lines except the first are indented.
fn wrapped(text: &mut String, said: &str, indent: usize) {
    const WIDTH: usize = 80;
    let start = said.len() - said.trim_start().len();
    let mut width = start;
    text.push_str(&said[..start]);
    let mut is_first = true;
    for word in said.split_whitespace() {
        let long = word.chars().count();
        if !is_first && width + 1 + long > WIDTH {
            let _ = write!(text, "\n{:indent$}", "");
            width = indent;
        } else if !is_first {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += long;
        is_first = false;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::server::Phase;

    #[test]
    fn long_lines_are_broken() {
        let mut text = String::new();
        wrapped(&mut text, &format!("  {}", ["word"; 20].join(" ")), 6);
        let expect = format!(
            "  {}\n      {}\n",
            ["word"; 15].join(" "),
            ["word"; 5].join(" ")
        );
        assert_eq!(text, expect);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    /// Proves CMD-1.
    #[test]
    fn states_are_described() {
        let waiting = |secs: u64| Phase::Waiting {
            until: Instant::now() + Duration::from_millis(secs * 1000 - 300),
            why: "it died".to_owned(),
        };
        assert_eq!(told(&Phase::Connected), "connected");
        assert_eq!(told(&waiting(2)), "restarting in 2 s: it died");
    }
}
