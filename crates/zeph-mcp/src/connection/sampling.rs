//! Sampling: a server requests a response of the session's model. It needs `sampling = true`, and the consent of the user.
#![allow(
    deprecated,
    reason = "the library marks the types of sampling, which servers still use"
)]

use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ErrorCode, ErrorData, Role};
use serde_json::{Value, json};
use zeph_tools::question::{SamplingMessage, SamplingRequest};

use super::running::Caller;

/// The most bytes of a request's text.
const MAX_BYTES: usize = 256 * 1024;
/// The code of a request that the user declined.
const DECLINED: ErrorCode = ErrorCode(-1);

/// Requests a response of the model for a server. `is_allowed` is the server's key `sampling`.
pub(super) async fn sample(
    server: &str,
    is_allowed: bool,
    caller: &Caller,
    params: &CreateMessageRequestParams,
) -> Result<CreateMessageResult, ErrorData> {
    let refused = |why: String| ErrorData::new(DECLINED, why, None);
    if !is_allowed {
        return Err(refused(
            "this client does not allow sampling for this server (`sampling`)".to_owned(),
        ));
    }
    let request = request(server, params).map_err(&refused)?;
    let response = caller.sample(&request).await.map_err(refused)?;
    let result = json!({
        "role": "assistant",
        "content": { "type": "text", "text": response.text },
        "model": response.model,
        "stopReason": if response.is_cut { "maxTokens" } else { "endTurn" },
    });
    serde_json::from_value(result)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The request in the terms of this project. Only text is passed on.
fn request(server: &str, params: &CreateMessageRequestParams) -> Result<SamplingRequest, String> {
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err("sampling with tools is not supported".to_owned());
    }
    let mut messages = Vec::new();
    for message in &params.messages {
        let content = serde_json::to_value(&message.content).unwrap_or(Value::Null);
        let blocks = match content {
            Value::Array(blocks) => blocks,
            block => vec![block],
        };
        let mut text = String::new();
        for block in blocks {
            let said = block.get("text").and_then(Value::as_str);
            text.push_str(said.ok_or("sampling is supported for text only")?);
        }
        messages.push(SamplingMessage {
            is_user: message.role == Role::User,
            text,
        });
    }
    let system = params.system_prompt.clone();
    let bytes = messages
        .iter()
        .map(|message| message.text.len())
        .sum::<usize>();
    if bytes + system.as_ref().map_or(0, String::len) > MAX_BYTES {
        return Err(format!("the request has more than {MAX_BYTES} bytes"));
    }
    if !messages.last().is_some_and(|message| message.is_user) {
        return Err("the last message is not from the user".to_owned());
    }
    Ok(SamplingRequest {
        server: server.to_owned(),
        system,
        messages,
        max_tokens: params.max_tokens,
    })
}
