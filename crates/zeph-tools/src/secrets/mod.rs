//! Secrets in texts: what looks like one is found, named by its kind, and replaced.

pub mod config;
pub mod extra;

pub use config::{ExtraPattern, SecurityConfig};
pub use extra::Skipped;

/// What the configuration says of secrets, checked and compiled.
#[derive(Debug)]
pub struct Secrets {
    /// Whether values are replaced.
    pub redact: bool,
    /// The user's own patterns.
    pub extras: Vec<extra::Extra>,
}

impl Secrets {
    /// What `config` says, and those of its patterns that cannot be used.
    #[must_use]
    pub fn new(config: &SecurityConfig) -> (Self, Vec<Skipped>) {
        let (extras, skipped) = extra::compile(&config.extra_patterns);
        let redact = config.redact;
        (Self { redact, extras }, skipped)
    }
}
