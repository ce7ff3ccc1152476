//! OAuth logins to servers: the flow of `zeph mcp login`, and the tokens of a connection.
//!
//! The library discovers the authorization server, registers the client, and checks `iss`, `resource` and PKCE. A token
//! counts for the address of its server and the issuer that it is of.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, WWW_AUTHENTICATE};
use rmcp::model::ProtocolVersion;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest,
    AuthorizationSession, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::config::McpServerConfig;
use crate::http;
use crate::sanitize::line;

/// The name of the client at an authorization server.
const CLIENT_NAME: &str = "Zeph";
/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 500;

/// A store of the logins to servers. The records are secret.
pub trait TokenStore: Send + Sync {
    /// The record of a server at this address.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&self, server: &str, url: &str) -> io::Result<Option<String>>;

    /// Replaces the record.
    ///
    /// # Errors
    /// An error of the system; the previous record stays.
    fn save(&self, server: &str, url: &str, record: &str) -> io::Result<()>;

    /// Removes the record, and returns whether there was one.
    ///
    /// # Errors
    /// An error of the system.
    fn remove(&self, server: &str, url: &str) -> io::Result<bool>;

    /// Waits until no other process changes the record. Dropping the value lets others continue. It blocks its thread,
    /// so asynchronous code calls it on a thread for blocking work.
    ///
    /// # Errors
    /// An error of the system.
    fn lock(&self, server: &str, url: &str) -> io::Result<Box<dyn Send>>;

    /// Redacts these tokens from all later output.
    fn redact(&self, tokens: &[String]);
}

/// The login at one server, as it is stored.
#[derive(Default, Serialize, Deserialize)]
struct Record {
    /// The tokens with their issuer, as the library stores them.
    credentials: Option<StoredCredentials>,
    /// The scopes that the server asked for since the login.
    #[serde(default)]
    wanted_scopes: Vec<String>,
    /// The metadata of the authorization server at the login. Some servers refer to it only in a refusal.
    #[serde(default)]
    metadata: Option<AuthorizationMetadata>,
}

/// The stored login of one server.
#[derive(Clone)]
pub struct StoredLogin {
    store: Arc<dyn TokenStore>,
    server: String,
    url: String,
}

impl StoredLogin {
    /// Creates the record for the server `name` at `url`, without a login.
    #[must_use]
    pub fn new(store: Arc<dyn TokenStore>, name: &str, url: &str) -> Self {
        Self {
            store,
            server: name.to_owned(),
            url: url.to_owned(),
        }
    }

    fn record(&self) -> io::Result<Record> {
        let Some(text) = self.store.load(&self.server, &self.url)? else {
            return Ok(Record::default());
        };
        serde_json::from_str(&text)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the stored login is damaged"))
    }

    fn put(&self, record: &Record) -> io::Result<()> {
        let text = serde_json::to_string(record)?;
        self.store.save(&self.server, &self.url, &text)
    }

    /// Whether tokens are stored.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn has_tokens(&self) -> io::Result<bool> {
        let credentials = self.record()?.credentials;
        Ok(credentials.is_some_and(|stored| stored.token_response.is_some()))
    }

    /// The secrets of the record, for redaction.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let credentials = self.record().ok().and_then(|record| record.credentials);
        credentials.as_ref().map(tokens).unwrap_or_default()
    }

    /// Stores the metadata of the authorization server.
    async fn keep_metadata(&self, metadata: &AuthorizationMetadata) -> io::Result<()> {
        let metadata = metadata.clone();
        self.change(move |record| record.metadata = Some(metadata))
            .await
    }

    /// Records scopes that the server asked for; the next login requests them.
    pub(crate) async fn want(&self, scopes: &str) {
        let scopes: Vec<String> = scopes.split_whitespace().map(str::to_owned).collect();
        let changed = self.change(move |record| {
            for scope in scopes {
                if !record.wanted_scopes.contains(&scope) {
                    record.wanted_scopes.push(scope);
                }
            }
        });
        if let Err(error) = changed.await {
            tracing::warn!(server = %self.server, %error, "the scopes of a login cannot be stored");
        }
    }

    /// Changes the record while no other process changes it. The wait for the lock is on another thread: a token refresh
    /// of this process may hold it.
    async fn change(&self, change: impl FnOnce(&mut Record) + Send + 'static) -> io::Result<()> {
        let login = self.clone();
        let changed = tokio::task::spawn_blocking(move || {
            let _lock = login.store.lock(&login.server, &login.url)?;
            let mut record = login.record()?;
            change(&mut record);
            login.put(&record)
        });
        changed.await.map_err(io::Error::other)?
    }
}

