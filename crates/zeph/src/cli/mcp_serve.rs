//! `zeph mcp serve`: the tools for MCP clients, through the same stack as all other calls, without a model.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use clap::Args;
use globset::{Glob, GlobMatcher};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_core::{
    CallerIdentity, Channel, CheckIn, CheckInAnswer, ConfigReload, Dispatcher, LoopbackEvent,
    UserAnswer,
};
use zeph_llm::traced::SpanContent;
use zeph_mcp::serve::{
    CallClient, CallDecision, CallQuestion, McpServer, ServedCall, ServerIdentity, ToolHost,
    is_local,
};
use zeph_memory::{Store, new_session_id};
use zeph_tools::layers::grants::Grants;
use zeph_tools::question::{ServerAnswer, ServerQuestion};
use zeph_tools::registry::nearest;
use zeph_tools::{
    Availability, Confirmation, LayeredExecutor, Origin, Phase, ToolCall, ToolDef,
    ToolExecutor as _, ToolResult,
};
use zeph_tui::signals::cancel_on_signals;
use zeph_tui::{plain_question, session_scope};

use super::args::GlobalArgs;
use super::{Exit, print, usage};
use crate::assemble::{App, AuditLines};
use crate::config::{Environment, Loaded};
use crate::output::sanitize::clean;
use crate::output::{redact, stderr_line};
use crate::telemetry;

/// The prefix of tools of configured MCP servers.
const FOREIGN: &str = "mcp_";

/// The instructions for the model of a client.
const INSTRUCTIONS: &str = "The tools of Zeph work in one project directory of this machine. Permission rules, a sandbox and an audit log \
apply to every call. A result with `category: confirmation_required` or `policy_blocked` is final: do not try to reach the same effect by \
other means. A shortened result ends with a reference for `read_overflow`.";

/// The tools that need a conversation with a model of Zeph.
const NEEDS_AGENT: [&str; 2] = ["compress_context", "task"];

/// `zeph mcp serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve streamable HTTP on this loopback address, such as 127.0.0.1:8765, instead of standard input and output
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Expose only these tools: names or patterns with `*`, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    tools: Vec<String>,
}

/// Serves the tools until the end of input or a signal.
///
/// # Errors
/// A pattern that matches no tool, an address that is not local or is in use, and errors of the start.
pub(crate) async fn run(
    global: &GlobalArgs,
    loaded: Loaded,
    env: Environment,
    args: ServeArgs,
) -> anyhow::Result<Exit> {
    if let Some(address) = args.http.filter(|address| !is_local(address)) {
        return Err(usage(format!(
            "--http {address}: the server has no authentication, so it listens on loopback only; use 127.0.0.1 or [::1]"
        )));
    }
    let stop = CancellationToken::new();
    let _signals = cancel_on_signals(stop.clone());
    let patterns = ToolPatterns::new(&args.tools)?;
    let options = global.build_options();
    // Tools of configured MCP servers are exposed only if a pattern names them: the client can configure these servers itself.
    let app = match patterns.has_foreign() {
        true => App::for_calls(loaded, env, options, AuditLines::Stderr).await?,
        false => App::new(loaded, env, options, AuditLines::Stderr).await?,
    };
    let served = serve(global, &app, &patterns, args.http, stop).await;
    // It ends the programs of configured MCP servers, also after an error.
    let closed = app.close().await;
    served.and(closed).map(|()| Exit::Done)
}

/// Serves the tools of `app` until the end of input or a signal.
///
/// # Errors
/// A pattern that matches no tool, an address that is in use, or the connection fails.
async fn serve(
    global: &GlobalArgs,
    app: &App,
    patterns: &ToolPatterns,
    http: Option<SocketAddr>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let exposed = patterns.select(app.stack.registry().tools())?;
    let host = ServedTools {
        stack: Arc::clone(&app.stack),
        store: app.store.clone(),
        project: app.env.cwd.clone(),
        grants: Arc::clone(&app.permissions.grants),
        reload: Arc::clone(&app.reload) as _,
        exposed,
        yes: global.yes,
        quiet: global.quiet,
        span_content: telemetry::span_content(&app.loaded, &app.env),
    };
    let parallel = app.loaded.config.agent.max_parallel_calls;
    let server = McpServer::new(Arc::new(host), identity(), parallel);
    match http {
        None => {
            if std::io::stdin().is_terminal() && !global.quiet {
                stderr_line(
                    "waiting for an MCP client on standard input; docs/mcp-server.md has the steps for clients",
                );
            }
            let served = server.serve_stdio(stop).await;
            served.context("the connection to the MCP client failed")
        }
        Some(address) => {
            let listener = std::net::TcpListener::bind(address)
                .with_context(|| format!("--http {address}: the address cannot be used"))?;
            // Standard output carries no protocol here. A closed one is not an error.
            let started = |url: String| drop(print(&url));
            let served = server.serve_http(listener, started, stop).await;
            served.with_context(|| format!("the MCP server on {address} failed"))
        }
    }
}

