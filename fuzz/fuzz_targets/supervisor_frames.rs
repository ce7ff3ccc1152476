//! Frames between agent and supervisor: the messages do not depend on the chunks of the stream.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_tools::shell::exec::supervisor::fuzzing::messages;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    replies: bool,
    size: u8,
    /// Whether the bytes follow a matching length.
    framed: bool,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut bytes = input.bytes.to_vec();
    if input.framed {
        let length = u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes();
        bytes.splice(0..0, length);
    }
    let whole = messages([&bytes[..]], input.replies);
    let size = 1 + usize::from(input.size);
    assert_eq!(
        whole,
        messages(bytes.chunks(size), input.replies),
        "in pieces"
    );
    // Parsed messages can be written and parsed again without change.
    let written = whole.0.concat();
    assert_eq!(messages([&written[..]], input.replies), (whole.0, false));
});
