//! Test harness: a temporary home, the built binary, database access, and a Chat Completions server.

mod api;
mod database;
mod editor;
mod family;
mod home;
mod mcp_client;
mod page;
mod picture;
#[cfg(feature = "postgres")]
mod pooler;
#[cfg(feature = "postgres")]
mod postgres;
mod process;
mod reply;
mod server;
mod steps;
mod terminal;

use std::time::{Duration, Instant};

pub(crate) use api::{APIS, Api};
pub(crate) use database::{Audit, audit, cell, count, execute, session_ids, vectors};
pub(crate) use editor::{Decision, Editor};
pub(crate) use home::{Home, openai_config};
pub(crate) use mcp_client::{CALLER, McpClient, error_of, text_of};
pub(crate) use page::Page;
pub(crate) use picture::picture;
#[cfg(feature = "postgres")]
pub(crate) use pooler::Pooler;
#[cfg(feature = "postgres")]
pub(crate) use postgres::Postgres;
pub(crate) use process::{KEY, Output, Running, Zeph, search_path};
pub(crate) use reply::Reply;
pub(crate) use server::{OpenAi, Request};
pub(crate) use steps::follow;
pub(crate) use terminal::Terminal;

/// The time limit of all waits.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Polls until `found` returns a value; fails after [`DEADLINE`].
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Asserts that `text` contains each of `words`.
#[track_caller]
pub(crate) fn assert_has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
}

/// The results of all calls in the messages of a request or a stored history.
///
/// Asserts that each call has exactly one result, after it and before the next response.
#[track_caller]
pub(crate) fn results_of(messages: &[serde_json::Value]) -> Vec<(String, String)> {
    let mut open: Vec<String> = Vec::new();
    let mut results = Vec::new();
    for message in messages {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap().to_owned();
                let place = open.iter().position(|known| *known == id);
                let place =
                    place.unwrap_or_else(|| panic!("{id} answers no open call: {messages:#?}"));
                open.remove(place);
                results.push((id, message["content"].as_str().unwrap().to_owned()));
            }
            _ => {
                assert!(open.is_empty(), "{open:?} have no result: {messages:#?}");
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                open.extend(calls.map(|call| call["id"].as_str().unwrap().to_owned()));
            }
        }
    }
    assert!(open.is_empty(), "{open:?} have no result: {messages:#?}");
    results
}

/// Whether a process with `mark` in its command line runs. Zombies do not count.
pub(crate) fn is_running(mark: &str) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    entries.flatten().any(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .bytes()
            .all(|b| b.is_ascii_digit())
            && std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    })
}

/// A number of seconds over a minute that is unique among all `sleep` commands of the tests.
pub(crate) fn unique_seconds() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("73.{:07}{n:03}", std::process::id())
}
