//! The terminal model: its output has no control characters, is stable, and does not depend on the chunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zeph_tools::filter::{Line, Sanitizer, sanitize_output};

fuzz_target!(|input: (Vec<u8>, u16)| {
    let text = String::from_utf8_lossy(&input.0);
    let clean = sanitize_output(&text);
    let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!clean.contains(bad), "{clean:?}");
    assert_eq!(sanitize_output(&clean), clean);
    let mut whole = Vec::new();
    let mut pieces = Vec::new();
    let at = text.floor_char_boundary(usize::from(input.1) % (text.len() + 1));
    for (cuts, lines) in [
        (vec![&*text], &mut whole),
        (vec![&text[..at], &text[at..]], &mut pieces),
    ] {
        let mut sanitizer = Sanitizer::new();
        let mut add = |line: Line<'_>| lines.push((line.number, line.text.to_owned()));
        for piece in cuts {
            sanitizer.push(piece, &mut add);
        }
        sanitizer.finish(&mut add);
    }
    assert_eq!(whole, pieces);
    assert!(whole.is_sorted_by_key(|(number, _)| *number));
});
