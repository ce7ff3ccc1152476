//! The output filter pipeline: command output is sanitized and filtered by its rule, and the raw text stays
//! available by reference.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, count, execute};

/// The output of `cargo test` for this number of passing tests and one failing test.
fn cargo_test(passing: usize) -> String {
    let mut text = String::from("   Compiling shop v0.1.0 (/home/user/shop)\n");
    text.push_str("    Finished `test` profile [unoptimized] target(s) in 1.00s\n");
    text.push_str("     Running unittests src/lib.rs (target/debug/deps/shop-0a1b)\n\n");
    text.push_str(&format!("running {} tests\n", passing + 1));
    for n in 0..passing {
        text.push_str(&format!(
            "test cart::tests::case_{n} ... \x1b[32mok\x1b[0m\n"
        ));
    }
    text.push_str("test cart::tests::total ... \x1b[31mFAILED\x1b[0m\n\nfailures:\n\n");
    text.push_str("---- cart::tests::total stdout ----\n\n");
    text.push_str("thread 'cart::tests::total' (7) panicked at src/cart.rs:41:9:\n");
    text.push_str("assertion `left == right` failed\n  left: 3\n right: 4\n\n");
    text.push_str("\nfailures:\n    cart::tests::total\n\n");
    text.push_str(&format!(
        "test result: FAILED. {passing} passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n"
    ));
    text.push_str("error: test failed, to rerun pass `--lib`\n");
    text
}

/// A project with a `cargo` that prints `text` and exits with `code`.
fn project(text: &str, code: i32) -> Home {
    let home = Home::new();
    home.write("printed", text);
    home.write("bin/cargo", &format!("cat printed\nexit {code}\n"));
    home
}

/// The command line that runs this `cargo`.
const CARGO: &str = "chmod +x bin/cargo; export PATH=\"$PWD/bin:$PATH\"; cargo test 2>&1";

fn call(home: &Home, tool: &str, params: &Value) -> Value {
    let params = params.to_string();
    let args = ["tools", "call", tool, &params, "--json", "--yes"];
    home.zeph(args).args(["--session", "s"]).run().json()
}

fn bash(home: &Home, command: &str) -> Value {
    call(home, "bash", &json!({ "command": command }))
}

fn data(form: &Value) -> &str {
    form["data"].as_str().unwrap()
}

#[track_caller]
fn reference(text: &str) -> String {
    let start = text.find("overflow:").unwrap_or_else(|| panic!("{text}"));
    text[start..start + "overflow:".len() + 36].to_owned()
}

/// Proves OUT-1, SH-5.
#[test]
fn model_reads_the_text_of_a_terminal() {
    let home = Home::new();
    let check = |command: &str, expect: &str| assert_eq!(data(&bash(&home, command)), expect);
    check(
        r"printf '\033[31mred\033[0m \033]8;;http://x\033\\link\033]8;;\033\\\n'",
        "red link",
    );
    check(r"printf 'a\r\nb\r\n'", "a\nb");
    check(r"printf 'a\n\n\n\nb\n'", "a\n\nb");
    check(r"printf 'bo\bold\n'", "bold");
    check(r"printf '\377a\000b\n'", "\u{fffd}ab");
    check(r"printf '\033]0;t\007'", "(no output)");
    // The JSON result has the raw output.
    let form = bash(&home, r"printf '\033[1mx\033[0m\n'");
    assert_eq!(form["raw_response"]["stdout"], "\u{1b}[1mx\u{1b}[0m\n");
    assert_eq!(count(&home.database(), "tool_overflow"), 0);
}

/// Proves OUT-1, OUT-31.
#[test]
fn progress_bar_is_reduced_to_its_last_state_and_stored_whole() {
    let home = Home::new();
    let form = bash(
        &home,
        r"for n in 1 2 3; do printf '%s0%%\r' $n; done; echo; echo done",
    );
    let text = data(&form);
    let (first, notice) = text.split_once("\n[").unwrap();
    assert_eq!(first, "30%\ndone");
    assert_has(
        notice,
        &["text omitted; read_overflow id=overflow:", "lines=1-2]"],
    );
    let whole = home.zeph(["overflow", "get", &reference(text)]).code(0);
    assert_eq!(whole.stdout, "10%\r20%\r30%\r\ndone\n");
}

