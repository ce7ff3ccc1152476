//! The time limits of commands.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, assert_has, results_of};

/// A project with a program `gradlew` that runs `seconds`.
fn home(config: &str, seconds: u32) -> Home {
    let home = Home::scripted("[[steps]]\ntext = \"unused\"\n");
    home.more_config(config);
    let script = format!("#!/bin/sh\necho building\nsleep {seconds}\necho built\n");
    home.write("gradlew", &script);
    home
}

fn run(home: &Home, params: &serde_json::Value, code: i32) -> serde_json::Value {
    let params = params.to_string();
    let args = ["tools", "call", "bash", &params, "--yes", "--json"];
    home.zeph(args).code(code).json()
}

/// Proves D-36, SH-3: `timeout` does not end a command that builds, at any depth. It ends all others.
#[test]
fn build_has_the_longer_limit() {
    let home = home("[tools.shell]\ntimeout = 1\n", 2);
    let build = "chmod +x gradlew && (./gradlew build | tail -1)";
    let form = run(&home, &json!({ "command": build }), 0);
    assert_has(form["data"].as_str().unwrap(), &["built"]);

    let form = run(&home, &json!({ "command": "echo begun; sleep 60" }), 1);
    assert_eq!(form["error_category"], "timeout");
    let message = [
        "ran longer than 1 s (`[tools.shell] timeout`)",
        "set `timeout_secs`, up to 600",
        "begun",
    ];
    assert_has(form["data"].as_str().unwrap(), &message);
}

/// Proves D-36, SH-3: `timeout_secs` of the call and `max_timeout` apply to every command.
#[test]
fn call_and_maximum_apply_to_builds() {
    let home = home("[tools.shell]\nmax_timeout = 2\n", 60);
    let build = "chmod +x gradlew; ./gradlew build";
    let form = run(&home, &json!({ "command": build, "timeout_secs": 1 }), 1);
    assert_eq!(form["error_category"], "timeout");
    let text = form["data"].as_str().unwrap();
    assert_has(
        text,
        &["ran longer than 1 s (its `timeout_secs`)", "building"],
    );

    let form = run(&home, &json!({ "command": build }), 1);
    assert_eq!(form["error_category"], "timeout");
    let message = [
        "ran longer than 2 s (the limit for builds, tests, installs and downloads)",
        "`[tools.shell] max_timeout`",
    ];
    assert_has(form["data"].as_str().unwrap(), &message);
    home.wait_until_alone();
}

/// Proves D-36: the schema states the configured limits to the model, and the model reads which limit applied.
#[test]
fn model_reads_the_limits() {
    let server = OpenAi::replies([
        Reply::calls("1", &[("bash", json!({ "command": "sleep 60" }))]),
        Reply::text("Understood."),
    ]);
    let home = Home::openai(&server);
    home.more_config("[tools.shell]\ntimeout = 1\nmax_timeout = 900\n");
    home.zeph(["--yes", "-p", "wait"]).code(0);
    let requests = server.requests();
    let request = requests[0].json();
    let tools = request["tools"].as_array().unwrap();
    let bash = tools.iter().find(|tool| tool["function"]["name"] == "bash");
    assert_eq!(
        bash.unwrap()["function"]["parameters"]["properties"]["timeout_secs"]["description"],
        "default 1, builds and downloads 600, max 900"
    );
    let results = results_of(&requests[1].messages());
    assert_has(
        &results[0].1,
        &["category: timeout", "set `timeout_secs`, up to 900"],
    );
    let shown = home.zeph(["tools", "show", "bash"]).code(0).stdout;
    assert_has(&shown, &["default 1, builds and downloads 600"]);
}
