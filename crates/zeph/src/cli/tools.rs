//! `zeph tools …`: the tools without a model, through the same stack.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zeph_core::{CallerIdentity, ConfigReload as _, ConfigUpdate, Dispatcher};
use zeph_llm::ToolDefinition;
use zeph_llm::text_tools::catalog;
use zeph_memory::new_session_id;
use zeph_tools::layers::now_ms;
use zeph_tools::overflow::{Overflow, OverflowRef};
use zeph_tools::registry::nearest;
use zeph_tools::schema;
use zeph_tools::tafc::{self, TafcConfig};
use zeph_tools::{
    Availability, FilterStats, LayeredExecutor, MachineForm, Origin, OutputMetadata, Phase,
    ToolCall, ToolDef, ToolError, ToolExecutor as _, ToolRegistry, ToolResult,
};
use zeph_tui::TerminalChannel;
use zeph_tui::signals::{SignalTask, cancel_on_signals};

use super::args::{GlobalArgs, ToolsCommand};
use super::run::read_stdin;
use super::{Exit, Outcome, UsageError, is_closed_pipe, load_config, overflow, print, print_as_is};
use crate::assemble::{App, AuditLines, Reloader};
use crate::output::{json_line, json_lines, redact, stderr_line};
use crate::telemetry;
use crate::terminal;

/// The longest line of a script.
const MAX_LINE: u64 = 32 * 1024 * 1024;

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: ToolsCommand) -> anyhow::Result<Exit> {
    let (mut loaded, env) = load_config(global)?;
    if matches!(command, ToolsCommand::Call { session: None, .. }) {
        // The user makes this call; no conversation exists in which the file could have been read.
        loaded.config.tools.file.read_before_write = false;
    }
    let lines = match command {
        ToolsCommand::Call { json: false, .. } => AuditLines::Stdout,
        _ => AuditLines::Stderr,
    };
    let assembly = App::for_calls(loaded, env, global.build_options(), lines).await?;
    let exit = match command {
        ToolsCommand::List { json, all, catalog } => {
            let registry = ToolRegistry::new(assembly.stack.tool_definitions());
            let tafc = &assembly.loaded.config.tools.tafc;
            match json && !catalog {
                true => print_as_is(&json_lines(&sent(registry.tools(), all, tafc))?)?,
                false if catalog => print(&catalog::render(&definitions(registry.tools())))?,
                false => print(&list(registry.tools()))?,
            }
            Exit::Done
        }
        ToolsCommand::Show { name } => {
            let registry = ToolRegistry::new(assembly.stack.tool_definitions());
            match registry.get(&name) {
                Some(def) => print_as_is(&json_lines(def)?)?,
                None => bail!(
                    "{}",
                    ToolError::ToolNotFound {
                        near: registry.suggestions(&name),
                        id: name,
                    }
                ),
            }
            Exit::Done
        }
        ToolsCommand::Call {
            name,
            params,
            session,
            json,
        } => {
            // The user asks for this tool, so its server may take longer than a start waits.
            if let Some(mcp) = assembly.mcp.as_ref().filter(|_| name.starts_with("mcp_")) {
                mcp.servers.wait_for_tool(&name).await;
            }
            let text = if params == "-" { read_stdin()? } else { params };
            // Invalid JSON is passed through unchanged: the stack refuses and audits it.
            let parsed = serde_json::from_str(&text);
            let is_json = parsed.is_ok();
            let params = parsed.unwrap_or(Value::String(text));
            let caller = Calls::new(&assembly, global, session, json).await?;
            let (result, form) = caller.call(&name, params).await;
            let printed = match json {
                true => print_as_is(&json_line(&form)?),
                false => print(&form.data),
            };
            if !json && !global.quiet {
                if let Some(told) = form.filter.as_ref().and_then(FilterStats::notice) {
                    stderr_line(&told);
                }
                if let Some(reference) = stored(&result) {
                    stderr_line(&overflow::hint(reference, &caller.session));
                }
            }
            // The exit code reports the outcome of the call, even if the reader closed the pipe.
            printed.or_else(|error| {
                if is_closed_pipe(&error) {
                    Ok(())
                } else {
                    Err(error)
                }
            })?;
            match Exit::of(Outcome::Call(&result)) {
                _ if !is_json => Exit::Usage,
                _ if caller.cancel.is_cancelled() => Exit::Interrupted,
                exit => exit,
            }
        }
        ToolsCommand::Run { file, session } => {
            let caller = Calls::new(&assembly, global, session, true).await?;
            script(&caller, &file).await?
        }
    };
    assembly.close().await?;
    Ok(exit)
}

