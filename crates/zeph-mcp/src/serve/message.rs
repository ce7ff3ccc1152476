//! One line of standard input as a message. Pure: each mistake gets the error that JSON-RPC defines for it.

use rmcp::model::{ClientJsonRpcMessage, ErrorData, NumberOrString, RequestId};
use serde_json::Value;

/// The white space of JSON. A form feed is not a part of it.
const BLANK: &[u8] = b" \t\r\n";

/// The refusal of a line: the id of its request, if it has one, and the error.
#[derive(Debug)]
pub(super) struct BadMessage {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

/// Reads a line. `Ok(None)` is a line that needs no response: an empty one, or a malformed response or notification.
///
/// # Errors
/// The refusal of a malformed request, and of text that is not JSON.
pub(super) fn read(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<BadMessage>> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.iter().all(|byte| BLANK.contains(byte)) {
        return Ok(None);
    }
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let error = ErrorData::parse_error(format!("the line is not JSON: {error}"), None);
        Box::new(BadMessage { id: None, error })
    })?;
    let refused = |id: Option<RequestId>, text: String| {
        let error = ErrorData::invalid_request(text, None);
        Box::new(BadMessage { id, error })
    };
    let Some(object) = value.as_object() else {
        let text = match value {
            Value::Array(_) => "batches are not supported; send one message per line",
            _ => "a message must be a JSON object",
        };
        return Err(refused(None, text.to_owned()));
    };
    let is_response = object.contains_key("result") || object.contains_key("error");
    let method = object
        .get("method")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let id = object.get("id").cloned();
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        // An error in reply to a malformed response could start an endless exchange.
        Err(_) if is_response || (id.is_none() && method.is_some()) => Ok(None),
        Err(_) => Err(match (request_id(id.as_ref()), method) {
            (Some(id), Some(method)) => refused(
                Some(id),
                format!("the request {method:?} is malformed; `jsonrpc` must be \"2.0\""),
            ),
            (id, None) => refused(id, "`method` is missing or is not a string".to_owned()),
            (None, Some(_)) => refused(None, "`id` must be a string or an integer".to_owned()),
        }),
    }
}

fn request_id(id: Option<&Value>) -> Option<RequestId> {
    match id? {
        Value::String(text) => Some(NumberOrString::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(NumberOrString::Number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Proves MCP-10: no line panics, and a refusal of JSON names only an id of that JSON.
        #[test]
        fn any_line_is_read_or_refused(line in prop::collection::vec(any::<u8>(), 0..200), id in any::<i64>()) {
            let _ = read(&line);
            let text = format!("{{\"id\":{id},\"method\":{:?}}}", String::from_utf8_lossy(&line));
            if let Err(bad) = read(text.as_bytes()) {
                prop_assert!(bad.id.is_none() || bad.id == Some(NumberOrString::Number(id)));
            }
        }
    }

    fn code(line: &[u8]) -> (i32, Option<RequestId>) {
        match read(line) {
            Ok(message) => panic!("{message:?}"),
            Err(bad) => (bad.error.code.0, bad.id),
        }
    }

    /// Proves MCP-10: each mistake has its code, and a request keeps its id.
    #[test]
    fn malformed_line_gets_the_error_of_its_kind() {
        for line in [
            &b"{"[..],
            b"nonsense",
            b"\x0c{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
            b"\xff\xfe",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\"}",
            &[b'['; 100_000],
        ] {
            assert_eq!(code(line), (-32700, None));
        }
        for line in [
            &b"1"[..],
            b"[]",
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            b"{}",
        ] {
            assert_eq!(code(line), (-32600, None));
        }
        let seven = Some(NumberOrString::Number(7));
        assert_eq!(
            code(b"{\"id\":7,\"method\":\"ping\"}"),
            (-32600, seven.clone())
        );
        assert_eq!(code(b"{\"jsonrpc\":\"2.0\",\"id\":7}"), (-32600, seven));
        let null = br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#;
        assert_eq!(code(null), (-32600, None));
    }

    /// Proves MCP-10: nothing is sent in reply to responses, notifications and empty lines.
    #[test]
    fn line_without_a_request_gets_no_error() {
        for line in [
            &b""[..],
            b" \r",
            br#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            br#"{"jsonrpc":"1.0","method":"notifications/x"}"#,
        ] {
            assert!(matches!(read(line), Ok(None)), "{line:?}");
        }
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert!(matches!(read(response), Ok(Some(_))));
        let request = b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"what/ever\"}\r\n";
        assert!(matches!(
            read(request),
            Ok(Some(ClientJsonRpcMessage::Request(_)))
        ));
    }
}
