//! A day of work in one project: looking around, reading, editing, building, testing, a dependency from a local registry, a
//! server in the background, and commits. The number of questions and refusals is the result.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::os_sandbox::enforced;
use crate::rig::{Home, Terminal};

const MAIN: &str = "fn main() {\n    println!(\"{}\", greeting());\n}\n\nfn greeting() -> String {\n    \"hello\".to_owned()\n}\n";
const STATS: &str = "pub fn mean(values: &[f64]) -> f64 {\n    values.iter().sum::<f64>() / values.len() as f64\n}\n\n\
    #[cfg(test)]\nmod tests {\n    #[test]\n    fn mean_of_two() {\n        assert_eq!(super::mean(&[1.0, 3.0]), 2.0);\n    }\n}\n";
const MESSAGE: &str =
    "git commit -qm \"$(cat <<'EOF'\nAdd statistics\n\nThe mean of some values.\nEOF\n)\"";
const SERVER: &str = "import http.server, sys\n\nclass Page(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n        \
    self.send_response(STATUS)\n        self.end_headers()\n        self.wfile.write(b'page')\n\n\
    http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()\n";
/// The number of turns in which the calls are made.
const TURN: usize = 8;
/// The maximum duration of a turn.
const TURN_LIMIT: Duration = Duration::from_secs(120);
/// The maximum duration of a day without a user.
const DAY_LIMIT: Duration = Duration::from_secs(300);

/// A call, and whether it only reads.
struct Step(bool, &'static str, Value);

fn read(tool: &'static str, input: Value) -> Step {
    Step(true, tool, input)
}

fn change(tool: &'static str, input: Value) -> Step {
    Step(false, tool, input)
}

fn look(command: &str) -> Step {
    read("bash", json!({ "command": command }))
}

fn run(command: &str) -> Step {
    change("bash", json!({ "command": command }))
}

/// The calls of the day. A server uses `port`.
fn day(port: u16) -> Vec<Step> {
    let serve = || {
        let command = format!("python3 server.py {port}");
        change("bash", json!({ "command": command, "background": true }))
    };
    let page = format!(
        "curl -s -o page.txt -w '%{{http_code}}\\n' --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:{port}/"
    );
    vec![
        read("list_directory", json!({ "path": "." })),
        look("ls -la"),
        look("git status"),
        look("git log --oneline | head -5"),
        read("read", json!({ "path": "src/main.rs" })),
        read("read", json!({ "path": "Cargo.toml" })),
        look("cat README.md | head -20"),
        read("grep", json!({ "pattern": "fn " })),
        look("grep -rn greeting src"),
        read("find_path", json!({ "path": ".", "pattern": "**/*.rs" })),
        look("wc -l src/*.rs"),
        look("find . -name '*.toml' -not -path './target/*'"),
        look("git diff HEAD"),
        change("write", json!({ "path": "src/stats.rs", "content": STATS })),
        change(
            "edit",
            json!({ "path": "src/main.rs", "old_string": "fn main() {", "new_string": "mod stats;\n\nfn main() {\n    println!(\"{}\", stats::mean(&[1.0, 2.0]));" }),
        ),
        run("cargo build 2>&1 | tail -3"),
        run("cargo test 2>&1 | tail -8"),
        look("git diff --stat"),
        look("git status --short"),
        run("git add -A"),
        run(MESSAGE),
        look("git log -1 --stat"),
        look("git show --stat HEAD | tail -3"),
        change(
            "write",
            json!({ "path": "Makefile", "content": "all: a.out b.out\n%.out:\n\techo $@ > $@\n" }),
        ),
        run("make -j$(nproc)"),
        look("diff <(sort a.out) <(sort b.out) | wc -l"),
        run("rm a.out b.out"),
        run("mkdir -p docs && cp README.md docs/index.md"),
        read("read", json!({ "path": "docs/index.md" })),
        change(
            "edit",
            json!({ "path": "docs/index.md", "old_string": "A project", "new_string": "The project" }),
        ),
        look("diff README.md docs/index.md || true"),
        look("for f in src/*.rs; do head -1 \"$f\"; done"),
        run("echo 'tiny = \"0.1\"' >> Cargo.toml"),
        look("tail -3 Cargo.toml"),
        run("cargo build 2>&1 | tail -3; test ${PIPESTATUS[0]} -eq 0"),
        look("cat Cargo.lock | grep -A3 tiny"),
        change(
            "edit",
            json!({ "path": "src/main.rs", "old_string": "mod stats;", "new_string": "mod stats;\n\nuse tiny as _;" }),
        ),
        run("cargo test 2>&1 | tail -8"),
        run("cargo run -q"),
        run("git commit -qam 'Use tiny'"),
        change(
            "write",
            json!({ "path": "server.py", "content": SERVER.replace("STATUS", "500") }),
        ),
        serve(),
        run(&page),
        read("job_list", json!({})),
        change("job_kill", json!({ "job_id": "job-1" })),
        change(
            "edit",
            json!({ "path": "server.py", "old_string": "500", "new_string": "200" }),
        ),
        serve(),
        run(&page),
        look("cat page.txt; echo"),
        change("job_kill", json!({ "job_id": "job-2" })),
        look("stat -c %s page.txt"),
        run("rm page.txt"),
        look("git branch --list"),
        run("git checkout -q -b server"),
        run("git add server.py && git commit -qm \"Add a server on $(date +%Y)\""),
        look("git log --oneline --graph --all | head -5"),
        look("git diff master --stat"),
        look("du -sh src && df -h . | tail -1"),
        look("sort Cargo.lock | uniq -c | sort -rn | head -3"),
        look("git status --porcelain | wc -l"),
    ]
}

#[allow(clippy::disallowed_methods, reason = "the test prepares the project")]
fn prepare(home: &Home, directory: &Path, command: &str) {
    let output = Command::new("bash")
        .args(["-ec", command])
        .current_dir(directory)
        .env("HOME", home.home())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

/// A registry with the package `tiny` on loopback, as files. Returns its port.
fn registry(home: &Home) -> u16 {
    let root = home.root().join("registry");
    let package = root.join("tiny-0.1.0/src");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(package.join("lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    std::fs::write(root.join("tiny-0.1.0/Cargo.toml"), manifest).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    prepare(
        home,
        &root,
        &format!(
            "tar czf tiny-0.1.0.crate tiny-0.1.0; mkdir -p index/ti/ny dl; mv tiny-0.1.0.crate dl/;\
             sum=$(sha256sum dl/tiny-0.1.0.crate | cut -d' ' -f1);\
             echo '{{\"dl\": \"http://127.0.0.1:{port}/dl/{{crate}}-{{version}}.crate\"}}' > index/config.json;\
             echo \"{{\\\"name\\\":\\\"tiny\\\",\\\"vers\\\":\\\"0.1.0\\\",\\\"deps\\\":[],\\\"cksum\\\":\\\"$sum\\\",\\\"features\\\":{{}},\\\"yanked\\\":false}}\" > index/ti/ny/tiny"
        ),
    );
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let root = root.clone();
            std::thread::spawn(move || serve(stream, &root));
        }
    });
    port
}

