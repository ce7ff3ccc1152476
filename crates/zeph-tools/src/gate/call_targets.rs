//! Which parameters of a tool say what a call is about.

use serde::Serialize;

/// Which parameters of a tool say what a call is about; rules are compared with these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolTarget {
    /// A command for the shell.
    Command {
        /// The parameter with the command.
        command: &'static str,
        /// The parameter with the directory where it starts, if one is named.
        cwd: &'static str,
    },
    /// Paths.
    Paths(&'static [PathParam]),
    /// The URL in this parameter.
    Url(&'static str),
    /// Nothing in particular: all arguments.
    #[default]
    Arguments,
}

/// What a call does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRole {
    /// It looks.
    Read,
    /// It changes what is there.
    Write,
}

/// A parameter that is a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathParam {
    /// The parameter.
    pub name: &'static str,
    /// What is done to the path.
    pub role: PathRole,
    /// What it means when it is left out.
    pub default: Option<&'static str>,
    /// Whether a link at its end is meant itself, not what it leads to.
    pub entry: bool,
    /// Whether a directory is taken with all that is in it.
    pub tree: bool,
}

impl PathParam {
    /// A path that is looked at.
    #[must_use]
    pub const fn read(name: &'static str) -> Self {
        Self {
            name,
            role: PathRole::Read,
            default: None,
            entry: false,
            tree: false,
        }
    }

    /// A path where something is changed.
    #[must_use]
    pub const fn write(name: &'static str) -> Self {
        Self {
            role: PathRole::Write,
            ..Self::read(name)
        }
    }

    /// The same, of the entry itself: links are not followed.
    #[must_use]
    pub const fn itself(self) -> Self {
        Self {
            entry: true,
            ..self
        }
    }

    /// The same with all that is in a directory.
    #[must_use]
    pub const fn with_contents(self) -> Self {
        Self { tree: true, ..self }
    }

    /// The same; left out it means `default`.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }
}
