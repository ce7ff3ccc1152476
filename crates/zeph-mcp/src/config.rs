//! Configuration of MCP servers: `[mcp]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_tools::TrustLevel;

/// The longest name of a server: with it begin the names of its tools, which have 64 characters.
const MAX_NAME_CHARS: usize = 32;

/// Servers of the Model Context Protocol (`[mcp]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// The time in milliseconds that commands that show tools wait for the servers, and after which a conversation reports a server that is not connected.
    pub start_wait_ms: u64,
    /// The servers.
    pub servers: Vec<McpServerConfig>,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            start_wait_ms: 3000,
            servers: Vec::new(),
        }
    }
}

/// One server (`[[mcp.servers]]`): a program (`command`) or an address (`url`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerConfig {
    /// Its name: its tools are called `mcp_NAME_TOOL`.
    pub name: String,
    /// The program of a server that uses standard input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the program's environment, added to those that commands of `bash` see. `${NAME}` in a value is
    /// a variable of your own environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether the program runs in the OS sandbox: `on` or `off`.
    #[serde(default)]
    pub sandbox: ServerSandbox,
    /// Files and directories that the program may write, in addition to a folder of its own, the temporary directory and
    /// the caches of package managers. Relative to the working directory; `~/` is your home.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Whether the program may use the network.
    #[serde(default = "enabled")]
    pub network: bool,
    /// The address of a server that uses HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request to it. `${NAME}` in a value is a variable of your own environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The login to the server, for an authorization server that registers no clients: `client_id` and `client_secret`
    /// (`${NAME}` is a variable of your own environment) or `client_metadata_url`, the `scopes` to request, and
    /// `redirect_port`, the port of 127.0.0.1 to which the browser returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub oauth: Option<OAuthConfig>,
    /// The trust in the hints of the server about its tools: `untrusted` ignores them, `provisional` uses them for
    /// parallel calls and for mode `plan`, `trusted` also for calls without confirmation.
    #[serde(default = "provisional")]
    pub trust_level: TrustLevel,
    /// The tools of the server that are used, by their names on the server; empty means all.
    #[serde(default)]
    pub tool_allowlist: Vec<String>,
    /// Whether the server may request responses of the session's model. Each request asks.
    #[serde(default)]
    pub sampling: bool,
    /// The time limit for connecting and listing the tools, in seconds.
    #[serde(default = "connect_timeout")]
    #[schemars(range(min = 1))]
    pub connect_timeout_secs: u64,
    /// The time limit of a call in seconds.
    #[serde(default = "call_timeout")]
    #[schemars(range(min = 1))]
    pub call_timeout_secs: u64,
    /// Whether the server is used.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

/// The login to a server: `zeph mcp login NAME` needs these keys only for an authorization server that registers no
/// clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OAuthConfig {
    /// The id of a client that is registered already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret. `${NAME}` is a variable of your own environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The address of a client-metadata document, which is used as the id if the authorization server supports that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// The scopes to request; empty means those that the server names.
    pub scopes: Vec<String>,
    /// The port of 127.0.0.1 to which the browser returns; without it, a free one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_port: Option<u16>,
}

/// Whether the program of a server runs in the OS sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerSandbox {
    /// In the sandbox, as far as this machine has one.
    #[default]
    On,
    /// Without it.
    Off,
}

fn provisional() -> TrustLevel {
    TrustLevel::Provisional
}

fn connect_timeout() -> u64 {
    30
}

fn call_timeout() -> u64 {
    120
}

fn enabled() -> bool {
    true
}

