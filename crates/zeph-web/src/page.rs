//! The response of a server.

use url::Url;

use crate::body::{self, BodyKind};

/// A page of the web: the body of a successful response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPage {
    /// The final URL, after redirects.
    pub url: Url,
    /// The header `Content-Type`, or an empty text.
    pub content_type: String,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// Whether the body was longer than the limit.
    pub is_cut: bool,
    /// Whether the server allows the response to be cached.
    pub is_cacheable: bool,
}

impl HttpPage {
    /// Returns the host of the final URL.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the media type without parameters, in lower case.
    #[must_use]
    pub fn media_type(&self) -> String {
        body::essence(&self.content_type)
    }

    /// Returns the kind of the body, by its header, or by its first bytes if the header is missing.
    #[must_use]
    pub fn kind(&self) -> BodyKind {
        body::kind(&self.content_type, &self.body)
    }

    /// Decodes the body by its charset, without control characters other than tab and line feed.
    #[must_use]
    pub fn text(&self) -> String {
        body::decode(&self.body, &self.content_type, self.kind(), self.is_cut)
    }
}
