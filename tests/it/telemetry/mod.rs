//! Telemetry: the data that a collector on loopback receives.

#[cfg(feature = "otel")]
mod cases;
#[cfg(feature = "otel")]
mod collector;
#[cfg(feature = "otel")]
mod exit;
#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod otlp;

use crate::rig::{Home, assert_has};

/// Proves OPS-5: a binary without the feature reports an endpoint in one line, and works.
#[cfg(not(feature = "otel"))]
#[test]
fn endpoint_without_the_feature_is_reported() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n[[steps]]\ntext = \"hi\"\n");
    let env = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let by_env = home.zeph(["-p", "go"]).env(env.0, env.1).code(0);
    let set = "telemetry.endpoint=http://127.0.0.1:1";
    let by_config = home.zeph(["-p", "go", "--set", set]).code(0);
    for output in [by_env, by_config] {
        assert_eq!(output.stdout, "hi\n");
        let lines = output.stderr.lines();
        let reported = lines.filter(|line| line.contains("built without telemetry"));
        assert_eq!(reported.count(), 1, "{output}");
        assert_has(&output.stderr, &["--features otel"]);
    }
    let output = home.zeph(["doctor", "--set", set]).code(1);
    assert_has(&output.stdout, &["FAIL  telemetry", "--features otel"]);
    let output = home.zeph(["doctor"]).code(0);
    assert_has(&output.stdout, &["ok    telemetry", "off"]);
}

/// Proves OPS-5: a wrong address in the configuration ends the program, and one in the environment is a warning.
#[test]
fn wrong_address_is_reported() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let set = "telemetry.endpoint=localhost:4318";
    let output = home.zeph(["-p", "go", "--set", set]).code(2);
    assert_has(
        &output.stderr,
        &["telemetry.endpoint", "http://127.0.0.1:4318"],
    );
    let run = home.zeph(["-p", "go"]);
    let output = run
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")
        .code(0);
    assert_has(
        &output.stderr,
        &["warning: no telemetry", "OTEL_EXPORTER_OTLP_ENDPOINT"],
    );
}

/// Proves OPS-5: the values of headers are not printed, and commands do not receive them.
#[test]
fn values_of_headers_are_secrets() {
    let home = Home::new();
    home.config("[telemetry]\nheaders = { authorization = \"Bearer c0LL3ct0r9pAss7Xq\" }\n");
    let output = home.zeph(["config", "show"]).code(0);
    assert_has(&output.stdout, &["authorization"]);
    assert!(!output.stdout.contains("c0LL3ct0r9pAss7Xq"), "{output}");
    let params = r#"{"command": "echo headers: $OTEL_EXPORTER_OTLP_HEADERS"}"#;
    let run = home.zeph(["tools", "call", "bash", params, "--yes"]);
    let run = run.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=t0k3N4cOll3ctOr8z");
    let output = run.code(0);
    assert_has(&output.stdout, &["headers:"]);
    assert!(!output.stdout.contains("t0k3N4cOll3ctOr8z"), "{output}");
}

/// Proves OPS-5: commands receive no variable of the telemetry, unless the user wants it.
#[test]
fn commands_receive_no_variable_of_telemetry() {
    let home = Home::new();
    let seen = |args: &[&str]| {
        let params = r#"{"command": "env | grep -c ^OTEL_"}"#;
        let mut run = home.zeph(["tools", "call", "bash", params, "--yes"]);
        for (name, value) in [
            ("OTEL_SERVICE_NAME", "runner"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=blue"),
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=t0k3N4cOll3ctOr8z"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                "api-key=t0k3N4cOll3ctOr8z",
            ),
        ] {
            run = run.env(name, value);
        }
        run.args(args).run().stdout
    };
    let count = |output: &str| {
        output
            .lines()
            .find_map(|line| line.trim().parse::<u8>().ok())
    };
    assert_eq!(count(&seen(&[])), Some(0));
    let pass = r#"tools.shell.env.pass=["OTEL_SERVICE_*", "OTEL_RESOURCE_*"]"#;
    assert_eq!(count(&seen(&["--set", pass])), Some(2));
}
