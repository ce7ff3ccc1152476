//! The parameters of a tool that hold the target of a call, for the comparison with rules.

use serde::Serialize;

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
