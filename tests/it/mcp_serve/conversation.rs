//! Handshakes of all revisions, the list of tools, and results.

use serde_json::{Value, json};

use crate::mcp::{Served, echo};
use crate::rig::{CALLER, Home, McpClient, assert_has, audit, text_of};

/// Proves MCP-10: each earlier revision is accepted by name, and a request for an unknown one gets the newest of them.
#[test]
fn handshake_agrees_on_the_revision() {
    let table = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ];
    for (requested, agreed) in table {
        let home = Home::new();
        home.write("a.txt", "hello\n");
        let mut client = McpClient::start(&home, &[]);
        let result = client.initialize(requested, &json!({}));
        assert_eq!(result["protocolVersion"], agreed, "{result}");
        assert_eq!(result["serverInfo"]["name"], "zeph");
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
        let read = client.call("read", json!({ "path": "a.txt" }));
        assert!(text_of(&read).contains("hello"), "{read}");
        client.end().code(0);
    }
}

/// Proves MCP-10: revision 2026-07-28 has no handshake. Each request carries its own metadata.
#[test]
fn revision_without_a_handshake_is_served() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let mut client = McpClient::start(&home, &[]);
    client.stateless(&json!({}));
    let found = client.result("server/discover", json!({}));
    let versions = found["supportedVersions"].as_array().unwrap();
    for version in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{found}");
    }
    let listed = client.result("tools/list", json!({}));
    assert!(listed["tools"].as_array().unwrap().len() > 5, "{listed}");
    let read = client.call("read", json!({ "path": "a.txt" }));
    assert_eq!(read["resultType"], "complete");
    assert!(text_of(&read).contains("hello"), "{read}");
    let (code, _) = client.error("ping", json!({}));
    assert_eq!(code, -32601, "this revision has no ping");
    client.end().code(0);
    assert_eq!(
        audit(&home.database())[0].caller_id.as_deref(),
        Some(CALLER)
    );
}

/// Proves MCP-10: without metadata and without a handshake, no request is served.
#[test]
fn request_without_a_handshake_or_metadata_is_refused() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let mut client = McpClient::start(&home, &["--yes"]);
    client.notify("notifications/initialized", json!({}));
    let params = json!({ "name": "bash", "arguments": { "command": "touch ran" } });
    let (code, message) = client.error("tools/call", params);
    assert_eq!(code, -32602);
    assert_has(&message, &["_meta"]);
    client.initialize("2025-06-18", &json!({}));
    client.end().code(0);
    assert!(!home.has("ran"));
}

/// Proves MCP-10, EXE-1: clients see title, description, schema and annotations of each tool.
#[test]
fn tools_are_listed_with_schema_and_annotations() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &[]);
    let listed = client.result("tools/list", json!({}));
    client.end().code(0);
    let tools = listed["tools"].as_array().unwrap();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let hints = |name: &str| {
        let hints = &find(name)["annotations"];
        [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ]
        .map(|hint| hints[hint] == true)
    };
    assert_eq!(hints("read"), [true, false, true, false]);
    assert_eq!(hints("bash"), [false, true, false, true]);
    assert!(hints("fetch")[3]);
    assert_eq!(find("find_path")["title"], "Find path");
    assert_eq!(find("read")["inputSchema"]["required"], json!(["path"]));
    assert!(
        find("read_overflow").is_object(),
        "long results can be read"
    );
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
    }
    assert!(tools.iter().all(|tool| tool["name"] != "compress_context"));
}

/// Proves MCP-10: `--tools` limits the list and the calls. A refused call is audited.
#[test]
fn tools_that_are_not_exposed_cannot_be_called() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let mut client = McpClient::ready(&home, &["--tools", "find*,read", "--yes"]);
    let listed = client.result("tools/list", json!({}));
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["find_path", "read"]);
    let result = client.call("bash", json!({ "command": "touch ran" }));
    assert_eq!(result["isError"], true);
    assert_has(text_of(&result), &["policy_blocked", "not exposed"]);
    let read = client.call("read_file", json!({ "path": "a.txt" }));
    assert!(
        text_of(&read).contains("hello"),
        "an alias is the same tool"
    );
    client.end().code(0);
    assert!(!home.has("ran"));
    let entries = audit(&home.database());
    assert_eq!(
        (entries[0].tool.as_str(), entries[0].result.as_str()),
        ("bash", "blocked")
    );

    let wrong = home.zeph(["mcp", "serve", "--tools", "raed"]);
    wrong.code(2).says(&["--tools raed", "did you mean read?"]);
}

/// Proves MCP-10: a result has text, structured content and images. Failures state their category.
#[test]
fn results_have_text_structure_and_images() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    let result = client.call(
        "bash",
        json!({ "command": "echo out; echo err >&2; exit 3" }),
    );
    assert_eq!(result["structuredContent"]["exit_code"], 3, "{result}");
    assert_eq!(result["structuredContent"]["stdout"], "out\n");
    assert_has(text_of(&result), &["out", "err"]);

    // The smallest PNG.
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let command = format!("echo {png} | base64 -d > a.png");
    client.call("bash", json!({ "command": command }));
    let result = client.call("read", json!({ "path": "a.png" }));
    let content = result["content"].as_array().unwrap();
    let image = content.iter().find(|part| part["type"] == "image");
    let image = image.unwrap_or_else(|| panic!("no image: {result}"));
    assert_eq!(
        (&image["mimeType"], &image["data"]),
        (&json!("image/png"), &json!(png))
    );

    let table = [
        (
            "read",
            json!({ "path": "missing.txt" }),
            "permanent_failure",
        ),
        ("read", json!({}), "invalid_parameters"),
        ("read", json!({ "path": 1 }), "type_mismatch"),
        ("raed", json!({}), "tool_not_found"),
    ];
    for (tool, arguments, category) in table {
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert_has(
            text_of(&result),
            &[&format!("category: {category}"), "suggestion: "],
        );
    }
    client.end().code(0);
}