/// The secrets of a login.
fn tokens(credentials: &StoredCredentials) -> Vec<String> {
    let form = serde_json::to_value(&credentials.token_response).unwrap_or_default();
    let secret = |key: &str| form.get(key)?.as_str().map(str::to_owned);
    let keys = ["access_token", "refresh_token"].into_iter();
    keys.filter_map(secret).collect()
}

fn stored<T>(result: io::Result<T>) -> Result<T, AuthError> {
    result.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
}

#[async_trait]
impl CredentialStore for StoredLogin {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let credentials = stored(self.record())?.credentials;
        // Another process may have refreshed the tokens.
        if let Some(credentials) = &credentials {
            self.store.redact(&tokens(credentials));
        }
        Ok(credentials)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.store.redact(&tokens(&credentials));
        let mut record = stored(self.record())?;
        // The new token has the scopes that were requested.
        record
            .wanted_scopes
            .retain(|scope| !credentials.granted_scopes.contains(scope));
        record.credentials = Some(credentials);
        stored(self.put(&record))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        stored(self.store.remove(&self.server, &self.url)).map(|_| ())
    }

    async fn acquire_refresh_guard(
        &self,
    ) -> Result<Option<rmcp::transport::auth::CredentialRefreshGuard>, AuthError> {
        let login = self.clone();
        let locked =
            tokio::task::spawn_blocking(move || login.store.lock(&login.server, &login.url));
        let locked = locked
            .await
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        let guard = Guard(std::sync::Mutex::new(stored(locked)?));
        Ok(Some(rmcp::transport::auth::CredentialRefreshGuard::new(
            guard,
        )))
    }
}

/// Holds the lock of the record.
struct Guard(
    #[allow(dead_code, reason = "dropping it ends the lock")] std::sync::Mutex<Box<dyn Send>>,
);

/// The manager of a connection's tokens; `None` if the user is not logged in.
///
/// # Errors
/// The record cannot be read, or the authorization server cannot be reached.
pub(crate) async fn manager(
    config: &McpServerConfig,
    url: &str,
    login: &StoredLogin,
    client_secret: Option<String>,
) -> Result<Option<AuthorizationManager>, String> {
    let has_tokens = login.has_tokens().map_err(|error| error.to_string())?;
    if !has_tokens {
        return Ok(None);
    }
    let mut manager = AuthorizationManager::new(url)
        .await
        .map_err(|error| told(&error))?;
    manager.set_credential_store(login.clone());
    let found = manager.resolve_metadata().await;
    let stored = login.record().map_err(|error| error.to_string())?.metadata;
    match (found, stored) {
        (Ok(found), _) if found.source.is_discovered() => manager.set_metadata(found.metadata),
        (_, Some(stored)) => manager.set_metadata(stored),
        (Ok(found), None) => manager.set_metadata(found.metadata),
        (Err(error), None) => return Err(told(&error)),
    }
    let is_logged_in = manager
        .initialize_from_store()
        .await
        .map_err(|error| told(&error))?;
    if !is_logged_in {
        return Ok(None);
    }
    let id = config
        .oauth
        .as_ref()
        .and_then(|oauth| oauth.client_id.clone());
    if let (Some(id), Some(secret)) = (id, client_secret) {
        let client = OAuthClientConfig::new(id, url).with_client_secret(secret);
        manager
            .configure_client(client)
            .map_err(|error| told(&error))?;
    }
    Ok(Some(manager))
}

/// A request of the browser to the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowserReturn {
    /// It has another path.
    OtherPath,
    /// It has the `state` of another login.
    OtherLogin,
    /// The authorization server refused the login, for this reason.
    Refused(String),
    /// The address for [`Login::finish`].
    Granted(String),
}

/// The path to which the browser returns.
pub const CALLBACK_PATH: &str = "/callback";

/// The meaning of a request for `target`. `state` is the value of this login.
fn returned(target: &str, state: Option<&str>) -> BrowserReturn {
    let address = format!("http://127.0.0.1{target}");
    let Ok(url) = reqwest::Url::parse(&address) else {
        return BrowserReturn::OtherPath;
    };
    if url.path() != CALLBACK_PATH {
        return BrowserReturn::OtherPath;
    }
    let value = |key: &str| {
        let mut pairs = url.query_pairs();
        pairs.find_map(|(name, value)| (name == key).then(|| value.into_owned()))
    };
    if state.is_none() || value("state").as_deref() != state {
        return BrowserReturn::OtherLogin;
    }
    match (value("error"), value("error_description")) {
        (None, _) => BrowserReturn::Granted(address),
        (Some(error), None) => BrowserReturn::Refused(error),
        (Some(error), Some(more)) => BrowserReturn::Refused(format!("{error}: {more}")),
    }
}

