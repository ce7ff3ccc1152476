//! Tests of calls in texts, and of the texts around them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::parse::{Calls, calls};
use super::*;
use crate::http_provider::testing::{
    any_message, call, image, model, reasoning, result, text, user,
};
use crate::message::{Message, Role};
use crate::scripted::{Scenario, ScriptedProvider};
use crate::tool::ToolDefinition;

const TOOLS: [&str; 4] = ["bash", "read", "web_scrape", "clock"];

fn found(answer: &str) -> Calls {
    calls(answer, |name| TOOLS.contains(&name))
}

/// The calls of a response as tool and arguments. The text at their positions begins and ends like a call.
#[track_caller]
fn check(answer: &str, expect: &[(&str, Value)]) {
    let calls = found(answer).calls;
    let got: Vec<_> = calls
        .iter()
        .map(|call| (call.name.as_str(), call.input.clone()))
        .collect();
    assert_eq!(got, expect, "{answer}");
    let mut end = 0;
    for call in &calls {
        let place = &answer[call.span.clone()];
        assert!(
            place.starts_with("```") || place.starts_with('{'),
            "{place:?}"
        );
        assert!(call.span.start >= end);
        end = call.span.end;
    }
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

/// Proves LLM-8, D-24: texts that are calls.
#[test]
fn calls_in_text_are_found() {
    let read = || ("read", json!({"path": "a"}));
    check("```bash\nls\n```", &[bash("ls")]);
    check(
        "I look.\n\n```bash\nls -l\n\ncat a\n```\nThen.",
        &[bash("ls -l\n\ncat a")],
    );
    check(
        "Text\n```bash  \r\nls\r\npwd\r\n``` \r\nmore",
        &[bash("ls\npwd")],
    );
    check("``` bash\nls\n```", &[bash("ls")]);
    check(
        "````bash\necho '```'\n```\n````",
        &[bash("echo '```'\n```")],
    );
    check("```bash\nls\n`````", &[bash("ls")]);
    check("```bash\nls\n   ```", &[bash("ls")]);
    check("```bash\n```", &[bash("")]);
    check("```bash\n\n```", &[bash("")]);
    check("```bash\nls\n```<|im_end|>", &[bash("ls")]);
    check("```bash\nls\n```\n</s>", &[bash("ls")]);
    check(
        "```bash\ngrep '<|im_end|>' a\n```\n",
        &[bash("grep '<|im_end|>' a")],
    );
    check(
        "```json\n{\"tool_id\": \"read\", \"params\": {\"path\": \"a\"}}\n```",
        &[read()],
    );
    check(
        "```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
        &[read()],
    );
    check(
        "```json\n{\"name\": \"read\", \"arguments\": \"{\\\"path\\\":\\\"a\\\"}\"}\n```",
        &[read()],
    );
    check(
        "```json\n{\n \"params\": {\"path\": \"a\"},\n \"tool_id\": \"read\",\n \"why\": 1\n}\n```",
        &[read()],
    );
    check(
        "```json\n{\"tool_id\": \"clock\", \"params\": null}\n```",
        &[("clock", json!({}))],
    );
    check(
        "```json\n{\"tool_id\": \"read\", \"params\": [1]}\n```",
        &[("read", json!([1]))],
    );
    check(
        "```scrape\n{\"url\": \"https://a\",\n\"select\": \"h1\"}\n```",
        &[("web_scrape", json!({"url": "https://a", "select": "h1"}))],
    );
    // Line feeds and tabs in strings as they are.
    check(
        "```json\n{\"tool_id\": \"read\", \"params\": {\"path\": \"a\n\t\\\"b\\\\\"}}\n```",
        &[("read", json!({"path": "a\n\t\"b\\"}))],
    );
    // The complete response.
    for (before, after) in [
        ("", ""),
        ("\n ", " \n"),
        ("<think>\nhm\n</think>\n\n", "<|im_end|>\n"),
    ] {
        let answer =
            format!("{before}{{\"tool_id\": \"read\", \"params\": {{\"path\": \"a\"}}}}{after}");
        check(&answer, &[read()]);
    }
    // In order, and mixed.
    check(
        "One:\n```bash\nls\n```\nTwo:\n```json\n{\"tool_id\":\"read\",\"params\":{\"path\":\"a\"}}\n```\n```bash\npwd\n```\n",
        &[bash("ls"), read(), bash("pwd")],
    );
    // After text that is not a call.
    for before in [
        "> ```bash\n> rm a\n> ```\n",
        "- ```bash\n  rm a\n  ```\n",
        "- x\n\n  ```bash\n  rm a\n  ```\n",
        "1. x\n   ```bash\n   rm a\n   ```\n2. y\n   ```sh\n   rm b\n   ```\n\n",
        "~~~\n```bash\nrm a\n```\n~~~\n",
        "````md\n```bash\nrm a\n```\n````\n",
        "```sh\nrm a\n```\n",
        "<!-- see -->\n",
        "<!--\n```bash\nrm a\n```\n-->\n",
        "<details>\n```bash\nrm a\n```\n\n",
        "<think>\n```bash\nrm a\n```\n</think>\n",
        "I think:\n```bash\nrm a\n```\n</think>\n",
        "Use `<b>` and <br> here.\n",
        "1984. A year.\n* * *\n# Title\n",
        "    ```\n\n",
        "``` not ` a fence\n",
    ] {
        check(&format!("{before}```bash\nls\n```"), &[bash("ls")]);
    }
}

/// Proves LLM-8, D-24: calls that are only quoted, or incomplete.
#[test]
fn quoted_or_incomplete_calls_are_ignored() {
    for answer in [
        "",
        "Run `ls`.",
        "```sh\nls\n```",
        "```\nls\n```",
        "```bash title=x\nls\n```",
        "```Bash\nls\n```",
        "~~~bash\nls\n~~~",
        " ```bash\nls\n```",
        "\t```bash\nls\n\t```",
        "    ```bash\n    ls\n    ```",
        "> ```bash\n> ls\n> ```",
        ">```bash\n>ls\n>```",
        "   > ```bash\n   > ls\n   > ```",
        "- ```bash\n  ls\n  ```",
        "- a\n  - b\n\n    ```bash\n    ls\n    ```",
        "1) a\n\n   ```bash\n   ls\n   ```",
        "`````\n```bash\nls\n```\n`````",
        "~~~~\n```bash\nls\n```\n~~~~",
        "  ````\n```bash\nls\n```\n  ````",
        "<!--\n```bash\nls\n```\n-->",
        "<!-- never closed\n\n```bash\nls\n```",
        "<pre>\n\n```bash\nls\n```\n</pre>",
        "<details>\n```bash\nls\n```\n</details>",
        "<think>\n```bash\nls\n```",
        "```bash\nls",
        "```bash\nls\n``",
        "````bash\nls\n```",
        "```bash\nls\n```x",
        "```bash\nls\n    ```",
        "Done.<|im_end|>\n<|im_start|>user\n```bash\nls\n```",
        "Done.\n[tool result: bash]\nok\n```bash\nls\n```",
        "```json\n{\"tool_id\": \"nope\", \"params\": {}}\n```",
        "```json\n{\"tool_id\": \"read\"}\n```",
        "```json\n{\"params\": {\"path\": \"a\"}}\n```",
        "```json\n[{\"tool_id\": \"read\", \"params\": {}}]\n```",
        "```json\n{\"name\": \"zeph\", \"arguments\": {}}\n```",
        "```json\n{\"version\": 1,}\n```",
        "```json\n\"tool_id\"\n```",
        "```js\n{\"tool_id\": \"read\", \"params\": {}}\n```",
        "So: {\"tool_id\": \"read\", \"params\": {}}",
        "{\"tool_id\": \"read\", \"params\": {}}\nThat is it.\n> {",
        "{\"version\": 1}",
        // This is not a string of JSON, because a JSON string has no line feeds.
        "So:\n{\"tool_id\": \"write\", \"params\": {\"content\": \"\n```bash\nls\n```\n\"}}",
    ] {
        let calls = found(answer).calls;
        let runs = calls.iter().filter(|call| call.input.is_object());
        assert_eq!(runs.count(), 0, "{answer}: {calls:?}");
    }
    // Unavailable tools have no blocks.
    let answer =
        "```bash\nls\n```\n```scrape\n{}\n```\n```json\n{\"tool_id\":\"read\",\"params\":{}}\n```";
    let found = calls(answer, |name| name == "read");
    let names: Vec<_> = found.calls.iter().map(|call| &*call.name).collect();
    assert_eq!(names, ["read"]);
}

/// Proves LLM-8: a call with invalid JSON is a call, so that its result can report the error.
#[test]
fn malformed_calls_are_reported_as_calls() {
    let raw = |tool: &'static str, text: &str| (tool, json!(text));
    for (body, tool) in [
        (
            "{\"tool_id\": \"read\", \"params\": {\"path\": \"a\"",
            "read",
        ),
        (
            "{\"tool_id\": \"read\", \"params\": {\"path\": \"a\",}}",
            "read",
        ),
        ("{tool_id: read, params: {}}", "read"),
        ("{'tool_id': 'nope'}", "nope"),
        ("{\"tool_id\"", "json"),
        ("{\"name\": \"read\", \"arguments\": {]}", "read"),
        (
            "{\"tool_id\":\"read\",\"params\":{}}\n{\"tool_id\":\"read\",\"params\":{}}",
            "read",
        ),
    ] {
        check(&format!("So:\n```json\n{body}\n```"), &[raw(tool, body)]);
        check(body, &[raw(tool, body)]);
    }
    for body in ["https://example.org", "", "[1]", "{\"url\": }"] {
        check(
            &format!("```scrape\n{body}\n```"),
            &[raw("web_scrape", body)],
        );
    }
    // Invalid JSON without a call is ignored.
    check("```json\n{\"name\": \"zeph\", \"arguments\": {]}\n```", &[]);
    check("{ curly }\n```bash\nls\n```", &[bash("ls")]);
}

#[test]
fn unclosed_blocks_are_reported() {
    for (answer, expect) in [
        ("```bash\nls", true),
        ("```scrape\n{", true),
        ("```json\n{\"tool_id\": \"read\"", true),
        ("```json\n{\"a\": 1", false),
        ("```sh\nls", false),
        ("> ```bash\n> ls", false),
        ("~~~bash\nls", false),
        ("```bash\nls\n```", false),
    ] {
        assert_eq!(found(answer).unclosed, expect, "{answer}");
    }
}

/// Any text with the significant parts in it.
fn any_answer() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => Just("```bash\nls\n```\n".to_owned()),
        2 => Just("```json\n{\"tool_id\":\"read\",\"params\":{}}\n```\n".to_owned()),
        3 => "(```|````|~~~|> |- |1\\. |  |    |\t|<!--|-->|<pre>|</pre>|<div>|<think>|</think>|\\{|\"tool_id\"|\n|\r\n|bash|json|scrape|<\\|im_end\\|>|[a-z ]{0,5})",
        1 => "\\PC{0,6}",
    ];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Proves LLM-8, D-24.
    #[test]
    fn decoys_of_any_response_are_not_calls(answer in any_answer()) {
        let calls = found(&answer).calls;
        for call in &calls {
            prop_assert!(answer.get(call.span.clone()).is_some());
        }
        let shielded = |before: &str, each: &str, after: &str| {
            let lines: String = answer.split_inclusive('\n').map(|line| format!("{each}{line}")).collect();
            found(&format!("{before}{lines}\n{after}")).calls
        };
        prop_assert_eq!(shielded("x\n\n", "> ", ""), []);
        prop_assert_eq!(shielded("x\n- y\n", "  ", ""), []);
        prop_assert_eq!(shielded("x\n", "    ", ""), []);
        let fence = "`".repeat(answer.len() + 3);
        let fenced = shielded(&format!("x\n{fence}text\n"), "", &fence);
        // A closing tag of thinking in the text restarts the response.
        prop_assert!(fenced.is_empty() || answer.contains("</think>"), "{fenced:?}");
        let open = shielded("x\n````````````bash\n", "", "");
        prop_assert!(open.is_empty() || answer.contains("</think>"), "{open:?}");
    }

    /// The calls of the first lines are the first calls.
    #[test]
    fn later_text_changes_no_earlier_call(answer in any_answer(), lines in 0usize..20) {
        // Thinking and a complete JSON object are parsed as a whole.
        let answer = format!("So:\n{}", answer.replace("think", "thing"));
        let first = answer.split_inclusive('\n').take(lines);
        let first: String = first.filter(|line| line.ends_with('\n')).collect();
        let (few, all) = (found(&first).calls, found(&answer).calls);
        prop_assert!(all.starts_with(&few), "{few:?} {all:?}");
    }

    /// Proves LLM-6, LLM-8: a further message leaves the earlier texts unchanged, except the last one.
    #[test]
    fn longer_history_begins_with_the_same_texts(messages in proptest::collection::vec(any_message(), 1..12), images: bool) {
        let mut before: Vec<Message> = Vec::new();
        for count in 1..=messages.len() {
            let texts = to_texts(&messages[..count], images);
            prop_assert!(texts.starts_with(&before[..before.len().saturating_sub(1)]));
            for pair in texts.windows(2) {
                prop_assert_ne!(pair[0].role, pair[1].role);
            }
            for part in texts.iter().flat_map(|message| &message.parts) {
                let is_text = !matches!(
                    part,
                    MessagePart::ToolUse(_) | MessagePart::ToolResult { .. }
                );
                prop_assert!(is_text, "{part:?}");
            }
            before = texts;
        }
    }

    /// A written call is parsed as the same call.
    #[test]
    fn formatted_calls_are_parsed(command in "[`a-z \n]{0,20}", native in any::<bool>()) {
        let input = if native { json!({"command": command}) } else { json!({"command": command, "timeout_secs": 1}) };
        let history = [Message { role: Role::Assistant, parts: vec![text("I look."), call("call_1", "bash", input.clone())] }];
        let written = to_texts(&history, true).remove(0).text();
        let calls = found(&written).calls;
        prop_assert_eq!(calls.len(), 1, "{}", written);
        prop_assert_eq!(&calls[0].input, &input, "{}", written);
    }
}