/// The description of this program for MCP clients.
fn identity() -> ServerIdentity {
    ServerIdentity {
        name: "zeph".to_owned(),
        title: "Zeph".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: INSTRUCTIONS.to_owned(),
    }
}

/// The names and patterns of `--tools`.
struct ToolPatterns(Vec<(String, GlobMatcher)>);

impl ToolPatterns {
    fn new(list: &[String]) -> anyhow::Result<Self> {
        let named = list.iter().map(|text| text.trim());
        let compiled = named.filter(|text| !text.is_empty()).map(|text| {
            let glob = Glob::new(text)
                .map_err(|error| usage(format!("--tools {text}: not a pattern: {error}")))?;
            Ok((text.to_owned(), glob.compile_matcher()))
        });
        Ok(Self(compiled.collect::<anyhow::Result<_>>()?))
    }

    /// Whether tools of configured MCP servers are exposed.
    fn has_foreign(&self) -> bool {
        self.0.iter().any(|(text, _)| text.starts_with(FOREIGN))
    }

    /// The ids of the exposed tools. Without patterns, these are all tools of Zeph.
    ///
    /// # Errors
    /// A pattern that matches no tool.
    fn select(&self, tools: &[ToolDef]) -> anyhow::Result<Vec<String>> {
        let ids = || {
            let ids = tools.iter().map(|def| def.id.as_ref());
            ids.filter(|id| !NEEDS_AGENT.contains(id))
        };
        if self.0.is_empty() {
            return Ok(ids().map(str::to_owned).collect());
        }
        for (text, pattern) in &self.0 {
            if !ids().any(|id| pattern.is_match(id)) {
                let near = nearest(text, ids(), 1).pop();
                let near = near.map_or_else(
                    || "`zeph tools list` shows all".to_owned(),
                    |near| format!("did you mean {near}?"),
                );
                return Err(usage(format!("--tools {text}: no tool matches; {near}")));
            }
        }
        let is_named = |id: &&str| self.0.iter().any(|(_, pattern)| pattern.is_match(id));
        Ok(ids().filter(is_named).map(str::to_owned).collect())
    }
}

/// The stack, as the MCP server calls it.
struct ServedTools {
    stack: Arc<LayeredExecutor>,
    store: Store,
    project: std::path::PathBuf,
    grants: Arc<Grants>,
    reload: Arc<dyn ConfigReload>,
    /// The ids of the exposed tools.
    exposed: Vec<String>,
    yes: bool,
    quiet: bool,
    span_content: SpanContent,
}

impl ServedTools {
    /// Whether clients can call a tool. An unknown tool is left to the stack, which names similar ones.
    fn is_exposed(&self, tool: &str) -> bool {
        let registry = self.stack.registry();
        let def = registry.get(tool);
        def.is_none_or(|def| self.exposed.iter().any(|id| *id == def.id))
    }
}

#[async_trait]
impl ToolHost for ServedTools {
    fn tools(&self) -> Vec<ToolDef> {
        let mut tools = self.stack.tool_definitions();
        tools.retain(|def| {
            def.offered != Availability::NotNow && self.exposed.iter().any(|id| *id == def.id)
        });
        tools.sort_by(|a, b| a.id.cmp(&b.id));
        tools
    }

    fn is_read_only(&self, tool: &str) -> bool {
        let registry = self.stack.registry();
        registry
            .get(tool)
            .is_some_and(|def| def.annotations.read_only)
    }

    async fn open_conversation(&self) -> Result<String, String> {
        let session = new_session_id();
        let stored = self.store.ensure_session(&session, &self.project).await;
        stored.map_err(|error| format!("the session cannot be stored: {error}"))?;
        Ok(session)
    }