/// A login that waits for the user.
pub struct Login {
    session: AuthorizationSession,
    /// The issuer of the authorization server.
    pub issuer: String,
    metadata: AuthorizationMetadata,
    login: StoredLogin,
}

impl Login {
    /// Finds the authorization server of `config`, and registers this program there. The browser returns to
    /// `redirect`.
    ///
    /// # Errors
    /// The server has no login, or the registration fails.
    pub async fn begin(
        config: &McpServerConfig,
        url: &str,
        login: &StoredLogin,
        client_secret: Option<String>,
        redirect: &str,
    ) -> Result<Self, String> {
        // This also installs the cryptography that the library's own client needs.
        let client = http::client(url, config.connect_timeout()).await?;
        let challenge = challenge(&client, url, config.connect_timeout()).await?;
        let record = login.record().map_err(|error| error.to_string())?;
        let mut manager = AuthorizationManager::new(url)
            .await
            .map_err(|error| told(&error))?;
        manager.set_credential_store(login.clone());
        let found = manager.resolve_metadata_from_challenge(challenge.as_deref());
        let found = found.await.map_err(|error| told(&error))?;
        let metadata = found.metadata;
        let issuer = metadata.issuer.clone();
        let issuer = issuer.unwrap_or_else(|| metadata.authorization_endpoint.clone());
        manager.set_metadata(metadata.clone());
        let oauth = config.oauth.clone().unwrap_or_default();
        let mut request = AuthorizationRequest::new(redirect)
            .with_client_name(CLIENT_NAME)
            .with_initial_scope_selection();
        let mut scopes = oauth.scopes;
        if !record.wanted_scopes.is_empty() {
            let granted = record.credentials.map(|stored| stored.granted_scopes);
            scopes.extend(granted.into_iter().flatten());
            scopes.extend(record.wanted_scopes);
            scopes.sort();
            scopes.dedup();
        }
        if !scopes.is_empty() {
            request = request.with_scopes(scopes);
        }
        if let Some(id) = oauth.client_id {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = client_secret {
            request = request.with_client_secret(secret);
        }
        if let Some(document) = oauth.client_metadata_url {
            request = request.with_client_metadata_url(document);
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| told(&error))?;
        if !http::is_web(session.get_authorization_url()) {
            return Err(
                "its authorization server names an address that is not http or https".to_owned(),
            );
        }
        Ok(Self {
            session,
            issuer,
            metadata,
            login: login.clone(),
        })
    }

    /// Returns the address that the user opens.
    #[must_use]
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Parses a request of the browser for `target`.
    #[must_use]
    pub fn returned(&self, target: &str) -> BrowserReturn {
        let url = reqwest::Url::parse(self.url()).ok();
        let state = url.and_then(|url| {
            let mut pairs = url.query_pairs();
            pairs.find_map(|(key, value)| (key == "state").then(|| value.into_owned()))
        });
        returned(target, state.as_deref())
    }

    /// Exchanges the code in the address to which the browser returned, and stores the tokens. Returns the granted scopes.
    ///
    /// # Errors
    /// The address is not of this login, or of another issuer, or the server grants no token.
    pub async fn finish(&self, callback: &str) -> Result<Vec<String>, String> {
        let done = self.session.handle_callback_url(callback).await;
        done.map_err(|error| told(&error))?;
        let stored = self.login.keep_metadata(&self.metadata).await;
        stored.map_err(|error| error.to_string())?;
        Ok(self.session.auth_manager.get_current_scopes().await)
    }
}

/// The challenge of a request without a token; `None` if the server refuses none. A server of one generation may reject
/// the request of the other for another reason.
async fn challenge(
    client: &reqwest::Client,
    url: &str,
    limit: Duration,
) -> Result<Option<String>, String> {
    let me = json!({ "name": "zeph", "version": env!("CARGO_PKG_VERSION") });
    let revision = ProtocolVersion::NO_INITIALIZE;
    let discover = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": revision.as_str(),
        "io.modelcontextprotocol/clientInfo": me,
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let initialize = json!({
        "protocolVersion": ProtocolVersion::LATEST_WITH_INITIALIZE.as_str(),
        "capabilities": {},
        "clientInfo": me,
    });
    for (method, params) in [("server/discover", discover), ("initialize", initialize)] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = client
            .post(url)
            .header(ACCEPT, "application/json, text/event-stream")
            .timeout(limit);
        if method == "server/discover" {
            request = request
                .header("mcp-protocol-version", revision.as_str())
                .header("mcp-method", method);
        }
        let response = request.json(&message).send().await.map_err(|error| {
            let why = error.without_url().to_string();
            format!(
                "the server cannot be reached: {}",
                line(&why, MAX_REASON_CHARS)
            )
        })?;
        let header = response.headers().get(WWW_AUTHENTICATE);
        let header = header.and_then(|value| value.to_str().ok());
        if let Some(header) = header.filter(|_| response.status() == 401) {
            return Ok(Some(header.to_owned()));
        }
    }
    Ok(None)
}

