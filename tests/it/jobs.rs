//! Background jobs through `zeph tools run` and in a conversation.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Reply, Zeph, assert_has, audit, is_running, results_of, unique_seconds, wait_for,
};

/// A command that prints, waits for the file `go`, prints again and ends.
const WAITS: &str = "echo early; until [ -e go ]; do sleep 0.02; done; echo late; echo bad >&2";

fn line(tool: &str, params: &Value) -> String {
    json!({ "tool": tool, "params": params }).to_string()
}

fn background(command: &str) -> String {
    line("bash", &json!({ "command": command, "background": true }))
}

fn of_job(tool: &str, id: &str) -> String {
    line(tool, &json!({ "job_id": id }))
}

/// Runs these lines with `--yes` and returns their results.
#[track_caller]
fn script(home: &Home, lines: &[String]) -> Vec<Value> {
    let run = home.zeph(["tools", "run", "--yes"]).stdin(lines.join("\n"));
    let forms = run.code(0).json_lines();
    assert_eq!(forms.len(), lines.len(), "{forms:#?}");
    forms
}

fn data(form: &Value) -> &str {
    form["data"].as_str().unwrap()
}

/// Proves SH-40, SH-5: the id is returned immediately, new output once, and the envelope at the end, as in
/// the audit entry.
#[test]
fn job_lives_between_calls_and_reports_its_output() {
    let home = Home::new();
    let forms = script(
        &home,
        &[
            background(&format!("{WAITS}; exit 3")),
            of_job("job_output", "job-1"),
            line("job_list", &json!({})),
            line("write", &json!({ "path": "go", "content": "" })),
            of_job("job_output", "job-1"),
            of_job("job_output", "job-1"),
            line("job_list", &json!({})),
        ],
    );
    assert!(
        forms.iter().all(|form| form["success"] == true),
        "{forms:#?}"
    );
    assert_has(data(&forms[0]), &["job-1", "job_output", "job_kill"]);
    assert_eq!(forms[0]["raw_response"]["job_id"], "job-1");
    let took = &forms[0]["metadata"]["execution_time_ms"];
    assert!(took.as_u64().unwrap() < 1000, "{took}");

    assert_has(data(&forms[1]), &["early\n", "job-1 still runs"]);
    assert_eq!(forms[1]["raw_response"]["state"], "running");
    assert_has(data(&forms[2]), &["job-1 [runs", "echo early"]);
    assert_eq!(forms[2]["raw_response"]["jobs"][0]["state"], "running");

    assert_has(
        data(&forms[4]),
        &["late\n", "bad\n", "[exit code: 3]", "ended"],
    );
    assert!(!data(&forms[4]).contains("early"), "{}", forms[4]);
    let envelope = &forms[4]["raw_response"];
    assert_eq!(
        (&envelope["stdout"], &envelope["stderr"]),
        (&json!("late\n"), &json!("bad\n")),
        "{envelope}"
    );
    assert_eq!(envelope["exit_code"], 3);
    assert_eq!(envelope["signal"], Value::Null);
    assert_eq!(envelope["truncated"], false);
    assert!(!data(&forms[5]).contains("late"), "{}", forms[5]);
    assert_has(data(&forms[5]), &["[exit code: 3]"]);
    let listed = &forms[6]["raw_response"]["jobs"][0];
    assert_eq!(
        (&listed["state"], &listed["exit_code"]),
        (&json!("exited"), &json!(3))
    );

    let entries = audit(&home.database());
    let entries_made: Vec<_> = entries
        .iter()
        .map(|entry| (entry.tool.as_str(), entry.exit_code))
        .collect();
    let expect = [
        ("bash", Some(0)),
        ("job_output", None),
        ("job_list", None),
        ("write", None),
        ("job_output", Some(3)),
        ("job_output", Some(3)),
        ("job_list", None),
    ];
    assert_eq!(entries_made, expect);
    assert_eq!(entries[0].call["background"], true);
}

