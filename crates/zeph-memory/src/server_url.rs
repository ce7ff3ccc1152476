//! The URL of a server as a setting. Its password is never printed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The URL of a server, with or without a password. Every output has `***` in place of the password.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ServerUrl(String);

impl ServerUrl {
    /// The URL with its password.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the password in the form of the URL.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        let (start, end) = password(&self.0)?;
        self.0.get(start..end)
    }
}

/// The place of the password: between the first colon of the user part and the last `@` before the path, or the value of a
/// parameter.
fn password(url: &str) -> Option<(usize, usize)> {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |at| host + at);
    if let Some(at) = url[host..end].rfind('@')
        && let Some(colon) = url[host..host + at].find(':')
    {
        return Some((host + colon + 1, host + at));
    }
    let start = url.find("password=")? + "password=".len();
    let length = url[start..].find('&').unwrap_or(url.len() - start);
    Some((start, start + length))
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match password(&self.0) {
            Some((start, end)) => write!(f, "{}***{}", &self.0[..start], &self.0[end..]),
            // In a text without the form of a URL, any part may be a password.
            None if !self.0.contains("://") => f.write_str("***"),
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

impl Serialize for ServerUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OPS-3: no output of a URL has its password.
    #[test]
    fn password_is_masked() {
        let check = |url: &str, shown: &str| {
            let url = ServerUrl(url.to_owned());
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("ServerUrl({shown})"));
            assert_eq!(serde_json::to_value(&url).ok(), Some(shown.into()));
        };
        check("postgres://ann@db/zeph", "postgres://ann@db/zeph");
        check("postgres://ann:p:w@db/zeph", "postgres://ann:***@db/zeph");
        check(
            "postgres://ann:p@ss@db:1/z?a=b",
            "postgres://ann:***@db:1/z?a=b",
        );
        check("postgres://ann:@db", "postgres://ann:***@db");
        check(
            "postgres://db/z?user=a&password=pw&sslmode=require",
            "postgres://db/z?user=a&password=***&sslmode=require",
        );
        check("hunter2", "***");
        check("", "***");
    }
}
