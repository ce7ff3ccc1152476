//! Redacts a stream: the value of an assignment, and a known value that is split across two pieces.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use zeph_secrets::{KnownSecrets, SecurityConfig, SecurityPatterns, StreamRedactor};

fn main() {
    let known = KnownSecrets {
        keys: vec!["q7Zr-known-key-41".into()],
        ..Default::default()
    };
    let (patterns, _) = SecurityPatterns::new(&SecurityConfig::default(), &known);
    let mut stream = StreamRedactor::new(Arc::new(patterns));
    for piece in ["DB_PASSWORD=hunter2-k8Q!x\nkey: q7Zr-known", "-key-41\n"] {
        print!("{}", stream.push(piece));
    }
    print!("{}", stream.finish());
}

// Prints:
// DB_PASSWORD=[redacted:assignment]
// key: [redacted:known_secret]
