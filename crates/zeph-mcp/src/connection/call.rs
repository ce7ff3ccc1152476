//! One call of a tool. Since revision 2026-07-28 a server may respond that it needs input; then the user is asked, and
//! the call is sent again with the answers. Earlier, a server may fail because it needs the user at an address first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, DEFAULT_MRTR_MAX_ROUNDS,
    ElicitRequestParams, ElicitationAction, InputRequest, InputRequiredResult, InputResponses,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use zeph_tools::ToolError;

use super::client::{Link, value};
use super::handler::elicit;
use super::running::Caller;
use super::sampling::sample;
use crate::failure::About;
use crate::sanitize::line;

/// The time limit for sending a cancellation to a server.
pub(super) const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);
/// The shortest wait between two checks of the time limit of a call that waits for the user.
const MIN_WAIT: Duration = Duration::from_millis(50);
/// The error code of a server that needs the user at addresses before it works on the request (revision 2025-11-25).
const VISITS_REQUIRED: i32 = -32042;
/// The maximum number of characters of an address in an error.
const MAX_URL_CHARS: usize = 500;
/// The first wait before a call is sent again that a server put off without a question.
const PUT_OFF: Duration = Duration::from_millis(200);

impl Link {
    /// Calls a tool. `limit` is the time of the server, without the time in which the user is asked.
    pub(crate) async fn call(
        &self,
        about: About<'_>,
        arguments: Map<String, Value>,
        limit: Duration,
        caller: &Arc<Caller>,
        cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let name = about.tool.unwrap_or_default().to_owned();
        let mut params = CallToolRequestParams::new(name).with_arguments(arguments.clone());
        let request = |given, state| {
            params.input_responses = given;
            params.request_state = state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
        };
        let mut answer = self.request(about, request, limit, caller, cancel).await;
        if self.may_need_task(&answer) {
            let refused = (limit, answer);
            let task = self.call_as_task(about, arguments, refused, caller, cancel);
            answer = task.await;
        }
        value(Ok(answer?)).map_err(|error| about.request(&error).into())
    }

    /// Sends a request until the server has all input. `request` makes it of the input and the state of the server.
    pub(super) async fn request(
        &self,
        about: About<'_>,
        mut request: impl FnMut(Option<InputResponses>, Option<String>) -> ClientRequest,
        limit: Duration,
        caller: &Arc<Caller>,
        cancel: &CancellationToken,
    ) -> Result<ServerResult, ToolError> {
        let (mut given, mut state) = (None, None);
        let mut is_visited = false;
        let deadline = Deadline {
            began: Instant::now(),
            limit,
            caller,
        };
        for round in 0..DEFAULT_MRTR_MAX_ROUNDS {
            let sent = request(given.clone(), state.clone());
            let answer = self.request_once(about, sent, &deadline, cancel).await?;
            let needed = match answer {
                Answer::Result(result) => match *result {
                    ServerResult::InputRequiredResult(needed) => needed,
                    result => return Ok(result),
                },
                Answer::VisitsRequired(visits) => {
                    tokio::select! {
                        visited = visit(about, visits, caller, is_visited) => visited?,
                        () = cancel.cancelled() => return Err(ToolError::cancelled()),
                        () = self.closed.cancelled() => return Err(gone(about)),
                    }
                    is_visited = true;
                    continue;
                }
            };
            given = tokio::select! {
                given = self.given(about, &needed, caller, round) => given?,
                () = cancel.cancelled() => return Err(ToolError::cancelled()),
                () = self.closed.cancelled() => return Err(gone(about)),
            };
            state = needed.request_state;
        }
        Err(about
            .protocol(format!(
                "it requested input {DEFAULT_MRTR_MAX_ROUNDS} times without a result"
            ))
            .into())
    }