/// Proves SH-3a, SH-40: processes that a command leaves running become a job, with their later output and
/// end.
#[test]
fn remaining_process_of_a_command_becomes_a_job() {
    let home = Home::new();
    let seconds = unique_seconds();
    let forms = script(
        &home,
        &[
            line(
                "bash",
                &json!({ "command": format!("({WAITS}) & echo started") }),
            ),
            of_job("job_output", "job-1"),
            line("job_list", &json!({})),
            line("write", &json!({ "path": "go", "content": "" })),
            of_job("job_output", "job-1"),
            line(
                "bash",
                &json!({ "command": format!("sleep {seconds} & echo again") }),
            ),
            of_job("job_kill", "job-2"),
            line("job_list", &json!({})),
        ],
    );
    assert_has(
        data(&forms[0]),
        &["started", "a background process still runs", "it is job-1"],
    );
    assert_eq!(forms[0]["raw_response"]["exit_code"], 0);
    assert_has(data(&forms[1]), &["job-1 still runs"]);
    let seen = format!("{}{}", data(&forms[0]), data(&forms[1]));
    assert_has(&seen, &["early"]);
    assert_has(data(&forms[2]), &["job-1 [runs", "bash (pid"]);
    assert_has(data(&forms[4]), &["late\n", "bad\n", "[job-1 ended"]);
    assert_has(data(&forms[5]), &["again", "sleep (pid", "it is job-2"]);
    assert_has(data(&forms[6]), &["job-2 was stopped by job_kill"]);
    let jobs = &forms[7]["raw_response"]["jobs"];
    assert_eq!(
        (&jobs[0]["state"], &jobs[1]["state"]),
        (&json!("exited"), &json!("killed"))
    );
    assert!(!is_running(&seconds));
}

/// Proves SH-40: SIGTERM, two seconds, SIGKILL for all processes; the last output is returned.
#[test]
fn kill_ends_the_process_tree() {
    let home = Home::new();
    let (stubborn, stray) = (unique_seconds(), unique_seconds());
    let command = format!(
        "trap 'echo got TERM' TERM; setsid sleep {stray} & touch begun; \
         while :; do sleep {stubborn}; done"
    );
    let mut lines = vec![background(&command)];
    lines.push(of_job("job_output", "job-1"));
    lines.push(of_job("job_kill", "job-1"));
    lines.push(of_job("job_kill", "job-1"));
    let start = Instant::now();
    let forms = script(&home, &lines);
    assert!(start.elapsed() < Duration::from_secs(15));
    assert!(home.has("begun"));
    let output = data(&forms[2]);
    assert_has(
        output,
        &[
            "got TERM",
            "[exit code: 137] (killed by SIGKILL)",
            "job_kill",
        ],
    );
    assert_eq!(forms[2]["raw_response"]["exit_code"], 137);
    assert_eq!(forms[2]["success"], true);
    assert_has(data(&forms[3]), &["was stopped by job_kill"]);
    assert!(!is_running(&stubborn) && !is_running(&stray));
    let entries = audit(&home.database());
    let kill = &entries[2];
    assert_eq!(
        (kill.tool.as_str(), kill.exit_code),
        ("job_kill", Some(137))
    );
}

/// Proves SH-40: at most sixteen jobs run; an ended job frees its slot.
#[test]
fn number_of_jobs_is_bounded() {
    let home = Home::new();
    let seconds = unique_seconds();
    let command = format!("sleep {seconds}");
    let mut lines = vec![background(&command); 17];
    lines.push(of_job("job_kill", "job-3"));
    lines.push(background(&command));
    lines.extend(vec![background("true"); 2]);
    let forms = script(&home, &lines);
    assert!(forms[..16].iter().all(|form| form["success"] == true));
    let refused = &forms[16];
    assert_eq!(refused["success"], false);
    assert_has(
        refused["error_message"].as_str().unwrap(),
        &["16", "job-1 (sleep", "job-16 (sleep", "job_kill"],
    );
    assert_eq!(
        forms[18]["raw_response"]["job_id"], "job-17",
        "{}",
        forms[18]
    );
    assert_eq!(forms[19]["success"], false);
    wait_for("the end of all jobs", || {
        (!is_running(&seconds)).then_some(())
    });
}