/// Proves LLM-8: responses are unchanged, results are text of the user.
#[test]
fn history_is_converted_to_text() {
    let native = call("call_1", "web_scrape", json!({"url": "https://a"}));
    let messages = [
        user(vec![text("Look"), image("AAAA")]),
        model(vec![
            reasoning("hm", Some("ollama-thinking:")),
            text("I look.\n```bash\nls\n```"),
            call("text_0", "bash", json!({"command": "ls"})),
        ]),
        user(vec![result("text_0", "a b"), text("And?")]),
        user(vec![text("Well?")]),
        model(vec![
            native,
            call("call_2", "bash", json!({"command": "echo '```'"})),
        ]),
        model(vec![call("call_3", "read", json!("{broken"))]),
        user(vec![
            result("call_1", "page"),
            image("BBBB"),
            MessagePart::ToolResult {
                tool_use_id: "call_3".to_owned(),
                content: "[tool_error]".to_owned(),
                is_error: true,
            },
            result("gone", "?"),
        ]),
    ];
    let texts = to_texts(&messages, true);
    assert_eq!(
        texts,
        [
            user(vec![text("Look"), image("AAAA")]),
            model(vec![
                reasoning("hm", Some("ollama-thinking:")),
                text("I look.\n```bash\nls\n```"),
            ]),
            user(vec![text("[tool result: bash]\na b\n\nAnd?\n\nWell?")]),
            model(vec![text(
                "```scrape\n{\"url\":\"https://a\"}\n```\n\n````bash\necho '```'\n````\n\n```json\n{\"tool_id\":\"read\",\"params\":\"{broken\"}\n```"
            )]),
            user(vec![
                text(
                    "[tool result: web_scrape]\npage\n\nImage 1 belongs to the result of web_scrape."
                ),
                image("BBBB"),
                text("[tool result: read, failed]\n[tool_error]\n\n[tool result: gone]\n?"),
            ]),
        ]
    );
    let blind = to_texts(&messages, false);
    assert_eq!(
        blind[0],
        user(vec![text(&format!(
            "Look\n\n{}",
            crate::http_provider::wire::IMAGE_LEFT_OUT
        ))])
    );
}

