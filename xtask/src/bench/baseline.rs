//! Baselines: the same operations without Zeph.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::model::{Answer, Model};
use super::subject;

/// The end of each response of [`Model`].
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// The time from start to exit of a process.
pub(super) fn process(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    let status = command.status().with_context(|| name(command))?;
    let took = start.elapsed();
    ensure!(status.success(), "{}: {status}", name(command));
    Ok(took)
}

/// The time from start to exit of a process, including the read of its output.
pub(super) fn output(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| name(command))?;
    let took = start.elapsed();
    let status = output.status;
    ensure!(status.success(), "{}: {status}", name(command));
    Ok(took)
}

/// The program name for errors.
fn name(command: &Command) -> String {
    command.get_program().display().to_string()
}

/// The time to open and read a whole file.
pub(super) fn read(file: &Path) -> Result<Duration> {
    let start = Instant::now();
    let bytes = std::fs::read(file)?;
    let took = start.elapsed();
    ensure!(!std::hint::black_box(bytes).is_empty(), "an empty file");
    Ok(took)
}

/// The times from a response to the next request of a client that does nothing in between, for `turns` turns
/// with request bodies of `body` bytes.
pub(super) fn round_trips(turns: usize, body: usize) -> Result<Vec<Duration>> {
    let answer = Answer::call(0, "read", &json!({ "path": "src/file_0.rs" }));
    let model = Model::start(vec![answer; turns + 1])?;
    let mut request = format!("POST / HTTP/1.1\r\nContent-Length: {body}\r\n\r\n").into_bytes();
    request.resize(request.len() + body, b' ');
    let mut stream = TcpStream::connect(model.address())?;
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    for _ in 0..=turns {
        stream.write_all(&request)?;
        let mut answer = Vec::new();
        while !answer.ends_with(LAST_CHUNK) {
            let read = stream.read(&mut buffer)?;
            ensure!(read > 0, "the server closed the connection");
            answer.extend_from_slice(&buffer[..read]);
        }
    }
    drop(stream);
    Ok(subject::turns(&model.observed()?.exchanges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted_between_requests() {
        assert_eq!(round_trips(3, 1000).unwrap().len(), 3);
    }
}