/// Proves SH-40: the last ended jobs stay listed, and the number of remaining processes is limited.
#[test]
fn job_list_is_bounded() {
    let home = Home::new();
    let mut lines = Vec::new();
    for at in 1..=40 {
        lines.push(background("true"));
        lines.push(of_job("job_output", &format!("job-{at}")));
    }
    lines.push(line("job_list", &json!({})));
    lines.push(of_job("job_output", "job-1"));
    let forms = script(&home, &lines);
    let jobs = forms[80]["raw_response"]["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 32);
    assert_eq!(jobs[31]["job_id"], "job-40");
    assert_has(data(&forms[81]), &["no job \"job-1\"", "job-40 (true)"]);

    let seconds = unique_seconds();
    let leave = line("bash", &json!({ "command": format!("sleep {seconds} &") }));
    let mut lines = vec![leave; 33];
    lines.push(line("job_list", &json!({})));
    let forms = script(&home, &lines);
    assert_has(data(&forms[31]), &["it is job-32"]);
    assert_has(data(&forms[32]), &["was stopped", "too many jobs"]);
    let jobs = forms[33]["raw_response"]["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 32);
}

/// Proves SH-40: the error for an unknown id lists the known ids.
#[test]
fn unknown_job_is_an_error_with_the_known_ids() {
    let home = Home::new();
    let forms = script(
        &home,
        &[
            of_job("job_output", "job-1"),
            background("echo hi"),
            of_job("job_output", "job-9"),
            of_job("job_kill", "job-9"),
            line("job_output", &json!({})),
        ],
    );
    assert_has(data(&forms[0]), &["unknown job \"job-1\""]);
    assert_eq!(forms[0]["error_type"], "not_found");
    assert_has(data(&forms[2]), &["job-9", "job-1 (echo hi)"]);
    assert_has(data(&forms[3]), &["job-9", "job-1 (echo hi)"]);
    assert_eq!(forms[4]["error_category"], "invalid_parameters");
}

/// Proves SH-40, SH-3: a job has no time limit unless the call sets one, which applies to the whole job.
#[test]
fn time_limit_applies_to_a_whole_job() {
    let home = Home::new();
    home.more_config("[tools.shell]\ntimeout = 1\nmax_timeout = 5\n");
    let (limited, left) = (unique_seconds(), unique_seconds());
    let bounded = |command: String| {
        line(
            "bash",
            &json!({ "command": command, "background": true, "timeout_secs": 1 }),
        )
    };
    let forms = script(
        &home,
        &[
            background("until [ -e go ]; do sleep 0.05; done; echo free"),
            bounded(format!("echo begin; sleep {limited}")),
            bounded(format!("sleep {left} & exit 7")),
            of_job("job_output", "job-2"),
            of_job("job_output", "job-2"),
            of_job("job_output", "job-3"),
            line("write", &json!({ "path": "go", "content": "" })),
            of_job("job_output", "job-1"),
            line(
                "bash",
                &json!({ "command": "true", "background": true, "timeout_secs": 6 }),
            ),
        ],
    );
    assert_has(data(&forms[3]), &["begin"]);
    let last = &forms[4];
    assert_eq!(last["error_category"], "timeout", "{last}");
    assert_has(data(last), &["job-2", "1 s", "exceeded its time limit"]);
    assert_has(data(&forms[5]), &["job-3", "exceeded its time limit"]);
    assert_has(data(&forms[7]), &["free", "[exit code: 0]"]);
    assert_eq!(forms[8]["error_category"], "invalid_parameters");
    assert!(!is_running(&limited) && !is_running(&left));
}

/// Proves SH-40, SH-6: the result of an ended job equals that of the same command in the foreground.
#[test]
fn failed_job_is_classified_as_in_the_foreground() {
    let home = Home::new();
    let check = |command: &str| {
        let forms = script(
            &home,
            &[
                line("bash", &json!({ "command": command })),
                background(command),
                of_job("job_output", "job-1"),
            ],
        );
        for part in ["success", "error_category", "error_type"] {
            assert_eq!(forms[0][part], forms[2][part], "{command}: {forms:#?}");
        }
        for part in ["stdout", "stderr", "exit_code", "signal", "truncated"] {
            let (fore, back) = (
                &forms[0]["raw_response"][part],
                &forms[2]["raw_response"][part],
            );
            assert_eq!(fore, back, "{command}: {part}");
        }
    };
    check("exit 0");
    check("exit 5");
    check("nosuchprogram-x");
    check("cat missing-file");
    check("printf 'a\\377b\\n'; kill -9 $$");
    check("seq 1 3000");
    // A path outside the sandbox, if this machine enforces it.
    check("echo x > ../outside-the-project.txt");
}

/// Proves SH-1, SH-2, SH-10: directory, environment, blocklist and mode apply to jobs.
#[test]
fn job_has_the_same_gates() {
    let home = Home::new();
    home.write("sub/here.txt", "");
    let job = |command: &str, cwd: &str| {
        let params = json!({ "command": command, "cwd": cwd, "background": true });
        line("bash", &params)
    };
    let forms = script(
        &home,
        &[
            job("ls; echo [$TEST_KEY]", "sub"),
            of_job("job_output", "job-1"),
            job("touch ran", "/"),
            background("touch ran; sudo true"),
            background("touch ran; x=`sudo id`"),
            background("touch ran; ("),
        ],
    );
    assert_has(data(&forms[1]), &["here.txt\n[]\n"]);
    for form in &forms[2..] {
        assert_eq!(form["error_category"], "policy_blocked", "{form}");
    }
    assert!(!home.has("ran"));
    let entries = audit(&home.database());
    assert!(entries[2..].iter().all(|entry| entry.result == "blocked"));
}

/// Runs an entry point with a background call that must not run.
#[track_caller]
fn is_refused(home: &Home, run: Zeph, category: &str) {
    run.run();
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0].result, "blocked", "{entries:?}");
    assert_eq!(entries[0].error_category.as_deref(), Some(category));
    assert!(!home.has("ran"), "it ran");
}

