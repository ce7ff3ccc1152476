//! The operating system sandbox around commands, at each entry point. If the kernel does not support it,
//! these tests print a message and check nothing.

use serde_json::json;

use crate::rig::{Home, assert_has};
use crate::tools_call::call;

/// The line of `zeph doctor` about the sandbox.
fn sandbox_line(home: &Home) -> String {
    let checks = home.zeph(["doctor", "--json"]).run().json();
    let checks = checks.as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == "sandbox");
    let found = found.expect("doctor has a line for the sandbox");
    format!("{}: {}", found["verdict"], found["detail"])
}

pub(crate) fn enforced() -> bool {
    let line = sandbox_line(&Home::new());
    let enforced = line.starts_with("\"ok\"");
    if !enforced {
        eprintln!("skipped: {line}");
    }
    enforced
}

/// A command that writes outside the project, and one that writes in it.
fn tries(home: &Home) -> (String, String) {
    let outside = home.home().join("written");
    (
        format!("echo x > {}", outside.display()),
        "echo x > inside; echo x > \"$TMPDIR/inside\"".to_owned(),
    )
}

fn wrote_outside(home: &Home) -> bool {
    home.home().join("written").exists()
}

/// Proves SH-20, SH-21.
#[test]
fn command_writes_only_in_the_project() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    let (outside, inside) = tries(&home);
    let form = call(&home, "bash", &json!({ "command": outside }));
    assert_eq!(form["error_category"], "policy_blocked", "{form:#}");
    assert_has(
        form["error_message"].as_str().unwrap(),
        &[
            &home.home().join("written").display().to_string(),
            &home.project().display().to_string(),
            "[tools.shell.sandbox] writable",
        ],
    );
    assert!(!wrote_outside(&home));
    let form = call(&home, "bash", &json!({ "command": inside }));
    assert_eq!(form["success"], true, "{form:#}");
    assert!(home.has("inside"));
}

/// Proves SH-20, SH-21: the model reads the reason, and the conversation continues.
#[test]
fn refused_write_is_reported_to_the_model() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    let (outside, _) = tries(&home);
    home.scenario(&format!(
        "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {outside:?} }} }}]\n\
         [[steps]]\nexpect = {{ tool_result_contains = \"policy_blocked\" }}\ntext = \"it was refused\"\n"
    ));
    let output = home
        .zeph(["-p", "write", "--yes", "--output-format", "stream-json"])
        .code(0);
    assert_has(
        &output.stdout,
        &[
            "policy_blocked",
            "[tools.shell.sandbox] writable",
            "it was refused",
        ],
    );
    assert!(!wrote_outside(&home), "{output}");
}

/// Proves SH-20: the user extends the sandbox or disables it; a project does neither.
#[test]
fn sandbox_is_configured_only_by_the_user() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    let (outside, _) = tries(&home);
    let params = json!({ "command": outside });
    home.write(
        ".zeph/config.toml",
        "[tools.shell.sandbox]\nmode = \"off\"\n",
    );
    let text = params.to_string();
    home.zeph(["tools", "call", "bash", &text, "--yes"])
        .code(2)
        .says(&["tools.shell.sandbox.mode", "looser"]);
    home.write(
        ".zeph/config.toml",
        "[tools.shell.sandbox]\nwritable = [\"~\"]\n",
    );
    home.zeph(["tools", "call", "bash", &text, "--yes"])
        .code(2)
        .says(&["tools.shell.sandbox.writable", "may not set it"]);
    assert!(!wrote_outside(&home));

    home.write(
        ".zeph/config.toml",
        "[tools.shell.sandbox]\nmode = \"required\"\n",
    );
    home.config("[tools.shell.sandbox]\nwritable = [\"~\"]\n");
    let form = call(&home, "bash", &params);
    assert_eq!(form["success"], true, "{form:#}");
    assert!(wrote_outside(&home));

    let home = Home::new();
    home.config("[tools.shell.sandbox]\nmode = \"off\"\n");
    let (outside, _) = tries(&home);
    let form = call(&home, "bash", &json!({ "command": outside }));
    assert_eq!(form["success"], true, "{form:#}");
    assert!(wrote_outside(&home));
    assert_has(
        &sandbox_line(&home),
        &["warning", "commands run without an OS sandbox"],
    );
}

/// Proves SH-14, SH-20: a script has no network, although the blocklist cannot inspect it.
#[test]
fn script_has_no_network_if_disabled() {
    if !enforced() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let home = Home::new();
    home.write(
        "script",
        &format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected\n"),
    );
    let params = json!({ "command": "bash script" });
    let form = call(&home, "bash", &params);
    assert_eq!(form["data"], "connected", "{form:#}");
    assert!(listener.accept().is_ok());

    home.config("[tools.shell]\nallow_network = false\n");
    let form = call(&home, "bash", &params);
    assert_eq!(form["error_category"], "policy_blocked", "{form:#}");
    assert_has(
        form["error_message"].as_str().unwrap(),
        &["network access", "allow_network"],
    );
    assert!(listener.accept().is_err(), "something connected");
    assert_has(&sandbox_line(&home), &["ok", "seccomp blocks the network"]);
}
