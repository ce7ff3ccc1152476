//! `zeph mcp add|get|remove|enable|disable|test`, and `zeph doctor`.

use serde_json::Value;

use super::{Served, echo};
use crate::rig::{Home, assert_has};

fn file(home: &Home) -> String {
    std::fs::read_to_string(home.config_file()).unwrap()
}

/// Proves MCP-1d: servers are added, shown, turned off and on, and removed; the rest of the file stays.
#[test]
fn servers_are_configured_by_commands() {
    let home = Home::new();
    let before = "# mine\n[agent]\nmax_reflections = 2 # few\n";
    home.config(before);
    let added = home
        .zeph([
            "mcp",
            "add",
            "files",
            "--env",
            "LEVEL=warn",
            "--",
            "npx",
            "-y",
            "server",
            "--",
            ".",
        ])
        .code(0);
    assert_has(
        &added.stdout,
        &["added the MCP server files", "zeph mcp approve files"],
    );
    let entry = "\n[[mcp.servers]]\nname = \"files\"\ncommand = \"npx\"\nargs = [\"-y\", \"server\", \"--\", \".\"]\nenv = { LEVEL = \"warn\" }\n";
    assert_eq!(file(&home), format!("{before}{entry}"));
    let again = home.zeph(["mcp", "add", "files", "--", "x"]).code(1);
    assert_has(
        &again.stderr,
        &["\"files\" is configured already", "zeph mcp remove files"],
    );
    let on = home.zeph(["mcp", "list", "--json"]).code(0).json();
    home.zeph(["mcp", "disable", "files"]).code(0);
    assert_has(&file(&home), &["enabled = false\n"]);
    let off = home.zeph(["mcp", "list"]).code(0);
    assert_eq!(
        off.stdout,
        "files: off; `zeph mcp enable files` turns it on\n"
    );
    let off = home.zeph(["mcp", "list", "--json"]).code(0).json();
    assert_eq!(off.as_array().map(Vec::len), Some(1));
    assert_eq!(off[0]["name"], "files");
    assert_eq!(off[0]["state"], "off");
    assert_eq!(off[0]["connected"], false);
    let keys = |listed: &Value| -> Vec<String> {
        listed[0].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&on), keys(&off));
    let off = home.zeph(["mcp", "test", "files"]).code(1);
    assert_has(
        &off.stderr,
        &["files is off; `zeph mcp enable files` turns it on"],
    );
    home.zeph(["mcp", "enable", "files"]).code(0);
    assert_has(&file(&home), &["enabled = true\n"]);
    home.zeph(["mcp", "remove", "files"]).code(0);
    assert_eq!(file(&home), before);
    let gone = home.zeph(["mcp", "remove", "files"]).code(1);
    assert_has(&gone.stderr, &["has no MCP server called \"files\""]);
}

/// Proves MCP-1d: a removed server leaves no approval, no login and no folder.
#[test]
fn removed_server_leaves_no_data() {
    let served = Served::new(&[echo()]);
    let data = served.home.data().join("zeph");
    let folder = data.join("mcp-servers/t");
    assert!(folder.is_dir());
    let approvals = || std::fs::read_dir(data.join("mcp-trust")).unwrap().count();
    assert_eq!(approvals(), 1);
    std::fs::write(folder.join("state"), "x").unwrap();
    served.home.zeph(["mcp", "remove", "t"]).code(0);
    assert!(!folder.exists());
    assert_eq!(approvals(), 0);
    let url = "http://127.0.0.1:1/mcp";
    served.home.zeph(["mcp", "add", "w", "--url", url]).code(0);
    let login = data.join("mcp-tokens").join(format!(
        "{}.json",
        zeph_tools::audit::chain::hex_digest(format!("w\0{url}").as_bytes())
    ));
    std::fs::create_dir_all(login.parent().unwrap()).unwrap();
    std::fs::write(&login, "{}").unwrap();
    served.home.zeph(["mcp", "remove", "w"]).code(0);
    assert!(!login.exists());
}

