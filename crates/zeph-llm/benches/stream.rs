//! Throughput of reading streamed responses: `cargo bench -p zeph-llm --bench stream`.
//!
//! `framing` splits bytes into events or lines. `decoding` reads a response of each API from a socket on
//! loopback through HTTP, events and JSON to the complete text; `long` does so for a response of eight times
//! the length.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use zeph_llm::fuzzing::split_lines;
use zeph_llm::sse::{SseDecoder, SseError};
use zeph_llm::{Message, OpenaiApi, ProviderConfig, ProviderKind, RetryConfig, build_provider};

/// The number of events of a response, which has 2 to 5 MB.
const EVENTS: usize = 16_000;
/// The approximate maximum size of a socket read.
const PIECE: usize = 16 * 1024;
/// The text of each event.
const WORDS: &str = "a few words, ";

fn main() {
    divan::main();
}

/// The APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Chat,
    Claude,
    Responses,
    Ollama,
}

const APIS: [Api; 4] = [Api::Chat, Api::Claude, Api::Responses, Api::Ollama];

/// A streamed response: many events with a few words each.
fn answer(api: Api, events: usize) -> Vec<u8> {
    let (first, each, last) = match api {
        Api::Chat => {
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
            (
                String::new(),
                delta(&format!("\"content\":\"{WORDS}\""), "null"),
                delta("", "\"stop\"") + "data: [DONE]\n\n",
            )
        }
        Api::Claude => {
            let event = |kind: &str, rest: &str| {
                format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n")
            };
            (
                event(
                    "message_start",
                    "\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}",
                ) + &event(
                    "content_block_start",
                    "\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}",
                ),
                event(
                    "content_block_delta",
                    &format!(
                        "\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{WORDS}\"}}"
                    ),
                ),
                event("content_block_stop", "\"index\":0")
                    + &event(
                        "message_delta",
                        "\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}",
                    )
                    + "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            )
        }
        Api::Responses => {
            let event = |kind: &str, rest: &str| {
                format!(
                    "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":1234,{rest}}}\n\n"
                )
            };
            let item = "\"output_index\":0,\"item\":{\"id\":\"msg_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b\",\
                        \"type\":\"message\",\"status\":\"in_progress\",\"content\":[],\"role\":\"assistant\"}";
            (
                event("response.output_item.added", item),
                event(
                    "response.output_text.delta",
                    &format!(
                        "\"item_id\":\"msg_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b\",\"output_index\":0,\
                         \"content_index\":0,\"delta\":\"{WORDS}\",\"logprobs\":[],\"obfuscation\":\"Vn3\""
                    ),
                ),
                event(
                    "response.completed",
                    "\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":9}}",
                ),
            )
        }
        Api::Ollama => {
            let line = |content: &str, rest: &str| {
                format!(
                    "{{\"model\":\"qwen3:8b\",\"created_at\":\"2026-01-01T00:00:00.123456789Z\",\
                     \"message\":{{\"role\":\"assistant\",\"content\":\"{content}\"}},{rest}}}\n"
                )
            };
            (
                String::new(),
                line(WORDS, "\"done\":false"),
                line(
                    "",
                    "\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":9,\"eval_count\":9",
                ),
            )
        }
    };
    (first + &each.repeat(events) + &last).into_bytes()
}

#[divan::bench(args = [Api::Chat, Api::Ollama])]
fn framing(bencher: Bencher<'_, '_>, api: Api) {
    let answer = answer(api, EVENTS);
    bencher
        .counter(BytesCount::new(answer.len()))
        .bench_local(|| {
            let pieces = black_box(&answer).chunks(PIECE);
            let mut bytes = 0;
            if api == Api::Ollama {
                split_lines(pieces, |line| bytes += line.len());
            } else {
                let mut decoder = SseDecoder::new(1 << 20);
                for piece in pieces {
                    decoder
                        .push(piece, |event| {
                            bytes += event.data.len();
                            Ok::<(), SseError>(())
                        })
                        .unwrap();
                }
            }
            assert!(bytes > EVENTS * WORDS.len());
        });
}

#[divan::bench(args = APIS)]
fn decoding(bencher: Bencher<'_, '_>, api: Api) {
    read(bencher, api, EVENTS);
}

#[divan::bench(args = APIS, sample_count = 10)]
fn long(bencher: Bencher<'_, '_>, api: Api) {
    read(bencher, api, 8 * EVENTS);
}

fn read(bencher: Bencher<'_, '_>, api: Api, events: usize) {
    let answer = answer(api, events);
    let size = answer.len();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let kind = match api {
        Api::Chat | Api::Responses => ProviderKind::Openai,
        Api::Claude => ProviderKind::Claude,
        Api::Ollama => ProviderKind::Ollama,
    };
    let config = ProviderConfig {
        model: "bench".to_owned(),
        api: (api == Api::Responses).then_some(OpenaiApi::Responses),
        base_url: Some(format!("http://{}", listener.local_addr().unwrap())),
        ..ProviderConfig::new("bench", kind)
    };
    let server = std::thread::spawn(move || {
        // One connection serves all requests; the thread ends when the client closes it.
        let (stream, _) = listener.accept().unwrap();
        let kind = match api {
            Api::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        serve(stream, kind, &answer);
    });
    let provider = build_provider(&config, RetryConfig::default(), None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let messages = [Message::user("hi")];
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let text = runtime.block_on(provider.chat("", &messages)).unwrap();
        assert_eq!(text.len(), events * WORDS.len());
    });
    drop((provider, runtime));
    server.join().unwrap();
}

fn serve(mut stream: TcpStream, kind: &str, answer: &[u8]) {
    let mut requests = BufReader::new(stream.try_clone().unwrap());
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
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
