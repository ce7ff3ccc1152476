//! Download of one file over HTTP, which resumes at its position after an interruption.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, LAST_MODIFIED, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::{Deserialize, Serialize};
use zeph_llm::RetryConfig;
use zeph_llm::http::http_client_builder;

use super::progress::Progress;

/// The maximum number of requests for a file in one run.
const ATTEMPTS: u32 = 5;
/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// The origin of the bytes that are already on disk.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PartialDownload {
    url: String,
    /// The version of the file: the value of `ETag` or `Last-Modified`.
    version: String,
}

/// Checks that a URL uses TLS or is on this machine.
///
/// # Errors
/// The URL is neither.
pub(super) fn allowed(url: &Url) -> anyhow::Result<()> {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|it| it.is_loopback());
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_here => Ok(()),
        _ => bail!(
            "{} is not downloaded: only https is allowed, and http from this machine",
            shown(url)
        ),
    }
}

/// Formats a URL without its user name and password.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // The setters fail only for a URL that cannot have a user name or password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// Creates a client for a server. It follows redirects only to URLs that [`allowed`] accepts.
///
/// # Errors
/// The machine has no root certificates.
pub(super) fn client(target: &Url, retry: &RetryConfig) -> anyhow::Result<Client> {
    let policy = Policy::custom(|attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else if allowed(attempt.url()).is_err() {
            attempt.error("a redirect away from https")
        } else {
            attempt.follow()
        }
    });
    let builder = http_client_builder(target, retry).redirect(policy);
    builder.build().context("the HTTP client cannot be created")
}

/// Fetches a file to `to`. An earlier download of the same version is continued.
///
/// # Errors
/// The server refuses the request, or the connection breaks in each attempt. The received part is retained.
pub(super) async fn fetch(
    client: &Client,
    url: &Url,
    to: &Path,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    allowed(url)?;
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(Duration::from_millis(200 << attempt)).await;
        }
        match part(client, url, to, progress).await {
            Ok(()) => return Ok(()),
            Err(Fault::Final(error)) => return Err(error),
            Err(Fault::Broken(error)) => last = Some(error),
        }
    }
    let error = last.unwrap_or_else(|| anyhow::anyhow!("nothing came"));
    Err(error.context("the downloaded part is stored; the same command continues the download"))
}

enum Fault {
    /// The connection broke. Another attempt may fetch the rest.
    Broken(anyhow::Error),
    Final(anyhow::Error),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Final(anyhow::Error::from(error).context("the download cannot be written"))
    }
}

/// Sends one request for the missing part.
async fn part(client: &Client, url: &Url, to: &Path, progress: &mut Progress) -> Result<(), Fault> {
    let broken = |error: reqwest::Error| {
        let error = anyhow::Error::from(error.without_url());
        Fault::Broken(error.context(format!("the download of {} ended early", shown(url))))
    };
    let begun = begun(to).filter(|begun| begun.url == shown(url));
    let have = begun.as_ref().map_or(0, |_| length(to));
    let mut request = client.get(url.clone());
    if let Some(begun) = begun.as_ref().filter(|_| have > 0) {
        request = request
            .header(RANGE, format!("bytes={have}-"))
            .header(IF_RANGE, &begun.version);
    }
    let mut response = request.send().await.map_err(broken)?;
    let goes_on = match response.status() {
        StatusCode::OK => false,
        StatusCode::PARTIAL_CONTENT if begins_at(response.headers(), have) => true,
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            fs::remove_file(to)?;
            let error = anyhow::anyhow!("{} sent another part than the requested one", shown(url));
            return Err(Fault::Broken(error));
        }
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            return Err(Fault::Broken(anyhow::anyhow!("{}: {status}", shown(url))));
        }
        status => return Err(Fault::Final(anyhow::anyhow!("{}: {status}", shown(url)))),
    };
    let mut at = if goes_on { have } else { 0 };
    let mut file = match goes_on {
        true => OpenOptions::new().append(true).open(to)?,
        false => {
            let file = File::create(to)?;
            note(to, url, response.headers())?;
            file
        }
    };
    let whole = response.content_length().map(|rest| at + rest);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        file.write_all(&chunk)?;
        at += chunk.len() as u64;
        progress.show(at, whole);
    }
    if whole.is_some_and(|whole| at < whole) {
        let error = anyhow::anyhow!("{} ended early", shown(url));
        return Err(Fault::Broken(error));
    }
    file.sync_all()?;
    Ok(())
}

/// Returns the path of the [`PartialDownload`] of a file.
fn notes(to: &Path) -> PathBuf {
    to.with_added_extension("json")
}

fn begun(to: &Path) -> Option<PartialDownload> {
    serde_json::from_slice(&fs::read(notes(to)).ok()?).ok()
}

/// Records the version of the file. A file without a version is fetched from its beginning the next time.
fn note(to: &Path, url: &Url, headers: &HeaderMap) -> std::io::Result<()> {
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok());
    let strong = text(ETAG).filter(|tag| !tag.starts_with("W/"));
    let Some(version) = strong.or(text(LAST_MODIFIED)) else {
        return match fs::remove_file(notes(to)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    let begun = PartialDownload {
        url: shown(url),
        version: version.to_owned(),
    };
    fs::write(notes(to), serde_json::to_vec(&begun)?)
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Whether the part of a response begins at the byte `at`.
fn begins_at(headers: &HeaderMap, at: u64) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|it| it.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {at}-")))
}

/// Removes a download and its record.
pub(super) fn forget(to: &Path) {
    // A missing file is not an error, and a remaining file is checked the next time.
    let _ = fs::remove_file(to);
    let _ = fs::remove_file(notes(to));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_https_and_loopback_downloads_are_allowed() {
        for (url, expect) in [
            ("https://example.org/x", true),
            ("http://127.0.0.1:8080/x", true),
            ("http://[::1]/x", true),
            ("http://localhost/x", true),
            ("http://example.org/x", false),
            ("http://127.0.0.1.example.org/x", false),
            ("file:///etc/passwd", false),
            ("ftp://localhost/x", false),
        ] {
            assert_eq!(allowed(&Url::parse(url).unwrap()).is_ok(), expect, "{url}");
        }
        let url = Url::parse("https://me:secret@example.org/x").unwrap();
        assert_eq!(shown(&url), "https://example.org/x");
    }
}