/// Proves OUT-2, OUT-8, OUT-31.
#[test]
fn rule_omits_noise_and_stores_the_raw_text() {
    let printed = cargo_test(300);
    let home = project(&printed, 101);
    let form = bash(&home, CARGO);
    let text = data(&form);
    assert_has(
        text,
        &[
            "cart::tests::total",
            "src/cart.rs:41:9",
            "  left: 3",
            "test result: FAILED. 300 passed; 1 failed;",
            "lines omitted; read_overflow id=overflow:",
            "\n[exit code: 101]",
        ],
    );
    assert!(!text.contains("case_17") && !text.contains('\u{1b}'));
    assert!(text.len() * 5 < printed.len(), "{text}");
    let filter = &form["filter"];
    assert_eq!(filter["rule"], "cargo-test");
    assert!(filter["confidence"].is_string());
    assert!(filter["lines_before"].as_u64().unwrap() > 300);
    assert!(filter["lines_after"].as_u64().unwrap() < 40);
    assert_eq!(form["raw_response"]["exit_code"], 101);
    assert_eq!(form["raw_response"]["stdout"], printed);
    // The lines that the notice names are stored.
    let id = reference(text);
    let lines = text.split("lines=").nth(1).unwrap();
    let (first, last) = lines.split(']').next().unwrap().split_once('-').unwrap();
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
    let params = json!({"id": id, "offset": first, "limit": last - first + 1});
    let read = call(&home, "read_overflow", &params);
    assert_has(data(&read), &["case_17 ...", "case_299 ..."]);
    let whole = home.zeph(["overflow", "get", &id]).code(0);
    assert_eq!(whole.stdout, printed);
    // Equal input results in equal bytes.
    let again = bash(&home, CARGO);
    assert_eq!(
        data(&again).replace(&reference(data(&again)), ""),
        text.replace(&id, "")
    );
}

