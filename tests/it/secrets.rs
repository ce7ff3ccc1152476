//! Secret values, which no result, store, log or display may contain.

use serde_json::{Value, json};

use crate::rig::{Home, KEY, OpenAi, Output, Reply, assert_has, audit, results_of};

/// Values in the formats of services, assembled here so that no file contains one.
struct Values {
    github: String,
    password: String,
    cloud: String,
    key_line: String,
    bearer: String,
}

impl Values {
    fn new() -> Self {
        Self {
            github: format!("gh{}{}", "p_", "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6"),
            password: format!("{}-{}", "kT9", "vb2!xQ7wLm"),
            cloud: format!("AK{}{}", "IA", "QWER5TZUIOP7ASDF"),
            key_line: "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".to_owned(),
            bearer: format!("{}{}", "9f86d081884c7d659a2feaa0", "c55ad015a3bf4f1b"),
        }
    }

    fn all(&self) -> [&str; 6] {
        [
            &self.github,
            &self.password,
            &self.cloud,
            &self.key_line,
            &self.bearer,
            KEY,
        ]
    }

    /// A file with all values.
    fn file(&self) -> String {
        let Self {
            github,
            password,
            cloud,
            key_line,
            bearer,
            ..
        } = self;
        let (begin, end) = (format!("-----BE{}", "GIN"), "-----END");
        let keys = format!(
            "{begin} PRIVATE KEY-----\n{key_line}xyz0\n{key_line}abc1\nAw==\n{end} PRIVATE KEY-----"
        );
        format!(
            "first line\nGITHUB_TOKEN={github}\nDATABASE_URL=postgres://app:{password}@db.example/app\n\
             aws {cloud}\n{keys}\n> Authorization: Bearer {bearer}\nthe provider has {KEY}\n\
             \u{1b}[1m{}\u{1b}[m{}\nlast line\n",
            &github[..9],
            &github[9..],
        )
    }
}

#[track_caller]
fn holds_none(what: &str, text: &str, values: &Values) {
    for value in values.all() {
        assert!(
            !text.contains(value),
            "{what} holds {value}:\n{}",
            text.chars().take(3000).collect::<String>()
        );
    }
}