/// Proves SH-10, SH-40, PERM-2: at each entry point, on the normal and on the confirmed path.
#[test]
fn denied_command_does_not_run_in_the_background() {
    let blocked = json!({ "command": "touch ran; sudo true", "background": true });
    let asks = json!({ "command": "touch ran", "background": true });
    let check = |params: &Value, flags: &[&str], category: &str| {
        let home = Home::new();
        let call = home.zeph(["tools", "call", "bash", &params.to_string()]);
        is_refused(&home, call.args(flags), category);
        let home = Home::new();
        let run = home.zeph(["tools", "run"]).stdin(line("bash", params));
        is_refused(&home, run.args(flags), category);
        for format in ["text", "json"] {
            let replies = [
                Reply::calls("j", &[("bash", params.clone())]),
                Reply::text("no"),
            ];
            let server = OpenAi::replies(replies);
            let home = Home::openai(&server);
            let turn = home.zeph(["-p", "go", "--output-format", format]);
            is_refused(&home, turn.args(flags), category);
        }
    };
    check(&blocked, &["--yes"], "policy_blocked");
    check(&blocked, &[], "policy_blocked");
    check(&asks, &[], "confirmation_required");
    check(&asks, &["--yes", "--mode", "plan"], "policy_blocked");
}

/// Proves SH-40, PERM-5: listing and ending jobs never needs approval.
#[test]
fn job_tools_need_no_approval() {
    for mode in ["plan", "ask"] {
        let home = Home::new();
        let lines = [
            line("job_list", &json!({})),
            of_job("job_output", "job-1"),
            of_job("job_kill", "job-1"),
        ];
        let run = home.zeph(["tools", "run", "--mode", mode]);
        let forms = run.stdin(lines.join("\n")).code(0).json_lines();
        assert_eq!(data(&forms[0]), "there are no jobs");
        for form in &forms[1..] {
            assert_eq!(form["error_type"], "not_found", "{form}");
        }
    }
}

