//! `kill -9` at random points of a conversation of twenty calls with compaction. The suite runs few rounds;
//! `cargo xtask crash` runs many.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Request, openai_config, results_of};

/// The number of responses with calls. Each has two.
const ANSWERS: u32 = 10;
/// The default number of rounds.
const ROUNDS: u32 = 3;

/// The numbers of the responses whose calls a request contains.
fn answers(request: &Request) -> impl Iterator<Item = u32> {
    let messages = request.messages();
    let calls = messages
        .into_iter()
        .filter_map(|it| it["tool_calls"][0]["id"].as_str().map(str::to_owned));
    calls.filter_map(|id| id.strip_prefix("call_")?.split('_').next()?.parse().ok())
}

/// A server that advances by one response per request, regardless of the last results. Each response appends
/// a line to `done.txt` and writes a file that is large enough to trigger compaction.
fn model() -> OpenAi {
    OpenAi::start(|_, request| {
        if request.is_reformat() {
            return Reply::text("Notes: lines and files are written, one after the other.");
        }
        let n = answers(request).max().map_or(0, |last| last + 1);
        if n >= ANSWERS {
            return Reply::text("All is done.");
        }
        let line = json!({ "command": format!("echo {n} >> done.txt") });
        let content = format!("{n} {}", "a few words, ".repeat(140));
        let file = json!({ "path": format!("f{n}.txt"), "content": content });
        let calls = [("bash", line), ("write", file)];
        Reply::calls(&n.to_string(), &calls).usage(request.raw.len() / 4)
    })
}

fn config(home: &Home, server: &OpenAi) {
    let agent = "[agent]\nmax_tool_iterations = 50\ncontext_budget_tokens = 6500\n";
    home.config(&format!("{agent}{}", openai_config(&server.url())));
}

/// A xorshift64* generator whose state starts with the seed.
struct Random(u64);

impl Random {
    /// The next number from 0 to 1.
    fn part(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40;
        bits as f64 / f64::from(1 << 24)
    }
}

/// The conversation, if it has messages.
fn export(home: &Home) -> Option<Value> {
    let sessions = home.zeph(["sessions", "list", "--json"]).code(0).json();
    Some(home.export(sessions[0]["id"].as_str()?))
}

/// The parts of all stored messages, in order.
fn stored(home: &Home) -> Vec<Value> {
    let Some(export) = export(home) else {
        return Vec::new();
    };
    let messages = export["messages"].as_array().unwrap().iter();
    messages
        .map(|it| json!([it["role"], it["parts"]]))
        .collect()
}

/// The results of a stored history by call id. Each call has at most one.
fn results(messages: &[Value]) -> HashMap<String, String> {
    let mut results = HashMap::new();
    for part in messages.iter().flat_map(|it| it[1].as_array().unwrap()) {
        if part["type"] == "tool_result" {
            let id = part["tool_use_id"].as_str().unwrap().to_owned();
            let content = part["content"].as_str().unwrap().to_owned();
            let before = results.insert(id.clone(), content);
            assert_eq!(before, None, "{id} has two results");
        }
    }
    results
}

/// Kills a conversation after `wait`, resumes it and checks all invariants. Returns the phase that the kill
/// hit.
fn round(wait: Duration) -> &'static str {
    let server = model();
    let home = Home::new();
    config(&home, &server);
    let running = home
        .zeph(["--yes", "-p", "work", "--output-format", "stream-json"])
        .start();
    std::thread::park_timeout(wait);
    let printed = running.kill_and_read();
    home.wait_until_alone();
    let before = stored(&home);
    let done = results(&before);

    // Text that was shown completely and all calls except those of the last response are stored.
    let ended = printed
        .lines()
        .filter(|line| line.contains("\"tool_finished\""));
    let ended = ended.count();
    assert!(
        done.len() + 2 >= ended,
        "{ended} calls had ended, {} results are stored",
        done.len()
    );

    let args = [
        "--yes",
        "--continue",
        "-p",
        "go on",
        "--output-format",
        "json",
    ];
    let object = home.zeph(args).code(0).json();
    assert_eq!(object["stop_reason"], "done", "{object}");
    for request in server.requests().iter().filter(|it| !it.is_reformat()) {
        results_of(&request.messages());
    }
    let after = stored(&home);
    assert_eq!(after[..before.len()], before[..], "no message is lost");
    let all = results(&after);
    let lines = std::fs::read_to_string(home.path("done.txt")).unwrap_or_default();
    let mut interrupted = 0;
    for n in 0..ANSWERS {
        let ran = lines.lines().filter(|line| *line == n.to_string()).count();
        assert!(ran <= 1, "{n} ran {ran} times");
        let asked = all.get(&format!("call_{n}_0"));
        if asked.is_some_and(|content| content.contains("interrupted: the program ended")) {
            interrupted += 1;
        } else {
            assert_eq!(ran, 1, "{n}: {asked:?}");
        }
    }
    assert!(
        interrupted <= 1,
        "{interrupted} calls were interrupted by one kill"
    );
    assert_eq!(all.len(), 2 * ANSWERS as usize, "every call has a result");
    let summaries = export(&home).unwrap()["summaries"].clone();
    let summaries = summaries.as_array().unwrap().len();
    assert!(summaries > 0, "it was compacted");
    match (before.len(), interrupted) {
        (0, _) => "before the first message",
        (_, 0) => "between calls",
        _ => "in a call",
    }
}

/// Proves AGT-6, D-14, D-18, CTX-1.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the caller sets the number of rounds"
)]
fn kill_at_a_random_time_loses_nothing() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let rounds = number("ZEPH_CRASH_ROUNDS").map_or(ROUNDS, |rounds: u64| rounds as u32);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed: u64 = number("ZEPH_CRASH_SEED").unwrap_or_else(|| now.unwrap().subsec_nanos().into());
    let mut random = Random(seed | 1);

    // The duration without a kill.
    let server = model();
    let home = Home::new();
    config(&home, &server);
    let start = Instant::now();
    home.zeph(["--yes", "-p", "work", "--output-format", "json"])
        .code(0);
    let whole = start.elapsed();
    println!("{rounds} rounds, seed {seed}, {whole:?} undisturbed");
    let mut hit: HashMap<&str, u32> = HashMap::new();
    for n in 0..rounds {
        let wait = whole.mul_f64(random.part());
        println!("round {n}: killed after {wait:?}");
        *hit.entry(round(wait)).or_default() += 1;
    }
    println!("killed: {hit:?}");
}
