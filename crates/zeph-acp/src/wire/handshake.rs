//! The order of the handshake: no message of the client overtakes the response to `initialize`.
//!
//! The protocol library refuses requests until it has sent this response. A client may write its next request earlier.

use agent_client_protocol::{RawJsonRpcId, RawJsonRpcMessage, RawJsonRpcResponse, TransportFrame};
use tokio::sync::watch;

/// The `initialize` request without a response, by its id.
#[derive(Default)]
pub(super) struct Handshake(watch::Sender<Option<RawJsonRpcId>>);

impl Handshake {
    /// Notes a frame of the client, before the connection has it. Returns whether it is `initialize`.
    pub(super) fn begin(&self, frame: &TransportFrame) -> bool {
        match frame {
            TransportFrame::Single(RawJsonRpcMessage::Request(request))
                if &*request.method == "initialize" =>
            {
                self.0.send_replace(Some(request.id.clone()));
                true
            }
            _ => false,
        }
    }

    /// Notes a frame of the connection to the client.
    pub(super) fn sent(&self, frame: &TransportFrame) {
        let TransportFrame::Single(RawJsonRpcMessage::Response(
            RawJsonRpcResponse::Result { id, .. } | RawJsonRpcResponse::Error { id, .. },
        )) = frame
        else {
            return;
        };
        self.0
            .send_if_modified(|open| match open.as_ref() == Some(id) {
                true => open.take().is_some(),
                false => false,
            });
    }

    /// Waits until the request has its response.
    pub(super) async fn end(&self) {
        // The sender exists as long as `self`.
        let _ = self.0.subscribe().wait_for(Option::is_none).await;
    }
}
