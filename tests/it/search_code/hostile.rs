//! Hostile files: secrets, denied files, invalid sources.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::{Value, json};

use super::{has, index, search};
use crate::rig::{Home, KEY, Output};

fn call(home: &Home, tool: &str, params: &Value) -> Output {
    home.zeph(["tools", "call", tool, &params.to_string()])
        .code(0)
}

/// Proves NAT-5 in part, OUT-20 in part, OUT-21 in part: like the results of `grep`.
#[test]
fn secrets_in_lines_are_replaced() {
    let github = format!("gh{}{}", "p_", "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6");
    let cloud = format!("AK{}{}", "IA", "QWER5TZUIOP7ASDF");
    let home = Home::new();
    home.config("[[llm.providers]]\nname = \"x\"\ntype = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"m\"\napi_key_env = \"TEST_KEY\"\n");
    home.write(
        "a.rs",
        &format!(
            "const ACCESS_ONE: &str = \"{github}\";\nstatic ACCESS_TWO: &str = \"{cloud}\";\n"
        ),
    );
    home.write(
        "b.py",
        &format!("ACCESS_THREE = '{KEY}'\ndef access_four(token='{github}'): pass\n"),
    );
    home.write(
        "c.cpp",
        &format!(
            "void access_five(const char* key = \"{cloud}\");\n// access in a comment: {KEY}\n"
        ),
    );
    // A name can be a secret too.
    home.write("d.py", &format!("class {cloud}: pass\n"));
    let long = format!(
        "const ACCESS_LONG: &str = \"{}{github}\";\n",
        " ".repeat(1980)
    );
    home.write("e.rs", &long);
    for query in [
        "access",
        "const ACCESS",
        "access_five",
        cloud.as_str(),
        "AKI",
    ] {
        let output = call(&home, "search_code", &json!({ "query": query }));
        let words = call(
            &home,
            "grep",
            &json!({ "pattern": query, "case_sensitive": false }),
        );
        for (tool, output) in [("search_code", &output), ("grep", &words)] {
            for secret in [github.as_str(), cloud.as_str(), KEY] {
                // The terminal shows the call of the user unchanged.
                let reported = output.stderr.contains(secret) && query != secret;
                let shown = reported || output.stdout.contains(secret);
                assert!(!shown, "{tool} shows {secret}: {output}");
            }
        }
        assert!(output.stdout.contains("[redacted:"), "{output}");
    }
    let text = search(&home, &json!({"query": "access"}));
    has(
        &text,
        &[
            "a.rs:1: const ACCESS_ONE: const ACCESS_ONE: &str = \"[redacted:",
            "b.py:2: function access_four",
        ],
        &[],
    );
    // A truncated line contains no part of a secret.
    has(&text, &["e.rs:1: const ACCESS_LONG"], &[&github[..12]]);
}

/// Proves FILE-4 in part, FILE-5 in part, NAT-5 in part.
#[test]
fn later_rules_apply_to_the_index() {
    let home = Home::new();
    home.write("src/open.rs", "fn wanted_open() {}\n");
    for n in 0..40 {
        home.write(&format!("src/private/k{n}.rs"), "fn wanted() {}\n");
    }
    home.write("other/far.rs", "fn wanted_far() {}\n");
    let query = json!({"query": "wanted", "limit": 100});
    has(&search(&home, &query), &["k1.rs", "open.rs"], &[]);
    // A search in a subdirectory does not change the rest of the index.
    for rule in [
        "[tools.file]\ndeny_read = [\"**/private/**\"]\n",
        "[tools.file]\ndeny_read = [\"**/private\"]\n",
        "[tools.file]\nallow_read = [\"**/open.rs\", \"**/far.rs\"]\n",
    ] {
        home.config(rule);
        for part in ["src/open.rs", "src", "."] {
            let text = search(&home, &json!({"query": "wanted", "path": part}));
            has(&text, &["src/open.rs:1"], &["private", "k1.rs", "stale"]);
        }
        let journal = index(&home).with_extension("db-wal");
        let held = [
            fs::read(index(&home)).unwrap(),
            fs::read(journal).unwrap_or_default(),
        ]
        .concat();
        let kept = held.windows(12).any(|piece| piece == b"src/private/");
        assert!(!kept, "{rule}");
        home.config("");
        has(&search(&home, &query), &["k1.rs", "open.rs"], &[]);
    }
    home.config("[tools.file]\nallowed_paths = [\"src\"]\n");
    let text = search(
        &home,
        &json!({"query": "wanted", "path": "src", "limit": 100}),
    );
    has(&text, &["open.rs", "k1.rs"], &["far"]);
    home.zeph([
        "tools",
        "call",
        "search_code",
        &json!({"query": "wanted", "path": "other"}).to_string(),
    ])
    .code(3);
}

