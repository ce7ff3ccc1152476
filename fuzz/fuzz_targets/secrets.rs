//! Redaction: any text is taken, however it is cut; what was redacted stays as it is, and what of it is handed on without
//! its colours is what a terminal shows.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use zeph_tools::filter::sanitize_output;
use zeph_tools::secrets::{SecurityPatterns, StreamRedactor};

static SECRETS: LazyLock<Arc<SecurityPatterns>> = LazyLock::new(Arc::default);

fn in_pieces(text: &str, length: usize) -> String {
    let mut stream = StreamRedactor::new(Arc::clone(&SECRETS));
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let cut = rest.ceil_char_boundary(length.min(rest.len()));
        let piece = stream.push_piece(&rest[..cut]);
        for (place, shown) in piece.without_colours() {
            let part = &piece.text()[place];
            assert_eq!(sanitize_output(part), sanitize_output(shown), "{part:?}");
        }
        out.push_str(piece.text());
        rest = &rest[cut..];
    }
    out + &stream.finish()
}

fuzz_target!(|input: (u8, &str)| {
    let (length, text) = input;
    // Longer lines with escapes are handed out in parts.
    if text.len() > 2048 {
        return;
    }
    let redacted = SECRETS.redact(text).text;
    // What a backspace removes may have been handed out.
    if !text.contains('\u{8}') {
        let pieces = in_pieces(text, usize::from(length).max(1));
        assert_eq!(pieces, redacted, "cut into pieces of {length}: {text:?}");
    }
    let twice = SECRETS.redact(&redacted).text;
    assert_eq!(twice, redacted, "redacted twice: {text:?}");
});
