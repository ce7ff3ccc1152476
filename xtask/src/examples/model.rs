//! A model on loopback with the API of OpenAI, which always gives the same response.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;

/// The response as a stream of events.
const EVENTS: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"content":"Hello from the server."},"finish_reason":"stop"}]}"#,
    "\n\ndata: [DONE]\n\n"
);

/// Starts the model in a thread that lives as long as this program, and returns its address.
pub(super) fn start() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The example reports a failed request.
            let _ = respond(stream);
        }
    });
    Ok(format!("http://{address}"))
}

fn respond(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
    write!(
        &stream,
        "{head}Content-Length: {}\r\n\r\n{EVENTS}",
        EVENTS.len()
    )
}
