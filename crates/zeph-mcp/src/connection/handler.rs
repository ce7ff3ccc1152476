//! The handler of a server's requests and notifications.
#![allow(
    deprecated,
    reason = "the library marks the types of sampling, which servers still use"
)]

use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, ProgressNotificationParam, ProtocolVersion,
    SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::Notify;
use zeph_tools::question::{QuestionRequest, ServerAnswer, ServerQuestion};

use super::running::{Caller, RunningCalls};
use super::sampling::sample;
use crate::form::fields;
use crate::http::is_web;
use crate::sanitize::line;

/// The most characters of a server's message about progress.
const MAX_MESSAGE_CHARS: usize = 300;
/// The most characters of a server's question.
const MAX_QUESTION_CHARS: usize = 20_000;

/// Handles the requests and notifications of one server.
pub(super) struct Handler {
    pub(super) server: String,
    pub(super) lists_changed: Arc<Notify>,
    pub(super) calls: Arc<RunningCalls>,
    /// Whether the server may request responses of the model.
    pub(super) samples: bool,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("zeph", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default()),
        );
        if self.samples {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        ClientConfig::new(capabilities, me)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(caller) = self.calls.latest().await else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        tokio::select! {
            answer = elicit(&self.server, &caller, params) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some(caller) = self.calls.latest().await else {
            return Err(ErrorData::invalid_request("no request is running", None));
        };
        tokio::select! {
            result = sample(&self.server, self.samples, &caller, &params) => result,
            () = context.ct.cancelled() => Err(ErrorData::invalid_request("it was cancelled", None)),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(caller) = self.calls.with_token(&params.progress_token).await {
            caller.progress(progress(&self.server, &params));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }
}

/// The text about the progress of a call.
fn progress(server: &str, params: &ProgressNotificationParam) -> String {
    let of = params
        .total
        .map_or(String::new(), |total| format!(" of {total}"));
    let message = params.message.as_deref().unwrap_or_default();
    let message = match line(message, MAX_MESSAGE_CHARS) {
        message if message.is_empty() => message,
        message => format!(": {message}"),
    };
    format!("MCP server {server}: {}{of}{message}", params.progress)
}

/// Shows an elicitation request to the user who made the call.
pub(super) async fn elicit(
    server: &str,
    caller: &Caller,
    params: ElicitRequestParams,
) -> ElicitResult {
    let decline = || ElicitResult::new(ElicitationAction::Decline);
    let (message, request) = match params {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let schema = serde_json::to_value(requested_schema);
            let schema = schema.map_err(|error| error.to_string());
            match schema.and_then(|schema| fields(&schema)) {
                Ok(fields) => (message, QuestionRequest::Form(fields)),
                Err(why) => {
                    let why = line(&why, MAX_MESSAGE_CHARS);
                    caller.notice(format!(
                        "the MCP server {server} requests input with a form that cannot be shown: \
                         {why}"
                    ));
                    return decline();
                }
            }
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } if is_web(&url) => {
            (message, QuestionRequest::Url { url })
        }
        ElicitRequestParams::UrlElicitationParams { .. } => {
            caller.notice(format!(
                "the MCP server {server} requested to open an address that is not http or https, \
                 and the request was declined"
            ));
            return decline();
        }
        _ => return decline(),
    };
    let question = ServerQuestion {
        server: server.to_owned(),
        message: message.chars().take(MAX_QUESTION_CHARS).collect(),
        request,
    };
    match caller.ask(&question).await {
        ServerAnswer::Accept(values) => {
            let accepted = ElicitResult::new(ElicitationAction::Accept);
            match question.request {
                QuestionRequest::Form(_) => accepted.with_content(Value::Object(values)),
                QuestionRequest::Url { .. } | QuestionRequest::Decision { .. } => accepted,
            }
        }
        ServerAnswer::Decline => decline(),
        ServerAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{NumberOrString, ProgressToken};

    use super::*;

    /// Proves MCP-1b.
    #[test]
    fn progress_is_one_clean_line() {
        let token = || ProgressToken(NumberOrString::Number(1));
        let params = ProgressNotificationParam::new(token(), 3.0);
        assert_eq!(progress("s", &params), "MCP server s: 3");
        let params = ProgressNotificationParam::new(token(), 0.5)
            .with_total(2.0)
            .with_message("half\n\u{200b}way\x1b[2J");
        assert_eq!(
            progress("s", &params),
            "MCP server s: 0.5 of 2: half way[2J"
        );
    }
}
