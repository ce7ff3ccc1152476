//! Fetches models: GGUF files from a hub, from a URL or from this machine.
//!
//! The digest of a download is checked before use. A rename then puts the complete model into the store, so that the
//! store has no incomplete model.

mod download;
mod progress;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use reqwest::Url;
use sha2::{Digest as _, Sha256};
use zeph_llm::{ProviderConfig, ProviderKind, RetryConfig};
use zeph_tools::audit::chain::hex;

use self::download::{allowed, client, fetch, forget, shown};
use self::progress::Progress;
use super::{MANIFEST, Manifest, ModelStore, Purpose, Wanted, place};
use crate::config::Environment;
use crate::output::stderr_line;

/// The address of the hub, unless `HF_ENDPOINT` names another one.
const HUB: &str = "https://huggingface.co";
/// The weights in a model's directory.
const WEIGHTS: &str = "model.gguf";

/// Fetches a model, and returns its manifest.
///
/// # Errors
/// The model cannot be fetched, has another digest or cannot be run. The part of a download that arrived is retained.
pub(crate) async fn pull(
    store: &ModelStore,
    env: &Environment,
    retry: &RetryConfig,
    wanted: Wanted,
    quiet: bool,
) -> anyhow::Result<Manifest> {
    let partial = store.root.join(".partial");
    fs::create_dir_all(&partial)
        .with_context(|| format!("{} cannot be created", partial.display()))?;
    let lock = File::create(partial.join("lock"))?;
    ensure!(
        lock.try_lock().is_ok(),
        "another `zeph models pull` is running"
    );
    let work = Work {
        store,
        retry,
        partial,
        quiet,
    };
    let source = Source::parse(&wanted.model, env)?;
    let stem = source.file_name().strip_suffix(".gguf");
    let Some(stem) = stem.filter(|stem| !stem.is_empty()) else {
        bail!(
            "{} is not a GGUF file: name one that ends in .gguf",
            wanted.model
        );
    };
    let name = wanted.name.unwrap_or_else(|| stem.to_lowercase());
    store.directory(&name)?;
    let sha256 = wanted.sha256.map(|sha256| sha256.to_lowercase());
    if let Some(sha256) = sha256.as_ref().filter(|sha256| !is_digest(sha256)) {
        bail!("{sha256:?} is not a SHA-256 of 64 hexadecimal digits");
    }
    match source {
        Source::File(path) => work.copy_file(&path, &name, sha256).await,
        Source::Url(url) => work.fetch_url(&url, &name, sha256).await,
    }
}

/// The place of a GGUF file.
#[derive(Debug)]
enum Source {
    File(PathBuf),
    Url(Url),
}

impl Source {
    /// Parses a source. A file of a hub becomes a URL below the address of the hub.
    fn parse(model: &str, env: &Environment) -> anyhow::Result<Self> {
        if model.contains("://") {
            let url = Url::parse(model);
            return url
                .map(Self::Url)
                .with_context(|| format!("{model} is not a URL"));
        }
        if ["/", "./", "../", "~/"]
            .iter()
            .any(|start| model.starts_with(start))
        {
            let path = place(model, env).context("HOME is not set")?;
            return Ok(Self::File(path));
        }
        let mut parts = model.splitn(3, '/');
        let (Some(owner), Some(repo), Some(file)) = (parts.next(), parts.next(), parts.next())
        else {
            bail!(
                "there is no model {model:?}: name OWNER/REPO/FILE.gguf of the hub, a URL, \
                 or a path that begins with `/`, `./`, `../` or `~/`"
            );
        };
        let hub = variable(env, "HF_ENDPOINT")?.unwrap_or(HUB);
        let mut url = Url::parse(hub).context("HF_ENDPOINT is not a URL")?;
        let Ok(mut path) = url.path_segments_mut() else {
            bail!("HF_ENDPOINT is not a URL");
        };
        path.pop_if_empty().extend([owner, repo, "resolve", "main"]);
        path.extend(file.split('/'));
        drop(path);
        Ok(Self::Url(url))
    }

    fn file_name(&self) -> &str {
        let path = match self {
            Self::File(path) => path.to_str().unwrap_or_default(),
            Self::Url(url) => url.path(),
        };
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// The state that all steps of one pull share.
struct Work<'a> {
    store: &'a ModelStore,
    retry: &'a RetryConfig,
    partial: PathBuf,
    quiet: bool,
}

impl Work<'_> {
    async fn copy_file(
        &self,
        file: &Path,
        name: &str,
        sha256: Option<String>,
    ) -> anyhow::Result<Manifest> {
        let shown = file.display().to_string();
        let mut from = File::open(file).with_context(|| format!("{shown} cannot be read"))?;
        let stage = self.stage()?;
        let mut to = File::create(stage.path().join(WEIGHTS))?;
        let found =
            copy(&mut from, &mut to).with_context(|| format!("{shown} cannot be copied"))?;
        if let Some(sha256) = sha256.filter(|sha256| *sha256 != found) {
            bail!("{shown} has the digest {found}, and not {sha256}");
        }
        self.put(stage, name, shown, found).await
    }