    /// Sends a request once, and waits for the response.
    async fn request_once(
        &self,
        about: About<'_>,
        request: ClientRequest,
        deadline: &Deadline<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ToolError> {
        let sent = self
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options());
        let sent = self.calls.send(deadline.caller, sent);
        let (mut handle, _entry) = tokio::select! {
            sent = sent => match sent {
                Ok(sent) => sent,
                Err(error) => {
                    self.note_scope(&error).await;
                    return Err(about.request(&error).into());
                }
            },
            () = cancel.cancelled() => return Err(ToolError::cancelled()),
            () = self.closed.cancelled() => return Err(gone(about)),
            () = deadline.passed() => return Err(about.timeout(deadline.limit).into()),
        };
        let stopped = tokio::select! {
            biased;
            answer = &mut handle.rx => {
                return match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
                    Err(ServiceError::TransportClosed) => Err(gone(about)),
                    Ok(answer) => Ok(Answer::Result(Box::new(answer))),
                    Err(error) => match required_visits(&error) {
                        Some(visits) => Ok(Answer::VisitsRequired(visits)),
                        None => {
                            self.note_scope(&error).await;
                            Err(about.request(&error).into())
                        }
                    },
                };
            }
            () = self.closed.cancelled() => return Err(gone(about)),
            () = cancel.cancelled() => ToolError::cancelled(),
            () = deadline.passed() => about.timeout(deadline.limit).into(),
        };
        let told = handle.cancel(Some("the call was stopped".to_owned()));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, told).await;
        Err(stopped)
    }

    /// The responses to the input requests of a result.
    async fn given(
        &self,
        about: About<'_>,
        needed: &InputRequiredResult,
        caller: &Caller,
        round: usize,
    ) -> Result<Option<InputResponses>, ToolError> {
        let Some(requests) = &needed.input_requests else {
            // The server only puts the call off.
            let factor = 1 << round.min(6);
            tokio::time::sleep(PUT_OFF * factor).await;
            return Ok(None);
        };
        let mut responses = BTreeMap::new();
        for (key, request) in requests {
            let response = match request {
                InputRequest::Elicitation(request) => {
                    let result = elicit(about.server, caller, request.params.clone()).await;
                    serde_json::to_value(result)
                }
                // The client declares no roots.
                InputRequest::ListRoots(_) => Ok(json!({ "roots": [] })),
                InputRequest::CreateMessage(request) => {
                    let sampled = sample(about.server, self.samples, caller, &request.params).await;
                    let sampled = sampled.map_err(|error| about.protocol(error.message))?;
                    serde_json::to_value(sampled)
                }
                _ => {
                    return Err(about
                        .protocol("it requests input of an unknown kind")
                        .into());
                }
            };
            let response = response.map_err(|error| about.protocol(error.to_string()))?;
            responses.insert(key.clone(), response);
        }
        Ok(Some(responses))
    }
}

/// A server's response to a request.
enum Answer {
    Result(Box<ServerResult>),
    /// The server works on the request after the user was at these addresses.
    VisitsRequired(Vec<ElicitRequestParams>),
}

/// The addresses in the error of a server that needs the user there before it works on the request.
fn required_visits(error: &ServiceError) -> Option<Vec<ElicitRequestParams>> {
    let ServiceError::McpError(error) = error else {
        return None;
    };
    let listed = error.data.as_ref()?.get("elicitations")?.as_array()?;
    if error.code.0 != VISITS_REQUIRED || listed.is_empty() {
        return None;
    }
    let visit = |one: &Value| {
        let params: ElicitRequestParams = serde_json::from_value(one.clone()).ok()?;
        address(&params).is_some().then_some(params)
    };
    listed.iter().map(visit).collect()
}

/// The address that a request names.
fn address(params: &ElicitRequestParams) -> Option<&str> {
    match params {
        ElicitRequestParams::UrlElicitationParams { url, .. } => Some(url),
        _ => None,
    }
}

/// Shows the addresses to the user, one at a time.
///
/// # Errors
/// The user declines one, or was at the addresses before (`is_visited`) and has not finished there.
async fn visit(
    about: About<'_>,
    visits: Vec<ElicitRequestParams>,
    caller: &Caller,
    is_visited: bool,
) -> Result<(), ToolError> {
    for params in visits {
        let url = line(address(&params).unwrap_or_default(), MAX_URL_CHARS);
        if is_visited {
            return Err(about
                .auth(&format!(
                    "it waits until the user has finished at {url}; call it again after that"
                ))
                .into());
        }
        let answer = elicit(about.server, caller, params).await;
        if answer.action != ElicitationAction::Accept {
            return Err(about
                .auth(&format!(
                    "it needs the user at {url} first, and the user did not open this address"
                ))
                .into());
        }
    }
    Ok(())
}

/// The time limit of a call. It does not run while the user is asked.
struct Deadline<'c> {
    began: Instant,
    limit: Duration,
    caller: &'c Arc<Caller>,
}

impl Deadline<'_> {
    /// Waits until the time limit is reached.
    async fn passed(&self) {
        loop {
            let used = self.began.elapsed().saturating_sub(self.caller.waited());
            let left = self.limit.saturating_sub(used);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.max(MIN_WAIT)).await;
        }
    }
}

fn gone(about: About<'_>) -> ToolError {
    about
        .connection("it ended during the call, and is being restarted")
        .into()
}
