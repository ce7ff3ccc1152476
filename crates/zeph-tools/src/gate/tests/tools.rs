//! The tools that tables of calls are about.

use crate::def::{Annotations, ToolDef};
use crate::gate::{About, PathParam};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "its schema alone is wanted")]
struct Nothing {}

/// A tool as the one with this id is, as far as gates look; any other is about its arguments.
pub(crate) fn def(id: &'static str) -> ToolDef {
    const WRITES: About = About::Paths(const { &[PathParam::write("path")] });
    let (nature, about) = match id {
        "bash" => (
            Annotations::ANYTHING,
            About::Command {
                command: "command",
                cwd: "cwd",
            },
        ),
        "read" => (
            Annotations::READ,
            About::Paths(const { &[PathParam::read("path")] }),
        ),
        "grep" => (
            Annotations::READ,
            About::Paths(const { &[PathParam::read("path").or(".").with_contents()] }),
        ),
        "write" | "edit" => (Annotations::MUTATE, WRITES),
        "delete_path" => (
            Annotations::MUTATE,
            About::Paths(const { &[PathParam::write("path").itself().with_contents()] }),
        ),
        "move_path" => (
            Annotations::MUTATE,
            About::Paths(
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
            About::Url("url"),
        ),
        "add_task" => (Annotations::SESSION_STATE, About::Arguments),
        _ => (Annotations::ANYTHING, About::Arguments),
    };
    ToolDef::new::<Nothing>(id, "", nature).about(about)
}
