//! Compaction: old results move out of the window, older messages are summarized.

use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Reply, Request, Terminal, assert_has, audit, cell, count, openai_config,
    results_of, session_ids,
};

const NOTES: &str = "The user wants the moon; the port is 5433.";

/// Whether a request asks for a summary; it must expose no tools.
fn sums_up(request: &Request) -> bool {
    let body = request.json();
    let system = body["messages"][0]["content"].as_str().unwrap_or_default();
    let summing = system.starts_with("You write notes on the older part");
    if summing {
        assert!(body.get("tools").is_none(), "it cannot call anything");
        assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    }
    summing
}

fn system(request: &Request) -> String {
    request.messages()[0]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// A reply that reports the size of the request in tokens.
fn counted(reply: Reply, request: &Request) -> Reply {
    reply.usage(request.raw.len() / 4)
}

/// A server that responds `Fine.` to prompts and `NOTES` to summary requests.
fn talkative() -> OpenAi {
    OpenAi::start(|_, request| {
        let text = if sums_up(request) { NOTES } else { "Fine." };
        counted(Reply::text(text), request)
    })
}

fn home(server: &OpenAi, more: &str) -> Home {
    let home = Home::openai(server);
    home.more_config(&format!("[agent]\ncontext_budget_tokens = 9000\n{more}"));
    home
}

/// A prompt of about 1500 tokens that begins with `name`.
fn long(name: &str) -> String {
    format!("{name} {}", "lorem ends, so it ".repeat(300))
}

/// Sends `prompt` in the last session.
fn say(home: &Home, prompt: &str) -> Value {
    let args = ["--yes", "--continue", "--output-format", "json"];
    home.zeph(args).stdin(prompt).run().json()
}

fn stored(home: &Home) -> Value {
    home.export(session_ids(&home.database()).last().unwrap())
}

/// Proves CTX-1, CTX-2, AGT-4: at the threshold older messages leave the window. Their summary stays in the
/// system prompt, byte for byte.
#[test]
fn long_conversation_is_summarized() {
    let server = talkative();
    let home = home(&server, "");
    for n in 0..4 {
        assert_eq!(say(&home, &long(&format!("p{n}")))["stop_reason"], "done");
    }
    assert!(!server.requests().iter().any(sums_up));
    let output = home
        .zeph(["--yes", "--continue", "-p", &long("p4")])
        .code(0);
    assert_has(&output.stderr, &["compacted:", "zeph sessions show"]);
    let requests = server.requests();
    let [.., summing, last] = requests.as_slice() else {
        panic!()
    };
    assert!(sums_up(summing));
    let record = summing.messages()[1]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_has(&record, &["p0 lorem", "Fine."]);
    let prompt = system(last);
    assert_has(&prompt, &["# Knowledge", NOTES, "## Messages 1-"]);
    assert!(prompt.trim_end().ends_with(NOTES), "it is at the end");
    let sent = last.messages();
    assert_eq!(sent[1]["role"], "user");
    assert!(
        sent.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .starts_with("p4 ")
    );
    assert!(!sent[1]["content"].as_str().unwrap().starts_with("p0"));

    // The store still has all messages.
    let export = stored(&home);
    assert_eq!(export["messages"].as_array().unwrap().len(), 10);
    assert!(export["messages"][0].to_string().contains("p0 lorem"));
    assert_eq!(export["summaries"][0]["compaction_method"], "triggered");
    assert_eq!(export["summaries"][0]["content"], NOTES);
    assert_eq!(
        cell(&home.database(), "SELECT compaction_method FROM summaries"),
        "triggered"
    );
    home.zeph(["sessions", "show", &session_ids(&home.database())[0]])
        .code(0)
        .prints(&["── summary of", NOTES]);

    // Another process sends the same prefix and appends.
    say(&home, "and?");
    let next = server.last();
    assert_eq!(system(&next), prompt);
    let (before, now) = (last.messages(), next.messages());
    assert_eq!(now[..before.len()], before[..], "the prefix is the same");
    assert_eq!(next.json()["tools"], last.json()["tools"]);

    // The next summary is appended, so the earlier one stays unchanged.
    for n in 5..9 {
        say(&home, &long(&format!("p{n}")));
    }
    let summaries = count(&home.database(), "summaries");
    assert!((2..=3).contains(&summaries), "{summaries}");
    let later = system(&server.last());
    assert!(later.starts_with(prompt.trim_end()), "{later}");
    assert_eq!(later.matches(NOTES).count() as i64, summaries);
    let requests = server.requests();
    let again = requests.iter().rfind(|request| sums_up(request)).unwrap();
    let record = again.messages()[1]["content"].as_str().unwrap().to_owned();
    assert_has(&record, &["Existing notes", NOTES]);
}

/// A server whose turn writes a file of 2000 bytes in each of its first `rounds` responses.
fn writing(rounds: usize) -> OpenAi {
    let mut n = 0;
    OpenAi::start(move |_, request| {
        if sums_up(request) {
            return counted(Reply::text(NOTES), request);
        }
        n += 1;
        let content = format!("{n} {}", "x ".repeat(1000));
        let write = json!({ "path": format!("f{n}.txt"), "content": content });
        let reply = match n <= rounds {
            true => Reply::calls(&n.to_string(), &[("write", write)]),
            false => Reply::text("Written."),
        };
        counted(reply, request)
    })
}

/// Proves CTX-1, AGT-1, AGT-4: during a turn its prompt stays, and every call has its result.
#[test]
fn long_turn_is_summarized_while_it_runs() {
    let server = writing(20);
    let home = home(&server, "max_tool_iterations = 30\n");
    let object = say(&home, "write twenty files");
    assert_eq!(object["stop_reason"], "done", "{object}");
    assert_eq!(object["iterations"], 20);
    assert!((1..=20).all(|n| home.has(&format!("f{n}.txt"))));
    let mut summed = 0;
    for request in server.requests() {
        if sums_up(&request) {
            summed += 1;
            continue;
        }
        let messages = request.messages();
        assert_eq!(messages[1]["content"], "write twenty files");
        results_of(&messages);
        assert!(request.raw.len() / 4 < 9500, "{}", request.raw.len());
    }
    assert!((1..=5).contains(&summed), "{summed} requests summarized");
    let stored = stored(&home);
    assert_eq!(stored["messages"].as_array().unwrap().len(), 42);
    assert_eq!(stored["summaries"].as_array().unwrap().len(), summed);
    // Summary requests are counted.
    assert_eq!(stored["spending"][0]["requests"], 21 + summed);
}

/// Proves CTX-3: old results are moved out before messages are summarized, and can be read again.
#[test]
fn old_results_are_moved_out_before_a_summary() {
    let server = OpenAi::start(|n, _| {
        let print = format!("seq {n}000 {n}220");
        let bash = ("bash", json!({ "command": print }));
        let reply = match n < 9 {
            true => Reply::calls(&n.to_string(), &[bash]),
            false => Reply::text("Seen."),
        };
        // Numbers have more tokens than their bytes suggest. A server that counts none leaves the estimate
        // unchanged.
        reply.usage(0)
    });
    let home = home(&server, "");
    let object = say(&home, "count");
    assert_eq!(object["stop_reason"], "done", "{object}");
    assert!(!server.requests().iter().any(sums_up));
    let last = server.last().messages();
    let results = results_of(&last);
    assert_eq!(results.len(), 9);
    let moved: Vec<&String> = results
        .iter()
        .map(|(_, content)| content)
        .filter(|content| content.starts_with("[moved out of the context: "))
        .collect();
    assert!(moved.len() >= 2, "{results:?}");
    assert_has(&results[8].1, &["8000", "8220"]);
    // The moved result is stored under its reference.
    let reference = moved[0].split("id=").nth(1).unwrap();
    let reference = reference.split(' ').next().unwrap();
    let session = session_ids(&home.database()).remove(0);
    let read = json!({ "id": reference }).to_string();
    let read = home
        .zeph([
            "tools",
            "call",
            "read_overflow",
            &read,
            "--session",
            &session,
        ])
        .code(0);
    let lines: Vec<&str> = read.stdout.lines().collect();
    assert!(lines.len() > 200, "{lines:?}");
    // The whole result is stored, and a later process sends the same messages.
    assert!(stored(&home).to_string().contains("\\n1210\\n"));
    say(&home, "and?");
    assert_eq!(server.last().messages()[..last.len()], last[..]);
}

/// Proves CTX-1, CTX-2, CMD-1: `/compact` summarizes the conversation.
#[test]
fn user_can_compact_the_conversation() {
    let server = talkative();
    let home = Home::openai(&server);
    let compact = || home.zeph(["--continue", "-p", "/compact"]).code(0);
    compact().prints(&["nothing to summarize"]);
    say(&home, "one");
    compact().prints(&[
        "compacted: 2 messages",
        "local (test-model)",
        "->",
        "zeph sessions show",
    ]);
    say(&home, "two");
    say(&home, "three");
    let sent = server.last().messages();
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert_has(sent[0]["content"].as_str().unwrap(), &[NOTES]);
    compact();
    say(&home, "four");
    let sent = server.last().messages();
    assert_eq!((&sent[1]["content"], sent.len()), (&json!("three"), 4));
    assert_eq!(
        cell(
            &home.database(),
            "SELECT DISTINCT compaction_method FROM summaries"
        ),
        "manual"
    );
    let status = home.zeph(["--continue", "-p", "/status"]).code(0);
    assert_has(
        &status.stdout,
        &["2 compactions (2 manual), 4 messages summarized", "tokens"],
    );
    // `/clear` removes the summary from the prompt; the store keeps it.
    home.zeph(["--continue", "-p", "/clear"]).code(0);
    say(&home, "five");
    let sent = server.last().messages();
    assert!(sent.len() == 2 && !sent[0].to_string().contains(NOTES));
    assert_eq!(stored(&home)["summaries"].as_array().unwrap().len(), 2);
}

/// Proves OUT-41: after compaction, no result is served from the cache that the old window contained.
#[test]
fn cache_is_cleared_by_compaction() {
    let read = |seed: &str| Reply::calls(seed, &[("read", json!({ "path": "a.txt" }))]);
    let compress = Reply::calls("c", &[("compress_context", json!({}))]);
    let server = OpenAi::replies([
        Reply::text("Hello."),
        read("a"),
        read("b"),
        compress,
        Reply::text(NOTES),
        read("d"),
        Reply::text("Read."),
    ]);
    let home = Home::openai(&server);
    home.more_config("[tools.utility]\nenabled = false\n");
    home.write("a.txt", "text\n");
    say(&home, "hello");
    assert_eq!(say(&home, "read")["text"], "Read.");
    let reads = audit(&home.database());
    let reads = reads.iter().filter(|entry| entry.tool == "read");
    let cached: Vec<bool> = reads.map(|entry| entry.cached).collect();
    assert_eq!(cached, [false, true, false]);
}

/// Proves CMD-1 for `/compact`, at a terminal.
#[test]
fn terminal_session_can_be_compacted() {
    let home = Home::scripted(
        r#"
        [[steps]]
        text = "Hello yourself."
        [[steps]]
        expect = { last_user_contains = "hello there", tools_exclude = ["bash"] }
        text = "The user said hello."
        "#,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("hello there\r");
    terminal.shows("Hello yourself.");
    terminal.prompts("");
    terminal.type_keys("/compact\r");
    terminal.shows("compacted: 2 messages");
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("1 compaction (1 manual)");
}

/// Proves CTX-1: on any failure the original messages stay, and compaction is not retried endlessly.
#[test]
fn failed_summary_leaves_the_messages() {
    let check = |reply: Reply, words: &[&str]| {
        let server = OpenAi::start(move |_, request| match sums_up(request) {
            true => reply.clone(),
            false => counted(Reply::text("Fine."), request),
        });
        let home = home(&server, "");
        for n in 0..4 {
            say(&home, &long(&format!("p{n}")));
        }
        let output = home.zeph(["--continue", "-p", &long("p4")]).code(4);
        assert_has(&output.stderr, &["was not compacted and is unchanged"]);
        assert_has(&output.stderr, words);
        let asked = server.requests().iter().filter(|it| sums_up(it)).count();
        assert_eq!(asked, 1);
        assert_eq!(count(&home.database(), "summaries"), 0);
        let session = session_ids(&home.database()).remove(0);
        assert_eq!(
            home.export(&session)["messages"].as_array().unwrap().len(),
            9
        );
        // `/compact` reports the failure too.
        let output = home.zeph(["--continue", "-p", "/compact"]).code(1);
        assert_has(&output.stderr, &["error: ", "not compacted"]);
        assert_has(&output.stderr, words);
    };
    check(
        Reply::error(400, "bad", "no such thing"),
        &["no such thing"],
    );
    check(Reply::text(" \n"), &["returned no summary"]);
    let call = Reply::calls("x", &[("bash", json!({ "command": "touch ran" }))]);
    check(call, &["returned no summary"]);
    // A summary that is not shorter is rejected, except after `/compact`.
    let server = OpenAi::start(|_, request| match sums_up(request) {
        true => Reply::text(&"all of it ".repeat(3000)),
        false => counted(Reply::text("Fine."), request),
    });
    let home = home(&server, "");
    for n in 0..4 {
        say(&home, &long(&format!("p{n}")));
    }
    let output = home.zeph(["--continue", "-p", &long("p4")]).code(4);
    assert_has(
        &output.stderr,
        &["as long as the messages", "/compact", "/clear"],
    );
}

/// Proves CTX-1, LLM-11: the budget limits compaction, and a kill during it leaves all messages unchanged.
#[test]
fn kill_or_budget_during_compaction_leaves_the_originals() {
    let server = OpenAi::start(|_, request| match sums_up(request) {
        true => Reply::hang(),
        false => counted(Reply::text("Fine."), request),
    });
    let home = home(&server, "max_tokens_per_session = 9000\n");
    for n in 0..4 {
        say(&home, &long(&format!("p{n}")));
    }
    let object = say(&home, &long("p4"));
    assert_eq!(object["stop_reason"], "context_budget", "{object}");
    assert!(
        !server.requests().iter().any(sums_up),
        "the budget is exhausted"
    );

    let config = openai_config(&server.url());
    home.config(&format!("[agent]\ncontext_budget_tokens = 9000\n{config}"));
    let before = server.requests().len();
    let running = home.zeph(["--continue", "-p", "go"]).start();
    server.wait_for_requests(before + 1);
    running.kill();
    home.wait_until_alone();
    assert_eq!(count(&home.database(), "summaries"), 0);
    let server = talkative();
    home.config(&format!(
        "[agent]\ncontext_budget_tokens = 9000\n{}",
        openai_config(&server.url())
    ));
    assert_eq!(say(&home, "go on")["stop_reason"], "done");
    let sent = server.last().messages();
    assert_has(&sent.last().unwrap().to_string(), &["go on"]);
    assert_eq!(stored(&home)["summaries"].as_array().unwrap().len(), 1);
}

/// A server whose model accepts at most `bytes` in a request.
fn small(bytes: usize) -> OpenAi {
    OpenAi::start(move |_, request| {
        if request.raw.len() > bytes {
            let message = "This model's maximum context length is 4096 tokens";
            return Reply::error(400, "context_length_exceeded", message);
        }
        Reply::text(if sums_up(request) { NOTES } else { "Fine." })
    })
}

/// Proves LLM-5: a request that is too long for the model is compacted and sent once more.
#[test]
fn context_overflow_is_compacted_and_retried_once() {
    let server = small(20_000);
    let home = Home::openai(&server);
    say(&home, &long("p0"));
    say(&home, &long("p1"));
    let before = server.requests().len();
    let object = say(&home, &long("p2"));
    assert_eq!(
        (&object["stop_reason"], &object["text"]),
        (&json!("done"), &json!("Fine."))
    );
    let requests = &server.requests()[before..];
    assert_eq!(requests.len(), 3);
    assert!(sums_up(&requests[1]));
    assert_has(&system(&requests[2]), &[NOTES]);
    assert_eq!(
        stored(&home)["summaries"][0]["compaction_method"],
        "triggered"
    );

    // If the request is still too long, the error is reported after one more request.
    let object = say(&home, &"x ".repeat(12_000));
    assert_eq!(object["stop_reason"], "error");
    assert_has(
        object["message"].as_str().unwrap(),
        &["maximum context length"],
    );

    // A long result is moved out, although it is the last.
    let server = OpenAi::start(|n, request| {
        if request.raw.len() > 24_000 {
            return Reply::error(400, "context_length_exceeded", "too long");
        }
        let print = json!({ "command": "seq 1 5000" });
        match n {
            0 => Reply::calls("a", &[("bash", print)]),
            _ => Reply::text("Seen."),
        }
    });
    let home = Home::openai(&server);
    assert_eq!(say(&home, "count")["text"], "Seen.");
    let results = results_of(&server.last().messages());
    assert_has(&results[0].1, &["[moved out of the context: 5000 lines"]);
}

/// Proves LLM-5, AGT-4: without compaction an overflow is an immediate error, and the budget stops at 80 %.
#[test]
fn compaction_can_be_disabled() {
    let server = small(20_000);
    let home = Home::openai(&server);
    home.more_config("[agent.compaction]\nenabled = false\n");
    say(&home, &long("p0"));
    say(&home, &long("p1"));
    let before = server.requests().len();
    let object = say(&home, &long("p2"));
    assert_eq!(object["stop_reason"], "error");
    assert_eq!(server.requests().len(), before + 1);

    let server = talkative();
    let home = self::home(&server, "compaction.enabled = false\n");
    for n in 0..4 {
        say(&home, &long(&format!("p{n}")));
    }
    let object = say(&home, &long("p4"));
    assert_eq!(object["stop_reason"], "context_budget");
    assert_has(object["message"].as_str().unwrap(), &["over 80 %"]);
    assert!(!server.requests().iter().any(sums_up));
    // `/compact` still works.
    home.zeph(["--continue", "-p", "/compact"])
        .code(0)
        .prints(&["compacted: "]);
}

/// Proves CTX-1, CTX-2: if the tool is exposed, the model can compact its conversation.
#[test]
fn model_can_compact_its_conversation() {
    let server = OpenAi::start(|_, request| {
        if sums_up(request) {
            return Reply::text(NOTES);
        }
        match request.messages().last().unwrap()["content"].as_str() {
            Some("tidy up") => Reply::calls("t", &[("compress_context", json!({}))]),
            _ => Reply::text("Fine."),
        }
    });
    let home = Home::openai(&server);
    say(&home, "one");
    say(&home, "two");
    let offered = |request: &Request| {
        request.json()["tools"]
            .to_string()
            .contains("compress_context")
    };
    let object = say(&home, "tidy up");
    assert_eq!(object["text"], "Fine.", "{object}");
    let last = server.last();
    assert!(offered(&last));
    assert_has(&system(&last), &[NOTES]);
    let sent = last.messages();
    assert_eq!(sent[1]["content"], "tidy up", "{sent:?}");
    results_of(&sent);
    assert_eq!(
        cell(&home.database(), "SELECT compaction_method FROM summaries"),
        "autonomous"
    );
    let off = "agent.compaction.enabled=false";
    home.zeph(["-p", "three", "--set", off]).code(0);
    assert!(!offered(&server.last()), "only where compaction is on");
    // Outside a conversation there are no messages to summarize.
    home.zeph(["tools", "call", "compress_context"])
        .code(1)
        .says(&["no conversation to summarize"]);
}

/// Proves CTX-1: another provider may summarize; the start reports an unsuitable one.
#[test]
fn another_provider_can_summarize() {
    let (server, other) = (talkative(), talkative());
    let home = Home::openai(&server);
    let block = openai_config(&other.url()).replace("\"local\"", "\"small\"");
    let config = format!(
        "[agent]\ncompress_provider = \"small\"\n{}{block}",
        openai_config(&server.url())
    );
    home.config(&config);
    say(&home, "one");
    home.zeph(["--continue", "-p", "/compact"])
        .code(0)
        .prints(&["by small (test-model)"]);
    assert_eq!((server.requests().len(), other.requests().len()), (1, 1));
    assert_eq!(stored(&home)["summaries"][0]["provider"], "small");
    home.config(&config.replace("= \"small\"\n[[", "= \"smal\"\n[["));
    home.zeph(["-p", "x"])
        .code(2)
        .says(&["no provider called \"smal\""]);
    home.config(&(config + "\n").replacen(
        "api_key_env = \"TEST_KEY\"\n\n",
        "api_key_env = \"NO_KEY\"\n",
        1,
    ));
    home.zeph(["-p", "x"])
        .code(1)
        .says(&["compress_provider", "NO_KEY"]);
}

/// Proves CTX-1, OUT-21: the value of a secret does not enter the summary.
#[test]
fn summary_contains_no_secret() {
    let key = "AKIAQ4XH7KJ2MZP5TB3W";
    let server = OpenAi::start(move |_, request| match sums_up(request) {
        true => Reply::text(&format!("The key is {key}, the port 5433.")),
        false => Reply::text("Fine."),
    });
    let home = Home::openai(&server);
    say(&home, "one");
    home.zeph(["--continue", "-p", "/compact"]).code(0);
    say(&home, "two");
    let prompt = system(&server.last());
    assert_has(&prompt, &["[redacted:", "the port 5433"]);
    let kept = cell(&home.database(), "SELECT content FROM summaries");
    assert!(!prompt.contains(key) && !kept.contains(key), "{kept}");
}