    async fn fetch_url(
        &self,
        url: &Url,
        name: &str,
        sha256: Option<String>,
    ) -> anyhow::Result<Manifest> {
        allowed(url)?;
        let sha256 = match sha256 {
            Some(sha256) => sha256,
            None => self.digest_of(url).await?,
        };
        if let Some(there) = self.there(name, &sha256) {
            return Ok(there);
        }
        self.say(&format!("fetching {}", shown(url)));
        // The digest identifies the version: each version has its own file.
        let partial = self.partial.join(format!("{sha256}.gguf"));
        let client = client(url, self.retry)?;
        let mut progress = Progress::new(name, self.quiet);
        fetch(&client, url, &partial, &mut progress).await?;
        drop(progress);
        let stage = self.stage()?;
        let found = digest(&partial)?;
        if found != sha256 {
            forget(&partial);
            bail!("{} has the digest {found}, and not {sha256}", shown(url));
        }
        let weights = stage.path().join(WEIGHTS);
        if fs::hard_link(&partial, &weights).is_err() {
            fs::copy(&partial, &weights).context("the model cannot be copied")?;
        }
        let manifest = self.put(stage, name, shown(url), sha256).await?;
        forget(&partial);
        Ok(manifest)
    }

    /// Returns the manifest of the model in the store if its source has the same digest.
    fn there(&self, name: &str, sha256: &str) -> Option<Manifest> {
        let (_, manifest) = self.store.find(name).ok()?;
        (manifest.source_sha256 == sha256).then_some(manifest)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            stderr_line(text);
        }
    }

    /// Returns the digest that a server states for a file in the header of the hub.
    async fn digest_of(&self, url: &Url) -> anyhow::Result<String> {
        let client = zeph_llm::http::http_client_builder(url, self.retry).build()?;
        let response = client.head(url.clone()).send().await;
        let response = response
            .map_err(reqwest::Error::without_url)
            .with_context(|| format!("{} cannot be reached", shown(url)))?;
        let status = response.status();
        ensure!(
            status.is_success() || status.is_redirection(),
            "{}: {status}",
            shown(url)
        );
        let tag = response.headers().get("x-linked-etag");
        let tag = tag.and_then(|tag| tag.to_str().ok()).unwrap_or_default();
        let tag = tag.trim_matches('"').to_lowercase();
        ensure!(
            is_digest(&tag),
            "the server does not state the digest of {}: give it with --sha256",
            shown(url)
        );
        Ok(tag)
    }

    /// Creates a new directory next to the future directory of the model.
    fn stage(&self) -> anyhow::Result<tempfile::TempDir> {
        let builder = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.store.root);
        builder.context("no directory can be made for the model")
    }

    /// Converts the weights, tests the model, and moves it into the store.
    async fn put(
        &self,
        stage: tempfile::TempDir,
        name: &str,
        source: String,
        source_sha256: String,
    ) -> anyhow::Result<Manifest> {
        let path = stage.path().join(WEIGHTS);
        self.say("writing the weights as Q8_0");
        let (from, to) = (path.clone(), stage.path().join("requantized"));
        let done = tokio::task::spawn_blocking(move || {
            zeph_llm::candle::quantize::requantize(&from, &to)?;
            fs::rename(&to, &from).map_err(|error| error.to_string())
        });
        let done = done
            .await
            .context("the weights cannot be rewritten as Q8_0")?;
        done.map_err(anyhow::Error::msg)
            .context("the weights cannot be rewritten as Q8_0")?;
        let config = ProviderConfig {
            model: stage.path().to_string_lossy().into_owned(),
            ..ProviderConfig::new(name.to_owned(), ProviderKind::Candle)
        };
        zeph_llm::build_provider(&config, *self.retry, None)?;
        let manifest = Manifest {
            name: name.to_owned(),
            purpose: Purpose::Chat,
            source,
            license: None,
            fetched: jiff::Timestamp::now().to_string(),
            source_sha256,
            sha256: digest(&path)?,
            bytes: fs::metadata(&path)?.len(),
        };
        let note = File::create(stage.path().join(MANIFEST))?;
        serde_json::to_writer_pretty(&note, &manifest)?;
        note.sync_all()?;
        let place = self.store.directory(name)?;
        if place.exists() {
            fs::remove_dir_all(&place)
                .with_context(|| format!("{} cannot be replaced", place.display()))?;
        }
        fs::rename(stage.keep(), &place).context("the model cannot be moved to its directory")?;
        File::open(&self.store.root)?.sync_all()?;
        Ok(manifest)
    }
}

/// Computes the SHA-256 of a file.
fn digest(path: &Path) -> anyhow::Result<String> {
    let mut file = File::open(path)?;
    Ok(copy(&mut file, &mut std::io::sink())?)
}

/// Copies all bytes, and returns their SHA-256.
fn copy(from: &mut dyn Read, to: &mut dyn std::io::Write) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        let bytes = buffer.get(..count).unwrap_or_default();
        hash.update(bytes);
        to.write_all(bytes)?;
    }
    Ok(hex(&hash.finalize()))
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a variable of the environment as text.
fn variable<'a>(env: &'a Environment, name: &str) -> anyhow::Result<Option<&'a str>> {
    let value = env.var(name).map(|value| value.to_str());
    value
        .map(|value| value.with_context(|| format!("the value of {name} is not valid UTF-8")))
        .transpose()
}
