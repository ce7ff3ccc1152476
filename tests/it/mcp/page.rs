//! The commands and keys of docs/mcp.md.

use zeph_tools::ToolErrorCategory;

use super::web::Web;
use super::{SERVER, echo};
use crate::rig::{Home, Page, Zeph};

const PAGE: &str = include_str!("../../../docs/mcp.md");

/// Commands that do not run here, and the reason.
const SKIPPED: &[(&str, &str)] = &[
    ("zeph mcp login", "`login.rs` logs in"),
    ("zeph mcp serve", "`mcp_serve` runs it"),
];

/// A reader of the page, with a program and an address as servers.
struct Reader {
    home: Home,
    web: Web,
}

impl Reader {
    fn new() -> Self {
        let home = Home::new();
        std::fs::write(home.tmp().join("server.py"), SERVER).unwrap();
        let tools = serde_json::json!([echo()]).to_string();
        std::fs::write(home.tmp().join("tools.json"), tools).unwrap();
        Self {
            home,
            web: Web::start(|_| None),
        }
    }

    /// A text of the page with the servers of the test.
    fn here(&self, text: &str) -> String {
        let tmp = self.home.tmp();
        let program = format!("python3 {0}/server.py {0}", tmp.display());
        text.replace("npx -y @modelcontextprotocol/server-filesystem .", &program)
            .replace("https://forge.example.org/mcp", &self.web.url())
            .replace("NAME", "files")
            .replace("SERVER", "files")
    }

    /// Runs a command of the page. Returns whether it is one that runs here.
    #[track_caller]
    fn run(&self, line: &str) -> bool {
        if SKIPPED.iter().any(|(start, _)| line.starts_with(start)) {
            return false;
        }
        let mut line = self.here(line);
        // Only a server with an address has a login.
        line = line.replace("zeph mcp logout files", "zeph mcp logout forge");
        if line.starts_with("zeph mcp approve") {
            line.push_str(" --yes");
        }
        let script = format!("zeph() {{ \"$BIN\" \"$@\"; }}; BIN=$0; {line}");
        let output = Zeph::through_bash(&self.home, &script)
            .env("FORGE_TOKEN", "tok-5f1d7c9e2b3a4d6f")
            .run();
        // Without a provider, a check fails.
        let is_expected = output.code == Some(0) || line == "zeph doctor";
        assert!(is_expected, "`{line}`: {output}");
        true
    }
}

/// Proves PKG-5, MCP-1d: the commands of the page succeed in their order.
#[test]
fn commands_of_the_page_about_servers_work() {
    let reader = Reader::new();
    let page = Page::of(PAGE);
    let mut count = 0;
    for (kind, text) in &page.blocks {
        if kind != "console" {
            continue;
        }
        for line in text.lines() {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.split(" #").next().unwrap().trim_end();
            count += usize::from(reader.run(line));
        }
    }
    assert_eq!(count, 6);
    // `get NAME` and the like are commands of `zeph mcp`. A server is removed last.
    let is_server_command = |span: &&String| span.ends_with(" NAME") && !span.contains("zeph ");
    let spans = page.spans.iter();
    let mut lines: Vec<String> = spans
        .clone()
        .filter(|span| span.starts_with("zeph "))
        .cloned()
        .collect();
    let short = spans
        .filter(is_server_command)
        .filter(|it| !it.starts_with('/'));
    lines.extend(short.map(|span| format!("zeph mcp {span}")));
    lines.sort_by_key(|line| line.contains(" remove "));
    let ran = lines.iter().filter(|line| reader.run(line)).count();
    assert!(ran >= 9, "{lines:?}");
    assert!(lines.last().unwrap().ends_with(" remove NAME"), "{lines:?}");
}

/// Proves PKG-5, CFG-2: the keys of the page exist.
#[test]
fn keys_of_the_page_about_servers_exist() {
    let home = Home::new();
    let page = Page::of(PAGE);
    for key in page.keys() {
        home.zeph(["config", "get", &key]).code(0);
    }
    let schema = home.zeph(["config", "schema"]).code(0).stdout.clone();
    let mut count = 0;
    for span in &page.spans {
        let key = span.split(" = ").next().unwrap();
        let is_key = key.contains(['_', '.']) || span.contains(" = ");
        let is_lower = key
            .chars()
            .all(|c| c.is_ascii_lowercase() || "_.".contains(c));
        let is_category = ToolErrorCategory::ALL.iter().any(|it| it.label() == key);
        if !is_key || !is_lower || is_category || key == "_" {
            continue;
        }
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let property = format!("\"{first}\":");
        assert!(
            schema.contains(&property),
            "{span}: the schema has no {first}"
        );
        if !rest.is_empty() {
            let server = "[[mcp.servers]]\nname = \"s\"\nurl = \"http://127.0.0.1:1/mcp\"\n";
            home.config(&format!(
                "{server}{key} = \"https://forge.example.org/x\"\n"
            ));
            home.zeph(["config", "check"]).code(0);
        }
        if span.contains(" = ") {
            let server = "[[mcp.servers]]\nname = \"s\"\ncommand = \"true\"\n";
            home.config(&format!("{server}{span}\n"));
            home.zeph(["config", "check"]).code(0);
        }
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
