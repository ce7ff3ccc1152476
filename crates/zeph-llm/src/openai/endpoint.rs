//! Where requests go: the URL behind `base_url`.

use reqwest::Url;

/// OpenAI's own server.
const OPENAI_HOST: &str = "api.openai.com";
const PATH: &str = "chat/completions";

/// The URL of Chat Completions on a server.
#[derive(Clone)]
pub(crate) struct Endpoint {
    url: Url,
    shown: String,
}

impl Endpoint {
    /// Reads `base_url`: with or without a trailing `/v1` or `/`, all meaning the same. The full
    /// address of another path is taken as it is when it ends in `/chat/completions`. A query
    /// stays. Without one it is OpenAI.
    pub(crate) fn parse(base_url: Option<&str>) -> Result<Self, String> {
        let base = base_url.unwrap_or("https://api.openai.com");
        let mut url = Url::parse(base.trim())
            .map_err(|error| format!("`base_url` = {base:?} is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!(
                "`base_url` = {base:?} must begin with http:// or https:// and name a host"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "`base_url` must not hold a user or a password: name the key's environment variable as `api_key_env`"
                    .to_owned(),
            );
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = match path.strip_suffix(PATH) {
            Some(_) => path.to_owned(),
            None => format!("{}/v1/{PATH}", path.strip_suffix("/v1").unwrap_or(path)),
        };
        url.set_path(&path);
        let mut bare = url.clone();
        bare.set_query(None);
        Ok(Self {
            shown: bare.into(),
            url,
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The URL for texts: its query, which may hold a key, left out.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether this is OpenAI's own server.
    pub(crate) fn is_openai(&self) -> bool {
        self.url.host_str() == Some(OPENAI_HOST)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn base_url_with_and_without_v1() {
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
                Endpoint::parse(base).unwrap().url().as_str(),
                expect,
                "{base:?}"
            );
        }
    }

    #[test]
    fn unusable_addresses_are_refused_precisely() {
        for (base, expect) in [
            ("localhost:8080", "must begin with http://"),
            ("", "is no URL"),
            ("ftp://h", "must begin with http://"),
            ("http://", "is no URL"),
            ("https://user:secret@h/v1", "`api_key_env`"),
        ] {
            let Err(message) = Endpoint::parse(Some(base)) else {
                panic!("{base:?} was taken");
            };
            assert!(message.contains(expect), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn openai_itself_is_recognized_and_queries_are_not_shown() {
        assert!(Endpoint::parse(None).unwrap().is_openai());
        assert!(
            Endpoint::parse(Some("https://api.openai.com/v1"))
                .unwrap()
                .is_openai()
        );
        assert!(
            !Endpoint::parse(Some("https://api.openai.com.example.org"))
                .unwrap()
                .is_openai()
        );
        let endpoint = Endpoint::parse(Some("https://h/v1?key=secret")).unwrap();
        assert_eq!(endpoint.shown(), "https://h/v1/chat/completions");
    }
}
