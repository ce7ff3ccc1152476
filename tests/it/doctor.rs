//! `zeph doctor`: exit code 1 if a check fails, with text that helps.

use crate::rig::{Home, OpenAi, assert_has, openai_config};

/// Proves CFG-5, CLI-2.
#[test]
fn healthy_setup_has_no_failed_check() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    let output = home.zeph(["doctor"]).code(0);
    let names = ["configuration", "database", "tools", "shell", "provider"];
    for name in names {
        let line = output.stdout.lines().find(|line| line.contains(name));
        assert!(
            line.is_some_and(|line| line.starts_with("ok")),
            "{name}: {output}"
        );
    }
    assert_has(
        &output.stdout,
        &[
            "known → blocklist → anomaly → permission",
            "test-model",
            &server.url(),
        ],
    );
    // It reports the enforcement that this machine supports.
    let sandbox = output.stdout.lines().find(|line| line.contains("sandbox "));
    assert!(
        sandbox.is_some_and(|line| line.contains("Landlock")),
        "{output}"
    );
    assert_eq!(server.requests().len(), 0, "it asks no model");

    let checks = home.zeph(["doctor", "--json"]).code(0).json();
    let verdicts: Vec<_> = checks
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["verdict"].as_str().unwrap())
        .collect();
    assert!(
        verdicts.contains(&"ok") && !verdicts.contains(&"failed"),
        "{checks:#}"
    );
}

/// Proves CFG-5.
#[test]
fn failed_check_ends_with_exit_code_1() {
    let check = |prepare: &dyn Fn(&Home), words: &[&str]| {
        let home = Home::new();
        prepare(&home);
        let output = home.zeph(["doctor"]).code(1);
        let failed: Vec<_> = output
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("FAIL"))
            .collect();
        assert_has(&failed.join("\n"), words);
    };
    check(&|_| {}, &["provider", "zeph login"]);
    check(
        &|home| home.config("[agnet]\n"),
        &["configuration", "agnet", "agent"],
    );
    let gone = OpenAi::replies([]).url();
    check(
        &|home| home.config(&openai_config(&gone)),
        &["provider", &gone, "check that the server is running"],
    );
    check(
        &|home| home.scenario("steps = 5"),
        &["provider", "scenario"],
    );
    check(
        &|home| std::fs::write(home.data().join("zeph"), "").unwrap(),
        &["database", "zeph.db"],
    );
}

/// Proves CFG-5: if a proxy applies to the provider, the check connects to the proxy.
#[test]
fn provider_is_reached_through_its_proxy() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let home = Home::new();
    home.config(&openai_config("https://models.invalid/v1"));
    let doctor = || home.zeph(["doctor"]).env("HTTPS_PROXY", &proxy);
    doctor().code(0).prints(&["https://models.invalid/v1"]);
    let direct = doctor().env("NO_PROXY", "models.invalid").code(1);
    direct.prints(&["https://models.invalid/v1 cannot be reached"]);
    drop(listener);
    doctor().code(1).prints(&["the proxy 127.0.0.1:"]);
}

/// Proves CFG-5: it works without a shell and without a home directory.
#[test]
fn missing_shell_and_home_are_failed_checks() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    let output = home.zeph(["doctor"]).env("PATH", "/nowhere").code(1);
    assert_has(&output.stdout, &["FAIL  shell", "neither bash nor sh"]);
    let output = home
        .zeph(["doctor"])
        .env("HOME", "")
        .env("XDG_DATA_HOME", "")
        .code(1);
    assert_has(&output.stdout, &["FAIL  configuration", "HOME"]);
}

/// Proves CFG-5: the report has versions, set keys and checks, and neither keys nor the name of the home directory.
#[test]
fn report_is_complete_and_without_secrets() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    let password = ["hunter2", "-k8Q!x"].concat();
    let output = home
        .zeph(["doctor", "--report"])
        .env("OPENAI_API_KEY", "q7Zr-a-secret-key-41")
        .env("LANG", &format!("DB_PASSWORD={password}"))
        .code(0);
    assert_has(
        &output.stdout,
        &[
            concat!("version: ", env!("CARGO_PKG_VERSION")),
            "system: ",
            "features: syntax, tui",
            "llm.providers",
            "# from ",
            "ok    database",
            "~/",
        ],
    );
    let place = home.home().display().to_string();
    for secret in ["q7Zr-a-secret", "hunter2", &place] {
        assert!(!output.stdout.contains(secret), "{secret}: {output}");
    }
}

/// Proves OUT-21: with an invalid configuration, no value of a secret variable is in the output or in the log.
#[test]
fn secret_in_an_invalid_configuration_is_withheld() {
    const SECRET: &str = "Xq7Lm2Vz9Rt4Wc6B";
    let home = Home::new();
    for args in [
        &["doctor"] as &[&str],
        &["doctor", "--json"],
        &["doctor", "--report"],
    ] {
        let run = home.zeph(args.iter().copied()).env("DB_PASSWORD", SECRET);
        let output = run.env("ZEPH_TOOLS_MODE", SECRET).code(1);
        assert_has(&output.stdout, &["ZEPH_TOOLS_MODE"]);
        let shown = output.stdout + &output.stderr;
        assert!(!shown.contains(SECRET), "{args:?}: {shown}");
    }
}