/// Answers one request with a file below `root`.
fn serve(mut stream: std::net::TcpStream, root: &Path) {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => request.extend_from_slice(&bytes[..count]),
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let path = text
        .split(' ')
        .nth(1)
        .unwrap_or("/")
        .trim_start_matches('/');
    let (status, body) = match std::fs::read(root.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body));
}

/// A fresh project, and the calls of the day. Each turn ends with `Done N.`
fn project(calls: &[Step], per_turn: usize) -> Home {
    let home = Home::new();
    let port = registry(&home);
    home.write("src/main.rs", MAIN);
    home.write("README.md", "# Day\n\nA project for a day of work.\n");
    home.write(".gitignore", "target\n");
    home.write(
        "Cargo.toml",
        "[package]\nname = \"day\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n",
    );
    prepare(
        &home,
        &home.project(),
        "git init -q -b master; git config user.name a; git config user.email a@example.org; git add -A; git commit -qm first",
    );
    let cargo_home = home.home().join(".cargo");
    std::fs::create_dir_all(&cargo_home).unwrap();
    std::fs::write(
        cargo_home.join("config.toml"),
        format!("[source.crates-io]\nreplace-with = \"local\"\n[source.local]\nregistry = \"sparse+http://127.0.0.1:{port}/index/\"\n"),
    )
    .unwrap();
    let mut steps = Vec::new();
    for (turn, calls) in calls.chunks(per_turn).enumerate() {
        steps.extend(
            calls
                .iter()
                .map(|Step(_, tool, input)| json!({ "calls": [{ "tool": tool, "input": input }] })),
        );
        steps.push(json!({ "text": format!("Done {turn}.") }));
    }
    let file = home.home().join("scenario.json");
    std::fs::write(&file, json!({ "steps": steps }).to_string()).unwrap();
    home.config(&format!(
        "[[llm.providers]]\nname = \"script\"\ntype = \"scripted\"\nscenario = {:?}\n",
        file.display().to_string()
    ));
    home
}

