//! The frames between agent and supervisor: however they are cut, the messages are the same.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_tools::shell::supervisor::fuzzing::messages;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    replies: bool,
    size: u8,
    /// Whether the bytes are put behind a length that fits.
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
    // What was understood is written so that it is understood the same way.
    let written = whole.0.concat();
    assert_eq!(messages([&written[..]], input.replies), (whole.0, false));
});