/// Proves MCP-1d: approvals that cannot be read are reported, and not shown as none.
#[test]
fn unreadable_approvals_are_reported() {
    let served = Served::new(&[echo()]);
    let folder = served.home.data().join("zeph/mcp-trust");
    for entry in std::fs::read_dir(folder).unwrap() {
        std::fs::write(entry.unwrap().path(), "{").unwrap();
    }
    let shown = served.home.zeph(["mcp", "get", "t"]).code(0);
    assert_has(
        &shown.stdout,
        &["cannot be read: it is damaged", "zeph mcp forget t"],
    );
    let shown = served.home.zeph(["mcp", "get", "t", "--json"]).code(0);
    assert_has(&shown.stdout, &["\"approved_tools\": null"]);
}

/// Proves MCP-1d: no command prints a secret.
#[test]
fn settings_are_shown_without_secrets() {
    let home = Home::new();
    home.config("");
    let url = "https://example.org/mcp?key=in-the-url";
    let added = home
        .zeph([
            "mcp",
            "add",
            "forge",
            "--url",
            url,
            "--header",
            "Authorization=Bearer ${TOKEN}",
            "--header",
            "X-Key=k-5f1d7c9e2b3a",
        ])
        .code(0);
    assert_has(
        &added.stderr,
        &["contains the value of X-Key in plain text"],
    );
    for args in [
        &["mcp", "get", "forge"][..],
        &["mcp", "get", "forge", "--json"],
    ] {
        let shown = home
            .zeph(args.iter().copied())
            .env("TOKEN", "t-9a8b7c6d5e4f")
            .code(0)
            .stdout;
        assert_has(&shown, &["Bearer ${TOKEN}", "https://example.org/mcp"]);
        for secret in ["k-5f1d7c9e2b3a", "in-the-url", "t-9a8b7c6d5e4f"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    let bad = home
        .zeph(["mcp", "add", "bad", "--url", "ftp://e.org?key=secret-key"])
        .code(1);
    assert_has(&bad.stderr, &["`url` is not an address"]);
    assert!(!bad.stderr.contains("secret-key"), "{}", bad.stderr);
    home.zeph(["mcp", "add", "none"]).code(2);
    home.zeph(["mcp", "add", "both", "--url", "http://e.org", "--", "x"])
        .code(2);
    home.zeph([
        "mcp",
        "add",
        "odd",
        "--url",
        "http://e.org",
        "--header",
        "x",
    ])
    .code(2);
    home.zeph(["mcp", "add", "a b", "--", "x"]).code(1);
    let near = home.zeph(["mcp", "get", "forg"]).code(1);
    assert_has(&near.stderr, &["did you mean forge?"]);
}

/// Proves MCP-1d: a missing file is made, and a file with errors is not replaced.
#[test]
fn file_with_errors_stays_as_it_is() {
    let home = Home::new();
    let _ = std::fs::remove_file(home.config_file());
    home.zeph(["mcp", "add", "a", "--", "x"]).code(0);
    assert_has(&file(&home), &["name = \"a\""]);
    home.config("[mcp\n");
    home.zeph(["mcp", "add", "b", "--", "x"]).code(2);
    assert_eq!(file(&home), "[mcp\n");
}

/// Proves MCP-1d: `test` connects to one server, and `doctor` to all.
#[test]
fn servers_are_tested() {
    let served = Served::new(&[echo()]);
    served
        .home
        .more_config("[[mcp.servers]]\nname = \"gone\"\ncommand = \"/no/such/program\"\n");
    let output = served.home.zeph(["mcp", "test", "t"]).code(0);
    assert_eq!(output.stdout, "t: connected, 1 tool\n");
    let output = served.home.zeph(["mcp", "test", "gone"]).code(1);
    assert_has(
        &output.stdout,
        &["gone: failed: /no/such/program cannot be started"],
    );
    let output = served.home.zeph(["doctor"]).code(1);
    let line = |name: &str| {
        let lines: Vec<&str> = output
            .stdout
            .lines()
            .filter(|line| line.contains(name))
            .collect();
        lines.join("\n")
    };
    assert_has(
        &line("mcp t "),
        &["ok ", "protocol 2025-11-25, 1 tool approved; OS sandbox on"],
    );
    assert_has(&line("mcp gone"), &["FAIL", "cannot be started"]);
}