/// The reference to the complete output, if it was too long to print.
fn stored(result: &ToolResult) -> Option<OverflowRef> {
    let output = match result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    };
    match output?.overflow {
        Some(Overflow::Stored(reference)) => Some(reference),
        _ => None,
    }
}

fn list(tools: &[ToolDef]) -> String {
    let lines: Vec<_> = tools
        .iter()
        .map(|def| {
            let later = match def.offered {
                Availability::AtOnce => String::new(),
                Availability::OnceNamed(tool) => format!(
                    " [available after a result names \
                    {tool}]"
                ),
                Availability::NotNow => " [its server does not respond]".to_owned(),
            };
            let purpose = def.description.lines().next().unwrap_or_default();
            format!("{:<18} {purpose}{later}", def.id)
        })
        .collect();
    lines.join("\n")
}

/// The definitions of the model's catalog, in their order.
fn definitions(tools: &[ToolDef]) -> Vec<ToolDefinition> {
    let now = tools
        .iter()
        .filter(|def| def.offered != Availability::NotNow);
    let (at_once, later): (Vec<&ToolDef>, Vec<&ToolDef>) =
        now.partition(|def| def.offered == Availability::AtOnce);
    let all = at_once.into_iter().chain(later);
    all.map(|def| ToolDefinition {
        name: def.id.to_string(),
        description: def.description.to_string(),
        parameters: schema::sent(&def.parameters),
    })
    .collect()
}

/// The definitions as they are sent to a model that calls tools natively; with the first request, or `all`.
fn sent(tools: &[ToolDef], all: bool, tafc: &TafcConfig) -> Vec<Value> {
    tools
        .iter()
        .filter(|def| all || def.offered == Availability::AtOnce)
        .cloned()
        .map(|mut def| {
            tafc::apply(tafc, &mut def);
            json!({
                "name": def.id,
                "description": def.description,
                "parameters": schema::sent(&def.parameters),
            })
        })
        .collect()
}

/// Makes calls in one session on behalf of the user: questions are asked if a user is present.
struct Calls {
    dispatcher: Dispatcher,
    session: String,
    cancel: CancellationToken,
    reload: Arc<Reloader>,
    /// The stack, if its tools can change while a script runs.
    changing: Option<Arc<LayeredExecutor>>,
    quiet: bool,
    _signals: SignalTask,
}

impl Calls {
    async fn new(
        assembly: &App,
        global: &GlobalArgs,
        session: Option<String>,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        let session = session.unwrap_or_else(new_session_id);
        assembly
            .store
            .ensure_session(&session, &assembly.env.cwd)
            .await?;
        let options = terminal::options(quiet || global.quiet, global.yes);
        let dispatcher = Dispatcher::new(
            Arc::clone(&assembly.stack) as _,
            Arc::new(TerminalChannel::one_shot(options)),
            CallerIdentity {
                conversation: session.clone(),
                caller_id: None,
                phase: Phase::Executor,
                origin: Origin::User,
            },
        )
        .with_redaction(redact::secrets())
        .with_grants(Arc::clone(&assembly.permissions.grants))
        .with_span_content(telemetry::span_content(&assembly.loaded, &assembly.env))
        .with_image_support(true);
        let cancel = CancellationToken::new();
        let signals = cancel_on_signals(cancel.clone());
        Ok(Self {
            dispatcher,
            session,
            cancel,
            reload: Arc::clone(&assembly.reload),
            changing: assembly.mcp.as_ref().map(|_| Arc::clone(&assembly.stack)),
            quiet: global.quiet,
            _signals: signals,
        })
    }

    async fn call(&self, tool: &str, params: Value) -> (ToolResult, MachineForm) {
        // Standard output belongs to the results; a script continues while its input is open.
        match self.reload.refresh().await {
            Some(ConfigUpdate::Refused(text)) => stderr_line(&format!("error: {text}")),
            Some(ConfigUpdate::Taken(text)) if !self.quiet => stderr_line(&text),
            _ => {}
        }
        if let Some(stack) = &self.changing {
            stack.tool_definitions();
        }
        let id = format!("call_{}", uuid::Uuid::new_v4().simple());
        let call = ToolCall::new(id, tool, params, &self.session);
        let start = Instant::now();
        let result = self.dispatcher.run_model_call(&call, &self.cancel).await;
        let metadata = OutputMetadata {
            execution_time_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            data_size_bytes: 0,
            timestamp: now_ms(),
        };
        let form = MachineForm::new(tool, &self.session, &result, metadata);
        (result, form)
    }
}

