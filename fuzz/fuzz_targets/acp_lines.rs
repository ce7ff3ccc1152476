//! Lines of an editor: each line is read alike with any buffer, and a bad line does not change the next one.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tokio::io::BufReader;
use zeph_acp::input::{InputLine, next_line};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    limit: u8,
    buffer: u8,
    bytes: &'a [u8],
}

fn lines(bytes: &[u8], buffer: usize, limit: usize) -> Vec<InputLine> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let mut input = BufReader::with_capacity(buffer, bytes);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, limit).await.expect("a slice is readable") {
            lines.push(line);
        }
        lines
    })
}

fuzz_target!(|input: Input<'_>| {
    let limit = usize::from(input.limit);
    let whole = lines(input.bytes, 64 * 1024, limit);
    assert_eq!(whole, lines(input.bytes, usize::from(input.buffer) + 1, limit));
    let apart = input.bytes.split(|byte| *byte == b'\n');
    let apart: Vec<InputLine> = apart.flat_map(|line| lines(line, 64, limit)).collect();
    assert_eq!(whole, apart, "a line depends on another one");
    for line in &whole {
        if let InputLine::Text(text) = line {
            assert!(text.len() <= limit, "a line over the limit");
        }
    }
});
