//! The parameters of a tool that hold the target of a call, for the comparison with rules.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;

/// The parameters of a tool that hold the target of a call; rules are compared with these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolTarget {
    /// A command for the shell.
    Command {
        /// The parameter that holds the command.
        command: &'static str,
        /// The parameter that holds the directory in which the command starts, if it is given.
        cwd: &'static str,
    },
    /// Paths.
    Paths(&'static [PathParam]),
    /// The URL in this parameter.
    Url(&'static str),
    /// No particular parameter: all arguments.
    #[default]
    Arguments,
}

impl ToolTarget {
    /// Replaces the first component `~` of the paths in `params` by `home`. Returns `None` if no path
    /// has one.
    ///
    /// # Errors
    /// [`ToolError::InvalidParameters`] for such a path if `home` is unknown or not UTF-8.
    pub fn expand_home(
        &self,
        params: &Value,
        home: Option<&Path>,
    ) -> Result<Option<Value>, ToolError> {
        let names: Vec<&str> = match self {
            Self::Paths(paths) => paths.iter().map(|param| param.name).collect(),
            Self::Command { cwd, .. } => vec![*cwd],
            Self::Url(_) | Self::Arguments => Vec::new(),
        };
        let mut expanded: Option<Value> = None;
        for name in names {
            let given = params.get(name).and_then(Value::as_str);
            let Some(rest) = given.and_then(below_home) else {
                continue;
            };
            let Some(home) = home.and_then(Path::to_str) else {
                return Err(ToolError::invalid(format!(
                    "`{name}`: `~` needs HOME, which is not set to a valid path; use the absolute path"
                )));
            };
            let copy = expanded.get_or_insert_with(|| params.clone());
            if let Some(field) = copy.get_mut(name) {
                *field = Value::String(format!("{home}{rest}"));
            }
        }
        Ok(expanded)
    }
}

/// The text after `~`, if `~` is the first component of `path`.
fn below_home(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('~')?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The kind of access of a call to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRole {
    /// The call reads the path.
    Read,
    /// The call changes the path.
    Write,
}

/// A parameter that holds a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathParam {
    /// The name of the parameter.
    pub name: &'static str,
    /// The access of the call.
    pub role: PathRole,
    /// The value that applies if the parameter is missing.
    pub default: Option<&'static str>,
    /// Whether a link at the end of the path is itself the target, instead of the target of the link.
    pub entry: bool,
    /// Whether the call includes all contents of a directory.
    pub tree: bool,
    /// Whether the call also reads the path that it changes.
    pub reads: bool,
}

impl PathParam {
    /// Creates a parameter for a path that is read.
    #[must_use]
    pub const fn read(name: &'static str) -> Self {
        Self {
            name,
            role: PathRole::Read,
            default: None,
            entry: false,
            tree: false,
            reads: false,
        }
    }

    /// Creates a parameter for a path that is changed.
    #[must_use]
    pub const fn write(name: &'static str) -> Self {
        Self {
            role: PathRole::Write,
            ..Self::read(name)
        }
    }

    /// Makes the entry itself the target: a link at the end of the path is not followed.
    #[must_use]
    pub const fn itself(self) -> Self {
        Self {
            entry: true,
            ..self
        }
    }

    /// Includes all contents of a directory.
    #[must_use]
    pub const fn with_contents(self) -> Self {
        Self { tree: true, ..self }
    }

    /// Declares that the call also reads the path that it changes.
    #[must_use]
    pub const fn also_read(self) -> Self {
        Self {
            reads: true,
            ..self
        }
    }

    /// Sets the value that applies if the parameter is missing.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    const ENDS: ToolTarget =
        ToolTarget::Paths(const { &[PathParam::read("source"), PathParam::write("destination")] });
    const COMMAND: ToolTarget = ToolTarget::Command {
        command: "command",
        cwd: "cwd",
    };

    /// Proves FILE-4 for arguments: only the first component of a path is the home directory.
    #[test]
    fn tilde_of_a_path_parameter_is_the_home_directory() {
        let check = |target: ToolTarget, params: Value, expect: Option<Value>| {
            let found = target.expand_home(&params, Some(Path::new("/h")));
            assert_eq!(found.unwrap(), expect, "{params}");
        };
        let source = |path: &str| json!({ "source": path });
        check(ENDS, source("~"), Some(source("/h")));
        check(ENDS, source("~/a/"), Some(source("/h/a/")));
        check(
            ENDS,
            json!({ "source": "a", "destination": "~/b", "other": "~/c" }),
            Some(json!({ "source": "a", "destination": "/h/b", "other": "~/c" })),
        );
        for path in ["", "a/~", "./~", "~user/a", "~~", "/~"] {
            check(ENDS, source(path), None);
        }
        check(ENDS, json!({ "source": 1 }), None);
        check(
            COMMAND,
            json!({ "command": "~/x", "cwd": "~/d" }),
            Some(json!({ "command": "~/x", "cwd": "/h/d" })),
        );
        check(ToolTarget::Url("url"), json!({ "url": "~/x" }), None);
        check(ToolTarget::Arguments, json!({ "path": "~/x" }), None);
    }

    #[test]
    fn tilde_without_a_home_directory_is_refused() {
        let error = ENDS.expand_home(&json!({ "source": "~/a" }), None);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`source`: `~` needs HOME"), "{error}");
        let plain = ENDS.expand_home(&json!({ "source": "a" }), None);
        assert_eq!(plain.unwrap(), None);
    }
}