/// Proves SH-40, AGT-3: a conversation starts a job, reads its output and ends it; the user is notified of
/// jobs that end with the session.
#[test]
fn conversation_starts_reads_and_ends_jobs() {
    let (killed, left) = (unique_seconds(), unique_seconds());
    let start = |seconds: &str| json!({ "command": format!("echo up; sleep {seconds}"), "background": true });
    let home = Home::scripted(&format!(
        r#"
        [[steps]]
        expect = {{ tools_include = ["bash"] }}
        calls = [{{ tool = "bash", input = {} }}, {{ tool = "bash", input = {} }}]
        [[steps]]
        expect = {{ tools_include = ["bash", "job_output", "job_kill", "job_list"], tool_result_contains = ["job-1 runs in the background", "job-2 runs in the background"] }}
        calls = [{{ tool = "job_output", input = {{ job_id = "job-1" }} }}]
        [[steps]]
        expect = {{ tool_result_contains = ["up", "job-1 still runs"] }}
        calls = [{{ tool = "job_kill", input = {{ job_id = "job-1" }} }}]
        [[steps]]
        expect = {{ tool_result_contains = ["job_kill", "143"] }}
        text = "done"
        "#,
        toml_of(&start(&killed)),
        toml_of(&start(&left)),
    ));
    let output = home.zeph(["--yes", "-p", "go"]).code(0);
    let output = output
        .prints(&["done"])
        .says(&["Background jobs end with", "job-2 (echo up"]);
    assert!(!output.stderr.contains("job-1 (echo"), "{output}");
    assert!(!is_running(&killed) && !is_running(&left));
    let entries_made: Vec<_> = audit(&home.database())
        .into_iter()
        .map(|entry| (entry.tool, entry.exit_code))
        .collect();
    let expect = [
        ("bash", Some(0)),
        ("bash", Some(0)),
        ("job_output", None),
        ("job_kill", Some(143)),
    ];
    assert_eq!(
        entries_made,
        expect.map(|(tool, code)| (tool.to_owned(), code))
    );
}

/// A JSON object as an inline TOML table.
fn toml_of(object: &Value) -> String {
    let fields: Vec<_> = object.as_object().unwrap().iter().collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    format!("{{ {} }}", fields.join(", "))
}

/// Proves SH-40, AGT-3: waiting for a silent job does not count as a doom loop.
#[test]
fn waiting_for_a_job_does_not_end_the_turn() {
    let job =
        json!({ "command": "until [ -e go ]; do sleep 0.02; done; echo over", "background": true });
    let look = || Reply::calls("l", &[("job_output", json!({ "job_id": "job-1" }))]);
    let go = json!({ "path": "go", "content": "" });
    let server = OpenAi::replies([
        Reply::calls("s", &[("bash", job)]),
        look(),
        look(),
        look(),
        Reply::calls("g", &[("write", go)]),
        look(),
        Reply::text("done"),
    ]);
    let home = Home::openai(&server);
    let output = home.zeph(["--yes", "-p", "go"]).code(0).prints(&["done"]);
    // The user is notified when a job ends on its own.
    output.says(&["job-1 ended", "exit code 0"]);
    let results = results_of(&server.last().messages());
    assert_has(&results[1].1, &["still runs", "nothing new"]);
    assert_has(
        &results[3].1,
        &["still runs", "nothing new", "asked 3 times"],
    );
    assert_has(&results[5].1, &["over", "[exit code: 0]"]);
}

/// Proves SH-40: with `zeph tools call` a job ends with the process, which reports it.
#[test]
fn job_of_a_single_call_ends_with_it() {
    let home = Home::new();
    let seconds = unique_seconds();
    let params = json!({ "command": format!("sleep {seconds}"), "background": true }).to_string();
    let call = ["tools", "call", "bash", &params, "--yes"];
    let output = home.zeph(call).code(0).prints(&["job-1", "session"]);
    assert!(output.took < Duration::from_secs(10), "{output}");
    output.says(&["Background jobs end with the process", "job-1 (sleep"]);
    assert!(!is_running(&seconds));
    let quiet = home.zeph(call).arg("--quiet").code(0);
    assert_eq!(quiet.stderr, "");
}

