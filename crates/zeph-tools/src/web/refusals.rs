//! Refusals of URLs before the question about a call.

use zeph_web::{Url, UrlGuard, WebError};

use super::config::{DomainError, ScrapeConfig};
use super::error::tool_error;
use super::{limits, request};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::gate::{CallSubject, KnownRefusals};

/// The URLs that the web tools refuse without a lookup of their names.
#[derive(Debug)]
pub struct UrlRefusals(UrlGuard);

impl UrlRefusals {
    /// Creates the refusals of web tools with the limits of `config`.
    ///
    /// # Errors
    /// [`DomainError`] for an entry of `allowed_domains` or `denied_domains` that is not a domain.
    pub fn new(config: &ScrapeConfig) -> Result<Self, DomainError> {
        Ok(Self(UrlGuard::new(&limits(config))?))
    }
}

impl KnownRefusals for UrlRefusals {
    fn known_refusal(&self, subject: &CallSubject<'_>, cx: &CallContext) -> Option<ToolError> {
        let given = &subject.url.as_ref()?.given;
        let refusal = self.0.check(given).err()?;
        if let Ok(url) = Url::parse(given.trim()) {
            request::record_source(&url, cx);
        }
        Some(tool_error(WebError::Refused(refusal)))
    }
}
