//! How fast streamed answers are read: `cargo bench -p zeph-llm --bench stream`.
//!
//! `framing` cuts bytes into events. `decoding` is the whole way of an answer, from a socket on
//! loopback through HTTP, events and JSON to the complete text. Targets: 500 and 150 MB/s.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use zeph_llm::sse::{SseDecoder, SseError};
use zeph_llm::{Message, ProviderConfig, ProviderKind, RetryConfig, build_provider};

/// Events of one answer; about 4 MB.
const EVENTS: usize = 16_000;
/// What one read of a socket brings at most, about.
const PIECE: usize = 16 * 1024;
/// The text of each event.
const WORDS: &str = "a few words, ";

fn main() {
    divan::main();
}

/// An answer as servers stream it: many events with a few words each.
fn answer() -> Vec<u8> {
    let event = |choices: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG\",\"object\":\"chat.completion.chunk\",\
             \"created\":1741570283,\"model\":\"bench\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_fc9f1d7035\",\"choices\":[{choices}],\"usage\":null}}\n\n"
        )
    };
    let delta = |delta: &str, finish: &str| {
        event(&format!(
            "{{\"index\":0,\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{finish}}}"
        ))
    };
    let mut text = delta(&format!("\"content\":\"{WORDS}\""), "null").repeat(EVENTS);
    text.push_str(&delta("", "\"stop\""));
    text.push_str("data: [DONE]\n\n");
    text.into_bytes()
}

#[divan::bench]
fn framing(bencher: Bencher<'_, '_>) {
    let answer = answer();
    bencher
        .counter(BytesCount::new(answer.len()))
        .bench_local(|| {
            let mut decoder = SseDecoder::new(1 << 20);
            let mut bytes = 0;
            for piece in black_box(&answer).chunks(PIECE) {
                decoder
                    .push(piece, |event| {
                        bytes += event.data.len();
                        Ok::<(), SseError>(())
                    })
                    .unwrap();
            }
            assert!(bytes > EVENTS * WORDS.len());
        });
}

#[divan::bench]
fn decoding(bencher: Bencher<'_, '_>) {
    let answer = answer();
    let size = answer.len();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = ProviderConfig {
        model: "bench".to_owned(),
        base_url: Some(format!("http://{}", listener.local_addr().unwrap())),
        ..ProviderConfig::new("bench", ProviderKind::Openai)
    };
    let server = std::thread::spawn(move || {
        // One connection, kept for all requests; it ends when the client goes.
        let (stream, _) = listener.accept().unwrap();
        serve(stream, &answer);
    });
    let provider = build_provider(&config, RetryConfig::default(), None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let messages = [Message::user("hi")];
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let text = runtime.block_on(provider.chat("", &messages)).unwrap();
        assert_eq!(text.len(), EVENTS * WORDS.len());
    });
    drop((provider, runtime));
    server.join().unwrap();
}

fn serve(mut stream: TcpStream, answer: &[u8]) {
    let mut requests = BufReader::new(stream.try_clone().unwrap());
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        answer.len()
    );
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if requests.read_line(&mut line).unwrap() == 0 {
                return;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        requests.read_exact(&mut vec![0; length]).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(answer).unwrap();
    }
}