/// Proves SH-40, SH-3: no job survives the end of the agent.
#[test]
fn no_job_survives_the_death_of_the_agent() {
    let started = |seconds: &str| json!({ "command": format!("trap '' TERM; setsid sleep {seconds} & touch begun; sleep {seconds}"), "background": true });
    let left = |seconds: &str| json!({ "command": format!("nohup sleep {seconds} > /dev/null 2>&1 & touch begun") });
    for call in [started as fn(&str) -> Value, left] {
        let home = Home::new();
        let seconds = unique_seconds();
        let line = line("bash", &call(&seconds)) + "\n";
        let mut running = home
            .zeph(["tools", "run", "--yes"])
            .open_stdin(line)
            .start();
        running.until_line("job-1");
        wait_for("the job", || {
            (home.has("begun") && is_running(&seconds)).then_some(())
        });
        running.kill();
        wait_for("the end of the job", || {
            (!is_running(&seconds)).then_some(())
        });
    }
}

/// Proves SH-40, SH-4: memory stays bounded for any amount of job output, and calls continue meanwhile.
#[test]
fn job_that_floods_uses_bounded_memory() {
    let home = Home::new();
    let peak = |running: &crate::rig::Running| -> u64 {
        let status = running.status();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let waits = "until [ -e over ]; do sleep 0.02; done; echo it is over";
    let lines = [
        line(
            "bash",
            &json!({ "command": "yes 0123456789 | head -c 4000000" }),
        ),
        background("yes 0123456789abcdef0123456789abcdef | head -c 300000000; touch over"),
        line("bash", &json!({ "command": waits, "timeout_secs": 25 })),
        of_job("job_output", "job-1"),
    ];
    let script = lines.join("\n") + "\n";
    let mut running = home
        .zeph(["tools", "run", "--yes"])
        .open_stdin(script)
        .start();
    running.until_line("raw_response");
    let before = peak(&running);
    running.until_line("it is over\\n");
    let form: Value = serde_json::from_str(&running.next_line().unwrap()).unwrap();
    assert_has(
        data(&form),
        &["bytes) omitted", "[exit code: 0]", "job-1 ended"],
    );
    assert_eq!(form["raw_response"]["truncated"], true);
    assert!(data(&form).len() < 51_000, "{}", data(&form).len());
    let grown = peak(&running) - before;
    assert!(grown < 4096, "{grown} KiB more");
    running.kill();
}

/// Proves SH-40, SH-4: all output of a job is returned exactly once, regardless of the amount between two
/// calls.
#[test]
fn job_output_is_returned_once() {
    let home = Home::new();
    let mut lines = vec![background(
        "for i in {1..20000}; do echo line $i; done; touch half; until [ -e go ]; do sleep 0.02; \
         done; for i in {20001..100000}; do echo line $i; done; touch over",
    )];
    let wait = |file: &str| {
        let command = format!("until [ -e {file} ]; do sleep 0.02; done");
        line("bash", &json!({ "command": command, "timeout_secs": 25 }))
    };
    lines.extend([
        wait("half"),
        of_job("job_output", "job-1"),
        line("write", &json!({ "path": "go", "content": "" })),
        wait("over"),
        of_job("job_output", "job-1"),
        of_job("job_output", "job-1"),
    ]);
    let forms = script(&home, &lines);
    let mut printed = String::new();
    for form in &forms[2..] {
        let text = data(form);
        if let Some(at) = text.find("overflow:") {
            assert_eq!(form["raw_response"]["truncated"], true);
            let id = &text[at..at + "overflow:".len() + 36];
            printed += &home.zeph(["overflow", "get", id]).code(0).stdout;
        } else if form["tool"] == "job_output" {
            printed += form["raw_response"]["stdout"].as_str().unwrap();
        }
    }
    let mut expected = String::new();
    for number in 1..=100_000 {
        expected += &format!("line {number}\n");
    }
    assert!(printed == expected, "{} bytes", printed.len());
    assert_has(data(&forms[5]), &["[exit code: 0]", "job-1 ended"]);
}
