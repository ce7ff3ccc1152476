//! `zeph mcp login|logout`: the browser logs in at the authorization server, and returns to a listener on loopback.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use zeph_mcp::{BrowserReturn, CALLBACK_PATH, Login, McpServerConfig, StoredLogin, Way, expanded};

use super::configured;
use crate::assemble::{McpTokens, redaction_values};
use crate::browser;
use crate::cli::{Exit, print};
use crate::config::{Environment, Loaded};
use crate::output::sanitize::visible;
use crate::output::stderr_line;

/// How long a login waits for the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a request of the browser may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a request of the browser.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// Logs in to a server.
///
/// # Errors
/// The server has no login, or the login fails.
pub(super) async fn login(
    loaded: &Loaded,
    env: &Environment,
    name: &str,
    no_browser: bool,
) -> anyhow::Result<Exit> {
    redaction_values(loaded, env);
    let server = configured(loaded, name)?;
    let (url, stored) = of_server(loaded, server)?;
    let oauth = server.oauth.clone().unwrap_or_default();
    let port = oauth.redirect_port.unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listener.with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
    let redirect = format!("http://{}{CALLBACK_PATH}", listener.local_addr()?);
    let secret = client_secret(server, env)?;
    let login = Login::begin(server, url, &stored, secret, &redirect).await;
    let login = login.map_err(|why| {
        anyhow::anyhow!(
            "the login at the MCP server {name} cannot begin: {}",
            visible(&why)
        )
    })?;
    print(&format!(
        "Log in to {} at this address:\n{}",
        visible(&login.issuer),
        visible(login.url())
    ))?;
    if !no_browser && let Err(error) = browser::open(login.url(), env) {
        stderr_line(&format!(
            "the browser cannot be started ({error}); open the address manually"
        ));
    }
    let scopes = tokio::time::timeout(LOGIN_TIMEOUT, returned(&listener, &login)).await;
    let scopes = scopes.context("the browser did not return in time")??;
    let scopes = match scopes.as_slice() {
        [] => String::new(),
        scopes => format!(", with the scope {}", scopes.join(" ")),
    };
    print(&visible(&format!(
        "logged in at the MCP server {name}{scopes}"
    )))?;
    Ok(Exit::Done)
}

/// Removes the login of a server.
///
/// # Errors
/// The stored login cannot be removed.
pub(super) fn logout(loaded: &Loaded, name: &str) -> anyhow::Result<Exit> {
    let server = configured(loaded, name)?;
    let Ok(Way::Url(url)) = server.way() else {
        bail!("the MCP server {name} is a program; only a server with a `url` has a login");
    };
    let tokens = McpTokens::in_folder(&loaded.paths.data_dir);
    let was = zeph_mcp::TokenStore::remove(&tokens, name, url);
    print(match was.context("the login cannot be removed")? {
        true => {
            "the login was removed; the authorization server may list the token until it expires"
        }
        false => "there was no login",
    })?;
    Ok(Exit::Done)
}

/// The address of a server and its stored login.
fn of_server<'s>(
    loaded: &Loaded,
    server: &'s McpServerConfig,
) -> anyhow::Result<(&'s str, StoredLogin)> {
    match server.way() {
        Ok(Way::Url(url)) => {
            let tokens = Arc::new(McpTokens::in_folder(&loaded.paths.data_dir));
            Ok((url, StoredLogin::new(tokens, &server.name, url)))
        }
        _ => bail!(
            "the MCP server {} is a program; only a server with a `url` has a login",
            server.name
        ),
    }
}

/// The secret of the client, with its variables replaced.
fn client_secret(server: &McpServerConfig, env: &Environment) -> anyhow::Result<Option<String>> {
    let Some(oauth) = &server.oauth else {
        return Ok(None);
    };
    let variable = |name: &str| Some(env.var(name)?.to_str()?.to_owned());
    let secret = oauth.client_secret.as_deref();
    let secret = secret.map(|secret| expanded(secret, &variable)).transpose();
    secret.map_err(|why| anyhow::anyhow!("`oauth.client_secret`: {why}"))
}

/// Waits until the browser returns with the code of this login. Other requests are answered, and change nothing.
async fn returned(listener: &TcpListener, login: &Login) -> anyhow::Result<Vec<String>> {
    loop {
        let (mut stream, _) = listener.accept().await.context("the listener failed")?;
        let read = tokio::time::timeout(REQUEST_TIMEOUT, target(&mut stream)).await;
        let Ok(Some(target)) = read else { continue };
        let callback = match login.returned(&target) {
            BrowserReturn::OtherPath => {
                respond(
                    &mut stream,
                    "404 Not Found",
                    "This address does not belong to the login.",
                )
                .await;
                continue;
            }
            BrowserReturn::OtherLogin => {
                respond(&mut stream, "400 Bad Request", "Another login is running.").await;
                continue;
            }
            BrowserReturn::Refused(error) => {
                respond(
                    &mut stream,
                    "200 OK",
                    "The login was refused. Return to the terminal.",
                )
                .await;
                bail!(
                    "the authorization server refused the login: {}",
                    visible(&error)
                );
            }
            BrowserReturn::Granted(callback) => callback,
        };
        let finished = login.finish(&callback).await;
        let (status, text) = match &finished {
            Ok(_) => ("200 OK", "Logged in. Return to the terminal."),
            Err(_) => (
                "400 Bad Request",
                "The login failed. Return to the terminal.",
            ),
        };
        respond(&mut stream, status, text).await;
        return finished.map_err(|why| anyhow::anyhow!("the login failed: {}", visible(&why)));
    }
}

/// The target of a GET request; `None` for any other input.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 2048];
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut buffer).await.ok()?;
        if length == 0 || bytes.len() > MAX_REQUEST_BYTES {
            return None;
        }
        bytes.extend_from_slice(buffer.get(..length)?);
    }
    let text = String::from_utf8(bytes).ok()?;
    let mut words = text.lines().next()?.split(' ');
    let is_get = words.next() == Some("GET");
    let target = words.next().filter(|target| target.starts_with('/'));
    target.filter(|_| is_get).map(str::to_owned)
}

/// Responds with a page that has only this text.
async fn respond(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><title>Zeph</title><p>{text}</p>");
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // The browser may be gone already.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}
