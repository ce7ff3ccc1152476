//! The URL of requests, derived from `base_url`, and the location of each API.

use reqwest::Url;

/// The location of an API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiPath {
    /// The vendor's own server, which is meant without a `base_url`.
    pub(crate) vendor: &'static str,
    /// The suffix that a `base_url` may have or omit: `v1`.
    pub(crate) prefix: &'static str,
    /// The path after the prefix: `chat/completions`.
    pub(crate) path: &'static str,
}

/// Anthropic's Messages API.
pub(crate) const ANTHROPIC_MESSAGES: ApiPath = ApiPath {
    vendor: "https://api.anthropic.com",
    prefix: "v1",
    path: "messages",
};

/// OpenAI Chat Completions.
pub(crate) const OPENAI_CHAT: ApiPath = ApiPath {
    vendor: "https://api.openai.com",
    prefix: "v1",
    path: "chat/completions",
};

/// OpenAI Responses.
pub(crate) const OPENAI_RESPONSES: ApiPath = ApiPath {
    vendor: "https://api.openai.com",
    prefix: "v1",
    path: "responses",
};

/// Ollama's own API.
pub(crate) const OLLAMA_CHAT: ApiPath = ApiPath {
    vendor: "http://127.0.0.1:11434",
    prefix: "api",
    path: "chat",
};

/// The URL of an API on a server.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    url: Url,
    shown: String,
    is_vendor: bool,
}

impl Endpoint {
    /// Parses `base_url`. The trailing prefix or `/` is optional, and the complete address of the path is used
    /// unchanged. A query is preserved. Without a `base_url`, the server is the vendor's.
    pub(crate) fn parse(base_url: Option<&str>, place: ApiPath) -> Result<Self, String> {
        let base = base_url.unwrap_or(place.vendor);
        let mut url = Url::parse(base.trim())
            .map_err(|error| format!("`base_url` = {base:?} is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!(
                "`base_url` = {base:?} must begin with http:// or https:// and name a host"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "`base_url` must not contain a user or a password: name the key's environment \
                 variable as `api_key_env`"
                    .to_owned(),
            );
        }
        url.set_fragment(None);
        let ApiPath {
            prefix, path: end, ..
        } = place;
        let path = url.path().trim_end_matches('/');
        let path = match path.strip_suffix(end) {
            Some(before) if before.ends_with('/') => path.to_owned(),
            _ => {
                let before = path.strip_suffix(prefix).and_then(|p| p.strip_suffix('/'));
                format!("{}/{prefix}/{end}", before.unwrap_or(path))
            }
        };
        url.set_path(&path);
        let mut bare = url.clone();
        bare.set_query(None);
        let vendor = Url::parse(place.vendor).ok();
        Ok(Self {
            is_vendor: vendor.is_some_and(|vendor| vendor.host_str() == url.host_str()),
            shown: bare.into(),
            url,
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The URL for texts, without its query, which may hold a key.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Whether this is the vendor's own server.
    pub(crate) fn is_vendor(&self) -> bool {
        self.is_vendor
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn base_url_is_accepted_with_and_without_v1() {
        for (base, expect) in [
            (None, "https://api.openai.com/v1/chat/completions"),
            (
                Some("https://api.openai.com"),
                "https://api.openai.com/v1/chat/completions",
            ),
            (
                Some("https://api.openai.com/v1"),
                "https://api.openai.com/v1/chat/completions",
            ),
            (
                Some("https://api.openai.com/v1/"),
                "https://api.openai.com/v1/chat/completions",
            ),
            (
                Some(" http://localhost:8080// "),
                "http://localhost:8080/v1/chat/completions",
            ),
            (
                Some("http://[::1]:8080"),
                "http://[::1]:8080/v1/chat/completions",
            ),
            (
                Some("https://h/openai/v1"),
                "https://h/openai/v1/chat/completions",
            ),
            (
                Some("https://h/apiv1"),
                "https://h/apiv1/v1/chat/completions",
            ),
            (
                Some("https://h/x/chat/completions"),
                "https://h/x/chat/completions",
            ),
            (
                Some("https://h/v1?a=b#c"),
                "https://h/v1/chat/completions?a=b",
            ),
        ] {
            assert_eq!(
                Endpoint::parse(base, OPENAI_CHAT).unwrap().url().as_str(),
                expect,
                "{base:?}"
            );
        }
    }

    #[test]
    fn unusable_addresses_are_refused_precisely() {
        for (base, expect) in [
            ("localhost:8080", "must begin with http://"),
            ("", "is not a URL"),
            ("ftp://h", "must begin with http://"),
            ("http://", "is not a URL"),
            ("https://user:secret@h/v1", "`api_key_env`"),
        ] {
            let Err(message) = Endpoint::parse(Some(base), OPENAI_CHAT) else {
                panic!("{base:?} was taken");
            };
            assert!(message.contains(expect), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn vendor_is_recognized_and_query_is_not_shown() {
        assert!(Endpoint::parse(None, OPENAI_CHAT).unwrap().is_vendor());
        assert!(
            Endpoint::parse(Some("https://api.openai.com/v1"), OPENAI_CHAT)
                .unwrap()
                .is_vendor()
        );
        assert!(
            !Endpoint::parse(Some("https://api.openai.com.example.org"), OPENAI_CHAT)
                .unwrap()
                .is_vendor()
        );
        let endpoint = Endpoint::parse(Some("https://h/v1?key=secret"), OPENAI_CHAT).unwrap();
        assert_eq!(endpoint.shown(), "https://h/v1/chat/completions");
    }
}