/// Proves MCP-10, OUT-30: a long result is stored, and the client reads the rest.
#[test]
fn long_result_can_be_read_in_parts() {
    let home = Home::new();
    let mut client = McpClient::ready(&home, &["--yes"]);
    let result = client.call(
        "bash",
        json!({ "command": "for i in $(seq 60000); do echo \"line $i $RANDOM\"; done" }),
    );
    let text = text_of(&result);
    assert!(text.len() < 100_000, "{} bytes", text.len());
    let id = text.split("read_overflow").nth(1).and_then(|rest| {
        let mut words = rest.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
        words.find(|word| word.len() >= 32)
    });
    let id = id.unwrap_or_else(|| panic!("no reference: …{}", &text[text.len() - 600..]));
    let rest = client.call(
        "read_overflow",
        json!({ "id": id, "pattern": "line 30000 " }),
    );
    assert_has(text_of(&rest), &["line 30000 "]);
    client.end().code(0);
}

/// Proves MCP-10: tools of configured MCP servers are exposed only if `--tools` names them.
#[test]
fn tools_of_other_servers_are_not_exposed() {
    let home = Home::new();
    home.config("[[mcp.servers]]\nname = \"other\"\ncommand = \"touch\"\nargs = [\"started\"]\n");
    let mut client = McpClient::ready(&home, &[]);
    let listed = client.result("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .all(|tool| !tool["name"].as_str().unwrap().starts_with("mcp_"))
    );
    client.end().code(0);
    assert!(!home.has("started"), "the server is not started");
}

/// Proves MCP-10: a pattern that names tools of other servers exposes them, with their questions.
#[test]
fn tools_of_other_servers_are_exposed_by_name() {
    let served = Served::new(&[echo()]);
    let call = |args: &[&str]| {
        let mut client = McpClient::ready(&served.home, args);
        let listed = client.result("tools/list", json!({}));
        assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "{listed}");
        let result = client.call("mcp_t_echo", json!({ "text": "hello" }));
        client.end().code(0);
        result
    };
    let asked = call(&["--tools", "mcp_t_*"]);
    assert_has(text_of(&asked), &["confirmation_required"]);
    assert_eq!(served.calls(), 0);
    assert_eq!(call(&["--tools", "mcp_t_*", "--yes"])["isError"], false);
    assert_eq!(served.calls(), 1);
}

/// Proves MCP-10: standard output carries only messages, also if the configuration prints audit entries and logs are on.
#[test]
fn standard_output_carries_only_messages() {
    let home = Home::new();
    home.config("[tools.audit]\nstdout = true\n");
    let run = home
        .zeph(["mcp", "serve", "--yes", "-vvv"])
        .env("ZEPH_LOG", "debug");
    let mut client = McpClient::of(run);
    client.initialize("2025-06-18", &json!({}));
    client.call(
        "bash",
        json!({ "command": "echo out; echo err >&2; touch ran" }),
    );
    client.call("bash", json!({ "command": "sleep 9", "background": true }));
    client.call("read", json!({ "file_path": "ran" }));
    // Each line of the output is a message.
    client.end().code(0).says(&["\"tool\":\"bash\""]);
}

/// Proves MCP-10: the messages of a conversation, byte by byte.
#[test]
fn conversation_on_the_wire() {
    let home = Home::new();
    home.write("a.txt", "hello\n");
    let mut client = McpClient::start(&home, &["--tools", "read,bash"]);
    let mut lines = String::new();
    let (name, version) = CALLER.split_once('/').unwrap();
    let requests = [
        (
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": version } }),
        ),
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({ "name": "read", "arguments": { "path": "a.txt" } }),
        ),
        (
            "tools/call",
            json!({ "name": "bash", "arguments": { "command": "echo hi" } }),
        ),
        (
            "tools/call",
            json!({ "name": "bash", "arguments": { "command": "touch ran" } }),
        ),
        ("tools/call", json!({ "arguments": {} })),
        ("no/method", json!({})),
    ];
    for (method, params) in requests {
        let id = client.send(method, params);
        let mut response = client.response(id);
        for field in [
            "/result/structuredContent/duration_ms",
            "/result/serverInfo/version",
        ] {
            if let Some(value) = response.pointer_mut(field) {
                *value = json!("[varies]");
            }
        }
        let text = serde_json::to_string_pretty::<Value>(&response).unwrap();
        lines.push_str(&format!("{method}\n{text}\n\n"));
    }
    client.end().code(0);
    insta::assert_snapshot!("conversation", home.neutral(&lines));
}
