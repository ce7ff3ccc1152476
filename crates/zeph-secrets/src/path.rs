//! Paths of files that hold secrets. They are reported but not replaced.

use std::ops::Range;

use super::kind::Kind;
use super::line_buffer::Line;

/// The parts of paths that are searched.
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

/// The sensitive path at a position.
pub(super) fn find(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    let literal = LITERALS.iter().find(|literal| line.has(at, literal))?;
    let end = at + literal.len();
    // A public key is not a secret.
    let rest = line.run(end, 64, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
    });
    if literal.starts_with(".ssh/") && line.slice(end, rest).ends_with(".pub") {
        return None;
    }
    Some((at..end, Kind::PATH))
}
