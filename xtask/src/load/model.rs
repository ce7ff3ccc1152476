//! The model: it makes a fixed number of calls, and knows from the conversation which one is next.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::bench::model::{Answer, BUFFER, next_request};

/// The file that calls read.
pub(super) const FILE: &str = "notes.txt";
/// The file to which commands add their number.
pub(super) const DONE: &str = "done.txt";
/// One call of so many is a command; the others read.
const COMMAND_EACH: usize = 4;

/// The content of [`FILE`].
pub(super) fn text() -> String {
    (0..200)
        .map(|line| format!("A line with the number {line}.\n"))
        .collect()
}

/// A call that reads a part of the file. No two are the same.
pub(super) fn read(nth: usize) -> Answer {
    Answer::call(
        nth,
        "read",
        &json!({ "path": FILE, "offset": 1 + nth, "limit": 50 }),
    )
}

/// A command that adds its number to the file of finished commands.
pub(super) fn command(nth: usize) -> Answer {
    Answer::call(
        nth,
        "bash",
        &json!({ "command": format!("echo {nth} >> {DONE}") }),
    )
}

/// Whether the `nth` call of a session is a command.
pub(super) fn is_command(nth: usize) -> bool {
    nth % COMMAND_EACH == COMMAND_EACH - 1
}

/// A server on loopback that ends when it is dropped.
pub(super) struct Model {
    address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    /// Starts a model that makes `calls` calls in each session, and takes `pace` for each response.
    pub(super) fn start(calls: usize, pace: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a listener on loopback")?;
        let address = listener.local_addr()?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                // The thread ends with the connection. A killed client may break it at any point.
                std::thread::spawn(move || drop(serve(stream, calls, pace)));
            }
        });
        Ok(Self {
            address,
            is_stopped,
            thread: Some(thread),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, calls: usize, pace: Duration) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    while let Some(request) = next_request(&mut stream, &mut buffer)? {
        let body = buffer.get(request.head..request.head + request.body);
        let answer = next(body.unwrap_or_default(), calls)?;
        std::thread::sleep(pace);
        stream.write_all(&answer.bytes())?;
    }
    Ok(())
}

/// The response to a request.
fn next(body: &[u8], calls: usize) -> Result<Answer> {
    let request: Value = serde_json::from_slice(body).context("a request")?;
    let messages = request["messages"].as_array().context("`messages`")?;
    let made = messages.iter().filter(|message| {
        message["tool_calls"]
            .as_array()
            .is_some_and(|calls| !calls.is_empty())
    });
    Ok(match made.count() {
        nth if nth >= calls => Answer::text("All is done."),
        nth if is_command(nth) => command(nth),
        nth => read(nth),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_depends_on_the_conversation_alone() {
        let check = |made: usize, expect: &str| {
            let call = json!({ "role": "assistant", "tool_calls": [{ "id": "x" }] });
            let mut messages = vec![json!({ "role": "user", "content": "hi" })];
            messages.extend(std::iter::repeat_n(call, made));
            let body = json!({ "messages": messages }).to_string();
            let answer = next(body.as_bytes(), 5).unwrap().bytes();
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.contains(expect), "{made}: {answer}");
        };
        check(0, "call_0");
        check(2, "call_2");
        check(3, "echo 3");
        check(5, "All is done.");
    }
}
