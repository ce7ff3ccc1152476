//! `zeph policy …`: the decisions of the gates, without a call.
//!
//! The commands write nothing: they list the tools without the database, and open the audit trail read-only. Approvals on the
//! server of a shared store are read from it.

mod examples;
mod explain;
mod gates;
mod other_gates;
mod replay;

use clap::Subcommand;
use serde_json::{Map, Value};
use zeph_tools::{ToolDef, ToolError};

use super::args::GlobalArgs;
use super::{Exit, load_config, print, print_as_is, usage};
use gates::Gates;

/// `zeph policy …`
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Explain the decision for a call: parts, matching rules, and how to allow it
    Explain {
        /// Name of the tool
        #[arg(value_name = "TOOL")]
        tool: String,
        /// JSON object, or the text of the first required argument: the command, the path, the URL
        #[arg(value_name = "ARGS", default_value = "{}", allow_hyphen_values = true)]
        arguments: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the examples embedded in the rules; exits with 1 on failure
    Test,
    /// Replay past calls from the audit log against the current rules
    Replay {
        /// Skip calls before this time: 90s, 30m, 1h, 2d, 1w, 2026-11-01 or 2026-11-01T09:30
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Replay only this session (ID or unique prefix), in any directory
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: PolicyCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let gates = Gates::new(loaded, env)?;
    match command {
        PolicyCommand::Explain {
            tool,
            arguments,
            json,
        } => {
            let def = gates.tool(&tool)?;
            let params = arguments_of(def, &arguments)?;
            let text = explain::explain(&gates, def, &tool, params, json).await?;
            match json {
                true => print_as_is(&text)?,
                false => print(&text)?,
            }
            Ok(Exit::Done)
        }
        PolicyCommand::Test => examples::run(&gates),
        PolicyCommand::Replay {
            since,
            session,
            json,
        } => replay::run(&gates, since.as_deref(), session.as_deref(), json).await,
    }
}

/// The arguments of a call as the user writes them: a JSON object, or the text of the first required argument.
fn arguments_of(def: &ToolDef, text: &str) -> anyhow::Result<Value> {
    if text.trim_start().starts_with('{')
        && let Ok(params @ Value::Object(_)) = serde_json::from_str(text)
    {
        return Ok(params);
    }
    let required = def.parameters.get("required").and_then(Value::as_array);
    let first = required.into_iter().flatten().find_map(Value::as_str);
    match first {
        _ if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Some(name) => Ok(Value::Object(Map::from_iter([(
            name.to_owned(),
            Value::String(text.to_owned()),
        )]))),
        None => Err(usage(format!(
            "the arguments of {} are a JSON object, not {text:?}",
            def.id
        ))),
    }
}

/// The arguments of a call under `name` as the tool receives them, or the reason why they do not fit.
fn fitting(gates: &Gates, def: &ToolDef, name: &str, params: Value) -> Result<Value, ToolError> {
    let prepared = zeph_tools::params::prepare_as(def, name, &params)?;
    gates.expanded(def, prepared.params.unwrap_or(params))
}