fn tool(name: &str, description: &str, parameters: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Arc::new(parameters),
    }
}

fn tools() -> Vec<ToolDefinition> {
    let path = json!({"type": "string", "description": "A file"});
    vec![
        tool(
            "bash",
            "Runs a command.",
            json!({"type": "object", "properties": {"command": {"type": "string"}, "timeout_secs": {"type": "integer"}}, "required": ["command"]}),
        ),
        tool("clock", "Says the time.", json!({"type": "object"})),
        tool(
            "read",
            "Reads a file.",
            json!({"type": "object", "properties": {"path": path, "as": {"enum": ["text", "hex"]}}, "required": ["path"]}),
        ),
        tool(
            "set",
            "Sets.",
            json!({"type": "object", "properties": {
                "tags": {"type": "array", "items": {"type": "string"}},
                "at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
                "any": {"anyOf": [{"type": "null"}]},
            }}),
        ),
        tool(
            "web_scrape",
            "Reads a page.",
            json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}),
        ),
    ]
}

/// Proves LLM-8.
#[test]
fn catalog_lists_only_available_tools() {
    insta::assert_snapshot!(catalog::with_tools("You are Zeph.\n", &tools()));
    assert_eq!(
        catalog::with_tools("You are Zeph.\n", &[]),
        "You are Zeph.\n"
    );
    // Every example is a call, and only available tools are listed.
    let all = tools();
    for offered in [&all[..], &all[..1], &all[1..2], &all[1..4], &all[4..]] {
        let said = catalog::with_tools("", offered);
        let names: Vec<_> = offered.iter().map(|tool| tool.name.as_str()).collect();
        for call in calls(&said, |name| TOOLS.contains(&name) || name == "set").calls {
            assert!(names.contains(&&*call.name), "{}: {said}", call.name);
            assert!(call.input.is_object());
        }
        for tool in &all {
            assert_eq!(
                said.contains(&format!("- {}(", tool.name)),
                names.contains(&&*tool.name)
            );
        }
    }
}