/// The text of a failure with its causes, without hidden characters.
fn told(error: &AuthError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    line(&text, MAX_REASON_CHARS)
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex, PoisonError};

    use super::*;

    /// How long the lock of [`OneRecord`] is waited for.
    const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

    /// A store with one record. A second lock waits for the end of the first one.
    #[derive(Clone, Default)]
    struct OneRecord(Arc<(Mutex<Stored>, Condvar)>);

    /// The record, and whether it is locked.
    type Stored = (Option<String>, bool);

    impl OneRecord {
        fn with<T>(&self, act: impl FnOnce(&mut Stored) -> T) -> T {
            act(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }

    /// A lock of [`OneRecord`].
    struct RecordLock(OneRecord);

    impl Drop for RecordLock {
        fn drop(&mut self) {
            self.0.with(|(_, is_locked)| *is_locked = false);
            self.0.0.1.notify_all();
        }
    }

    impl TokenStore for OneRecord {
        fn load(&self, _server: &str, _url: &str) -> io::Result<Option<String>> {
            Ok(self.with(|(record, _)| record.clone()))
        }

        fn save(&self, _server: &str, _url: &str, new: &str) -> io::Result<()> {
            self.with(|(record, _)| *record = Some(new.to_owned()));
            Ok(())
        }

        fn remove(&self, _server: &str, _url: &str) -> io::Result<bool> {
            Ok(self.with(|(record, _)| record.take().is_some()))
        }

        fn redact(&self, _tokens: &[String]) {}

        fn lock(&self, _server: &str, _url: &str) -> io::Result<Box<dyn Send>> {
            let (state, changed) = &*self.0;
            let state = state.lock().unwrap();
            let is_locked = |state: &mut Stored| state.1;
            let (mut state, waited) = changed
                .wait_timeout_while(state, LOCK_TIMEOUT, is_locked)
                .unwrap();
            if waited.timed_out() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            state.1 = true;
            Ok(Box::new(RecordLock(self.clone())))
        }
    }

    /// Proves MCP-1c: while a token refresh holds the lock, other tasks of the only thread continue.
    #[tokio::test]
    async fn scopes_are_stored_after_a_token_refresh_of_the_same_thread() {
        let store = OneRecord::default();
        let login = StoredLogin::new(Arc::new(store.clone()), "s", "http://127.0.0.1/");
        let guard = login.acquire_refresh_guard().await.unwrap();
        let refresh = async {
            tokio::task::yield_now().await;
            drop(guard);
        };
        tokio::join!(login.want("read write"), refresh);
        let record: Record = serde_json::from_str(&store.load("", "").unwrap().unwrap()).unwrap();
        assert_eq!(record.wanted_scopes, ["read", "write"]);
    }

    /// Proves MCP-1c.
    #[test]
    fn only_the_return_of_this_login_counts() {
        let check = |target: &str, expect| {
            assert_eq!(returned(target, Some("s+1")), expect, "{target}");
        };
        check("/favicon.ico", BrowserReturn::OtherPath);
        check("/callback?code=c&state=s", BrowserReturn::OtherLogin);
        check("/callback?code=c", BrowserReturn::OtherLogin);
        let refused = |why: &str| BrowserReturn::Refused(why.to_owned());
        check(
            "/callback?error=access_denied&error_description=no&state=s%2B1",
            refused("access_denied: no"),
        );
        let granted = "/callback?code=c&state=s%2B1";
        check(
            granted,
            BrowserReturn::Granted(format!("http://127.0.0.1{granted}")),
        );
        assert_eq!(
            returned("/callback?code=c", None),
            BrowserReturn::OtherLogin
        );
    }
}