/// One line of a script.
#[derive(Debug)]
struct ScriptLine {
    tool: String,
    params: Value,
}

/// The fault of a script line: whether it is not JSON, and the message.
#[derive(Debug)]
struct LineFault {
    unparsable: bool,
    message: String,
}

/// Runs a script. A call that fails is a result; a line that cannot be understood ends the script.
async fn script(caller: &Calls, file: &Path) -> anyhow::Result<Exit> {
    let reader: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let opened = std::fs::File::open(file)
            .with_context(|| UsageError(format!("the script {} cannot be read", file.display())))?;
        Box::new(opened)
    };
    let mut lines = read_lines(reader);
    let mut number = 0usize;
    loop {
        let line = tokio::select! {
            biased;
            () = caller.cancel.cancelled() => return Ok(Exit::Interrupted),
            line = lines.recv() => line,
        };
        let Some(line) = line else {
            return Ok(Exit::Done);
        };
        number += 1;
        let line = line.with_context(|| format!("the script cannot be read at line {number}"))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match understand(&line) {
            Ok(ScriptLine { tool, params }) => {
                let (_, form) = caller.call(&tool, params).await;
                print_as_is(&json_line(&form)?)?;
            }
            Err(fault) => {
                let failed = Err(ToolError::InvalidParameters {
                    message: format!("line {number}: {}", redact::redacted(&fault.message)),
                    unparsable: fault.unparsable,
                });
                let metadata = OutputMetadata {
                    timestamp: now_ms(),
                    ..OutputMetadata::default()
                };
                let form = MachineForm::new("", &caller.session, &failed, metadata);
                print_as_is(&json_line(&form)?)?;
                stderr_line(&format!(
                    "error: line {number}: {}; the lines after it did not run",
                    fault.message
                ));
                return Ok(Exit::Usage);
            }
        }
    }
}

/// Reads lines on a separate thread, so that the wait for a line can be interrupted.
fn read_lines(reader: Box<dyn Read + Send>) -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        loop {
            let mut line = Vec::new();
            let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            let read = match read {
                Ok(bytes) if bytes as u64 == MAX_LINE && !line.ends_with(b"\n") => Err(
                    std::io::Error::other(format!("a line is longer than {MAX_LINE} bytes")),
                ),
                read => read,
            };
            let ended = !matches!(read, Ok(bytes) if bytes > 0);
            if matches!(read, Ok(0)) || sender.blocking_send(read.map(|_| line)).is_err() || ended {
                return;
            }
        }
    });
    receiver
}

/// The shape that a line must have.
const SHAPE: &str = "an object {\"tool\": …, \"params\": {…}}";

fn understand(line: &[u8]) -> Result<ScriptLine, LineFault> {
    let misshapen = |message: String| LineFault {
        unparsable: false,
        message,
    };
    let value: Value = serde_json::from_slice(line).map_err(|error| LineFault {
        unparsable: true,
        message: format!("it is not JSON: {error}; expected {SHAPE}"),
    })?;
    let Value::Object(mut fields) = value else {
        return Err(misshapen(format!("expected {SHAPE}")));
    };
    let tool = match fields.shift_remove("tool") {
        Some(Value::String(tool)) => tool,
        Some(_) => return Err(misshapen("`/tool` expects a string".to_owned())),
        None => return Err(misshapen(format!("`/tool` is missing; expected {SHAPE}"))),
    };
    let params = fields.shift_remove("params").unwrap_or_else(|| json!({}));
    if let Some(unknown) = fields.keys().next() {
        let near = nearest(unknown, ["tool", "params"].into_iter(), 1).pop();
        let near = near.map_or_else(
            || format!("expected {SHAPE}"),
            |near| format!("did you mean {near:?}?"),
        );
        return Err(misshapen(format!(
            "{unknown:?} is not a known field; {near}"
        )));
    }
    Ok(ScriptLine { tool, params })
}