/// `PATH` with the toolchain's own programs: the installed ones select a toolchain by the home directory.
fn path() -> String {
    let cargo = PathBuf::from(env!("CARGO"));
    let programs = cargo.parent().unwrap().display();
    format!("{programs}:{}", crate::rig::search_path())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The results of a day without a user who looks at the terminal.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    calls: usize,
    questions: usize,
    refusals: usize,
}

/// Runs the day with `zeph -p` in a mode. `--yes` answers the questions.
fn unattended(mode: &str, yes: bool, network: &str) -> Counts {
    let calls = day(free_port());
    let home = project(&calls, calls.len());
    home.more_config(&format!("[tools.shell.sandbox]\nnetwork = \"{network}\"\n"));
    let mut args = vec![
        "-p",
        "work",
        "--mode",
        mode,
        "--output-format",
        "stream-json",
    ];
    if yes {
        args.push("--yes");
    }
    let output = home
        .zeph(args)
        .env("PATH", &path())
        .start()
        .wait_within(DAY_LIMIT)
        .code(0);
    let events: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    for (at, (event, Step(reads, tool, input))) in of("tool_finished").zip(&calls).enumerate() {
        let failure = &event["error_category"];
        let is_gate = ["confirmation_required", "policy_blocked"]
            .iter()
            .any(|it| failure == it);
        assert!(
            !(*reads && is_gate),
            "call {at} only reads: {tool} {input}: {event:#}"
        );
        if mode == "auto" {
            assert_eq!(
                *failure,
                Value::Null,
                "call {at}: {tool} {input}: {event:#}"
            );
        }
    }
    let finished: Vec<&Value> = of("finished").collect();
    assert_eq!(finished[0]["stop_reason"], "done", "{:#}", finished[0]);
    Counts {
        calls: of("tool_finished").count(),
        questions: of("permission").count(),
        refusals: of("tool_finished")
            .filter(|event| event["error_category"] == "confirmation_required")
            .count(),
    }
}

/// Proves PERM-8, PERM-9, SH-22: a day in mode `auto` has at most two questions.
#[test]
fn day_in_auto_mode_has_at_most_two_questions() {
    if !enforced() {
        return;
    }
    let calls = day(free_port());
    let home = project(&calls, TURN);
    let path = path();
    let mut terminal =
        Terminal::under(&home, &["--mode", "auto"], &[("PATH", Some(path.as_str()))]);
    // The keys of a question are printed once.
    let questions = |terminal: &Terminal| terminal.raw().matches("[5] no, and tell it why").count();
    let mut answered = 0;
    for turn in 0..calls.len().div_ceil(TURN) {
        terminal.prompts("");
        terminal.type_keys("next\r");
        let done = format!("Done {turn}.");
        loop {
            terminal.until_within(TURN_LIMIT, "the end of the turn, or a question", |text| {
                text.contains(&done) || questions(&terminal) > answered
            });
            if questions(&terminal) == answered {
                break;
            }
            answered += 1;
            terminal.type_keys("2");
        }
    }
    let text = terminal.raw();
    assert_eq!(terminal.leaves().0.code(), Some(0));
    assert!((1..=2).contains(&answered), "{answered} questions:\n{text}");
    assert!(home.has("Cargo.lock") && !home.has("page.txt"));
}

/// Proves PERM-9, D-33: unattended, the day ends with success in mode `auto`; in mode `ask` no call that only reads is asked
/// about. The documentation has the same numbers.
#[test]
fn day_without_a_user_ends_and_is_documented() {
    if !enforced() {
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scripted-day.md");
    let page = std::fs::read_to_string(file).unwrap();
    let rows = [
        ("auto, network allowed", unattended("auto", false, "allow")),
        (
            "ask, each question approved",
            unattended("ask", true, "ask"),
        ),
        (
            "auto-edit, each question approved",
            unattended("auto-edit", true, "ask"),
        ),
    ]
    .map(|(name, counts)| {
        let Counts {
            calls,
            questions,
            refusals,
        } = counts;
        format!("| {name} | {calls} | {questions} | {refusals} |")
    });
    assert!(
        rows.iter().all(|row| page.contains(row)),
        "docs/scripted-day.md needs the rows {rows:#?}"
    );
}
