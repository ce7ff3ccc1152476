//! Calls in the text of a response: each is a block at its position, and quoted text contains none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zeph_llm::fuzzing::text_calls;

/// The text with a prefix before each line.
fn shielded(text: &str, before: &str) -> String {
    let lines = text.split_inclusive('\n');
    let lines: String = lines.map(|line| format!("{before}{line}")).collect();
    format!("As follows:\n\n{lines}")
}

fuzz_target!(|text: &str| {
    let mut end = 0;
    for (name, input, span) in text_calls(text) {
        assert!(!name.is_empty() && span.start >= end, "{name} at {span:?}");
        let place = &text[span.clone()];
        let begins = span.start == 0 || text[..span.start].ends_with('\n');
        assert!(
            (begins && place.starts_with("```")) || place.starts_with('{'),
            "{place:?}"
        );
        assert!(!place.starts_with("```") || place.contains('\n'), "{place:?}");
        assert!(input.is_object() || input.is_array() || !input.is_null());
        end = span.end;
    }
    // The closing tag ends a thought at any position.
    if text.contains("</think") {
        return;
    }
    assert_eq!(text_calls(&shielded(text, "> ")), []);
    assert_eq!(text_calls(&shielded(text, "    ")), []);
    let fence = "`".repeat(text.len() + 3);
    assert_eq!(text_calls(&format!("{fence}md\n{text}\n{fence}")), []);
});