/// The transport to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way<'c> {
    /// A program.
    Program(&'c str),
    /// An address.
    Url(&'c str),
}

impl McpServerConfig {
    /// Returns the transport to the server.
    ///
    /// # Errors
    /// The wrong key and a sentence about the error.
    pub fn way(&self) -> Result<Way<'_>, (&'static str, String)> {
        match (self.command.as_deref(), self.url.as_deref()) {
            (Some(_), Some(_)) => Err((
                "url",
                "it has a `command` and a `url`; remove one of them".to_owned(),
            )),
            (None, None) => Err(("name", "it has neither a `command` nor a `url`".to_owned())),
            (Some(command), None) if command.trim().is_empty() => {
                Err(("command", "`command` is empty".to_owned()))
            }
            (Some(command), None) => Ok(Way::Program(command)),
            (None, Some(url)) => match reqwest::Url::parse(url) {
                Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => {
                    Ok(Way::Url(url))
                }
                // The address is not repeated: it may hold a key.
                _ => Err((
                    "url",
                    "`url` is not an address that begins with http:// or https://".to_owned(),
                )),
            },
        }
    }

    /// Checks the configuration of the server.
    ///
    /// # Errors
    /// The first error: the key and a sentence.
    pub fn validate(&self) -> Result<(), (&'static str, String)> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.is_empty() || self.name.len() > MAX_NAME_CHARS || !self.name.chars().all(fits)
        {
            return Err((
                "name",
                format!(
                    "a server's name has 1 to {MAX_NAME_CHARS} ASCII letters, digits, `_` and `-`"
                ),
            ));
        }
        let way = self.way()?;
        let idle = match way {
            Way::Program(_) if !self.headers.is_empty() => Some("headers"),
            Way::Program(_) if self.oauth.is_some() => Some("oauth"),
            Way::Url(_) if !self.args.is_empty() => Some("args"),
            Way::Url(_) if !self.env.is_empty() => Some("env"),
            Way::Url(_) if self.sandbox == ServerSandbox::Off => Some("sandbox"),
            Way::Url(_) if !self.writable.is_empty() => Some("writable"),
            Way::Url(_) if !self.network => Some("network"),
            Way::Program(_) if self.sandbox == ServerSandbox::Off && !self.writable.is_empty() => {
                return Err((
                    "writable",
                    "`writable` has no effect with `sandbox = \"off\"`".to_owned(),
                ));
            }
            Way::Program(_) if self.sandbox == ServerSandbox::Off && !self.network => {
                return Err((
                    "network",
                    "`network = false` needs the sandbox, which `sandbox = \"off\"` turns off"
                        .to_owned(),
                ));
            }
            _ => None,
        };
        if let Some(key) = idle {
            let of = match way {
                Way::Program(_) => "a `command`",
                Way::Url(_) => "a `url`",
            };
            return Err((key, format!("`{key}` has no effect for a server with {of}")));
        }
        let oauth = self.oauth.as_ref();
        if oauth.is_some_and(|oauth| oauth.client_secret.is_some() && oauth.client_id.is_none()) {
            return Err((
                "oauth",
                "`oauth.client_secret` needs `oauth.client_id`".to_owned(),
            ));
        }
        for name in self.headers.keys() {
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(("headers", format!("{name:?} is not the name of a header")));
            }
        }
        Ok(())
    }

    /// How long connecting may take.
    pub(crate) fn connect_timeout(&self) -> Duration {
        let config = self;
        Duration::from_secs(config.connect_timeout_secs.max(1))
    }

    /// How long a call may take.
    pub(crate) fn call_timeout(&self) -> Duration {
        let config = self;
        Duration::from_secs(config.call_timeout_secs.max(1))
    }
}

/// `text` with each `${NAME}` replaced by the result of `variable`.
///
/// # Errors
/// A sentence about a variable that is not set, or a `${` without an end.
pub fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            return Err("a `${` has no `}`".to_owned());
        };
        out.push_str(&variable(name).ok_or(format!("the variable {name} is not set"))?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// The names of variables that `text` uses.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("${").skip(1);
    parts.filter_map(|part| Some(part.split_once('}')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> McpServerConfig {
        serde_json::from_str(text).unwrap()
    }

    /// Proves MCP-1.
    #[test]
    fn server_is_a_program_or_an_address() {
        let check = |text: &str, expect: Option<&str>| {
            let found = server(text).validate().err().map(|(key, _)| key);
            assert_eq!(found, expect, "{text}");
        };
        check(r#"{"name": "a", "command": "x"}"#, None);
        check(r#"{"name": "a-B_1", "url": "https://e.org/mcp"}"#, None);
        check(r#"{"name": "", "command": "x"}"#, Some("name"));
        check(r#"{"name": "a b", "command": "x"}"#, Some("name"));
        check(r#"{"name": "a"}"#, Some("name"));
        check(r#"{"name": "a", "command": " "}"#, Some("command"));
        check(r#"{"name": "a", "url": "ftp://e.org"}"#, Some("url"));
        check(
            r#"{"name": "a", "command": "x", "url": "http://e"}"#,
            Some("url"),
        );
        check(
            r#"{"name": "a", "command": "x", "headers": {"a": "b"}}"#,
            Some("headers"),
        );
        check(
            r#"{"name": "a", "url": "http://e", "env": {"A": "b"}}"#,
            Some("env"),
        );
        check(
            r#"{"name": "a", "url": "http://e", "network": false}"#,
            Some("network"),
        );
        check(
            r#"{"name": "a", "command": "x", "sandbox": "off", "network": false}"#,
            Some("network"),
        );
        check(
            r#"{"name": "a", "command": "x", "sandbox": "off", "writable": ["b"]}"#,
            Some("writable"),
        );
        check(
            r#"{"name": "a", "url": "http://e", "args": ["b"]}"#,
            Some("args"),
        );
        check(
            r#"{"name": "a", "url": "http://e", "headers": {"a b": "c"}}"#,
            Some("headers"),
        );
    }

    /// Proves MCP-1.
    #[test]
    fn variables_are_substituted() {
        let variable = |name: &str| (name == "KEY").then(|| "k$e{y}".to_owned());
        let check = |text: &str, expect: Result<&str, &str>| {
            let found = expanded(text, &variable);
            assert_eq!(found.as_deref().map_err(String::as_str), expect, "{text}");
        };
        check("", Ok(""));
        check("a $KEY } b", Ok("a $KEY } b"));
        check("Bearer ${KEY}!", Ok("Bearer k$e{y}!"));
        check("${KEY}${KEY}", Ok("k$e{y}k$e{y}"));
        check("${NONE}", Err("the variable NONE is not set"));
        check("${KEY", Err("a `${` has no `}`"));
        let found: Vec<&str> = variables("a ${B}${C} ${D").collect();
        assert_eq!(found, ["B", "C"]);
    }
}
