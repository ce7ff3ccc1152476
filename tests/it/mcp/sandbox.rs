//! The OS sandbox of server programs.

use std::net::TcpListener;

use serde_json::json;

use super::{Served, tool};
use crate::confinement::{LANDLOCK, without};
use crate::denied_commands::hides;
use crate::rig::assert_has;

fn served(more: &str) -> Served {
    let served = Served {
        home: crate::rig::Home::new(),
    };
    std::fs::create_dir(served.file("")).unwrap();
    std::fs::write(served.file("server.py"), super::SERVER).unwrap();
    served.tools(&[tool("write"), tool("read"), tool("connect"), tool("where")]);
    served.config(
        "",
        &more.replace("SERVER", served.file("").to_str().unwrap()),
    );
    served.approve();
    served
}

/// Proves MCP-1: a program writes its own folder and `writable`, and no other file; Zeph's own data stays unreadable.
#[test]
fn program_writes_only_in_writable_paths() {
    let served = served("writable = [\"SERVER\"]\n");
    let write = |path: &std::path::Path| served.call("write", &json!({ "path": path })).stdout;
    assert_eq!(write(&served.file("new")), "written\n");
    let own = served.home.data().join("zeph/mcp-servers/t");
    assert!(own.is_dir(), "{}", own.display());
    assert_eq!(write(&own.join("state")), "written\n");
    assert!(own.join("state").exists());
    let project = served.home.project().join("new");
    assert_has(&write(&project), &["refused: Permission denied"]);
    let home = served.home.home().join(".profile");
    assert_has(&write(&home), &["refused: Permission denied"]);
    assert!(!project.exists() && !home.exists());
    let seen = served.call("where", &json!({})).stdout;
    assert_has(&seen, &["MCP_SERVER_DIR"]);
}

/// Proves MCP-1, SH-20a: files that `deny_read` names are hidden from a program in the sandbox, its own data is not.
#[test]
fn denied_files_are_hidden_from_a_program() {
    for (more, is_hidden) in [
        ("writable = [\"SERVER\"]\n", true),
        ("sandbox = \"off\"\n", false),
    ] {
        let served = served(more);
        let home = &served.home;
        home.more_config("[tools.file]\ndeny_read = [\"**/.env\"]\n");
        home.write(".env", "PASSWORD\n");
        home.write("sub/.env", "PASSWORD\n");
        home.write("readable", "open\n");
        if !hides(home) {
            return;
        }
        let read = |path: &std::path::Path| served.call("read", &json!({ "path": path })).stdout;
        let project = home.project();
        for denied in [".env", "sub/.env"] {
            let expect = match is_hidden {
                true => "refused: Permission denied\n",
                false => "PASSWORD\n",
            };
            assert_eq!(read(&project.join(denied)), expect, "{more}");
        }
        assert_eq!(read(&project.join("readable")), "open\n");
        let own = home.data().join("zeph/mcp-servers/t/state");
        let written = served.call("write", &json!({ "path": own }));
        assert_eq!(written.stdout, "written\n");
        assert_eq!(read(&own), "x\n");
    }
}

/// Proves MCP-1: `sandbox = "off"` lifts the limits.
#[test]
fn sandbox_can_be_turned_off() {
    let served = served("sandbox = \"off\"\n");
    let project = served.home.project().join("new");
    let output = served.call("write", &json!({ "path": project }));
    assert_eq!(output.stdout, "written\n");
    assert!(project.exists());
}

/// Proves MCP-1, SH-20: a program that runs without its whole sandbox is reported once.
#[test]
fn program_without_its_whole_sandbox_is_reported() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let served = served("");
    let args = ["--yes", "tools", "call", "mcp_t_where", "{}"];
    let output = without(&served.home, LANDLOCK, &args);
    let reports = output
        .stderr
        .matches("run without the complete OS sandbox: t.");
    assert_eq!(reports.count(), 1, "{output}");
    assert_has(&output.stderr, &["it has no Landlock"]);
}

/// Proves MCP-1: `network = false` cuts the network.
#[test]
fn network_is_cut_as_configured() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let open = served("writable = [\"SERVER\"]\n");
    let connect = |served: &Served| served.call("connect", &json!({ "port": port })).stdout;
    assert_eq!(connect(&open), "connected\n");
    let cut = served("writable = [\"SERVER\"]\nnetwork = false\n");
    assert_has(&connect(&cut), &["refused: "]);
}
