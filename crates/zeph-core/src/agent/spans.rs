//! The spans of a turn and of a call, with the names of the OpenTelemetry conventions for generative AI.

use std::borrow::Cow;
use std::time::Duration;

use tracing::field::Empty;
use tracing::{Span, info_span};
use zeph_llm::traced::{SpanContent, record_error};
use zeph_tools::{ToolCall, ToolError, ToolResult};

use super::outcome::{TurnEnd, TurnOutcome};

/// The name of the main agent.
const AGENT: &str = "zeph";
/// The maximum length of the name of a tool in a span.
const MAX_NAME: usize = 128;

/// The span of a turn of the agent, or of the sub-agent `name`.
pub(super) fn turn(name: Option<&str>, session: &str) -> Span {
    let name = name.unwrap_or(AGENT);
    info_span!(
        "turn",
        otel.name = format_args!("invoke_agent {name}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = name,
        gen_ai.conversation.id = session,
        error.type = Empty,
    )
}

/// Records the end of a turn.
pub(super) fn end_turn(span: &Span, outcome: &TurnOutcome) {
    if outcome.end != TurnEnd::Done {
        record_error(span, outcome.end.label());
    }
}

/// The span of a call.
pub(super) fn call(call: &ToolCall, content: SpanContent) -> Span {
    let name = tool_name(&call.tool);
    let span = info_span!(
        "call",
        otel.name = format_args!("execute_tool {name}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = &*name,
        gen_ai.tool.call.id = call.id,
        gen_ai.tool.type = "function",
        gen_ai.conversation.id = call.conversation,
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        zeph.call.waited = Empty,
        error.type = Empty,
    );
    content.record(&span, "gen_ai.tool.call.arguments", || {
        call.params.to_string()
    });
    span
}

/// Records the end of a call, and the time that it waited for the user.
pub(super) fn end_call(span: &Span, result: &ToolResult, waited: Duration, content: SpanContent) {
    if !waited.is_zero() {
        span.record("zeph.call.waited", waited.as_secs_f64());
    }
    if let Err(error) = result {
        record_error(span, error.category().label());
    }
    content.record(span, "gen_ai.tool.call.result", || match result {
        Ok(output) => Cow::Borrowed(output.summary.as_str()),
        Err(error) => Cow::Owned(ToolError::to_string(error)),
    });
}

/// The name of a tool. A model can write any text in its place, and such a text belongs to the content.
fn tool_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    match name.len() <= MAX_NAME && name.chars().all(is_plain) {
        true => name.into(),
        false => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OPS-5: a sentence instead of a name is not exported.
    #[test]
    fn text_is_not_the_name_of_a_tool() {
        assert_eq!(tool_name("mcp_files_read"), "mcp_files_read");
        assert_eq!(tool_name("send the key"), "unknown");
        assert_eq!(tool_name(&"a".repeat(200)), "unknown");
    }
}
