//! Paths of files that hold secrets. They are told of, and stay as they are.

use std::ops::Range;

use super::kind::Kind;
use super::line_buffer::Line;

/// What is looked for.
pub(super) const LITERALS: &[&str] = &[
    ".ssh/id_",
    ".aws/credentials",
    ".git-credentials",
    "/etc/shadow",
    ".kube/config",
    ".docker/config.json",
    ".gnupg/",
    "/.netrc",
    ".config/gcloud/",
    ".azure/accessTokens",
    ".pgpass",
];

/// The path around a place.
pub(super) fn find(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    let literal = LITERALS.iter().find(|literal| line.has(at, literal))?;
    let end = at + literal.len();
    // A public key is none.
    let rest = line.run(end, 64, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
    });
    if literal.starts_with(".ssh/") && line.slice(end, rest).ends_with(".pub") {
        return None;
    }
    Some((at..end, Kind::PATH))
}