fn provider(steps: &str) -> Arc<dyn LlmProvider> {
    let scenario = Scenario::from_toml(steps, BTreeMap::new()).unwrap();
    let scripted = ScriptedProvider::new("local", scenario).without_tool_use();
    TextTools::wrap_if_needed(Arc::new(scripted))
}

async fn ask(
    provider: &dyn LlmProvider,
    tool_choice: ToolChoice,
) -> (Result<ChatResponse, LlmError>, Vec<StreamEvent>) {
    let (messages, tools) = ([Message::user("Go.")], tools());
    let request = ChatRequest {
        tool_choice,
        ..crate::http_provider::testing::request(&messages, &tools)
    };
    let mut events = Vec::new();
    let answer = provider
        .chat_stream(request, &mut |event| events.push(event))
        .await;
    (answer, events)
}

/// Proves LLM-8: the unchanged text, then the calls; no calls if they are forbidden, or if the response was cut off.
#[tokio::test]
async fn scripted_responses_become_text_and_calls() {
    let said =
        "I look.\n```bash\nls\n```\nAnd:\n```json\n{\"tool_id\": \"clock\", \"params\": {}}\n```";
    let step = |text: &str, more: &str| format!("[[steps]]\ntext = '''\n{text}'''\n{more}\n");
    let provider = provider(
        &[
            step(said, ""),
            step(said, ""),
            step("So:\n```bash\nls", "stop = \"max_tokens\""),
            step("{\"tool_id\": \"clock\", \"par", "stop = \"max_tokens\""),
            step(&"```bash\nls\n```\n".repeat(MAX_CALLS + 1), ""),
        ]
        .concat(),
    );
    assert!(!provider.supports_tool_use());
    let (answer, events) = ask(&*provider, ToolChoice::Auto).await;
    assert_eq!(events.len(), 5, "{events:?}");
    let message = answer.unwrap().into_message();
    assert_eq!(message.text(), said);
    let calls: Vec<_> = message.tool_uses().collect();
    assert_eq!(
        (calls[0].name.as_str(), calls[1].name.as_str()),
        ("bash", "clock")
    );
    assert!(calls.iter().all(|call| call.id.starts_with(ID)));
    assert_ne!(calls[0].id, calls[1].id);
    let (answer, _) = ask(&*provider, ToolChoice::None).await;
    assert!(matches!(answer, Ok(ChatResponse::Text { .. })));
    for _ in 0..2 {
        let (answer, events) = ask(&*provider, ToolChoice::Auto).await;
        assert!(
            matches!(
                answer,
                Ok(ChatResponse::Text {
                    stop: StopReason::MaxTokens,
                    ..
                })
            ),
            "{answer:?}"
        );
        assert!(
            matches!(events.last(), Some(StreamEvent::Notice(_))),
            "{events:?}"
        );
    }
    let (answer, _) = ask(&*provider, ToolChoice::Auto).await;
    assert_eq!(answer.unwrap_err().kind, LlmErrorKind::Protocol);
}

/// Proves LLM-4: text that spans a break of the stream is not a call.
#[test]
fn call_across_a_stream_break_is_dropped() {
    let mut seams = Seams::default();
    for event in [
        StreamEvent::TextDelta("0123456789".to_owned()),
        StreamEvent::Notice("again".to_owned()),
        StreamEvent::TextDelta("0123456789".to_owned()),
    ] {
        seams.watch(&event);
    }
    for (span, expect) in [
        (0..10, false),
        (0..11, true),
        (9..20, true),
        (10..20, false),
    ] {
        assert_eq!(seams.cut(&span, 20), expect, "{span:?}");
    }
    assert!(!seams.cut(&(0..10), 10), "the answer began anew");
}