/// All other files are found within the time limit, regardless of the content of a file.
///
/// Proves NAT-5 in part.
#[test]
fn hostile_sources_are_harmless() {
    let home = Home::new();
    home.write("good.rs", "fn findable_thing() {}\n");
    home.write(
        "line.rs",
        &format!(
            "const X: &str = \"{}\"; fn after_the_line() {{}}",
            "findable ".repeat(600_000)
        ),
    );
    let endings = ["rs", "py", "js", "ts", "go", "java", "c", "h", "cpp"];
    for ending in endings {
        let deep = [
            ("{", 100_000),
            ("(", 100_000),
            ("[", 100_000),
            ("!", 100_000),
            ("fn a(){", 3000),
            ("class A{", 3000),
            ("if(", 3000),
        ];
        let deep = deep.map(|(piece, count)| piece.repeat(count));
        for (number, text) in deep.iter().enumerate() {
            home.write(&format!("deep/d{number}.{ending}"), text);
        }
        fs::write(
            home.path(&format!("bytes.{ending}")),
            b"\x80\xff\nfn findable_\xc3\x28() {}\nclass findable_bytes {};\n",
        )
        .unwrap();
        fs::write(
            home.path(&format!("zeros.{ending}")),
            b"\x7fELF\0\0fn findable_zero() {}\n".repeat(1000),
        )
        .unwrap();
        home.write(
            &format!("new\nline.{ending}"),
            "fn findable_line() {}\nint findable_line() {}\n",
        );
        home.write(&format!("empty.{ending}"), "");
    }
    for (name, to) in [
        ("loop.rs", "loop.rs"),
        ("up", ".."),
        ("deep/up", "."),
        ("link.rs", "good.rs"),
        ("gone.rs", "nothing"),
    ] {
        symlink(to, home.path(name)).unwrap();
    }
    let many: String = (0..30_000)
        .map(|n| format!("fn many_{n}() {{}}\n"))
        .collect();
    home.write("many.rs", &many);
    home.write("many.cpp", &many.replace("fn", "int"));
    let output = call(&home, "search_code", &json!({"query": "findable_thing"}));
    has(
        &output.stdout,
        &["good.rs:1: function findable_thing"],
        &["link.rs", "loop.rs", "up/", "stale", "partial: not"],
    );
    assert!(output.took < Duration::from_secs(25), "{output}");
    let text = search(&home, &json!({"query": "many_29999"}));
    has(
        &text,
        &[
            "many.rs:30000: function many_29999",
            "many.cpp:30000: function many_29999",
        ],
        &["(stale)"],
    );
    let text = search(&home, &json!({"query": "many_", "limit": 500}));
    assert_eq!(text.matches(": function many_").count(), 500, "{text}");
    has(&text, &["there are more"], &[]);
    let text = search(&home, &json!({"query": "findable", "limit": 500}));
    has(&text, &["bytes.c"], &["function findable_line", "zeros"]);
    assert!(
        text.len() < 200_000 && !text.contains("new\nline"),
        "{text}"
    );
}

/// Proves NAT-5.
#[test]
fn symbols_of_cpp_are_found() {
    let home = Home::new();
    home.write("include/server.h", "#pragma once\nnamespace net {\nclass Server : public Base {\npublic:\n    virtual ~Server();\n    void listen(int port);\n    bool operator==(const Server& other) const;\n    bool operator != (const Server& other) const;\n};\n}\n");
    home.write(
        "src/server.cc",
        "#include \"server.h\"\nvoid net::Server::listen(int port) {\n}\n",
    );
    home.write(
        "src/plain.h",
        "struct plain_thing { int x; };\nint plain_make(void);\n",
    );
    let text = search(&home, &json!({"query": "Server::listen"}));
    has(
        &text,
        &[
            "include/server.h:6: method listen in net.Server: void listen(int port);",
            "src/server.cc:2: method listen in net.Server",
        ],
        &[],
    );
    has(
        &search(&home, &json!({"query": "class Server"})),
        &["include/server.h:3: class Server in net"],
        &[],
    );
    has(
        &search(&home, &json!({"query": "operator =="})),
        &["include/server.h:7: method operator== in net.Server: bool operator=="],
        &["stale"],
    );
    has(
        &search(&home, &json!({"query": "operator!="})),
        &["include/server.h:8: method operator!= in net.Server: bool operator != ("],
        &["stale"],
    );
    has(
        &search(&home, &json!({"query": "~Server"})),
        &["include/server.h:5: method ~Server"],
        &["stale"],
    );
    has(
        &search(&home, &json!({"query": "plain_"})),
        &["struct plain_thing", "function plain_make"],
        &[],
    );
}