/// Proves OUT-9.
#[test]
fn savings_are_shown_to_the_user() {
    let home = project(&cargo_test(339), 101);
    let params = json!({ "command": CARGO }).to_string();
    let args = ["tools", "call", "bash", &params, "--yes"];
    let reported = home.zeph(args).run().stderr;
    let line = reported
        .lines()
        .find(|line| line.starts_with("[shell] "))
        .unwrap();
    assert_has(line, &[" lines -> ", "% filtered"]);
    let args = ["tools", "call", "bash", r#"{"command":"seq 3"}"#, "--yes"];
    assert!(!home.zeph(args).run().stderr.contains("[shell]"));
}

/// Proves OUT-8, OUT-31: in a conversation.
#[test]
fn model_reads_the_filtered_text_and_then_the_raw_text() {
    let server = OpenAi::start(|n, request| {
        let last = request.messages().pop().unwrap();
        match n {
            0 => Reply::calls("a", &[("bash", json!({ "command": CARGO }))]),
            1 => {
                let id = reference(last["content"].as_str().unwrap());
                let params = json!({"id": id, "pattern": "case_123 "});
                Reply::calls("b", &[("read_overflow", params)])
            }
            _ => Reply::text("Found."),
        }
    });
    let home = Home::openai(&server);
    home.write("printed", &cargo_test(300));
    home.write("bin/cargo", "cat printed\nexit 101\n");
    let output = home
        .zeph(["-p", "test", "--yes", "--output-format", "stream-json"])
        .code(0);
    let messages = server.last().messages();
    let texts: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert!(!texts[0].contains("case_123") && texts[0].contains("src/cart.rs:41:9"));
    assert!(texts[1].contains("case_123"));
    let lines = output.json_lines();
    let finished = lines.iter().find(|line| line["type"] == "tool_finished");
    let filter = &finished.unwrap()["filter"];
    assert_eq!(filter["rule"], "cargo-test");
    assert!(filter["bytes_after"].as_u64() < filter["bytes_before"].as_u64());
}

/// Proves OUT-9: all printed lines are counted, also those that are not shown live.
#[test]
fn every_printed_line_is_counted() {
    let check = |command: &str, expect: &str| {
        let command = command.to_owned();
        let server = OpenAi::start(move |n, _| match n {
            0 => Reply::calls("a", &[("bash", json!({ "command": command }))]),
            _ => Reply::text("Done."),
        });
        let home = Home::openai(&server);
        let output = home.zeph(["-p", "count", "--yes"]).code(0);
        assert_has(&output.stderr, &[expect]);
    };
    check("seq 1", "⎿ 1\n");
    check("seq 100", "⎿ 100 lines\n");
    check("seq 100000", "⎿ 100000 lines");
    check("seq 300000 >&2", "⎿ 300000 lines");
    check("yes word | head -n 500000", "⎿ 500000 lines");
}

/// Proves OUT-3: rules of the user and the master switch.
#[test]
fn user_rules_apply_and_the_switch_disables_all() {
    let home = project(&cargo_test(300), 101);
    let rules = "[[rules]]\nname = \"mine\"\nmatch = { prefix = \"report\" }\n\
        strategy = { type = \"strip_noise\", patterns = [\"^noise\"] }\n\
        [[rules]]\nname = \"broken\"\nmatch = { regex = \"(\" }\nstrategy = { type = \"dedup\" }\n";
    std::fs::write(home.config_file().with_file_name("filters.toml"), rules).unwrap();
    home.write("report", "yes noise | head -200\necho fact\n");
    let command = "chmod +x report; ./report";
    let params = json!({ "command": command }).to_string();
    let output = home
        .zeph(["tools", "call", "bash", &params, "--json", "--yes"])
        .code(0);
    assert_has(data(&output.json()), &["fact\n[200 of 201 lines omitted; "]);
    assert_has(&output.stderr, &["warning: ", "broken"]);
    home.more_config("[tools.filters]\nenabled = false\n");
    let form = bash(&home, CARGO);
    assert_has(data(&form), &["case_17 ... ok", "src/cart.rs:41:9"]);
    assert_eq!(form["filter"], Value::Null);
}

/// Proves OUT-34.
#[test]
fn failing_store_does_not_fail_a_filtered_call() {
    let home = project(&cargo_test(300), 0);
    bash(&home, "true");
    execute(
        &home.database(),
        "CREATE TRIGGER broken BEFORE INSERT ON tool_overflow
         BEGIN SELECT RAISE(ABORT, 'out of order'); END",
    );
    let form = bash(&home, CARGO);
    assert_eq!(form["success"], true);
    assert_has(
        data(&form),
        &[
            "src/cart.rs:41:9",
            "lines omitted; they could not be stored and are lost]",
        ],
    );
}

/// Proves OUT-1: regardless of the cause of the end.
#[test]
fn output_before_the_stop_of_a_command_is_returned() {
    let home = Home::new();
    let form = bash(&home, r"printf '\033[31mred\033[0m\n'; kill -9 $$");
    assert_has(data(&form), &["red\n[exit code: 137] (killed by SIGKILL)"]);
    let params = json!({"command": r"printf '\033[31mred\033[0m\n'; sleep 30", "timeout_secs": 1});
    let form = call(&home, "bash", &params);
    assert_eq!(form["error_category"], "timeout");
    assert!(data(&form).contains("red") && !data(&form).contains('\u{1b}'));
}

/// Proves OUT-1, OUT-11: floods of escapes, and endless lines.
#[test]
fn floods_are_filtered_in_bounded_time() {
    let home = Home::new();
    let escapes = bash(&home, r"yes $'\033[31mx\033[0m\r' | head -c 4000000");
    assert_eq!(escapes["success"], true);
    assert!(!data(&escapes).contains('\u{1b}'));
    assert!(data(&escapes).chars().count() <= 50_000);
    let line = bash(&home, "head -c 5000000 /dev/zero | tr '\\0' x");
    assert!(data(&line).chars().count() <= 50_000);
    assert_has(data(&line), &["overflow:"]);
}

/// Proves OUT-1: a job's output.
#[test]
fn job_output_is_sanitized() {
    let home = Home::scripted("");
    home.write(
        "calls.jsonl",
        concat!(
            r#"{"tool":"bash","params":{"command":"printf '\\033[31mred\\033[0m\\n'","background":true}}"#,
            "\n",
            r#"{"tool":"job_output","params":{"job_id":"job-1"}}"#,
            "\n"
        ),
    );
    let output = home.zeph(["tools", "run", "calls.jsonl", "--yes"]).run();
    let lines = output.json_lines();
    let reported = lines.last().unwrap()["data"].as_str().unwrap();
    assert!(reported.starts_with("red\n["), "{reported:?}");
}
