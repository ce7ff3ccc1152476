//! The features with which the workspace is built.
//!
//! `ci` builds and tests everything with all optional features, so that each external package compiles once.

/// The optional features of the binary.
const OPTIONAL: &str = "zeph/candle,zeph/otel,zeph/postgres,zeph/secret-service";

/// The features of a build of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    Default,
    /// The default features and the optional ones.
    All,
}

impl Features {
    /// The arguments of cargo.
    pub(crate) fn args(self) -> Vec<&'static str> {
        match self {
            Self::Default => vec!["--workspace"],
            Self::All => vec!["--workspace", "--features", OPTIONAL],
        }
    }
}
