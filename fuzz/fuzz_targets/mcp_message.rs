//! Messages of an MCP client: a refusal names only an id of the message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zeph_mcp::fuzzing::refused_id;

fuzz_target!(|line: &[u8]| {
    let Some(id) = refused_id(line) else { return };
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let value: serde_json::Value = serde_json::from_slice(line).expect("only JSON has an id");
    assert_eq!(value["id"], id);
});
