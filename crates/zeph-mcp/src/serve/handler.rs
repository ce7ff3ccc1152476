//! The requests of clients: the list of tools, and calls.

use std::collections::VecDeque;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ElicitRequest, ElicitResult, ErrorCode, Implementation, InputRequest,
    InputRequests, InputRequiredResult, InputResponses, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use zeph_tools::{ToolError, ToolResult};

use super::host::{CallQuestion, ServedCall, ServerIdentity, ToolHost};
use super::link::{AskBy, CallLink};
use super::order::{Arrival, CallOrder};
use super::pending::{PendingQuestion, PendingQuestions};
use super::{mapping, question};

/// The name of the question in a result that requires input.
const QUESTION: &str = "confirm";
/// The number of clients without a connection of their own that have a conversation. A further client replaces the one that
/// called least recently; a later call of that one opens another conversation.
const MAX_SHARED: usize = 64;
/// The methods that this server implements. A request for one of them that is not recognized has invalid parameters.
const METHODS: [&str; 5] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
];

/// The parts that all connections share.
pub(super) struct Shared {
    host: Arc<dyn ToolHost>,
    identity: ServerIdentity,
    max_parallel: usize,
    pending: PendingQuestions,
    /// The conversations of clients without a connection of their own, by caller. The last one called most recently.
    conversations: Mutex<VecDeque<(String, Arc<Conversation>)>>,
    /// Ends all calls.
    pub(super) ending: CancellationToken,
    /// The running calls.
    pub(super) calls: TaskTracker,
}

impl Shared {
    pub(super) fn new(
        host: Arc<dyn ToolHost>,
        identity: ServerIdentity,
        max_parallel: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            identity,
            max_parallel,
            pending: PendingQuestions::default(),
            conversations: Mutex::default(),
            ending: CancellationToken::new(),
            calls: TaskTracker::new(),
        })
    }

    async fn open(&self) -> Result<Arc<Conversation>, String> {
        Ok(Arc::new(Conversation {
            id: self.host.open_conversation().await?,
            order: CallOrder::new(self.max_parallel),
        }))
    }

    /// The conversation of a client that has no connection of its own.
    async fn shared_conversation(&self, caller: &str) -> Result<Arc<Conversation>, String> {
        let mut conversations = self.conversations.lock().await;
        let known = conversations.iter().position(|(known, _)| known == caller);
        let conversation = match known.and_then(|at| conversations.remove(at)) {
            Some((_, conversation)) => conversation,
            None => self.open().await?,
        };
        if conversations.len() == MAX_SHARED {
            conversations.pop_front();
        }
        conversations.push_back((caller.to_owned(), Arc::clone(&conversation)));
        Ok(conversation)
    }
}

/// A conversation: an id, and the order of its calls.
struct Conversation {
    id: String,
    order: CallOrder,
}

/// The handler of one connection. Over HTTP without sessions, it is the handler of one request.
pub(super) struct Handler {
    shared: Arc<Shared>,
    /// Whether requests without a session arrive on different connections.
    is_http: bool,
    own: OnceCell<Arc<Conversation>>,
}

impl Handler {
    pub(super) fn new(shared: Arc<Shared>, is_http: bool) -> Self {
        Self {
            shared,
            is_http,
            own: OnceCell::new(),
        }
    }

    async fn conversation(
        &self,
        caller: &str,
        is_stateless: bool,
    ) -> Result<Arc<Conversation>, String> {
        if self.is_http && is_stateless {
            return self.shared.shared_conversation(caller).await;
        }
        let own = self.own.get_or_try_init(|| self.shared.open()).await?;
        Ok(Arc::clone(own))
    }

