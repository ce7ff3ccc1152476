//! Tool definitions for tables of calls.

use crate::def::{Annotations, ToolDef};
use crate::gate::{PathParam, ToolTarget};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "its schema alone is wanted")]
struct Nothing {}

/// Returns a definition that is equal to the real tool for all gates; any other id is a tool with plain
/// arguments.
pub(crate) fn def(id: &'static str) -> ToolDef {
    const WRITES: ToolTarget = ToolTarget::Paths(const { &[PathParam::write("path")] });
    let (nature, about) = match id {
        "bash" => (
            Annotations::ANYTHING,
            ToolTarget::Command {
                command: "command",
                cwd: "cwd",
            },
        ),
        "read" => (
            Annotations::READ,
            ToolTarget::Paths(const { &[PathParam::read("path")] }),
        ),
        "grep" => (
            Annotations::READ,
            ToolTarget::Paths(const { &[PathParam::read("path").or(".").with_contents()] }),
        ),
        "write" | "edit" => (Annotations::MUTATE, WRITES),
        "delete_path" => (
            Annotations::MUTATE,
            ToolTarget::Paths(const { &[PathParam::write("path").itself().with_contents()] }),
        ),
        "move_path" => (
            Annotations::MUTATE,
            ToolTarget::Paths(
                const {
                    &[
                        PathParam::write("source").itself().with_contents(),
                        PathParam::write("destination").itself(),
                    ]
                },
            ),
        ),
        "fetch" => (
            Annotations {
                open_world: true,
                ..Annotations::READ
            },
            ToolTarget::Url("url"),
        ),
        "add_task" => (Annotations::SESSION_STATE, ToolTarget::Arguments),
        _ => (Annotations::ANYTHING, ToolTarget::Arguments),
    };
    ToolDef::new::<Nothing>(id, "", nature).about(about)
}