/// All stored data outside of the project, as text.
fn stored(home: &Home) -> String {
    let mut text = String::new();
    let mut directories = vec![home.data(), home.tmp()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                directories.push(entry.path());
            } else if let Ok(bytes) = std::fs::read(entry.path()) {
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    text
}

fn call(home: &Home, tool: &str, params: &Value) -> Output {
    let params = params.to_string();
    home.zeph([
        "tools",
        "call",
        tool,
        &params,
        "--json",
        "--yes",
        "--session",
        "s",
    ])
    .run()
}

fn data(output: &Output) -> String {
    output.json()["data"].as_str().unwrap().to_owned()
}

/// Proves OUT-20, OUT-21, OUT-53: no message, store, log, display or request contains the values, regardless
/// of the tool. The model learns only their kinds.
#[test]
fn values_appear_in_no_output() {
    let values = Values::new();
    let cat = "cat leak.txt; cat leak.txt >&2";
    let server = OpenAi::start(move |n, request| match n {
        0 => Reply::calls("a", &[("bash", json!({ "command": cat }))]),
        1 => Reply::calls(
            "b",
            &[("bash", json!({ "command": format!("{cat}; exit 3") }))],
        ),
        2 => Reply::calls(
            "c",
            &[(
                "bash",
                json!({ "command": "seq 20000; cat leak.txt; seq 20000" }),
            )],
        ),
        3 => {
            let messages = request.messages();
            let (_, text) = results_of(&messages).pop().unwrap();
            let at = text.find("overflow:").unwrap();
            let id = &text[at..at + 45];
            Reply::calls(
                "d",
                &[(
                    "read_overflow",
                    json!({ "id": id, "offset": 19_999, "limit": 20 }),
                )],
            )
        }
        4 => Reply::calls(
            "e",
            &[("grep", json!({ "pattern": ".", "path": "leak.txt" }))],
        ),
        5 => Reply::calls("f", &[("read", json!({ "path": "key.txt" }))]),
        6 => Reply::calls(
            "g",
            &[(
                "bash",
                json!({ "command": "cat leak.txt; sleep 600", "background": true }),
            )],
        ),
        7 => Reply::calls("h", &[("job_output", json!({ "job_id": "job-1" }))]),
        8 => Reply::calls("i", &[("job_kill", json!({ "job_id": "job-1" }))]),
        _ => Reply::text("Done."),
    });
    let home = Home::openai(&server);
    home.write("leak.txt", &values.file());
    home.write("key.txt", &format!("key = {KEY}\n"));
    let output = home.zeph(["-p", "go", "--yes", "-vvv"]).code(0);
    holds_none("standard output", &output.stdout, &values);
    holds_none("standard error", &output.stderr, &values);
    assert_has(&output.stderr, &["[redacted:github_token]"]);
    for (n, request) in server.requests().iter().enumerate() {
        holds_none(
            &format!("request {n}"),
            &String::from_utf8_lossy(&request.raw),
            &values,
        );
    }
    holds_none("the data folder", &stored(&home), &values);
    let results = results_of(&server.last().messages());
    assert_eq!(results.len(), 9);
    for (n, (_, text)) in results.iter().enumerate() {
        match n {
            5 => assert_has(
                text,
                &["key = [redacted:known_secret]", "secrets: known_secret"],
            ),
            2 => assert_has(
                text,
                &["overflow:", "secrets: aws_access_key, github_token"],
            ),
            6 | 8 => assert!(!text.contains("secrets:"), "{text}"),
            _ => assert_has(
                text,
                &[
                    "GITHUB_TOKEN=[redacted:github_token]",
                    "postgres://app:[redacted:url_credentials]@db.example/app",
                    "aws [redacted:aws_access_key]",
                    "[redacted:private_key]",
                    "Authorization: Bearer [redacted:assignment]",
                    "the provider has [redacted:known_secret]",
                    "last line",
                ],
            ),
        }
    }
    let warned = "[warning: the output contained possible secrets: aws_access_key, github_token, \
                  private_key, url_credentials, assignment, known_secret; values were redacted]";
    assert!(results[0].1.ends_with(warned), "{}", results[0].1);
    assert_has(&results[1].1, &["[exit code: 3]", warned]);
    assert_has(&results[7].1, &["[job-1 still runs", warned]);
    let entries = serde_json::to_string(
        &audit(&home.database())
            .iter()
            .map(|entry| entry.call.clone())
            .collect::<Vec<_>>(),
    )
    .unwrap();
    holds_none("the audit trail", &entries, &values);
}

/// Proves OUT-21, OUT-53: the tool receives the unchanged arguments; stored and displayed arguments contain
/// no values.
#[test]
fn arguments_are_redacted_only_in_the_audit_trail() {
    let values = Values::new();
    let home = Home::new();
    let command = format!(
        "printf %s {} > out.txt; export API_SECRET={} && cat out.txt",
        values.github, values.bearer
    );
    let output = call(&home, "bash", &json!({ "command": command })).code(0);
    assert_eq!(home.read("out.txt"), values.github);
    assert_has(&data(&output), &["[redacted:github_token]", "[warning: "]);
    let url = format!(
        "https://bob:{}@127.0.0.1/x?api_key={}",
        values.password, values.bearer
    );
    call(&home, "fetch", &json!({ "url": url })).code(3);
    let entries = audit(&home.database());
    assert_eq!(
        entries[0].call["command"],
        "printf %s [redacted:github_token] > out.txt; export API_SECRET=[redacted:assignment] && cat out.txt"
    );
    assert_eq!(
        entries[1].call["url"],
        "https://bob:[redacted:url_credentials]@127.0.0.1/x?api_key=[redacted:assignment]"
    );
    holds_none("the data folder", &stored(&home), &values);
    holds_none("the result", &output.stdout, &values);
}

/// Proves OUT-20, OUT-21, OUT-53: without redaction there is a warning; the audit trail and the program's
/// messages still contain no value.
#[test]
fn disabled_redaction_has_a_warning() {
    let values = Values::new();
    let home = Home::new();
    home.config("[tools.filters.security]\nredact = false\n");
    home.write("leak.txt", &values.file());
    let output = call(&home, "bash", &json!({ "command": "cat leak.txt" })).code(0);
    let text = data(&output);
    assert_has(&text, &[&values.github, &values.password, &values.key_line]);
    assert!(
        text.ends_with(
            "secrets: aws_access_key, github_token, private_key, url_credentials, assignment, known_secret]"
        ),
        "{text}"
    );
    call(
        &home,
        "bash",
        &json!({ "command": format!("true {}", values.github) }),
    )
    .code(0);
    let entry = audit(&home.database()).pop().unwrap();
    assert_eq!(entry.call["command"], "true [redacted:github_token]");
    // A project cannot disable redaction.
    home.config("");
    home.write(
        ".zeph/config.toml",
        "[tools.filters.security]\nredact = false\n",
    );
    call(&home, "bash", &json!({ "command": "true" }))
        .code(2)
        .says(&["tools.filters.security.redact"]);
}

/// Proves OUT-20, D-22: `read` returns the unchanged text, so that it can be edited, with a warning. Names of
/// files with secrets cause a warning too.
#[test]
fn text_with_a_secret_is_read_unchanged() {
    let values = Values::new();
    let home = Home::new();
    home.write("app.env", &format!("A=1\nGITHUB_TOKEN={}\n", values.github));
    let text = data(&call(&home, "read", &json!({ "path": "app.env" })).code(0));
    assert_has(
        &text,
        &[
            &values.github,
            "[warning: the output contained possible secrets: github_token]",
        ],
    );
    let line = format!("GITHUB_TOKEN={}", values.github);
    let edit =
        json!({ "path": "app.env", "old_string": line, "new_string": format!("{line}\nB=2") });
    call(&home, "edit", &edit).code(0);
    assert_eq!(home.read("app.env"), format!("A=1\n{line}\nB=2\n"));
    let text = data(&call(
        &home,
        "bash",
        &json!({ "command": "echo ~/.ssh/id_ed25519 /x/.aws/credentials" }),
    ));
    assert_has(
        &text,
        &[
            ".ssh/id_ed25519",
            "[warning: the output names files that contain secrets: sensitive_path]",
        ],
    );
    let text = data(&call(
        &home,
        "bash",
        &json!({ "command": "echo ~/.ssh/id_ed25519.pub" }),
    ));
    assert!(!text.contains("warning"), "{text}");
}

/// Proves OUT-21: a redaction mark cannot overwrite a value.
#[test]
fn redaction_mark_does_not_replace_a_value() {
    let values = Values::new();
    let home = Home::new();
    let before = format!("A=1\nGITHUB_TOKEN={}\n", values.github);
    home.write("app.env", &before);
    call(&home, "read", &json!({ "path": "app.env" })).code(0);
    let mark = "GITHUB_TOKEN=[redacted:github_token]";
    for (tool, params) in [
        (
            "edit",
            json!({ "path": "app.env", "old_string": "A=1", "new_string": format!("A=2\n{mark}") }),
        ),
        (
            "edit",
            json!({ "path": "app.env", "old_string": mark, "new_string": "GITHUB_TOKEN=x" }),
        ),
        (
            "write",
            json!({ "path": "app.env", "content": format!("A=2\n{mark}\n") }),
        ),
        (
            "write",
            json!({ "path": "new.env", "content": format!("{mark}\n") }),
        ),
    ] {
        let refused = call(&home, tool, &params).code(1);
        assert_eq!(refused.json()["error_category"], "invalid_parameters");
        assert_has(
            &data(&refused),
            &[
                "[redacted:github_token]",
                "Nothing was changed",
                "Omit the line",
            ],
        );
    }
    assert_eq!(home.read("app.env"), before);
    assert!(!home.has("new.env"));
    // A mark that is the actual text of a file is treated as text.
    home.write("doc.md", &format!("shown as {mark}\n"));
    call(&home, "read", &json!({ "path": "doc.md" })).code(0);
    call(&home, "edit", &json!({ "path": "doc.md", "old_string": format!("as {mark}"), "new_string": format!("so: {mark}") })).code(0);
    call(
        &home,
        "write",
        &json!({ "path": "doc.md", "content": format!("{mark}\n") }),
    )
    .code(0);
    assert_eq!(home.read("doc.md"), format!("{mark}\n"));
}

/// Proves OUT-20: the user's own patterns apply; an invalid pattern is reported with the reason and does not
/// affect the others.
#[test]
fn user_patterns_are_redacted() {
    let home = Home::new();
    let long = "x".repeat(513);
    home.config(&format!(
        "[[tools.filters.security.extra_patterns]]\nname = 'acme'\npattern = 'ACME-[0-9]{{6}}'\n\
         [[tools.filters.security.extra_patterns]]\nname = 'broken'\npattern = '('\n\
         [[tools.filters.security.extra_patterns]]\nname = 'long'\npattern = '{long}'\n"
    ));
    let output = call(&home, "bash", &json!({ "command": "echo a ACME-123456 b" })).code(0);
    assert_has(
        &data(&output),
        &["a [redacted:acme] b", "secrets: acme; values"],
    );
    assert_has(
        &output.stderr,
        &[
            "\"broken\" is skipped: its pattern does not compile",
            "\"long\" is skipped: its pattern has 513 characters",
        ],
    );
    // A project can add patterns, but not remove them.
    home.write(
        ".zeph/config.toml",
        "tools.filters.security.extra_patterns = [{ name = 'own', pattern = 'own-[0-9]+' }]\n",
    );
    let text = data(&call(
        &home,
        "bash",
        &json!({ "command": "echo ACME-123456 own-77" }),
    ));
    assert_has(&text, &["[redacted:acme] [redacted:own]"]);
}

/// Proves OUT-21: errors do not contain the key of a provider, including errors of its server.
#[test]
fn server_error_does_not_show_the_key() {
    let server = OpenAi::start(|_, _| {
        Reply::error(
            401,
            "invalid_api_key",
            &format!("Incorrect API key provided: {KEY}."),
        )
    });
    let home = Home::openai(&server);
    for format in ["text", "json"] {
        let output = home
            .zeph(["-p", "go", "-vvv", "--output-format", format])
            .code(1);
        assert!(!output.stderr.contains(KEY), "{}", output.stderr);
        assert!(!output.stdout.contains(KEY), "{}", output.stdout);
    }
    assert!(!stored(&home).contains(KEY));
}
