//! Redaction: any text in any chunks is accepted, and redacted text is stable.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use zeph_tools::secrets::{SecurityPatterns, StreamRedactor};

static SECRETS: LazyLock<Arc<SecurityPatterns>> = LazyLock::new(Arc::default);

fn in_pieces(text: &str, length: usize) -> String {
    let mut stream = StreamRedactor::new(Arc::clone(&SECRETS));
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let cut = rest.ceil_char_boundary(length.min(rest.len()));
        out.push_str(&stream.push(&rest[..cut]));
        rest = &rest[cut..];
    }
    out + &stream.finish()
}

fuzz_target!(|input: (u8, &str)| {
    let (length, text) = input;
    // Longer lines with escape sequences are emitted in parts.
    if text.len() > 2048 {
        return;
    }
    let redacted = SECRETS.redact(text).text;
    // Text that a backspace removes may have been emitted before.
    if !text.contains('\u{8}') {
        let pieces = in_pieces(text, usize::from(length).max(1));
        assert_eq!(pieces, redacted, "cut into pieces of {length}: {text:?}");
    }
    let twice = SECRETS.redact(&redacted).text;
    assert_eq!(twice, redacted, "redacted twice: {text:?}");
});