    async fn call(
        &self,
        call: ServedCall,
        client: Arc<dyn CallClient>,
        cancel: &CancellationToken,
    ) -> ToolResult {
        let ServedCall {
            tool,
            params,
            conversation,
            caller,
        } = call;
        let channel = ClientChannel {
            client,
            yes: self.yes,
            quiet: self.quiet,
        };
        let identity = CallerIdentity {
            conversation: conversation.clone(),
            caller_id: Some(caller.clone()),
            phase: Phase::Executor,
            origin: Origin::Model,
        };
        let dispatcher = Dispatcher::new(Arc::clone(&self.stack) as _, Arc::new(channel), identity)
            .with_redaction(redact::secrets())
            .with_grants(Arc::clone(&self.grants))
            .with_config_reload(Some(Arc::clone(&self.reload)))
            .with_span_content(self.span_content)
            .with_image_support(true);
        let is_exposed = self.is_exposed(&tool);
        let id = format!("call_{}", uuid::Uuid::new_v4().simple());
        let call = ToolCall {
            caller_id: Some(caller),
            ..ToolCall::new(id, tool, params, &conversation)
        };
        if !is_exposed {
            let reason = format!("{} is not exposed by this server (--tools)", call.tool);
            return dispatcher.refuse(&call, cancel, reason).await;
        }
        dispatcher.run_model_call(&call, cancel).await
    }
}

/// The channel of one call: questions go to the client, or are approved by `--yes`. Notices go to standard error.
struct ClientChannel {
    client: Arc<dyn CallClient>,
    yes: bool,
    quiet: bool,
}

#[async_trait]
impl Channel for ClientChannel {
    fn emit(&self, event: LoopbackEvent) {
        match event {
            LoopbackEvent::ToolOutput { text, .. } => self.client.output(clean(&text)),
            LoopbackEvent::Notice(text) if !self.quiet => stderr_line(&clean(&text)),
            LoopbackEvent::Rollback { changes, .. } if !self.quiet => {
                stderr_line(&format!("a command failed and was rolled back: {changes}"));
            }
            LoopbackEvent::Warning(text) | LoopbackEvent::Error(text) => stderr_line(&clean(&text)),
            _ => {}
        }
    }

    fn can_ask(&self) -> bool {
        self.yes || self.client.can_ask()
    }

    fn shows_questions(&self) -> bool {
        !self.yes && self.client.can_ask_while_running()
    }

    async fn confirm(&self, _call: &str, question: &Confirmation, params: &Value) -> UserAnswer {
        if self.yes {
            return UserAnswer::Once;
        }
        let decision = self.client.ask(CallQuestion {
            text: plain_question(question, params),
            session: session_scope(question),
            digest: question.digest,
            preview: question.preview.as_ref().map(|preview| preview.basis),
        });
        match decision.await {
            CallDecision::Once => UserAnswer::Once,
            CallDecision::Session => UserAnswer::Session,
            CallDecision::Reject(reason) => UserAnswer::No(Some(reason)),
        }
    }

    /// Declines: the client is asked about its own calls only.
    async fn ask_for_server(&self, _question: &ServerQuestion) -> ServerAnswer {
        ServerAnswer::Decline
    }

    async fn check_in(&self, _question: &CheckIn) -> CheckInAnswer {
        // Only an agent checks in.
        CheckInAnswer::Stop
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use zeph_tools::def::Annotations;

    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    struct NoParams {}

    fn select(list: &[&str]) -> Result<Vec<String>, String> {
        let NoParams {} = NoParams {};
        let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        let tool = |id| ToolDef::new::<NoParams>(id, "", Annotations::READ);
        let tools = ["bash", "read", "read_overflow"].map(tool);
        let patterns = ToolPatterns::new(&list).map_err(|error| error.to_string())?;
        patterns.select(&tools).map_err(|error| error.to_string())
    }

    /// Proves MCP-10: `--tools` selects by name and pattern, and names the nearest tool for a mistake.
    #[test]
    fn tools_are_selected_by_name_and_pattern() {
        assert_eq!(select(&[]).unwrap().len(), 3);
        assert_eq!(select(&["read"]).unwrap(), ["read"]);
        assert_eq!(select(&["read*", " bash"]).unwrap().len(), 3);
        let error = select(&["raed"]).unwrap_err();
        assert!(error.contains("did you mean read?"), "{error}");
        assert!(select(&["[a"]).unwrap_err().contains("not a pattern"));
    }
}