    /// The way in which the client of a request is asked.
    fn ask_by(
        &self,
        is_stateless: bool,
        conversation: &str,
        answer: Option<(String, InputResponses)>,
        context: &RequestContext<RoleServer>,
        cancel: &CancellationToken,
    ) -> AskBy {
        let capabilities = match is_stateless {
            true => context.meta.client_capabilities(),
            false => context.client_capabilities(),
        };
        if !question::is_shown_by(capabilities.as_ref()) {
            return AskBy::Unsupported;
        }
        if !is_stateless {
            return AskBy::Request(context.peer.clone());
        }
        let answered = answer.and_then(|(handle, mut responses)| {
            let response: ElicitResult =
                serde_json::from_value(responses.remove(QUESTION)?).ok()?;
            let question = self.shared.pending.take(&handle, conversation)?;
            Some(AskBy::Response(question, response))
        });
        answered.unwrap_or_else(|| AskBy::Result {
            asked: std::sync::Mutex::default(),
            cancel: cancel.clone(),
        })
    }

    /// Waits for the turn of a call, and runs it.
    async fn run(
        &self,
        call: ServedCall,
        arrival: Option<Arrival>,
        conversation: &Conversation,
        link: &Arc<CallLink>,
        cancel: &CancellationToken,
    ) -> ToolResult {
        let host = &self.shared.host;
        let is_read_only = host.is_read_only(&call.tool);
        let _turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ToolError::cancelled()),
            turn = conversation.order.wait(is_read_only, arrival) => turn,
        };
        host.call(call, Arc::clone(link) as _, cancel).await
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let ServerIdentity {
            name,
            title,
            version,
            instructions,
        } = self.shared.identity.clone();
        let server = Implementation::new(name, version).with_title(title);
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.shared.host.tools();
        Ok(ListToolsResult::with_all_items(
            tools.iter().map(mapping::tool).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arrival = context.extensions.remove::<Arrival>();
        let _running = self.shared.calls.token();
        let version = context.protocol_version();
        let is_stateless = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        // Without a session, the protocol library invents a client for a request that names none.
        let client = match is_stateless {
            true => context.meta.client_info(),
            false => context.client_info(),
        };
        let caller = mapping::caller(client.as_ref());
        let conversation = match self.conversation(&caller, is_stateless).await {
            Ok(conversation) => conversation,
            Err(error) => return Err(ErrorData::internal_error(error, None)),
        };
        let cancel = context.ct.child_token();
        let answer = request.request_state.zip(request.input_responses);
        let ask_by = self.ask_by(is_stateless, &conversation.id, answer, &context, &cancel);
        let link = Arc::new(CallLink::new(ask_by));
        let call = ServedCall {
            tool: request.name.into_owned(),
            params: Value::Object(request.arguments.unwrap_or_default()),
            conversation: conversation.id.clone(),
            caller,
        };
        let progress = async {
            match context.meta.get_progress_token() {
                Some(token) => link.send_progress(&context.peer, &token).await,
                None => std::future::pending().await,
            }
        };
        let result = {
            let run = self.run(call, arrival, &conversation, &link, &cancel);
            let (mut run, mut progress) = (std::pin::pin!(run), std::pin::pin!(progress));
            loop {
                tokio::select! {
                    biased;
                    result = &mut run => break result,
                    () = self.shared.ending.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                    () = &mut progress => {}
                }
            }
        };
        if let Some(asked) = link.asked() {
            return Ok(self.input_required(asked, &conversation.id));
        }
        Ok(CallToolResponse::Complete(mapping::result(result)))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(match METHODS.contains(&method.as_str()) {
            true => {
                ErrorData::invalid_params(format!("the parameters of {method} are invalid"), None)
            }
            false => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("the method {method:?} does not exist"),
                None,
            ),
        })
    }
}

impl Handler {
    /// The result of a call that waits for the decision of the user.
    fn input_required(&self, question: CallQuestion, conversation: &str) -> CallToolResponse {
        let Some(form) = question::form(&question) else {
            let text = "the question about the call has no form";
            return CallToolResult::error(vec![ContentBlock::text(text)]).into();
        };
        let request = InputRequest::Elicitation(ElicitRequest::new(form));
        let requests = InputRequests::from([(QUESTION.to_owned(), request)]);
        let handle = self.shared.pending.store(PendingQuestion {
            question,
            conversation: conversation.to_owned(),
        });
        InputRequiredResult::new(Some(requests), Some(handle)).into()
    }
}
